//! The context that tools are chosen in.

use serde_json::{Value, json};

use super::read_error;
use crate::Message;
use crate::registry::*;

fn example() -> Value {
    json!({
        "user_request": "Summarise what was said today",
        "channel_id": "C024BE91L",
        "user_id": "U024BE7LH",
        "thread_ts": "1729123456.000200",
        "available_tools": ["read_channel", "summarise"],
        "conversation_history": [{ "role": "user", "content": "Hello" }],
        "environment": "production",
    })
}

fn with(key: &str, value: Value) -> Value {
    let mut example = example();
    example[key] = value;
    example
}

#[test]
fn a_context_has_exactly_these_keys() {
    let read: ToolExecutionContext = serde_json::from_value(example()).unwrap();
    assert_eq!(json!(read), example());
    let error = read_error::<ToolExecutionContext>(with("channel", json!("C024BE91L")));
    assert!(error.contains("channel"), "{error}");
}

#[test]
fn user_request_is_1_to_2000_characters() {
    for good in ["x".to_owned(), "ä".repeat(2000)] {
        assert!(
            serde_json::from_value::<ToolExecutionContext>(with("user_request", json!(good)))
                .is_ok()
        );
    }
    for (bad, why) in [
        (String::new(), "the request is empty"),
        (" \n".to_owned(), "the request is empty"),
        ("x".repeat(2001), "at most 2000 characters, not 2001"),
    ] {
        let error = read_error::<ToolExecutionContext>(with("user_request", json!(bad)));
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_longer_request_becomes_an_excerpt() {
    let long = format!("{}{}", "a".repeat(5000), "ö".repeat(600));
    let context = ToolExecutionContext::for_request(&long, Environment::DEVELOPMENT).unwrap();
    let kept = context.user_request();
    assert!(kept.chars().count() <= RequestText::MAX);
    assert!(kept.starts_with("aaa") && kept.ends_with(&"ö".repeat(500)));
    let (head, rest) = kept.split_once(" [... ").unwrap();
    let (left_out, tail) = rest.split_once(" characters left out ...] ").unwrap();
    let left_out: usize = left_out.parse().unwrap();
    assert_eq!(head.len() + left_out + tail.chars().count(), 5600);
    let short = ToolExecutionContext::for_request("hi", Environment::DEVELOPMENT).unwrap();
    assert_eq!(short.user_request(), "hi");
    let blank = ToolExecutionContext::for_request(" ", Environment::DEVELOPMENT);
    assert_eq!(blank, Err(RequestError::Empty));
}

#[test]
fn channel_id_has_slack_format() {
    for good in ["C024BE91L", "G0123456789", "D0123456789"] {
        assert!(ChannelId::new(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "general",
        "#general",
        "U024BE91L",
        "C024be91l",
        "C1",
        "C024BE91L ",
    ] {
        assert!(ChannelId::new(bad).is_err(), "{bad}");
    }
    let error = read_error::<ToolExecutionContext>(with("channel_id", json!("general")));
    assert!(
        error.contains("`general` is not a channel id of Slack"),
        "{error}"
    );
}

#[test]
fn user_id_has_slack_format() {
    for good in ["U024BE7LH", "W012A3CDE", "USLACKBOT"] {
        assert!(UserId::new(good).is_ok(), "{good}");
    }
    for bad in ["", "ada", "C024BE91L", "U024be7lh", "U"] {
        assert!(UserId::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn thread_ts_has_slack_format() {
    assert!(ThreadTimestamp::new("1729123456.000200").is_ok());
    for bad in [
        "",
        "1729123456",
        "1729123456.0002",
        "17291234567.00020",
        "1729123456,000200",
    ] {
        assert!(ThreadTimestamp::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn outside_of_slack_there_is_no_channel() {
    let read: ToolExecutionContext =
        serde_json::from_value(json!({ "user_request": "hi", "environment": "qa" })).unwrap();
    assert_eq!(read.channel_id(), None);
    assert_eq!(read.user_id(), None);
    assert_eq!(read.thread_ts(), None);
    assert!(json!(read).get("channel_id").is_none());
}

fn messages(count: usize) -> Vec<Message> {
    (0..count)
        .map(|index| Message::user(index.to_string()))
        .collect()
}

#[test]
fn conversation_history_has_at_most_100_messages() {
    let fits = with("conversation_history", json!(messages(100)));
    assert!(serde_json::from_value::<ToolExecutionContext>(fits).is_ok());
    let error =
        read_error::<ToolExecutionContext>(with("conversation_history", json!(messages(101))));
    assert!(error.contains("at most 100 messages, not 101"), "{error}");
}

#[test]
fn the_last_100_messages_are_kept() {
    let context = ToolExecutionContext::for_request("hi", Environment::DEVELOPMENT)
        .unwrap()
        .after(messages(150));
    let kept = context.conversation_history();
    assert_eq!(kept.len(), ToolExecutionContext::MAX_MESSAGES);
    assert_eq!(kept.first().unwrap().content, "50");
    assert_eq!(kept.last().unwrap().content, "149");
}

#[test]
fn the_environment_must_be_declared() {
    let read: ToolExecutionContext =
        serde_json::from_value(with("environment", json!("qa"))).unwrap();
    let mut known = Environments::default();
    assert!(read.check_environment(&known).is_err());
    known.declare("qa".parse().unwrap());
    assert_eq!(read.check_environment(&known), Ok(()));
    assert!(read_error::<ToolExecutionContext>(with("environment", json!("QA"))).contains("`QA`"));
}

#[test]
fn a_context_is_built_step_by_step() {
    let tools = ["read_channel", "summarise", "read_channel"].map(|name| name.parse().unwrap());
    let built =
        ToolExecutionContext::for_request("Summarise what was said today", Environment::PRODUCTION)
            .unwrap()
            .in_channel("C024BE91L".parse().unwrap())
            .by_user("U024BE7LH".parse().unwrap())
            .in_thread("1729123456.000200".parse().unwrap())
            .with_tools(tools)
            .after([Message::user("Hello")]);
    assert_eq!(json!(built), example());
}
