//! Processes are killed at every crash point before and after a write or an effect, by their own tools, and at
//! random times. In all cases the run ends, no call that must not be repeated runs twice, no call runs without
//! a decision and the needed approval, and no decision of an approver is lost.
//!
//! `WINDLASS_SOAK_KILLS` sets the number of random kills; `cargo xtask soak` uses many.

mod office;
mod operator;
mod stored_state;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use windlass_core::approval::ApprovalOutcome;
use windlass_core::run::{Event, RunEnd};
use windlass_spec::{CallState, ErrorCategory};
use windlass_store::RunState;

use self::office::ANSWER;
use self::operator::{CrashPlan, Goal, Operator, Point};
use self::stored_state::StoredState;

/// How many cases run at the same time. Most of them wait.
const JOBS: usize = 8;

/// The tools whose calls are never repeated automatically.
const AT_MOST_ONCE: [&str; 4] = ["post", "later", "pay", "wire"];

/// The tools whose calls are repeated if their result is unknown.
const REPEATABLE: [&str; 2] = ["note", "stamp"];

/// Serializes the tests of this file, because each uses all cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Checks the final state: all calls ran once, or the run is cancelled.
fn check_end(operator: &Operator, stored: &StoredState) {
    stored.check();
    let is_finished = operator.goal == Goal::Finish;
    let end = match operator.goal {
        Goal::Finish => RunEnd::Completed,
        Goal::Cancel => RunEnd::Cancelled,
    };
    for recorded in &stored.runs {
        assert_eq!(recorded.run.end(), Some(&end), "{}", recorded.run.id());
        assert_eq!(recorded.state, RunState::Ended, "{}", recorded.run.id());
    }
    assert_eq!(stored.runs.len(), 2, "one run and that of its sub-agent");
    assert_eq!(
        stored.open_inbox_commands(),
        0,
        "an inbox command was never taken"
    );
    let deaths = |tool: &str| {
        let deaths = operator.deaths.iter();
        deaths
            .filter(|death| death.in_flight.iter().any(|name| name == tool))
            .count()
    };
    for tool in REPEATABLE {
        assert_eq!(state(stored, tool), CallState::Success, "{tool}");
        // One repetition for each kill during the call.
        let most = 1 + deaths(tool);
        assert!(
            (1..=most).contains(&stored.count(tool)),
            "{tool}: {:?}",
            stored.effects
        );
    }
    for tool in AT_MOST_ONCE {
        match deaths(tool) {
            // The call waited or was deferred when the run was cancelled.
            0 if !is_finished && state(stored, tool) == CallState::Pending => {
                assert!(matches!(tool, "wire" | "later"), "{tool}");
                assert_eq!(stored.count(tool), 0, "`{tool}` was done though cancelled");
            }
            0 => {
                assert_eq!(state(stored, tool), CallState::Success, "{tool}");
                assert_eq!(stored.count(tool), 1, "`{tool}` was not done exactly once");
            }
            died => {
                assert_eq!(died, 1, "`{tool}` was begun again");
                assert_eq!(state(stored, tool), CallState::Unknown, "{tool}");
                assert_eq!(
                    answers(stored, tool),
                    1,
                    "no question was asked about `{tool}`"
                );
            }
        }
    }
    for tool in ["fire", "recall"] {
        assert_eq!(
            stored.count(tool),
            0,
            "`{tool}` ran despite a rejection or an undo"
        );
    }
    assert_eq!(failure(stored, "fire"), ErrorCategory::Rejected);
    assert_eq!(failure(stored, "recall"), ErrorCategory::Cancelled);
    let (_, asked) = stored.call("ask_human").unwrap();
    assert_eq!(asked.outcome().unwrap().unwrap(), ANSWER);
    if is_finished {
        assert_eq!(state(stored, "helper"), CallState::Success);
        let outermost = stored.outermost().unwrap();
        assert_eq!(outermost.run.response().answer().as_str(), "all done");
    }
}

fn state(stored: &StoredState, tool: &str) -> CallState {
    stored.call(tool).unwrap().1.state()
}

fn failure(stored: &StoredState, tool: &str) -> ErrorCategory {
    stored
        .call(tool)
        .unwrap()
        .1
        .outcome()
        .unwrap()
        .unwrap_err()
        .category
}

/// How often the operator reported the result of a lost call.
fn answers(stored: &StoredState, tool: &str) -> usize {
    let (recorded, call) = stored.call(tool).unwrap();
    let answers = recorded.events.iter().filter(|event| match event {
        Event::Settled { approval, .. } => {
            approval.call() == call.id()
                && matches!(approval.outcome(), Some(ApprovalOutcome::Answered(_)))
        }
        _ => false,
    });
    answers.count()
}

/// Runs the work with this crash plan, and returns the final state.
fn work(goal: Goal, fate: CrashPlan) -> (Operator, StoredState) {
    let mut operator = Operator::new(goal, fate);
    let done = catch_unwind(AssertUnwindSafe(|| {
        let stored = operator.work();
        check_end(&operator, &stored);
        stored
    }));
    match done {
        Ok(stored) => (operator, stored),
        Err(_) => panic!("{}\n{:#?}", operator.log.join("\n"), operator.deaths),
    }
}

/// Checks all cases, several at a time, and reports the failed ones.
fn check_all<T: Sync + std::fmt::Debug>(cases: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if catch_unwind(AssertUnwindSafe(|| check(case))).is_err() {
                        failed.lock().unwrap().push(format!("{case:?}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let (count, all) = (failed.len(), cases.len());
    assert!(failed.is_empty(), "{count} of {all} failed: {failed:#?}");
}

#[test]
fn run_resumes_after_a_kill_at_any_crash_point_without_repeating_effects() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let started = Instant::now();
    let points = work(Goal::Finish, CrashPlan::Listed).0.points();
    let names: BTreeSet<&str> = points.iter().map(Point::name).collect();
    for name in required_points() {
        assert!(names.contains(name.as_str()), "{name} is not in {names:?}");
    }
    check_all(&points, |point| die_at(Goal::Finish, point));
    let (points, names) = (points.len(), names.len());
    let seconds = started.elapsed().as_secs();
    println!("killed at {points} points of {names} names in {seconds} s");
}

#[test]
fn cancellation_survives_a_kill_of_the_cancelling_process() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut points = work(Goal::Cancel, CrashPlan::Listed).0.points();
    points.retain(|point| point.process.starts_with("cancel"));
    let names: BTreeSet<&str> = points.iter().map(Point::name).collect();
    for name in [
        "cancel.after",
        "take_over.before",
        "append.after.cancelled",
        "end.after",
    ] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    check_all(&points, |point| die_at(Goal::Cancel, point));
}

/// Runs the work and kills a process at a crash point.
fn die_at(goal: Goal, point: &Point) {
    let (operator, stored) = work(goal, CrashPlan::At(point.clone()));
    let died: Vec<&str> = operator
        .deaths
        .iter()
        .map(|death| death.process.as_str())
        .collect();
    assert_eq!(died, [point.process.as_str()], "{point:?} was not passed");
    check_effect_of_lost_call(point, &operator.deaths[0].in_flight, &stored);
}

/// The crash points that the work must pass, so that a removed point is noticed.
fn required_points() -> Vec<String> {
    let events = [
        "model_answered",
        "decided",
        "asked",
        "settled",
        "held",
        "undone",
        "call_started",
        "call_ended",
        "resumed",
        "time_passed",
    ];
    let others = [
        "start",
        "take_over",
        "end",
        "decide",
        "undo",
        "effect",
        "model",
    ];
    let events = events
        .iter()
        .flat_map(|event| ["before", "after"].map(|side| format!("append.{side}.{event}")));
    let others = others
        .iter()
        .flat_map(|other| ["before", "after"].map(|side| format!("{other}.{side}")));
    events.chain(others).collect()
}

/// The crash point determines whether a lost call had its effect. No call is lost once something after its end
/// is stored.
fn check_effect_of_lost_call(point: &Point, in_flight: &[String], stored: &StoredState) {
    let lost = in_flight
        .iter()
        .filter(|tool| AT_MOST_ONCE.contains(&tool.as_str()));
    for tool in lost {
        let expected = match point.name() {
            // The last of these may be stored in the same transaction as the start.
            "append.after.call_started" | "effect.before" | "append.after.time_passed" => 0,
            "effect.after" => 1,
            // The end of a call is stored asynchronously, so a kill right after it loses it.
            "model.before" | "model.after" | "start.before" | "end.before" => 1,
            name if name.starts_with("append.before.") => 1,
            name => panic!("`{tool}` was lost at {name}"),
        };
        assert_eq!(stored.count(tool), expected, "{tool}");
    }
}

#[test]
fn run_resumes_after_its_tool_killed_the_process_without_repeating_the_call() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let tools = AT_MOST_ONCE.iter().chain(&REPEATABLE);
    let cases: Vec<(&str, &str)> = tools
        .flat_map(|tool| ["before", "after"].map(|side| (side, *tool)))
        .collect();
    check_all(&cases, |(side, tool)| {
        let (operator, stored) = work(Goal::Finish, CrashPlan::ByTool(format!("{side}.{tool}")));
        assert_eq!(operator.deaths.len(), 1, "{:?}", operator.deaths);
        let is_lost = operator.deaths[0].in_flight.iter().any(|name| name == tool);
        assert!(is_lost, "the effect came before the journal");
        if *side == "after" {
            let expected = if AT_MOST_ONCE.contains(tool) { 1 } else { 2 };
            assert_eq!(stored.count(tool), expected);
        }
    });
}

#[test]
fn run_resumes_after_random_kills_without_repeating_effects() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted: usize = match std::env::var("WINDLASS_SOAK_KILLS") {
        Ok(count) => count.parse().expect("WINDLASS_SOAK_KILLS is a number"),
        Err(_) => 10,
    };
    let started = Instant::now();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // The duration of the work under the same load.
    let durations = Mutex::new(Vec::new());
    check_all(&[(); JOBS], |()| {
        let (operator, _) = work(Goal::Finish, CrashPlan::After(Vec::new()));
        durations.lock().unwrap().push(operator.worked());
    });
    let durations = durations.into_inner().unwrap();
    let duration = durations.iter().sum::<Duration>() / u32::try_from(JOBS).unwrap();

    let tally = Mutex::new(Tally::default());
    let workers: Vec<u64> = (0..JOBS as u64).collect();
    check_all(&workers, |worker| {
        let mut random = Random(since.as_nanos() as u64 ^ (worker << 32));
        while tally.lock().unwrap().kills < wanted {
            let count = 1 + random.below(3);
            let times = (0..count).map(|_| duration.mul_f64(random.fraction()));
            let times: Vec<Duration> = times.collect();
            let goal = match random.below(5) {
                0 => Goal::Cancel,
                _ => Goal::Finish,
            };
            let (operator, stored) = work(goal, CrashPlan::After(times));
            tally.lock().unwrap().add(&operator, &stored);
        }
    });
    let seconds = started.elapsed().as_secs();
    println!("{:?} in {seconds} s", tally.into_inner().unwrap());
}

/// Statistics of the random kills.
#[derive(Debug, Default)]
struct Tally {
    works: usize,
    kills: usize,
    /// The number of kills by kind of process.
    processes: BTreeMap<String, usize>,
    /// The tools that were running at the kills.
    in_flight: BTreeMap<String, usize>,
    /// Calls that were not repeated, because their result is unknown.
    unknown: usize,
}

impl Tally {
    fn add(&mut self, operator: &Operator, stored: &StoredState) {
        self.works += 1;
        self.kills += operator.deaths.len();
        for death in &operator.deaths {
            let kind = death.process.rsplit_once(' ').unwrap().0;
            *self.processes.entry(kind.to_owned()).or_default() += 1;
            for tool in &death.in_flight {
                *self.in_flight.entry(tool.clone()).or_default() += 1;
            }
        }
        let unknown = AT_MOST_ONCE
            .iter()
            .filter(|tool| state(stored, tool) == CallState::Unknown);
        self.unknown += unknown.count();
    }
}

/// A simple random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From 0 up to 1.
    fn fraction(&mut self) -> f64 {
        f64::from((self.next() >> 32) as u32) / 2f64.powi(32)
    }
}
