use proptest::prelude::*;
use windlass_spec::ToolName;

use super::*;

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_microseconds(1_700_000_000_000_000 + (seconds * 1e6) as i64)
}

fn limit(window: Window, count: u32) -> Limit {
    Limit {
        scope: LimitScope::Tool(ToolName::new("search").unwrap()),
        window,
        count: NonZeroU32::new(count).unwrap(),
    }
}

#[test]
fn limit_allows_a_burst_and_then_one_call_at_a_time() {
    let limit = limit(Window::PerMinute, 3);
    let mut kept = None;
    for _ in 0..3 {
        kept = Some(limit.take(kept, at(0.0)).unwrap());
    }
    assert_eq!(limit.take(kept, at(0.0)), Err(at(20.0)));
    assert_eq!(limit.take(kept, at(19.9)), Err(at(20.0)));
    kept = Some(limit.take(kept, at(20.0)).unwrap());
    assert_eq!(limit.take(kept, at(20.0)), Err(at(40.0)));
    // After a window without calls the full count is available again.
    for _ in 0..3 {
        kept = Some(limit.take(kept, at(120.0)).unwrap());
    }
    assert_eq!(limit.take(kept, at(120.0)), Err(at(140.0)));
}

#[test]
fn returned_call_can_be_taken_again() {
    let limit = limit(Window::PerMinute, 2);
    let one = limit.take(None, at(0.0)).unwrap();
    let two = limit.take(Some(one), at(0.0)).unwrap();
    assert!(limit.take(Some(two), at(0.0)).is_err());
    let back = limit.give_back(two);
    assert_eq!(back, one);
    assert_eq!(limit.take(Some(back), at(0.0)), Ok(two));
}

#[test]
fn lowered_limit_keeps_the_previous_usage() {
    let mut kept = None;
    for _ in 0..10 {
        kept = Some(limit(Window::PerHour, 10).take(kept, at(0.0)).unwrap());
    }
    let until = limit(Window::PerHour, 1).take(kept, at(1.0)).unwrap_err();
    assert!(at(3590.0) < until && until <= at(3601.0), "{until}");
}

#[test]
fn raised_limit_counts_only_the_calls_made_before() {
    let kept = limit(Window::PerDay, 1).take(None, at(0.0)).unwrap();
    let (raised, mut kept) = (limit(Window::PerDay, 100), Some(kept));
    for _ in 0..99 {
        kept = Some(raised.take(kept, at(1.0)).unwrap());
    }
    assert!(raised.take(kept, at(1.0)).is_err());
}

#[test]
fn clock_set_back_blocks_no_longer_than_the_window() {
    let limit = limit(Window::PerMinute, 1);
    let kept = limit.take(None, at(86_400.0)).unwrap();
    let until = limit.take(Some(kept), at(0.0)).unwrap_err();
    assert!(until <= at(60.0), "{until}");
}

#[test]
fn concurrent_limit_never_refuses_by_time() {
    let limit = limit(Window::Concurrent, 1);
    for _ in 0..5 {
        let kept = LimitState {
            due: at(9.0),
            interval: 1,
        };
        assert!(limit.take(Some(kept), at(0.0)).is_ok());
    }
}

proptest! {
    #[test]
    fn no_window_exceeds_its_count_plus_the_refill(
        count in 1_u32..50,
        pauses in prop::collection::vec(0.0_f64..30.0, 1..200),
    ) {
        let limit = limit(Window::PerMinute, count);
        let (mut kept, mut now, mut taken) = (None, 0.0, Vec::new());
        for pause in pauses {
            now += pause;
            match limit.take(kept, at(now)) {
                Ok(due) => {
                    kept = Some(due);
                    taken.push(now);
                }
                // The returned time is exactly when the next call can be taken.
                Err(until) => {
                    prop_assert!(until > at(now));
                    prop_assert!(limit.take(kept, until).is_ok());
                    let before = Timestamp::from_microseconds(until.as_microseconds() - 1);
                    prop_assert!(limit.take(kept, before).is_err());
                }
            }
        }
        for (index, &first) in taken.iter().enumerate() {
            for &last in &taken[index..] {
                let calls = taken.iter().filter(|&&call| first <= call && call <= last).count() as f64;
                let most = f64::from(count) * (1.0 + (last - first) / 60.0);
                prop_assert!(calls <= most + 1e-3, "{calls} calls in {} s", last - first);
            }
        }
    }
}

#[test]
fn failing_tool_is_paused_for_the_cooldown() {
    let breaker = Breaker {
        failures: NonZeroU32::new(3).unwrap(),
        cooldown: Duration::from_secs(30),
    };
    let failed = |seconds| (true, at(seconds));
    let two = [failed(2.0), failed(1.0)];
    assert_eq!(breaker.readiness(two, at(3.0)), Readiness::Ready);
    let three = [failed(3.0), failed(2.0), failed(1.0)];
    let paused = breaker.readiness(three, at(4.0));
    assert_eq!(paused.retry_at(), Some(at(33.0)));
    // Then one trial call is due, and one more failure pauses it again.
    let trial = Readiness::Trial { failures: 3 };
    assert_eq!(breaker.readiness(three, at(33.0)), trial);
    let four = [failed(34.0), failed(3.0), failed(2.0), failed(1.0)];
    assert_eq!(breaker.readiness(four, at(35.0)).retry_at(), Some(at(64.0)));
    // A success resets the count.
    let after_success = [
        failed(6.0),
        failed(5.0),
        (false, at(4.0)),
        failed(3.0),
        failed(2.0),
    ];
    assert_eq!(breaker.readiness(after_success, at(7.0)), Readiness::Ready);
}

#[test]
fn waits_are_formatted_in_suitable_units() {
    let format_wait_of = |seconds| format_wait(Duration::from_secs_f64(seconds));
    assert_eq!(format_wait_of(0.2), "1 s");
    assert_eq!(format_wait_of(119.0), "119 s");
    assert_eq!(format_wait_of(121.0), "3 min");
    assert_eq!(format_wait_of(7201.0), "3 h");
}
