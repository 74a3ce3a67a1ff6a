//! When tasks can start and what happens to the others, for fixed and random plans.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_spec::plan::{Plan, PlanTaskId, RawPlan};
use windlass_spec::{CallId, Effect, ErrorCategory, Failure, Timestamp};

use super::{PlanState, PlanTaskStatus, Plans, ReplanError, TaskEnd};
use crate::model::Usage;
use crate::run::event::Event;
use crate::run::outcome::FoldError;

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

fn startable(state: &PlanState) -> Vec<String> {
    let tasks = state.startable_tasks();
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
fn plan_is_made_once_and_returns_the_calls_lent_to_its_tasks() {
    let call: CallId = "run:1:0".parse().unwrap();
    let made = Event::Planned {
        call: call.clone(),
        plan: Box::new(plan(json!({"tasks": [{"id": "a", "tool": "t"}]}))),
        at: at(0),
    };
    let started = Event::TaskStarted {
        plan: call.clone(),
        task: id("a"),
        attempt: 1,
        at: at(1),
    };
    let ended = Event::TaskEnded {
        plan: call.clone(),
        task: id("a"),
        attempt: 1,
        end: success(json!(1)),
        usage: Usage::default(),
        calls: 1,
        at: at(2),
    };
    let mut plans = Plans::default();
    let no_plan = Err(FoldError::NoPlan(call.clone()));
    assert_eq!(plans.apply(&started, Some(3)), no_plan);
    assert_eq!(plans.apply(&made, None), Ok(None));
    assert_eq!(plans.apply(&made, None), no_plan);
    assert_eq!(plans.apply(&started, Some(3)), Ok(None));
    assert!(plans.has_lent());
    assert_eq!(plans.apply(&ended, None), Ok(Some(3)));
    assert!(!plans.has_lent());
    let before = plans.clone();
    let refused = Err(FoldError::NotOfPlan(call, id("a")));
    assert_eq!(plans.apply(&ended, None), refused);
    assert_eq!(plans, before);
}

#[test]
fn task_starts_when_all_its_dependencies_succeeded() {
    let mut state = diamond("stop");
    assert_eq!(startable(&state), ["a", "c"]);
    assert!(state.start(&id("b"), 1, 1, at(1)).is_err());
    state.start(&id("a"), 1, 1, at(1)).unwrap();
    state.start(&id("c"), 1, 1, at(1)).unwrap();
    assert_eq!(startable(&state), [""; 0]);
    state.end(&id("a"), 1, &success(json!(1)), at(2)).unwrap();
    assert_eq!(startable(&state), ["b"]);
    state.start(&id("b"), 1, 1, at(2)).unwrap();
    state.end(&id("b"), 1, &success(json!(2)), at(3)).unwrap();
    assert_eq!(startable(&state), [""; 0]);
    state.end(&id("c"), 1, &success(json!(3)), at(4)).unwrap();
    assert_eq!(startable(&state), ["d"]);
    assert_eq!(state.status(), PlanTaskStatus::InProgress);
}

#[test]
fn sequential_plan_starts_one_task_at_a_time_in_order() {
    let mut state = state(json!({"execution_mode": "sequential", "tasks": [
        {"id": "late", "tool": "t", "depends_on": ["early"]},
        {"id": "early", "tool": "t"},
        {"id": "other", "tool": "t"},
    ]}));
    for task in ["early", "late", "other"] {
        assert_eq!(startable(&state), [task]);
        state.start(&id(task), 1, 1, at(1)).unwrap();
        assert_eq!(startable(&state), [""; 0]);
        state.end(&id(task), 1, &success(json!(1)), at(2)).unwrap();
    }
    assert_eq!(state.status(), PlanTaskStatus::Success);
}

#[test]
fn failed_task_stops_the_plan_or_skips_its_dependents() {
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
    assert_eq!(startable(&skipped), ["c"]);
    assert!(!skipped.is_over());
    let because = skipped.task("d").unwrap().1.because.clone().unwrap();
    assert!(because.contains("`b`"), "{because}");
}

#[test]
fn task_is_retried_only_if_it_had_no_effect() {
    let retried = |end: &TaskEnd| {
        let mut state = state(json!({"tasks": [{"id": "a", "tool": "t", "retries": 2}]}));
        let mut attempts = 0;
        while let [_] = startable(&state)[..] {
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
    // Permanent errors are not retried either.
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
fn only_manual_tasks_can_be_marked_and_only_pending_tasks_skipped() {
    let mut state = state(json!({"tasks": [
        {"id": "call", "tool": "t"},
        {"id": "think", "description": "Think about it", "depends_on": ["call"]},
        {"id": "write", "tool": "t", "depends_on": ["think"]},
    ]}));
    assert!(state.check_mark("call", PlanTaskStatus::Success).is_err());
    assert!(state.check_mark("think", PlanTaskStatus::Success).is_err());
    assert!(
        state
            .check_mark("thnk", PlanTaskStatus::Success)
            .unwrap_err()
            .contains("`think`")
    );
    state.start(&id("call"), 1, 1, at(1)).unwrap();
    assert!(state.check_mark("call", PlanTaskStatus::Skipped).is_err());
    state
        .end(&id("call"), 1, &success(json!(1)), at(2))
        .unwrap();
    assert_eq!(startable(&state), [""; 0]);
    let by_hand: Vec<_> = state.manual_tasks().map(|task| task.id.as_str()).collect();
    assert_eq!(by_hand, ["think"]);
    assert!(state.check_mark("think", PlanTaskStatus::Pending).is_err());
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
    assert_eq!(startable(&state), ["write"]);
    state
        .mark(&id("write"), PlanTaskStatus::Skipped, None, false, at(5))
        .unwrap();
    assert!(state.is_over());
}

#[test]
fn replanning_cannot_change_started_tasks() {
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
    assert_eq!(startable(&replanned), ["e"]);
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
fn taint_passes_to_all_dependent_tasks() {
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

/// A random plan with random ends of its tasks, in a random order.
#[derive(Debug, Clone)]
struct RandomPlan {
    plan: Plan,
    /// By task, how each attempt ends.
    ends: Vec<u8>,
    order: Vec<u8>,
}

fn random_plans() -> impl Strategy<Value = RandomPlan> {
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
                RandomPlan {
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
    fn dependencies_and_parallelism_hold_and_every_task_is_settled_once(random in random_plans()) {
        let call: CallId = "run:1:0".parse().unwrap();
        let mut state = PlanState::new(call, random.plan.clone(), at(0));
        let most = random.plan.max_parallel();
        let mut settled: BTreeSet<PlanTaskId> = BTreeSet::new();
        let mut attempts: BTreeMap<PlanTaskId, u32> = BTreeMap::new();
        let mut order = random.order.iter().cycle();
        for step in 0.. {
            prop_assert!(step < 500, "the plan does not end");
            while let Some(task) = state.startable_tasks().first().map(|task| (*task).clone()) {
                for before in &task.depends_on {
                    prop_assert_eq!(status(&state, before.as_str()), PlanTaskStatus::Success);
                }
                let attempt = attempts.entry(task.id.clone()).or_default();
                *attempt += 1;
                prop_assert!(*attempt <= task.retries + 1);
                state.start(&task.id, *attempt, 1, at(step)).unwrap();
                prop_assert!(state.in_progress().count() <= most);
            }
            let in_progress: Vec<(PlanTaskId, u32)> =
                state.in_progress().map(|(task, attempt)| (task.clone(), attempt)).collect();
            // Every task that can run is running: below the limit, no startable task is left pending.
            if in_progress.len() < most {
                let is_free = |task: &windlass_spec::plan::PlanTask| {
                    status(&state, task.id.as_str()) == PlanTaskStatus::Pending
                        && task.depends_on.iter().all(|before| {
                            status(&state, before.as_str()) == PlanTaskStatus::Success
                        })
                };
                prop_assert!(!random.plan.tasks().iter().any(is_free));
            }
            if in_progress.is_empty() {
                break;
            }
            let pick = usize::from(*order.next().unwrap()) % in_progress.len();
            let (task, attempt) = &in_progress[pick];
            let end = match random.ends[(pick * 7 + step as usize) % random.ends.len()] % 5 {
                0 => failure(ErrorCategory::ToolFailure, Effect::None),
                1 => failure(ErrorCategory::ToolFailure, Effect::Unknown),
                _ => success(json!(step)),
            };
            state.end(task, *attempt, &end, at(step)).unwrap();
            for (task, state) in state.tasks() {
                if state.status.is_settled() {
                    settled.insert(task.id.clone());
                } else {
                    // A settled task stays settled.
                    prop_assert!(!settled.contains(&task.id));
                }
            }
            // A settled task cannot end or start again.
            for task in &settled {
                let mut changed = state.clone();
                let attempt = state.task(task.as_str()).unwrap().1.attempts;
                prop_assert!(changed.end(task, attempt, &success(json!(0)), at(step)).is_err());
                prop_assert!(changed.start(task, attempt + 1, 1, at(step)).is_err());
            }
        }
        prop_assert!(state.is_over());
        prop_assert_eq!(settled.len(), random.plan.tasks().len());
    }
}
