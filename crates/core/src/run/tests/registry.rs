//! What an operator's configuration does to calls: permissions, limits, set arguments, and which
//! tools a model is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use windlass_spec::ToolName;
use windlass_spec::registry::{CategoryName, Permission, RateLimits, Window};

use super::*;
use crate::gate::{Decision, Entitlement};
use crate::limits::{Limit, Scope};

fn permission(text: &str) -> Permission {
    text.parse().unwrap()
}

fn permissions(texts: &[&str]) -> BTreeSet<Permission> {
    texts.iter().map(|text| permission(text)).collect()
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

/// Rules in which `search` demands `web:search`, and ann holds `held`.
fn demanding(held: &[&str]) -> Governance {
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

fn searching(task: &str) -> (Driven, CallId) {
    let mut driven = Driven::start(task, Settings::default());
    driven.says(vec![call("search", json!({"query": "a"}))]);
    let Next::Gate(mut calls) = driven.run.next() else {
        panic!()
    };
    (driven, calls.remove(0))
}

fn decided(governance: &Governance, readiness: &Readiness) -> Decision {
    let (driven, call) = searching("x");
    let rules = rules_under(governance);
    driven
        .run
        .decide(&call, &identity("ann"), &rules, readiness)
        .unwrap()
}

#[test]
fn a_call_needs_the_permissions_its_category_demands() {
    let decision = decided(&demanding(&["web:read"]), &Readiness::Ready);
    assert_eq!(
        (decision.verdict(), decision.stage()),
        (Verdict::Deny, Stage::Permission)
    );
    let told = decision.failure().unwrap();
    assert_eq!(told.category, ErrorCategory::PermissionDenied);
    assert!(told.model_message.contains("`web:search`"), "{told:?}");
    assert!(told.model_message.contains("`web_tools`"), "{told:?}");
    let decision = decided(&demanding(&["web:search"]), &Readiness::Ready);
    assert_eq!(decision.verdict(), Verdict::Allow);
}

#[test]
fn what_everybody_holds_each_of_them_holds() {
    let mut governance = demanding(&[]);
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
fn nobody_holds_what_was_given_to_nobody() {
    let mut governance = demanding(&[]);
    governance.principals.clear();
    assert_eq!(
        decided(&governance, &Readiness::Ready).stage(),
        Stage::Permission
    );
}

#[test]
fn an_agent_holds_no_more_than_it_may() {
    let mut governance = demanding(&["web:search", "web:read"]);
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
    let mut started = searching("x").0.journal.swap_remove(0);
    let Event::Started { holds, .. } = &mut started else {
        panic!()
    };
    *holds = Some(permissions(&["web:read", "files:read"]));
    let run = Run::fold([&started]).unwrap();
    let rules = rules_under(&demanding(&["web:search", "web:read"]));
    let held = run.held(&identity("ann"), &rules);
    assert_eq!(held, permissions(&["web:read"]));
}

#[test]
fn a_call_that_comes_too_often_is_refused_with_when_to_try_again() {
    let limit = Limit {
        scope: Scope::Tool(tool("search")),
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
fn a_tool_that_keeps_failing_is_not_called() {
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
    let mut governance = demanding(&[]);
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
fn what_is_laid_down_for_somebody_leaves_the_other_limits_of_everybody() {
    let mut governance = demanding(&["web:search"]);
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
fn what_the_operator_sets_is_taken_where_a_call_leaves_it_out() {
    let mut governance = Governance::default();
    let rule = ToolRule {
        parameters: json!({"limit": 1}).as_object().unwrap().clone(),
        ..ToolRule::default()
    };
    governance.tools.insert("search".to_owned(), rule);
    let mut driven = Driven::start("x", Settings::default());
    driven.rules = rules_under(&governance);
    driven.says(vec![
        call("search", json!({"query": "a"})),
        call("search", json!({"query": "b", "limit": 9})),
    ]);
    driven.work(|_, arguments| CallEnd::Success(arguments.clone()));
    let given = driven.run.calls().nth(1).unwrap();
    assert_eq!(given.arguments()["limit"], 9);
    let record = driven.run.calls().next().unwrap();
    assert_eq!(record.arguments()["limit"], 1);
    assert_eq!(
        *record.outcome().unwrap().unwrap(),
        json!({"query": "a", "limit": 1})
    );
    // The same call again is the same call.
    driven.says(vec![call("search", json!({"query": "a"}))]);
    assert_eq!(driven.run.mistakes().len(), 1);
    assert_eq!(
        Run::fold(&driven.journal).unwrap().next(),
        driven.run.next()
    );
}

#[test]
fn a_model_is_shown_what_is_offered_and_told_how_to_find_the_rest() {
    let mut driven = Driven::start("x", Settings::default());
    let names = |run: &Run| -> Vec<String> {
        run.tools()
            .iter()
            .map(|tool| tool.name().to_string())
            .collect()
    };
    assert_eq!(
        names(&driven.run),
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
    let at = driven.now();
    driven.happen(Event::Offered {
        intent: None,
        tools: vec![tool("search")],
        left_out: vec![
            left_out("send", LeftOutBecause::SwitchedOff),
            left_out("note", LeftOutBecause::Budget),
        ],
        set: BTreeMap::new(),
        gap: None,
        at,
    });
    assert_eq!(
        names(&driven.run),
        ["search", "find_tools", "ask_human", "request_authorization"]
    );
    // What was found is known from the journal alone.
    driven.says(vec![call(
        "find_tools",
        json!({"query": "delete a note; drop table"}),
    )]);
    let note = driven.run.specification("note").unwrap().clone();
    driven.work(|_, _| CallEnd::Success(found(&[&note])));
    assert_eq!(driven.run.found_tools(), [tool("note")]);
    let folded = Run::fold(&driven.journal).unwrap();
    assert_eq!(folded.found_tools(), [tool("note")]);
    assert_eq!(folded.offer(), driven.run.offer());
    // With nothing to find there is nothing to find it with.
    let at = driven.now();
    driven.happen(Event::Offered {
        intent: None,
        tools: vec![tool("search"), tool("note")],
        left_out: vec![left_out("send", LeftOutBecause::SwitchedOff)],
        set: BTreeMap::new(),
        gap: None,
        at,
    });
    assert_eq!(
        names(&driven.run),
        ["search", "note", "ask_human", "request_authorization"]
    );
}

#[test]
fn decisions_name_the_configuration_they_were_made_under() {
    let mut governance = Governance {
        configuration: Some("0badcafe".to_owned()),
        ..demanding(&[])
    };
    let denied = decided(&governance, &Readiness::Ready);
    governance.tools.clear();
    let allowed = decided(&governance, &Readiness::Ready);
    for decision in [denied, allowed] {
        assert_eq!(decision.configuration(), Some("0badcafe"));
    }
}

#[test]
fn what_the_operator_sets_need_not_be_said_even_if_it_is_required() {
    let mut governance = Governance::default();
    let rule = ToolRule {
        parameters: json!({"query": "the news"}).as_object().unwrap().clone(),
        ..ToolRule::default()
    };
    governance.tools.insert("search".to_owned(), rule);
    let mut driven = Driven::start("x", Settings::default());
    driven.rules = rules_under(&governance);
    // Without being told, a call without it is a mistake.
    driven.says(vec![call("search", json!({}))]);
    assert_eq!(driven.run.mistakes().len(), 1);
    let set = driven.rules.set_arguments();
    let set = set.map(|(name, set)| (tool(name), set)).collect();
    let at = driven.now();
    driven.happen(Event::Offered {
        intent: None,
        tools: vec![tool("search")],
        left_out: Vec::new(),
        set,
        gap: None,
        at,
    });
    driven.says(vec![call("search", json!({}))]);
    driven.work(|_, arguments| CallEnd::Success(arguments["query"].clone()));
    let record = driven.run.calls().next().unwrap();
    assert_eq!(*record.outcome().unwrap().unwrap(), json!("the news"));
}
