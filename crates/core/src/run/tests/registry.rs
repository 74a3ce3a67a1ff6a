//! The effects of an operator's configuration on calls: permissions, limits, operator arguments, and the
//! tools a model is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use windlass_spec::ToolName;
use windlass_spec::registry::{CategoryName, Permission, RateLimits, Window};

use super::*;
use crate::gate::{Decision, Entitlement};
use crate::limits::{Limit, LimitScope};

fn permission(text: &str) -> Permission {
    text.parse().unwrap()
}

fn permissions(texts: &[&str]) -> BTreeSet<Permission> {
    texts.iter().map(|text| permission(text)).collect()
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

/// Settings in which `search` requires `web:search`, and ann holds `held`.
fn governance_with(held: &[&str]) -> Governance {
    let mut governance = Governance::default();
    let rule = ToolRule {
        category: Some("web_tools".parse::<CategoryName>().unwrap()),
        demands: permissions(&["web:search"]),
        ..ToolRule::default()
    };
    governance.tools.insert("search".to_owned(), rule);
    let entitlement = Entitlement {
        permissions: permissions(held),
        limits: RateLimits::none(),
    };
    governance.principals.insert("ann".to_owned(), entitlement);
    governance
}

fn run_at_gate(task: &str) -> (RunHarness, CallId) {
    let mut harness = RunHarness::start(task, Settings::default());
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    let Next::Gate(mut calls) = harness.run.next() else {
        panic!()
    };
    (harness, calls.remove(0))
}

fn decided(governance: &Governance, readiness: &Readiness) -> Decision {
    let (harness, call) = run_at_gate("x");
    let rules = rules_under(governance);
    harness
        .run
        .decide(&call, &identity("ann"), &rules, readiness)
        .unwrap()
}

#[test]
fn call_needs_the_permissions_of_its_category() {
    let decision = decided(&governance_with(&["web:read"]), &Readiness::Ready);
    assert_eq!(
        (decision.verdict(), decision.stage()),
        (Verdict::Deny, Stage::Permission)
    );
    let failure = decision.failure().unwrap();
    assert_eq!(failure.category, ErrorCategory::PermissionDenied);
    assert!(
        failure.model_message.contains("`web:search`"),
        "{failure:?}"
    );
    assert!(failure.model_message.contains("`web_tools`"), "{failure:?}");
    let decision = decided(&governance_with(&["web:search"]), &Readiness::Ready);
    assert_eq!(decision.verdict(), Verdict::Allow);
}

#[test]
fn permissions_of_everybody_apply_to_each_principal() {
    let mut governance = governance_with(&[]);
    let everybody = Entitlement {
        permissions: permissions(&["web:search"]),
        limits: RateLimits::none(),
    };
    governance.principals.insert("*".to_owned(), everybody);
    assert_eq!(
        decided(&governance, &Readiness::Ready).verdict(),
        Verdict::Allow
    );
}

#[test]
fn principal_without_an_entry_holds_no_permissions() {
    let mut governance = governance_with(&[]);
    governance.principals.clear();
    assert_eq!(
        decided(&governance, &Readiness::Ready).stage(),
        Stage::Permission
    );
}

#[test]
fn agent_limits_the_permissions_of_its_principal() {
    let mut governance = governance_with(&["web:search", "web:read"]);
    governance
        .agents
        .insert("helper".to_owned(), permissions(&["web:read"]));
    assert_eq!(
        decided(&governance, &Readiness::Ready).stage(),
        Stage::Permission
    );
}

#[test]
fn a_sub_agent_never_holds_more_than_its_parent() {
    let mut started = run_at_gate("x").0.journal.swap_remove(0);
    let Event::Started { holds, .. } = &mut started else {
        panic!()
    };
    *holds = Some(permissions(&["web:read", "files:read"]));
    let run = Run::fold([&started]).unwrap();
    let rules = rules_under(&governance_with(&["web:search", "web:read"]));
    let held = run.permissions(&identity("ann"), &rules);
    assert_eq!(held, permissions(&["web:read"]));
}

#[test]
fn rate_limited_call_is_refused_with_a_retry_time() {
    let limit = Limit {
        scope: LimitScope::Tool(tool("search")),
        window: Window::PerMinute,
        count: NonZeroU32::new(3).unwrap(),
    };
    let readiness = Readiness::limited(limit, at(20), at(0));
    let decision = decided(&Governance::default(), &readiness);
    assert_eq!(
        (decision.verdict(), decision.stage()),
        (Verdict::Deny, Stage::RateLimit)
    );
    assert_eq!(decision.retry_at(), Some(at(20)));
    let failure = decision.failure().unwrap();
    assert!(failure.retryable);
    assert!(failure.model_message.contains("in 20 s"), "{failure:?}");
    let read: Decision = serde_json::from_value(serde_json::to_value(&decision).unwrap()).unwrap();
    assert_eq!(read, decision);
}

#[test]
fn failing_tool_is_not_called() {
    let readiness = Readiness::Failing {
        failures: 5,
        until: at(30),
        wait: Duration::from_secs(30),
    };
    let decision = decided(&Governance::default(), &readiness);
    assert_eq!(
        (decision.verdict(), decision.stage(), decision.retry_at()),
        (Verdict::Deny, Stage::Health, Some(at(30)))
    );
}

#[test]
fn limits_count_by_tool_category_and_principal() {
    let mut governance = governance_with(&[]);
    let limits = |window| RateLimits::none().with(window, NonZeroU32::new(7).unwrap());
    governance.tools.get_mut("search").unwrap().limits = limits(Window::PerSecond);
    governance
        .category_limits
        .insert("web_tools".parse().unwrap(), limits(Window::PerHour));
    governance.principals.get_mut("ann").unwrap().limits = limits(Window::PerDay);
    let rules = rules_under(&governance);
    let mut keys: Vec<String> = rules
        .limits(&tool("search"), &identity("ann"))
        .iter()
        .map(Limit::key)
        .collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "category:web_tools:per_hour",
            "principal:ann:per_day",
            "tool:search:per_second"
        ]
    );
    assert!(rules.limits(&tool("send"), &identity("bob")).is_empty());
}

#[test]
fn limits_of_a_principal_override_those_of_everybody_by_window() {
    let mut governance = governance_with(&["web:search"]);
    let limits = |window, count| RateLimits::none().with(window, NonZeroU32::new(count).unwrap());
    let everybody = Entitlement {
        limits: limits(Window::PerHour, 1).with(Window::PerDay, NonZeroU32::new(9).unwrap()),
        ..Entitlement::default()
    };
    governance.principals.insert("*".to_owned(), everybody);
    governance.principals.get_mut("ann").unwrap().limits = limits(Window::PerDay, 3);
    let rules = rules_under(&governance);
    let counts: Vec<(Window, u32)> = rules
        .limits(&tool("search"), &identity("ann"))
        .iter()
        .map(|limit| (limit.window, limit.count.get()))
        .collect();
    assert_eq!(counts, [(Window::PerHour, 1), (Window::PerDay, 3)]);
}

#[test]
fn operator_arguments_fill_in_omitted_ones() {
    let mut governance = Governance::default();
    let rule = ToolRule {
        parameters: json!({"limit": 1}).as_object().unwrap().clone(),
        ..ToolRule::default()
    };
    governance.tools.insert("search".to_owned(), rule);
    let mut harness = RunHarness::start("x", Settings::default());
    harness.rules = rules_under(&governance);
    harness.answer_with(vec![
        call("search", json!({"query": "a"})),
        call("search", json!({"query": "b", "limit": 9})),
    ]);
    harness.run_open_calls(|_, arguments| CallEnd::Success(arguments.clone()));
    let given = harness.run.calls().nth(1).unwrap();
    assert_eq!(given.arguments()["limit"], 9);
    let record = harness.run.calls().next().unwrap();
    assert_eq!(record.arguments()["limit"], 1);
    assert_eq!(
        *record.outcome().unwrap().unwrap(),
        json!({"query": "a", "limit": 1})
    );
    // Repeating the call without the operator argument is a repetition.
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    harness.run_open_calls(|_, _| panic!("the result is known"));
    let observation = harness.last_observation();
    assert!(observation.contains("exactly this call before (turn 1)"));
    assert_eq!(
        Run::fold(&harness.journal).unwrap().next(),
        harness.run.next()
    );
}

#[test]
fn model_is_shown_the_offered_tools_and_a_search() {
    let mut harness = RunHarness::start("x", Settings::default());
    let names = |run: &Run| -> Vec<String> {
        run.tools()
            .iter()
            .map(|tool| tool.name().to_string())
            .collect()
    };
    assert_eq!(
        names(&harness.run),
        [
            "search",
            "send",
            "note",
            "ask_human",
            "request_authorization"
        ]
    );
    let left_out = |name: &str, because| LeftOut {
        tool: tool(name),
        because,
    };
    let at = harness.now();
    harness.record(Event::Offered {
        intent: None,
        tools: vec![tool("search")],
        left_out: vec![
            left_out("send", LeftOutReason::SwitchedOff),
            left_out("note", LeftOutReason::Budget),
        ],
        set: BTreeMap::new(),
        gap: None,
        disabled: Vec::new(),
        advice: None,
        environment: None,
        at,
    });
    assert_eq!(
        names(&harness.run),
        ["search", "find_tools", "ask_human", "request_authorization"]
    );
    // The found tools follow from the journal alone.
    harness.answer_with(vec![call(
        "find_tools",
        json!({"query": "delete a note; drop table"}),
    )]);
    let note = harness.run.specification("note").unwrap().clone();
    harness.run_open_calls(|_, _| CallEnd::Success(tool_search_result(&[&note])));
    assert_eq!(harness.run.found_tools(), [tool("note")]);
    let folded = Run::fold(&harness.journal).unwrap();
    assert_eq!(folded.found_tools(), [tool("note")]);
    assert_eq!(folded.offer(), harness.run.offer());
    // Without tools to find there is no search tool.
    let at = harness.now();
    harness.record(Event::Offered {
        intent: None,
        tools: vec![tool("search"), tool("note")],
        left_out: vec![left_out("send", LeftOutReason::SwitchedOff)],
        set: BTreeMap::new(),
        gap: None,
        disabled: Vec::new(),
        advice: None,
        environment: None,
        at,
    });
    assert_eq!(
        names(&harness.run),
        ["search", "note", "ask_human", "request_authorization"]
    );
}

#[test]
fn decisions_have_the_digest_of_their_configuration() {
    let mut governance = Governance {
        configuration: Some("0badcafe".to_owned()),
        ..governance_with(&[])
    };
    let denied = decided(&governance, &Readiness::Ready);
    governance.tools.clear();
    let allowed = decided(&governance, &Readiness::Ready);
    for decision in [denied, allowed] {
        assert_eq!(decision.configuration(), Some("0badcafe"));
    }
}

#[test]
fn required_argument_set_by_the_operator_can_be_omitted() {
    let mut governance = Governance::default();
    let rule = ToolRule {
        parameters: json!({"query": "the news"}).as_object().unwrap().clone(),
        ..ToolRule::default()
    };
    governance.tools.insert("search".to_owned(), rule);
    let mut harness = RunHarness::start("x", Settings::default());
    harness.rules = rules_under(&governance);
    // Before the offer lists it, omitting the argument is a mistake.
    harness.answer_with(vec![call("search", json!({}))]);
    assert_eq!(harness.run.mistakes().len(), 1);
    let set = harness.rules.set_arguments();
    let set = set.map(|(name, set)| (tool(name), set)).collect();
    let at = harness.now();
    harness.record(Event::Offered {
        intent: None,
        tools: vec![tool("search")],
        left_out: Vec::new(),
        set,
        gap: None,
        disabled: Vec::new(),
        advice: None,
        environment: None,
        at,
    });
    harness.answer_with(vec![call("search", json!({}))]);
    harness.run_open_calls(|_, arguments| CallEnd::Success(arguments["query"].clone()));
    let record = harness.run.calls().next().unwrap();
    assert_eq!(*record.outcome().unwrap().unwrap(), json!("the news"));
}
