//! Processes are killed in the middle of their work, at every point before and after something is
//! written down or done, by their own tools, and at random moments. Whatever happens: the work comes to
//! its end, nothing that must not be is done twice, nothing is done that was not decided and approved
//! before, and no decision of a person is lost.
//!
//! `WINDLASS_SOAK_KILLS` says how many random kills there are; `cargo xtask soak` wants many.

mod look;
mod office;
mod operator;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use windlass_core::approval::Outcome;
use windlass_core::run::{Event, RunEnd};
use windlass_spec::{CallState, ErrorCategory};
use windlass_store::RunState;

use self::look::Look;
use self::office::ANSWER;
use self::operator::{Fate, Operator, Plan, Point};

/// How much work is under way at the same time. Most of it waits.
const JOBS: usize = 8;

/// The tools whose calls are never made again on their own account.
const ONCE: [&str; 4] = ["post", "later", "pay", "wire"];

/// Those whose calls are, if nobody knows what became of them.
const AGAIN: [&str; 2] = ["note", "stamp"];

/// Tests of this file take turns: each has all cores busy.
static TURN: Mutex<()> = Mutex::new(());

/// Whatever was killed: the work is done in the end, once, or cancelled.
fn check_end(operator: &Operator, look: &Look) {
    look.check();
    let is_finished = operator.plan == Plan::Finish;
    let end = match operator.plan {
        Plan::Finish => RunEnd::Completed,
        Plan::Cancel => RunEnd::Cancelled,
    };
    for seen in &look.runs {
        assert_eq!(seen.run.end(), Some(&end), "{}", seen.run.id());
        assert_eq!(seen.state, RunState::Ended, "{}", seen.run.id());
    }
    assert_eq!(look.runs.len(), 2, "one run and that of its sub-agent");
    assert_eq!(look.open_mail(), 0, "something was never taken");
    let deaths = |tool: &str| {
        let deaths = operator.deaths.iter();
        deaths
            .filter(|death| death.in_flight.iter().any(|name| name == tool))
            .count()
    };
    for tool in AGAIN {
        assert_eq!(state(look, tool), CallState::Success, "{tool}");
        // Once more each time nobody knew whether it was done.
        let most = 1 + deaths(tool);
        assert!(
            (1..=most).contains(&look.count(tool)),
            "{tool}: {:?}",
            look.effects
        );
    }
    for tool in ONCE {
        match deaths(tool) {
            // What was asked about or deferred when all was cancelled.
            0 if !is_finished && state(look, tool) == CallState::Pending => {
                assert!(matches!(tool, "wire" | "later"), "{tool}");
                assert_eq!(look.count(tool), 0, "`{tool}` was done though cancelled");
            }
            0 => {
                assert_eq!(state(look, tool), CallState::Success, "{tool}");
                assert_eq!(look.count(tool), 1, "`{tool}` was not done exactly once");
            }
            died => {
                assert_eq!(died, 1, "`{tool}` was begun again");
                assert_eq!(state(look, tool), CallState::Unknown, "{tool}");
                assert_eq!(answers(look, tool), 1, "nobody was asked about `{tool}`");
            }
        }
    }
    for tool in ["fire", "recall"] {
        assert_eq!(
            look.count(tool),
            0,
            "`{tool}` was done in spite of a person"
        );
    }
    assert_eq!(failure(look, "fire"), ErrorCategory::Rejected);
    assert_eq!(failure(look, "recall"), ErrorCategory::Cancelled);
    let (_, asked) = look.call("ask_human").unwrap();
    assert_eq!(asked.outcome().unwrap().unwrap(), ANSWER);
    if is_finished {
        assert_eq!(state(look, "helper"), CallState::Success);
        let outermost = look.outermost().unwrap();
        assert_eq!(outermost.run.response().answer.as_str(), "all done");
    }
}

fn state(look: &Look, tool: &str) -> CallState {
    look.call(tool).unwrap().1.state()
}

fn failure(look: &Look, tool: &str) -> ErrorCategory {
    look.call(tool)
        .unwrap()
        .1
        .outcome()
        .unwrap()
        .unwrap_err()
        .category
}

/// How often a person said what became of a call.
fn answers(look: &Look, tool: &str) -> usize {
    let (seen, call) = look.call(tool).unwrap();
    let answers = seen.events.iter().filter(|event| match event {
        Event::Settled { approval, .. } => {
            approval.call() == call.id() && matches!(approval.outcome(), Some(Outcome::Answered(_)))
        }
        _ => false,
    });
    answers.count()
}

/// Does the work with processes that die so, and tells what is left.
fn work(plan: Plan, fate: Fate) -> (Operator, Look) {
    let mut operator = Operator::new(plan, fate);
    let done = catch_unwind(AssertUnwindSafe(|| {
        let look = operator.work();
        check_end(&operator, &look);
        look
    }));
    match done {
        Ok(look) => (operator, look),
        Err(_) => panic!("{}\n{:#?}", operator.log.join("\n"), operator.deaths),
    }
}

/// Does the same with all cases, several at a time, and tells which failed.
fn all_of<T: Sync + std::fmt::Debug>(cases: &[T], check: impl Fn(&T) + Sync) {
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
fn whoever_dies_at_a_point_is_gone_on_with_and_nothing_is_done_twice() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let began = Instant::now();
    let points = work(Plan::Finish, Fate::Listed).0.points();
    let names: BTreeSet<&str> = points.iter().map(Point::name).collect();
    for name in must_be_passed() {
        assert!(names.contains(name.as_str()), "{name} is not in {names:?}");
    }
    all_of(&points, |point| die_at(Plan::Finish, point));
    let (points, names) = (points.len(), names.len());
    let seconds = began.elapsed().as_secs();
    println!("killed at {points} points of {names} names in {seconds} s");
}

#[test]
fn what_is_cancelled_stays_so_wherever_whoever_cancels_it_dies() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut points = work(Plan::Cancel, Fate::Listed).0.points();
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
    all_of(&points, |point| die_at(Plan::Cancel, point));
}

/// Does the work, in which a process dies at a point.
fn die_at(plan: Plan, point: &Point) {
    let (operator, look) = work(plan, Fate::At(point.clone()));
    let died: Vec<&str> = operator
        .deaths
        .iter()
        .map(|death| death.process.as_str())
        .collect();
    assert_eq!(died, [point.process.as_str()], "{point:?} was not passed");
    check_what_is_known(point, &operator.deaths[0].in_flight, &look);
}

/// What the work leads through, so that a point that is no longer there is missed.
fn must_be_passed() -> Vec<String> {
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

/// Where the process died tells whether the effect came about that nobody knows of; and nobody is in
/// the dark once something later than the end of the call was stored.
fn check_what_is_known(point: &Point, in_flight: &[String], look: &Look) {
    let lost = in_flight
        .iter()
        .filter(|tool| ONCE.contains(&tool.as_str()));
    for tool in lost {
        let expected = match point.name() {
            // The last of these may be stored together with the start.
            "append.after.call_started" | "effect.before" | "append.after.time_passed" => 0,
            "effect.after" => 1,
            // Nobody waits until the end of a call is stored: who dies at once takes it along.
            "model.before" | "model.after" | "start.before" | "end.before" => 1,
            name if name.starts_with("append.before.") => 1,
            name => panic!("`{tool}` was lost at {name}"),
        };
        assert_eq!(look.count(tool), expected, "{tool}");
    }
}

#[test]
fn whoever_dies_by_its_own_tool_is_gone_on_with_and_the_tool_does_not_run_again() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let tools = ONCE.iter().chain(&AGAIN);
    let cases: Vec<(&str, &str)> = tools
        .flat_map(|tool| ["before", "after"].map(|side| (side, *tool)))
        .collect();
    all_of(&cases, |(side, tool)| {
        let (operator, look) = work(Plan::Finish, Fate::ByTool(format!("{side}.{tool}")));
        assert_eq!(operator.deaths.len(), 1, "{:?}", operator.deaths);
        let is_lost = operator.deaths[0].in_flight.iter().any(|name| name == tool);
        assert!(is_lost, "the effect came before the journal");
        if *side == "after" {
            let expected = if ONCE.contains(tool) { 1 } else { 2 };
            assert_eq!(look.count(tool), expected);
        }
    });
}

#[test]
fn whoever_dies_at_random_moments_is_gone_on_with_and_nothing_is_done_twice() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted: usize = match std::env::var("WINDLASS_SOAK_KILLS") {
        Ok(count) => count.parse().expect("WINDLASS_SOAK_KILLS is a number"),
        Err(_) => 10,
    };
    let began = Instant::now();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // How long the work takes while as much goes on as will.
    let durations = Mutex::new(Vec::new());
    all_of(&[(); JOBS], |()| {
        let (operator, _) = work(Plan::Finish, Fate::After(Vec::new()));
        durations.lock().unwrap().push(operator.worked());
    });
    let durations = durations.into_inner().unwrap();
    let duration = durations.iter().sum::<Duration>() / u32::try_from(JOBS).unwrap();

    let tally = Mutex::new(Tally::default());
    let workers: Vec<u64> = (0..JOBS as u64).collect();
    all_of(&workers, |worker| {
        let mut random = Random(since.as_nanos() as u64 ^ (worker << 32));
        while tally.lock().unwrap().kills < wanted {
            let count = 1 + random.below(3);
            let times = (0..count).map(|_| duration.mul_f64(random.fraction()));
            let times: Vec<Duration> = times.collect();
            let plan = match random.below(5) {
                0 => Plan::Cancel,
                _ => Plan::Finish,
            };
            let (operator, look) = work(plan, Fate::After(times));
            tally.lock().unwrap().add(&operator, &look);
        }
    });
    let seconds = began.elapsed().as_secs();
    println!("{:?} in {seconds} s", tally.into_inner().unwrap());
}

/// What was killed at random.
#[derive(Debug, Default)]
struct Tally {
    works: usize,
    kills: usize,
    /// What kind of process was killed, and how often.
    processes: BTreeMap<String, usize>,
    /// The tools that were at work then.
    in_flight: BTreeMap<String, usize>,
    /// Calls that were not made again, because nobody knew.
    unknown: usize,
}

impl Tally {
    fn add(&mut self, operator: &Operator, look: &Look) {
        self.works += 1;
        self.kills += operator.deaths.len();
        for death in &operator.deaths {
            let kind = death.process.rsplit_once(' ').unwrap().0;
            *self.processes.entry(kind.to_owned()).or_default() += 1;
            for tool in &death.in_flight {
                *self.in_flight.entry(tool.clone()).or_default() += 1;
            }
        }
        let unknown = ONCE
            .iter()
            .filter(|tool| state(look, tool) == CallState::Unknown);
        self.unknown += unknown.count();
    }
}

/// Random numbers that need not be good, only different each time.
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
