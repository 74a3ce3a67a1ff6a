//! The choices of the policy.

use std::sync::Arc;

use windlass_core::model::ChatCall;
use windlass_spec::{NonEmptyText, Signature, ToolName};

use super::*;

const TASK: &str = "Book a flight to Oslo and insure it.";

fn tool(name: &str, description: &str, signature: &str) -> Arc<ToolSpecification> {
    let signature = Signature::parse(signature).expect("a signature");
    Arc::new(ToolSpecification::new(
        ToolName::new(name).expect("a name"),
        NonEmptyText::new(description).expect("a description"),
        signature,
    ))
}

fn tools() -> Vec<Arc<ToolSpecification>> {
    vec![
        tool("t__wash_car", "Washes a car", "(car: Text) --> IO Any"),
        tool("t__bookFlight", "Books a flight", "(city: Text) --> IO Any"),
        tool("t__insure", "Insures something", "(what: Text) --> IO Any"),
        tool("t__status", "Tells how things are", "() --> IO Any"),
    ]
}

/// A request after these calls, each with its arguments and what was observed.
fn request(strategies: &[&str], calls: &[(&str, Value, &str)]) -> ModelRequest {
    let mut system = "You help.".to_owned();
    if !strategies.is_empty() {
        system += &format!("\n\n{STRATEGIES_HEADING}\n- {}", strategies.join("\n- "));
    }
    system += "\n\nSomething else:\n- `t__wash_car`";
    let mut messages = vec![
        ChatMessage::System { content: system },
        ChatMessage::User {
            content: "Wash the car.".to_owned(),
        },
        ChatMessage::Assistant {
            content: "Done.".to_owned(),
            calls: Vec::new(),
        },
        ChatMessage::User {
            content: TASK.to_owned(),
        },
    ];
    for (index, (tool, arguments, observed)) in calls.iter().enumerate() {
        let id = format!("call_{index}");
        messages.push(ChatMessage::Assistant {
            content: String::new(),
            calls: vec![ChatCall {
                id: id.clone(),
                tool: (*tool).to_owned(),
                arguments: arguments.clone(),
            }],
        });
        messages.push(ChatMessage::Tool {
            call_id: id,
            tool: (*tool).to_owned(),
            content: (*observed).to_owned(),
            untrusted: false,
        });
    }
    ModelRequest {
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools(),
    }
}

fn expected(calls: &[(&str, Value)]) -> Vec<ExpectedCall> {
    let call = |(tool, arguments): &(&str, Value)| ExpectedCall {
        tool: (*tool).to_owned(),
        arguments: arguments.as_object().cloned().expect("an object"),
    };
    calls.iter().map(call).collect()
}

fn chosen_call(policy: &Policy, request: &ModelRequest) -> (String, Value) {
    let answer = policy.choose_answer(request);
    let [call] = &answer.calls[..] else {
        panic!("{answer:?}");
    };
    let RequestedArguments::Json(arguments) = &call.arguments else {
        panic!("{call:?}");
    };
    (call.tool.clone(), arguments.clone())
}

fn policy() -> Policy {
    let policy = Policy::default();
    policy.expect(expected(&[
        ("t__bookFlight", json!({"city": "Oslo"})),
        ("t__insure", json!({"what": "flight"})),
    ]));
    policy
}

#[test]
fn tool_with_the_most_similar_text_is_picked_with_the_oracles_arguments() {
    let first = chosen_call(&policy(), &request(&[], &[]));
    assert_eq!(first, ("t__bookFlight".to_owned(), json!({"city": "Oslo"})));
}

#[test]
fn unexpected_tool_gets_no_arguments() {
    let policy = Policy::default();
    policy.expect(expected(&[("t__insure", json!({"what": "flight"}))]));
    let first = chosen_call(&policy, &request(&[], &[]));
    assert_eq!(first, ("t__bookFlight".to_owned(), json!({})));
}

#[test]
fn failed_tool_is_skipped_until_an_expected_call_succeeds() {
    let policy = Policy::default();
    policy.expect(expected(&[
        ("t__insure", json!({"what": "flight"})),
        ("t__bookFlight", json!({"city": "Oslo"})),
    ]));
    let refused = (
        "t__bookFlight",
        json!({}),
        "The arguments do not fit the tool:",
    );
    let next = chosen_call(&policy, &request(&[], std::slice::from_ref(&refused)));
    assert_eq!(next, ("t__insure".to_owned(), json!({"what": "flight"})));
    // A successful but unexpected call changes nothing.
    let stray = ("t__status", json!({}), "{\"fine\":true}");
    let next = chosen_call(&policy, &request(&[], &[refused.clone(), stray]));
    assert_eq!(next, ("t__insure".to_owned(), json!({"what": "flight"})));
    let insured = ("t__insure", json!({"what": "flight"}), "{\"policy\":1}");
    let next = chosen_call(&policy, &request(&[], &[refused, insured]));
    assert_eq!(next, ("t__bookFlight".to_owned(), json!({"city": "Oslo"})));
}

#[test]
fn policy_starts_again_after_all_tools_failed() {
    let policy = policy();
    let all = ["t__wash_car", "t__bookFlight", "t__insure", "t__status"];
    let calls = all.map(|tool| (tool, json!({}), "No."));
    assert_eq!(
        chosen_call(&policy, &request(&[], &calls)).0,
        "t__bookFlight"
    );
}

#[test]
fn policy_finishes_after_all_expected_calls() {
    let booked = ("t__bookFlight", json!({"city": "Oslo"}), "{\"booking\":1}");
    let insured = ("t__insure", json!({"what": "flight"}), "{\"policy\":1}");
    let one = chosen_call(&policy(), &request(&[], std::slice::from_ref(&booked)));
    assert_ne!(one.0, FINISH);
    let both = chosen_call(&policy(), &request(&[], &[booked, insured]));
    assert_eq!(both.0, FINISH);
}

#[test]
fn last_succeeded_tool_loses_score_but_can_be_picked_again() {
    let policy = policy();
    // No other tool is similar, so a second booking still has the highest score.
    let booked = ("t__bookFlight", json!({"city": "Oslo"}), "{\"booking\":1}");
    let next = chosen_call(&policy, &request(&[], std::slice::from_ref(&booked)));
    assert_eq!(next, ("t__bookFlight".to_owned(), json!({})));
}

#[test]
fn call_with_other_arguments_is_not_the_expected_one() {
    let policy = Policy::default();
    policy.expect(expected(&[("t__status", json!({"of": "Oslo"}))]));
    let stray = ("t__status", json!({}), "{\"fine\":true}");
    assert_ne!(chosen_call(&policy, &request(&[], &[stray])).0, FINISH);
}

#[test]
fn repeated_call_counts_as_made() {
    let policy = Policy::default();
    policy.expect(expected(&[
        ("t__bookFlight", json!({"city": "Oslo"})),
        ("t__status", json!({})),
    ]));
    let stray = ("t__status", json!({}), "{\"fine\":true}");
    let booked = ("t__bookFlight", json!({"city": "Oslo"}), "{\"booking\":1}");
    let repeated = (
        "t__status",
        json!({}),
        "You made exactly this call before (turn 1). Its result was: {\"fine\":true}",
    );
    let next = chosen_call(&policy, &request(&[], &[stray, booked, repeated]));
    assert_eq!(next.0, FINISH);
}

#[test]
fn strategy_for_a_similar_task_outweighs_tool_descriptions() {
    let line =
        "For tasks like \"Book a flight to Rome and insure it.\": `t__status`, then `t__wash_car`.";
    assert_eq!(
        chosen_call(&policy(), &request(&[line], &[])).0,
        "t__status"
    );
    let stray = ("t__status", json!({}), "{\"fine\":true}");
    let next = chosen_call(&policy(), &request(&[line], &[stray]));
    assert_eq!(next.0, "t__wash_car");
}

#[test]
fn strategy_for_another_task_does_not_outweigh_tool_descriptions() {
    let line = "For tasks like \"Paint the fence green\": `t__status`.";
    let filler = "Nothing to see here.";
    let lines = [filler, filler, line];
    assert_eq!(
        chosen_call(&policy(), &request(&lines, &[])).0,
        "t__bookFlight"
    );
}

#[test]
fn warning_lowers_the_tool_it_names_last() {
    let line =
        "Avoid, for \"Book a flight to Rome and insure it.\", after `t__insure`: `t__bookFlight`.";
    assert_eq!(
        chosen_call(&policy(), &request(&[line], &[])).0,
        "t__insure"
    );
}

#[test]
fn only_lines_below_the_heading_are_read() {
    let shown = request(&["one", "two"], &[]);
    let ChatMessage::System { content } = &*shown.messages[0] else {
        panic!("{shown:?}");
    };
    assert_eq!(strategies(content), ["one", "two"]);
    assert!(strategies("Nothing worked before.").is_empty());
}

#[test]
fn tools_in_quotations_are_ignored() {
    let names = ["t__a", "t__b", "t__c"];
    let line = AdviceLine::parse("Like \"use t__c\": `t__b`, then t__a. Then t__abc.", &names);
    assert_eq!(line.tools, [1, 0]);
    assert_eq!(line.about, "use t__c");
    let open = AdviceLine::parse("An \"open quotation, `t__c`", &names);
    assert_eq!(open.tools, [2]);
    assert!(!open.is_warning && AdviceLine::parse("avoid `t__c`", &names).is_warning);
}

#[test]
fn words_are_stemmed() {
    assert_eq!(
        words("Moves, moved and MOVING the files’ copies"),
        ["mov", "mov", "mov", "fil", "copy"]
    );
    assert_eq!(
        identifier_words("t__fillFuelTank"),
        ["t", "fill", "fuel", "tank"]
    );
}
