//! Usage, lent calls and remaining limits.

use windlass_spec::plan::PlanTaskId;

use super::super::event::CallEnd;
use super::super::plan::TaskEnd;
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(1_760_000_000_000_000 + second * 1_000_000)
}

fn allowance(settings: Settings) -> Allowance {
    Allowance::new(settings, at(0))
}

fn call() -> CallId {
    "r1:1:0".parse().unwrap()
}

fn pass_time(allowance: &mut Allowance, to: i64, was_idle: bool) {
    let event = Event::TimePassed { at: at(to) };
    allowance.apply(&event, was_idle, Turn::FIRST, None);
}

/// A call that ends after it cost something and others made calls for it.
fn call_ended(usage: Usage, calls: u32) -> Event {
    Event::CallEnded {
        call: call(),
        end: CallEnd::Success(serde_json::Value::Null),
        usage,
        calls,
        ran: None,
        tainted: false,
        at: at(0),
    }
}

#[test]
fn time_in_which_the_run_waited_does_not_count() {
    let mut allowance = allowance(Settings {
        max_seconds: Some(10),
        ..Settings::default()
    });
    pass_time(&mut allowance, 4, false);
    pass_time(&mut allowance, 100, true);
    assert_eq!(allowance.time_used(at(100)), Duration::from_secs(4));
    assert!(!allowance.is_out_of_time());
    pass_time(&mut allowance, 106, false);
    assert!(allowance.is_out_of_time());
    // A clock that is set back does not restore time.
    pass_time(&mut allowance, 50, false);
    assert_eq!(allowance.now(), at(106));
}

#[test]
fn lent_calls_count_until_they_are_returned() {
    let mut allowance = allowance(Settings {
        max_calls: 10,
        ..Settings::default()
    });
    let started = Event::CallStarted {
        call: call(),
        variant: None,
        at: at(0),
    };
    allowance.apply(&started, false, Turn::FIRST, Some(6));
    assert_eq!(allowance.calls_left(1), 3);
    assert_eq!(allowance.lent_to(&call()), 6);
    assert!(allowance.has_lent());
    let ended = call_ended(Usage::default(), 2);
    allowance.apply(&ended, false, Turn::FIRST, None);
    assert_eq!(allowance.calls_left(1), 7);
    assert_eq!(allowance.lent_to(&call()), 0);
    assert!(!allowance.has_lent());
}

#[test]
fn calls_of_others_count_by_turn() {
    let mut allowance = allowance(Settings::default());
    let (first, second) = (Turn::FIRST, Turn::FIRST.next());
    let started = Event::TaskStarted {
        plan: call(),
        task: PlanTaskId::new("a").unwrap(),
        attempt: 1,
        at: at(0),
    };
    let ended = Event::TaskEnded {
        plan: call(),
        task: PlanTaskId::new("a").unwrap(),
        attempt: 1,
        end: TaskEnd::Success {
            result: serde_json::Value::Null,
            tainted: false,
        },
        usage: Usage::default(),
        calls: 3,
        at: at(0),
    };
    allowance.apply(&started, false, first, Some(5));
    allowance.apply(&ended, false, first, Some(5));
    allowance.apply(&started, false, second, Some(4));
    assert_eq!(allowance.calls_of_others_before(first), 0);
    assert_eq!(allowance.calls_of_others_before(second), 3);
    assert_eq!(allowance.calls_of_others(), 7);
}

fn used_up(budget: Budget) -> Option<RunEnd> {
    Some(RunEnd::Budget {
        budget,
        message: None,
    })
}

#[test]
fn remaining_settings_subtract_usage() {
    let mut allowance = allowance(Settings {
        max_tokens: Some(100),
        max_microdollars: Some(Money::from_microdollars(50)),
        ..Settings::default()
    });
    let usage = Usage {
        input_tokens: 60,
        output_tokens: 10,
        microdollars: Some(Money::from_microdollars(50)),
        ..Usage::default()
    };
    allowance.apply(&call_ended(usage, 0), false, Turn::FIRST, None);
    assert_eq!(allowance.used_up(), used_up(Budget::Money));
    let rest = allowance.remaining_limits(7, at(0));
    assert_eq!(rest.max_calls, 7);
    assert_eq!(rest.max_tokens, Some(30));
    assert_eq!(rest.max_microdollars, Some(Money::ZERO));
    let usage = Usage {
        input_tokens: 30,
        ..Usage::default()
    };
    allowance.apply(&call_ended(usage, 0), false, Turn::FIRST, None);
    assert_eq!(allowance.used_up(), used_up(Budget::Tokens));
}

#[test]
fn shares_use_up_what_is_left() {
    assert_eq!(share(10, 3), 4);
    assert_eq!(share(6, 2), 3);
    assert_eq!(share(5, 0), 5);
    assert_eq!(share(0, 3), 0);
}
