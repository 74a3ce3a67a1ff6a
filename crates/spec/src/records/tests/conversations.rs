//! Messages and conversations.

use serde_json::{Value, json};

use super::{call_id, object, read_error, tool};
use crate::records::{Conversation, Message, MessageCall, MessageRole};

fn numbered(count: usize) -> impl Iterator<Item = Message> {
    (0..count).map(|number| Message::user(number.to_string()))
}

fn contents(conversation: &Conversation) -> Vec<&str> {
    conversation
        .messages()
        .map(|message| message.content.as_str())
        .collect()
}

fn call_request(id: &str) -> Message {
    let call = MessageCall {
        call_id: call_id(id),
        tool_name: tool("sayHello"),
        arguments: object(json!({ "name": "Ada" })),
    };
    Message::new(MessageRole::AssistantCalls(vec![call]), "")
}

fn call_answer(id: &str) -> Message {
    let role = MessageRole::Function {
        name: tool("sayHello"),
        call_id: Some(call_id(id)),
    };
    Message::new(role, "Hello, Ada! Nice to meet you.")
}

#[test]
fn messages_have_a_role_and_content() {
    for (message, written) in [
        (
            Message::user("hello"),
            json!({ "role": "user", "content": "hello" }),
        ),
        (
            Message::assistant("hi"),
            json!({ "role": "assistant", "content": "hi" }),
        ),
        (
            Message::function(tool("sayHello"), "Hello, Ada!"),
            json!({ "role": "function", "content": "Hello, Ada!", "name": "sayHello" }),
        ),
        (
            Message::new(MessageRole::System, "be kind"),
            json!({ "role": "system", "content": "be kind" }),
        ),
        (
            call_request("r:1:0"),
            json!({
                "role": "assistant",
                "content": "",
                "calls": [{
                    "call_id": "r:1:0", "tool_name": "sayHello", "arguments": { "name": "Ada" }
                }]
            }),
        ),
    ] {
        assert_eq!(serde_json::to_value(&message).unwrap(), written);
        let read: Message = serde_json::from_value(written).unwrap();
        assert_eq!(read, message);
    }
}

#[test]
fn function_messages_must_have_a_name() {
    assert_eq!(
        read_error::<Message>(json!({ "role": "function", "content": "Hello" })),
        "a function message must have the name of its tool"
    );
    read_error::<Message>(json!({ "role": "function", "content": "Hello", "name": "" }));
    assert_eq!(
        read_error::<Message>(json!({ "role": "user", "content": "Hello", "name": "ada" })),
        "only a function message can have a name or a call_id"
    );
    let calls = serde_json::to_value(call_request("r:1:0")).unwrap()["calls"].clone();
    read_error::<Message>(json!({ "role": "user", "content": "", "calls": calls }));
    read_error::<Message>(json!({ "role": "robot", "content": "Hello" }));
}

#[test]
fn a_conversation_can_be_empty() {
    let conversation = Conversation::new();
    assert!(conversation.is_empty());
    let written = serde_json::to_value(&conversation).unwrap();
    assert_eq!(written, json!({ "contextMessages": [] }));
}

#[test]
fn at_most_100_messages_are_kept_and_the_oldest_are_dropped() {
    let mut conversation: Conversation = numbered(100).collect();
    assert_eq!((conversation.len(), conversation.dropped()), (100, 0));
    assert_eq!(conversation.push(Message::user("new")), 1);
    assert_eq!((conversation.len(), conversation.dropped()), (100, 1));
    let contents = contents(&conversation);
    assert_eq!((contents[0], contents[99]), ("1", "new"));
}

#[test]
fn the_task_is_never_dropped() {
    let mut conversation = Conversation::about(Message::user("the task"));
    conversation.extend(numbered(250));
    let contents = contents(&conversation);
    assert_eq!(contents.len(), 100);
    assert_eq!(contents[..2], ["the task", "151"]);
    assert_eq!(conversation.dropped(), 151);
}

#[test]
fn answers_to_calls_are_dropped_with_their_request() {
    let mut conversation = Conversation::about(Message::user("the task"));
    conversation.extend([
        call_request("r:1:0"),
        call_answer("r:1:0"),
        call_answer("r:9:9"),
    ]);
    conversation.extend(numbered(96));
    assert_eq!(conversation.len(), 100);
    assert_eq!(conversation.push(Message::user("new")), 2);
    let kept: Vec<_> = conversation.messages().take(2).collect();
    assert_eq!(kept[0].content, "the task");
    assert_eq!(*kept[1], call_answer("r:9:9"));
}

#[test]
fn a_conversation_reads_back_with_its_task_pinned() {
    let mut conversation = Conversation::about(Message::user("the task"));
    conversation.extend(numbered(120));
    let written = serde_json::to_value(&conversation).unwrap();
    let mut read: Conversation = serde_json::from_value(written).unwrap();
    assert_eq!(read, conversation);
    read.push(Message::user("new"));
    assert_eq!(contents(&read)[0], "the task");
}

#[test]
fn a_list_that_is_too_long_is_cut_when_read() {
    let messages: Vec<_> = numbered(130)
        .map(|message| serde_json::to_value(message).unwrap())
        .collect();
    let long = json!({ "contextMessages": Value::Array(messages) });
    let read: Conversation = serde_json::from_value(long).unwrap();
    assert_eq!((read.len(), read.dropped()), (100, 30));
    assert_eq!(contents(&read)[0], "30");
}
