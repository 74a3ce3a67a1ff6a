//! What runs that work for another may use of its calls.

use std::collections::BTreeSet;

use windlass_spec::plan::{Plan, PlanTaskId, RawPlan};

use super::*;

/// A run of so many calls that has made a plan, by its first.
fn planned(max_calls: u32, plan: Value) -> (Driven, CallId) {
    let settings = Settings {
        max_calls,
        plans: true,
        ..Settings::default()
    };
    let mut driven = Driven::start("Do it by a plan.", settings);
    driven.says(vec![call(CREATE_EXECUTION_PLAN, plan.clone())]);
    let id: CallId = "r1:1:0".parse().unwrap();
    driven.pass_gate(&id);
    let at = driven.now();
    driven.happen(Event::CallStarted {
        call: id.clone(),
        variant: None,
        at,
    });
    let raw: RawPlan = serde_json::from_value(plan).unwrap();
    driven.happen(Event::Planned {
        call: id.clone(),
        plan: Box::new(Plan::try_from(raw).unwrap()),
        at,
    });
    (driven, id)
}

fn next_task(driven: &Driven, plan: &CallId) -> Option<String> {
    let next = driven.run.next_task(driven.run.plan(plan).unwrap());
    next.map(|task| task.to_string())
}

/// Begins a task. How many calls its run may make, or why it does not begin.
fn begin(driven: &mut Driven, plan: &CallId, task: &str) -> Result<u32, ErrorCategory> {
    let at = driven.now();
    driven.happen(Event::TaskStarted {
        plan: plan.clone(),
        task: PlanTaskId::new(task).unwrap(),
        attempt: 1,
        at,
    });
    let plan = driven.run.plan(plan).unwrap();
    let (declared, _) = plan.task(task).unwrap();
    let first = driven.run.task_run(plan, declared, 1, BTreeSet::new(), at);
    match first.map_err(|failure| failure.category)? {
        Event::Started { settings, .. } => Ok(settings.max_calls),
        other => panic!("{other:?}"),
    }
}

fn end(driven: &mut Driven, plan: &CallId, task: &str, calls: u32) {
    let at = driven.now();
    driven.happen(Event::TaskEnded {
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

fn work(id: &str, depends_on: &[&str]) -> Value {
    json!({"id": id, "agent": "helper", "description": "Help", "depends_on": depends_on})
}

fn search(id: &str) -> Value {
    json!({"id": id, "tool": "search", "arguments": {"query": id}})
}

#[test]
fn tasks_that_may_run_beside_each_other_share_the_calls_that_are_left() {
    let tasks = json!({"tasks": [work("a", &[]), work("b", &[]), work("c", &["a"])]});
    let (mut driven, plan) = planned(10, tasks);
    // The call that makes the plan is one of them, and the third task may run beside the second.
    assert_eq!(begin(&mut driven, &plan, "a"), Ok(3));
    assert_eq!(begin(&mut driven, &plan, "b"), Ok(3));
    assert_eq!(driven.run.calls_used(), 7);
    // What was not used comes back.
    end(&mut driven, &plan, "a", 1);
    assert_eq!(begin(&mut driven, &plan, "c"), Ok(5));
    assert_eq!(driven.run.calls_used(), 10);
    end(&mut driven, &plan, "b", 3);
    end(&mut driven, &plan, "c", 0);
    assert_eq!(driven.run.calls_used(), 5);
    let folded = Run::fold(&driven.journal).unwrap();
    assert_eq!(folded.plans(), driven.run.plans());
    assert_eq!(folded.calls_used(), 5);
}

#[test]
fn task_without_a_call_left_waits_for_what_may_come_back_and_is_refused_then() {
    let tasks = json!({"tasks": [search("a"), search("b"), search("c")]});
    let (mut driven, plan) = planned(2, tasks);
    assert_eq!(begin(&mut driven, &plan, "a"), Ok(1));
    assert_eq!(next_task(&driven, &plan), None);
    let waits = |driven: &Driven| driven.run.waits_for_calls(driven.run.plan(&plan).unwrap());
    assert!(waits(&driven));
    end(&mut driven, &plan, "a", 0);
    assert!(!waits(&driven));
    assert_eq!(next_task(&driven, &plan).as_deref(), Some("b"));
    assert_eq!(begin(&mut driven, &plan, "b"), Ok(1));
    end(&mut driven, &plan, "b", 1);
    assert_eq!(next_task(&driven, &plan).as_deref(), Some("c"));
    let refused = begin(&mut driven, &plan, "c");
    assert_eq!(refused, Err(ErrorCategory::BudgetExceeded));
}

#[test]
fn calls_of_tasks_count_before_the_calls_of_later_turns() {
    let (mut driven, plan) = planned(3, json!({"tasks": [search("a")]}));
    begin(&mut driven, &plan, "a").unwrap();
    end(&mut driven, &plan, "a", 1);
    let at = driven.now();
    driven.happen(ended(&plan, CallEnd::Success(json!({})), at));
    driven.says(vec![
        call("search", json!({"query": "b"})),
        call("search", json!({"query": "c"})),
    ]);
    driven.work(fine);
    let decided = |index| {
        let call = format!("r1:2:{index}").parse().unwrap();
        let (_, decision) = driven.run.call(&call).unwrap();
        decision.unwrap().stage()
    };
    assert_ne!(decided(0), Stage::Budget);
    assert_eq!(decided(1), Stage::Budget);
}
