//! Whole turns: from a prompt to a call or an answer.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::model::{
    ChatCall, ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments,
};
use windlass_reflex::{Reflex, Settings};
use windlass_spec::{NonEmptyText, Signature, ToolName, ToolSpecification};

fn tool(name: &str, description: &str, signature: &str) -> Arc<ToolSpecification> {
    Arc::new(ToolSpecification::new(
        ToolName::new(name).unwrap(),
        NonEmptyText::new(description).unwrap(),
        Signature::parse(signature).unwrap(),
    ))
}

fn hello() -> Arc<ToolSpecification> {
    tool(
        "sayHello",
        "Returns a friendly greeting message for the given name",
        "(name: Text) --> Text",
    )
}

const INSTRUCTION: &str = "You are a friendly assistant. Have friendly conversations with the user. When the user greets you or says hello, use the `sayHello` tool to respond with a personalized greeting.";

struct TestConversation {
    messages: Vec<ChatMessage>,
    tools: Vec<Arc<ToolSpecification>>,
}

impl TestConversation {
    fn new(task: &str, tools: Vec<Arc<ToolSpecification>>) -> Self {
        Self::with_system(INSTRUCTION, task, tools)
    }

    fn with_system(system: &str, task: &str, tools: Vec<Arc<ToolSpecification>>) -> Self {
        let system = ChatMessage::System {
            content: system.to_owned(),
        };
        let task = ChatMessage::User {
            content: task.to_owned(),
        };
        Self {
            messages: vec![system, task],
            tools,
        }
    }

    fn answer(&self) -> ModelAnswer {
        let request = ModelRequest {
            messages: self.messages.iter().cloned().map(Arc::new).collect(),
            tools: self.tools.clone(),
        };
        let answer = Reflex::new(Settings::default()).answer(&request);
        assert_eq!(
            answer,
            Reflex::new(Settings::default()).answer(&request),
            "deterministic"
        );
        answer
    }

    /// Returns the next call and answers it with this observation.
    fn observe(&mut self, observation: &str) -> (String, Value) {
        let (name, arguments) = self.call();
        let id = format!("call_{}", self.messages.len());
        self.messages.push(ChatMessage::Assistant {
            content: String::new(),
            calls: vec![ChatCall {
                id: id.clone(),
                tool: name.clone(),
                arguments: arguments.clone(),
            }],
        });
        self.messages.push(ChatMessage::Tool {
            call_id: id,
            tool: name.clone(),
            content: observation.to_owned(),
            untrusted: false,
        });
        (name, arguments)
    }

    fn call(&self) -> (String, Value) {
        let answer = self.answer();
        assert_eq!(answer.calls.len(), 1, "{answer:?}");
        let call = &answer.calls[0];
        let confidence = call.confidence.unwrap();
        assert!((0.0..=1.0).contains(&confidence));
        let RequestedArguments::Json(arguments) = &call.arguments else {
            panic!("arguments are JSON");
        };
        (call.tool.clone(), arguments.clone())
    }

    fn finished(&self) -> String {
        let (name, arguments) = self.call();
        assert_eq!(name, FINISH, "{arguments}");
        assert!(
            arguments["reasoning"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        arguments["answer"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_single_text_observation_is_the_answer() {
    for task in [
        "Greet Ada",
        "Say hello to Ada",
        "Hello, I am Ada!",
        "My name is Ada. Hi!",
        "please greet Ada",
    ] {
        let mut conversation = TestConversation::new(task, vec![hello()]);
        let call = conversation.observe("Hello, Ada! Nice to meet you.");
        assert_eq!(
            call,
            ("sayHello".to_owned(), json!({"name": "Ada"})),
            "{task}"
        );
        assert_eq!(
            conversation.finished(),
            "Hello, Ada! Nice to meet you.",
            "{task}"
        );
    }
}

#[test]
fn a_compound_task_is_done_step_by_step() {
    let tools = vec![
        tool(
            "get_weather",
            "Get the current weather of a city",
            "(city: Text) --> Text",
        ),
        tool(
            "send_email",
            "Send an email message to a recipient",
            "(recipient: Text, message: Text) --> Text",
        ),
    ];
    let mut conversation = TestConversation::new(
        "Get the weather in Paris and then send an email to ann@example.org saying 'Take an umbrella'.",
        tools,
    );
    assert_eq!(
        conversation.observe("Rain, 12 °C"),
        ("get_weather".to_owned(), json!({"city": "Paris"}))
    );
    assert_eq!(
        conversation.observe("Sent."),
        (
            "send_email".to_owned(),
            json!({"recipient": "ann@example.org", "message": "Take an umbrella"})
        )
    );
    assert_eq!(conversation.finished(), "Rain, 12 °C\nSent.");
}

#[test]
fn arguments_are_filled_from_observations() {
    let tools = vec![
        tool(
            "find_customer",
            "Find a customer by name",
            "(name: Text) --> Object",
        ),
        tool(
            "list_invoices",
            "List the invoices of a customer",
            "(customer_id: Text) --> Array",
        ),
    ];
    let mut conversation = TestConversation::new(
        "Find the customer Grace Hopper, then list the invoices",
        tools,
    );
    assert_eq!(
        conversation
            .observe(r#"{"customer_id": "C-77", "city": "Arlington"}"#)
            .0,
        "find_customer"
    );
    assert_eq!(
        conversation.call(),
        ("list_invoices".to_owned(), json!({"customer_id": "C-77"}))
    );
}

#[test]
fn a_missing_argument_is_asked_for_and_the_answer_is_used() {
    let ask = tool(
        "ask_human",
        "Ask a person a question",
        "(question: Text) --> Text",
    );
    let mut conversation = TestConversation::new(
        "Please greet someone with a friendly greeting message",
        vec![hello(), ask],
    );
    let (name, arguments) = conversation.observe("Grace");
    assert_eq!(name, "ask_human");
    assert!(arguments["question"].as_str().unwrap().contains("name"));
    assert_eq!(
        conversation.call(),
        ("sayHello".to_owned(), json!({"name": "Grace"}))
    );
}

#[test]
fn without_ask_human_the_answer_names_the_missing_argument() {
    let conversation = TestConversation::new(
        "Please greet someone with a friendly greeting message",
        vec![hello()],
    );
    let answer = conversation.finished();
    assert!(
        answer.contains("name") && answer.contains("sayHello"),
        "{answer}"
    );
}

#[test]
fn a_task_that_no_tool_can_do_is_refused() {
    let conversation = TestConversation::new(
        "Compute the determinant of the matrix [[1, 2], [3, 4]]",
        vec![hello()],
    );
    assert!(conversation.finished().starts_with("I cannot do this"));
    assert!(
        TestConversation::new("Greet Ada", vec![])
            .finished()
            .contains("no tools")
    );
}

#[test]
fn tool_errors_are_reported_and_not_retried() {
    let mut conversation = TestConversation::new("Greet Ada", vec![hello()]);
    conversation.observe("the tool failed (timeout): try again, or raise the tool's timeout");
    let answer = conversation.finished();
    assert!(
        answer.contains("sayHello") && answer.contains("timeout"),
        "{answer}"
    );
}

#[test]
fn the_same_call_is_not_made_twice() {
    let tools = vec![hello()];
    let mut conversation = TestConversation::new("Greet Ada. Then greet Ada.", tools);
    conversation.observe("Hello, Ada!");
    assert_eq!(conversation.finished(), "Hello, Ada!");
}

#[test]
fn a_strategy_that_fits_is_followed() {
    let tools = vec![
        tool(
            "book_room",
            "Book a hotel room in a city",
            "(city: Text) --> Text",
        ),
        tool(
            "check_budget",
            "Check the travel budget for a city",
            "(city: Text) --> Text",
        ),
    ];
    let system = "You book trips.\n\nWhat worked before for tasks like this:\n- Bookings: call check_budget first, then book_room.";
    let mut conversation =
        TestConversation::with_system(system, "Book a hotel room in Lisbon", tools.clone());
    assert_eq!(
        conversation.observe("Budget is fine."),
        ("check_budget".to_owned(), json!({"city": "Lisbon"}))
    );
    assert_eq!(
        conversation.observe("Booked."),
        ("book_room".to_owned(), json!({"city": "Lisbon"}))
    );
    assert_eq!(conversation.finished(), "Budget is fine.\nBooked.");
    let without = TestConversation::new("Book a hotel room in Lisbon", tools);
    assert_eq!(without.call().0, "book_room");
}

#[test]
fn tomorrow_is_resolved_only_if_today_is_stated() {
    let tools = vec![tool(
        "get_forecast",
        "Get the weather forecast for a city on a date",
        "(city: Text, date: Text) --> Text",
    )];
    let task = "Get the weather forecast for Oslo tomorrow";
    let conversation = TestConversation::with_system("Today is 2024-02-28.", task, tools.clone());
    assert_eq!(
        conversation.call().1,
        json!({"city": "Oslo", "date": "2024-02-29"})
    );
    let unknown = TestConversation::with_system("You help.", task, tools);
    assert_eq!(
        unknown.call().1,
        json!({"city": "Oslo", "date": "tomorrow"})
    );
}
