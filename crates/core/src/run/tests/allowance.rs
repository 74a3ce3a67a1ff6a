//! How child runs share the calls of their parent.

use std::collections::BTreeSet;

use windlass_spec::plan::{Plan, PlanTaskId, RawPlan};

use super::*;

/// A run with at most `max_calls` calls whose first call made a plan.
fn planned(max_calls: u32, plan: Value) -> (RunHarness, CallId) {
    let settings = Settings {
        max_calls,
        plans: true,
        ..Settings::default()
    };
    let mut harness = RunHarness::start("Do it by a plan.", settings);
    harness.answer_with(vec![call(CREATE_EXECUTION_PLAN, plan.clone())]);
    let id: CallId = "r1:1:0".parse().unwrap();
    harness.pass_gate(&id);
    let at = harness.now();
    harness.record(Event::CallStarted {
        call: id.clone(),
        variant: None,
        at,
    });
    let raw: RawPlan = serde_json::from_value(plan).unwrap();
    harness.record(Event::Planned {
        call: id.clone(),
        plan: Box::new(Plan::try_from(raw).unwrap()),
        at,
    });
    (harness, id)
}

fn next_task(harness: &RunHarness, plan: &CallId) -> Option<String> {
    let next = harness.run.next_task(harness.run.plan(plan).unwrap());
    next.map(|task| task.to_string())
}

/// Starts a task. Returns how many calls its run may make, or why it does not start.
fn start_task(harness: &mut RunHarness, plan: &CallId, task: &str) -> Result<u32, ErrorCategory> {
    let at = harness.now();
    harness.record(Event::TaskStarted {
        plan: plan.clone(),
        task: PlanTaskId::new(task).unwrap(),
        attempt: 1,
        at,
    });
    let plan = harness.run.plan(plan).unwrap();
    let (declared, _) = plan.task(task).unwrap();
    let first = harness.run.task_run(plan, declared, 1, BTreeSet::new(), at);
    match first.map_err(|failure| failure.category)? {
        Event::Started { settings, .. } => Ok(settings.max_calls),
        other => panic!("{other:?}"),
    }
}

fn end_task(harness: &mut RunHarness, plan: &CallId, task: &str, calls: u32) {
    let at = harness.now();
    harness.record(Event::TaskEnded {
        plan: plan.clone(),
        task: PlanTaskId::new(task).unwrap(),
        attempt: 1,
        end: TaskEnd::Success {
            result: json!("done"),
            tainted: false,
        },
        usage: Usage::default(),
        calls,
        at,
    });
}

fn agent_task(id: &str, depends_on: &[&str]) -> Value {
    json!({"id": id, "agent": "helper", "description": "Help", "depends_on": depends_on})
}

fn search_task(id: &str) -> Value {
    json!({"id": id, "tool": "search", "arguments": {"query": id}})
}

#[test]
fn parallel_tasks_share_the_remaining_calls() {
    let tasks =
        json!({"tasks": [agent_task("a", &[]), agent_task("b", &[]), agent_task("c", &["a"])]});
    let (mut harness, plan) = planned(10, tasks);
    // The call that makes the plan counts, and the third task may run in parallel with the second.
    assert_eq!(start_task(&mut harness, &plan, "a"), Ok(3));
    assert_eq!(start_task(&mut harness, &plan, "b"), Ok(3));
    assert_eq!(harness.run.calls_used(), 7);
    // Unused calls are returned.
    end_task(&mut harness, &plan, "a", 1);
    assert_eq!(start_task(&mut harness, &plan, "c"), Ok(5));
    assert_eq!(harness.run.calls_used(), 10);
    end_task(&mut harness, &plan, "b", 3);
    end_task(&mut harness, &plan, "c", 0);
    assert_eq!(harness.run.calls_used(), 5);
    let folded = Run::fold(&harness.journal).unwrap();
    assert_eq!(folded.plans(), harness.run.plans());
    assert_eq!(folded.calls_used(), 5);
}

#[test]
fn task_without_calls_waits_for_returned_calls_and_then_fails() {
    let tasks = json!({"tasks": [search_task("a"), search_task("b"), search_task("c")]});
    let (mut harness, plan) = planned(2, tasks);
    assert_eq!(start_task(&mut harness, &plan, "a"), Ok(1));
    assert_eq!(next_task(&harness, &plan), None);
    let waits = |harness: &RunHarness| {
        harness
            .run
            .waits_for_calls(harness.run.plan(&plan).unwrap())
    };
    assert!(waits(&harness));
    end_task(&mut harness, &plan, "a", 0);
    assert!(!waits(&harness));
    assert_eq!(next_task(&harness, &plan).as_deref(), Some("b"));
    assert_eq!(start_task(&mut harness, &plan, "b"), Ok(1));
    end_task(&mut harness, &plan, "b", 1);
    assert_eq!(next_task(&harness, &plan).as_deref(), Some("c"));
    let refused = start_task(&mut harness, &plan, "c");
    assert_eq!(refused, Err(ErrorCategory::BudgetExceeded));
}

#[test]
fn calls_of_tasks_count_toward_later_turns() {
    let (mut harness, plan) = planned(3, json!({"tasks": [search_task("a")]}));
    start_task(&mut harness, &plan, "a").unwrap();
    end_task(&mut harness, &plan, "a", 1);
    let at = harness.now();
    harness.record(ended(&plan, CallEnd::Success(json!({})), at));
    harness.answer_with(vec![
        call("search", json!({"query": "b"})),
        call("search", json!({"query": "c"})),
    ]);
    harness.run_open_calls(succeed);
    let decided = |index| {
        let call = format!("r1:2:{index}").parse().unwrap();
        let (_, decision) = harness.run.call(&call).unwrap();
        decision.unwrap().stage()
    };
    assert_ne!(decided(0), Stage::Budget);
    assert_eq!(decided(1), Stage::Budget);
}
