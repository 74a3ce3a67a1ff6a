//! What can begin when, and what becomes of the rest: on plans written by hand and on random ones.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_spec::plan::{Plan, PlanTaskId, RawPlan};
use windlass_spec::{CallId, Effect, ErrorCategory, Failure, Timestamp};

use super::{PlanState, PlanTaskStatus, ReplanError, TaskEnd};

fn plan(value: Value) -> Plan {
    Plan::try_from(serde_json::from_value::<RawPlan>(value).unwrap()).unwrap()
}

fn state(value: Value) -> PlanState {
    let call: CallId = "run:1:0".parse().unwrap();
    PlanState::new(call, plan(value), at(0))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_microseconds(seconds * 1_000_000)
}

fn id(name: &str) -> PlanTaskId {
    PlanTaskId::new(name).unwrap()
}

fn begin(state: &PlanState) -> Vec<String> {
    let tasks = state.can_begin();
    tasks.iter().map(|task| task.id.to_string()).collect()
}

fn success(result: Value) -> TaskEnd {
    TaskEnd::Success {
        result,
        tainted: false,
    }
}

fn failure(category: ErrorCategory, effect: Effect) -> TaskEnd {
    TaskEnd::not_begun(Failure::new(category, effect, "it did not work"))
}

fn status(state: &PlanState, task: &str) -> PlanTaskStatus {
    state.task(task).unwrap().1.status
}

fn diamond(on_failure: &str) -> PlanState {
    state(json!({"tasks": [
        {"id": "a", "tool": "t", "on_failure": on_failure},
        {"id": "b", "tool": "t", "depends_on": ["a"]},
        {"id": "c", "tool": "t"},
        {"id": "d", "tool": "t", "depends_on": ["b", "c"]},
    ]}))
}

#[test]
fn task_begins_when_all_it_waits_for_is_done() {
    let mut state = diamond("stop");
    assert_eq!(begin(&state), ["a", "c"]);
    assert!(state.start(&id("b"), 1, 1, at(1)).is_err());
    state.start(&id("a"), 1, 1, at(1)).unwrap();
    state.start(&id("c"), 1, 1, at(1)).unwrap();
    assert_eq!(begin(&state), [""; 0]);
    state.end(&id("a"), 1, &success(json!(1)), at(2)).unwrap();
    assert_eq!(begin(&state), ["b"]);
    state.start(&id("b"), 1, 1, at(2)).unwrap();
    state.end(&id("b"), 1, &success(json!(2)), at(3)).unwrap();
    assert_eq!(begin(&state), [""; 0]);
    state.end(&id("c"), 1, &success(json!(3)), at(4)).unwrap();
    assert_eq!(begin(&state), ["d"]);
    assert_eq!(state.status(), PlanTaskStatus::InProgress);
}

#[test]
fn sequential_plan_begins_one_task_at_a_time_in_order() {
    let mut state = state(json!({"execution_mode": "sequential", "tasks": [
        {"id": "late", "tool": "t", "depends_on": ["early"]},
        {"id": "early", "tool": "t"},
        {"id": "other", "tool": "t"},
    ]}));
    for task in ["early", "late", "other"] {
        assert_eq!(begin(&state), [task]);
        state.start(&id(task), 1, 1, at(1)).unwrap();
        assert_eq!(begin(&state), [""; 0]);
        state.end(&id(task), 1, &success(json!(1)), at(2)).unwrap();
    }
    assert_eq!(state.status(), PlanTaskStatus::Success);
}

#[test]
fn task_that_fails_stops_the_plan_or_what_waits_for_it() {
    let mut stopped = diamond("stop");
    let mut skipped = diamond("skip_dependents");
    for state in [&mut stopped, &mut skipped] {
        state.start(&id("a"), 1, 1, at(1)).unwrap();
        let end = failure(ErrorCategory::ToolFailure, Effect::None);
        state.end(&id("a"), 1, &end, at(2)).unwrap();
        assert_eq!(status(state, "a"), PlanTaskStatus::Error);
        assert_eq!(status(state, "b"), PlanTaskStatus::Skipped);
        assert_eq!(status(state, "d"), PlanTaskStatus::Skipped);
    }
    assert_eq!(status(&stopped, "c"), PlanTaskStatus::Skipped);
    assert!(stopped.is_over());
    assert_eq!(begin(&skipped), ["c"]);
    assert!(!skipped.is_over());
    let because = skipped.task("d").unwrap().1.because.clone().unwrap();
    assert!(because.contains("`b`"), "{because}");
}

#[test]
fn task_is_tried_again_only_if_it_has_done_nothing() {
    let retried = |end: &TaskEnd| {
        let mut state = state(json!({"tasks": [{"id": "a", "tool": "t", "retries": 2}]}));
        let mut attempts = 0;
        while let [_] = begin(&state)[..] {
            attempts += 1;
            state.start(&id("a"), attempts, 1, at(1)).unwrap();
            state.end(&id("a"), attempts, end, at(2)).unwrap();
        }
        assert_eq!(status(&state, "a"), PlanTaskStatus::Error);
        attempts
    };
    assert_eq!(
        retried(&failure(ErrorCategory::Unavailable, Effect::None)),
        3
    );
    assert_eq!(
        retried(&failure(ErrorCategory::ToolFailure, Effect::None)),
        3
    );
    for effect in [Effect::Applied, Effect::Unknown] {
        assert_eq!(retried(&failure(ErrorCategory::Unavailable, effect)), 1);
    }
    // Nor if it is bound to fail again.
    for category in [
        ErrorCategory::Rejected,
        ErrorCategory::PermissionDenied,
        ErrorCategory::InvalidArguments,
        ErrorCategory::UnknownTool,
    ] {
        assert_eq!(retried(&failure(category, Effect::None)), 1, "{category:?}");
    }
}

#[test]
fn only_what_is_done_by_hand_can_be_marked_and_what_has_not_begun_be_skipped() {
    let mut state = state(json!({"tasks": [
        {"id": "call", "tool": "t"},
        {"id": "think", "description": "Think about it", "depends_on": ["call"]},
        {"id": "write", "tool": "t", "depends_on": ["think"]},
    ]}));
    assert!(state.may_mark("call", PlanTaskStatus::Success).is_err());
    assert!(state.may_mark("think", PlanTaskStatus::Success).is_err());
    assert!(
        state
            .may_mark("thnk", PlanTaskStatus::Success)
            .unwrap_err()
            .contains("`think`")
    );
    state.start(&id("call"), 1, 1, at(1)).unwrap();
    assert!(state.may_mark("call", PlanTaskStatus::Skipped).is_err());
    state
        .end(&id("call"), 1, &success(json!(1)), at(2))
        .unwrap();
    assert_eq!(begin(&state), [""; 0]);
    let by_hand: Vec<_> = state.by_hand().map(|task| task.id.as_str()).collect();
    assert_eq!(by_hand, ["think"]);
    assert!(state.may_mark("think", PlanTaskStatus::Pending).is_err());
    state
        .mark(&id("think"), PlanTaskStatus::InProgress, None, false, at(3))
        .unwrap();
    state
        .mark(
            &id("think"),
            PlanTaskStatus::Success,
            Some(&json!("so")),
            false,
            at(4),
        )
        .unwrap();
    assert!(
        state
            .mark(&id("think"), PlanTaskStatus::Error, None, false, at(4))
            .is_err()
    );
    assert_eq!(begin(&state), ["write"]);
    state
        .mark(&id("write"), PlanTaskStatus::Skipped, None, false, at(5))
        .unwrap();
    assert!(state.is_over());
}

#[test]
fn what_has_begun_stays_as_it_is_when_a_plan_is_changed() {
    let mut state = diamond("stop");
    state.start(&id("a"), 1, 1, at(1)).unwrap();
    let changed =
        |a: Value| plan(json!({"tasks": [a, {"id": "e", "tool": "t", "depends_on": ["a"]}]}));
    let same = json!({"id": "a", "tool": "t"});
    let other = json!({"id": "a", "tool": "other"});
    assert_eq!(
        state.replanned(changed(other)).unwrap_err(),
        ReplanError::Begun(id("a"))
    );
    let mut replanned = state.replanned(changed(same.clone())).unwrap();
    assert!(replanned.task("d").is_none());
    replanned
        .end(&id("a"), 1, &success(json!(1)), at(2))
        .unwrap();
    assert_eq!(begin(&replanned), ["e"]);
    replanned.start(&id("e"), 1, 1, at(2)).unwrap();
    replanned
        .end(&id("e"), 1, &success(json!(1)), at(2))
        .unwrap();
    assert_eq!(
        replanned.replanned(changed(same)).unwrap_err(),
        ReplanError::Over
    );
}

#[test]
fn what_strangers_wrote_is_marked_through_all_that_goes_on_from_it() {
    let mut state = diamond("stop");
    state.start(&id("a"), 1, 1, at(1)).unwrap();
    let end = TaskEnd::Success {
        result: json!("from outside"),
        tainted: true,
    };
    state.end(&id("a"), 1, &end, at(2)).unwrap();
    let before = |task: &str| state.is_tainted_before(state.plan().task(task).unwrap());
    assert!(state.is_tainted());
    assert!(before("b") && before("d"));
    assert!(!before("a") && !before("c"));
}

/// What happens to the tasks of a random plan, in a random order.
#[derive(Debug, Clone)]
struct Course {
    plan: Plan,
    /// By task, how each attempt ends.
    ends: Vec<u8>,
    order: Vec<u8>,
}

fn courses() -> impl Strategy<Value = Course> {
    (1usize..14).prop_flat_map(|count| {
        let edges = prop::collection::vec(any::<u16>(), count);
        let more = prop::collection::vec(any::<u8>(), count * 8);
        (edges, more.clone(), more, 1u16..5, any::<bool>()).prop_map(
            move |(edges, ends, order, max_parallel, is_sequential)| {
                let tasks: Vec<Value> = (0..count)
                    .map(|number| {
                        let depends_on: Vec<String> = (0..number)
                            .filter(|before| edges[number] >> (before % 16) & 3 == 3)
                            .map(|before| format!("t{before}"))
                            .collect();
                        let policy = ["stop", "skip_dependents"][usize::from(ends[number] % 2)];
                        json!({
                            "id": format!("t{number}"), "tool": "t", "depends_on": depends_on,
                            "on_failure": policy, "retries": ends[number] % 3,
                        })
                    })
                    .collect();
                let mode = if is_sequential {
                    "sequential"
                } else {
                    "parallel"
                };
                Course {
                    plan: plan(json!({
                        "execution_mode": mode, "max_parallel": max_parallel, "tasks": tasks,
                    })),
                    ends,
                    order,
                }
            },
        )
    })
}

proptest! {
    #[test]
    fn order_is_kept_room_is_used_and_every_task_is_settled_once(course in courses()) {
        let call: CallId = "run:1:0".parse().unwrap();
        let mut state = PlanState::new(call, course.plan.clone(), at(0));
        let most = course.plan.max_parallel();
        let mut settled: BTreeSet<PlanTaskId> = BTreeSet::new();
        let mut attempts: BTreeMap<PlanTaskId, u32> = BTreeMap::new();
        let mut order = course.order.iter().cycle();
        for step in 0.. {
            prop_assert!(step < 500, "it does not end");
            while let Some(task) = state.can_begin().first().map(|task| (*task).clone()) {
                for before in &task.depends_on {
                    prop_assert_eq!(status(&state, before.as_str()), PlanTaskStatus::Success);
                }
                let attempt = attempts.entry(task.id.clone()).or_default();
                *attempt += 1;
                prop_assert!(*attempt <= task.retries + 1);
                state.start(&task.id, *attempt, 1, at(step)).unwrap();
                prop_assert!(state.under_way().count() <= most);
            }
            let under_way: Vec<(PlanTaskId, u32)> =
                state.under_way().map(|(task, attempt)| (task.clone(), attempt)).collect();
            // Whatever could run, does: as long as there is room, nothing that waits for nothing is left.
            if under_way.len() < most {
                let is_free = |task: &windlass_spec::plan::PlanTask| {
                    status(&state, task.id.as_str()) == PlanTaskStatus::Pending
                        && task.depends_on.iter().all(|before| {
                            status(&state, before.as_str()) == PlanTaskStatus::Success
                        })
                };
                prop_assert!(!course.plan.tasks().iter().any(is_free));
            }
            if under_way.is_empty() {
                break;
            }
            let pick = usize::from(*order.next().unwrap()) % under_way.len();
            let (task, attempt) = &under_way[pick];
            let end = match course.ends[(pick * 7 + step as usize) % course.ends.len()] % 5 {
                0 => failure(ErrorCategory::ToolFailure, Effect::None),
                1 => failure(ErrorCategory::ToolFailure, Effect::Unknown),
                _ => success(json!(step)),
            };
            state.end(task, *attempt, &end, at(step)).unwrap();
            for (task, state) in state.tasks() {
                if state.status.is_settled() {
                    settled.insert(task.id.clone());
                } else {
                    // Nothing is unsettled again.
                    prop_assert!(!settled.contains(&task.id));
                }
            }
            // What is settled is not ended, begun or marked again.
            for task in &settled {
                let mut changed = state.clone();
                let attempt = state.task(task.as_str()).unwrap().1.attempts;
                prop_assert!(changed.end(task, attempt, &success(json!(0)), at(step)).is_err());
                prop_assert!(changed.start(task, attempt + 1, 1, at(step)).is_err());
            }
        }
        prop_assert!(state.is_over());
        prop_assert_eq!(settled.len(), course.plan.tasks().len());
    }
}
