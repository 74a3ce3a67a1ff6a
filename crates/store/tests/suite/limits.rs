//! Tests of rate limits that outlive a process, with a fixed clock.

use std::num::NonZeroU32;

use windlass_core::limits::{Limit, LimitScope};
use windlass_spec::registry::Window;
use windlass_store::Store;

use super::questions::tool;
use super::support::{at, open};

fn limit(window: Window, count: u32) -> Limit {
    Limit {
        scope: LimitScope::Tool(tool()),
        window,
        count: NonZeroU32::new(count).unwrap(),
    }
}

#[test]
fn limits_survive_a_restart_and_are_shared_by_processes() {
    let (_directory, store) = open();
    let limits = [limit(Window::PerMinute, 2)];
    assert_eq!(store.take("acme", &limits, at(0)).unwrap(), Ok(()));
    let other_store = Store::open(store.path()).unwrap();
    assert_eq!(other_store.take("acme", &limits, at(1)).unwrap(), Ok(()));
    let path = store.path().to_owned();
    drop((store, other_store));
    let again = Store::open(path).unwrap();
    let used_up = again.take("acme", &limits, at(2)).unwrap().unwrap_err();
    assert_eq!((used_up.until, &used_up.limit), (at(30), &limits[0]));
    assert_eq!(
        again.used_up("acme", &limits, at(29)).unwrap(),
        Some(used_up)
    );
    assert_eq!(again.used_up("acme", &limits, at(30)).unwrap(), None);
    assert_eq!(again.take("acme", &limits, at(30)).unwrap(), Ok(()));
}

#[test]
fn tenants_do_not_use_up_each_others_limits() {
    let (_directory, store) = open();
    let limits = [limit(Window::PerDay, 1)];
    assert_eq!(store.take("acme", &limits, at(0)).unwrap(), Ok(()));
    assert_eq!(store.take("other", &limits, at(0)).unwrap(), Ok(()));
    assert!(store.take("acme", &limits, at(0)).unwrap().is_err());
}

#[test]
fn a_call_counts_against_all_its_limits_or_none() {
    let (_directory, store) = open();
    let (minute, hour) = (limit(Window::PerMinute, 5), limit(Window::PerHour, 1));
    let both = [minute.clone(), hour.clone()];
    assert_eq!(store.take("acme", &both, at(0)).unwrap(), Ok(()));
    for _ in 0..20 {
        // The limit that blocks for the longest time is returned.
        let used_up = store.take("acme", &both, at(1)).unwrap().unwrap_err();
        assert_eq!((used_up.limit, used_up.until), (hour.clone(), at(3600)));
    }
    // None of the refused calls counted.
    for _ in 0..4 {
        assert_eq!(
            store
                .take("acme", std::slice::from_ref(&minute), at(1))
                .unwrap(),
            Ok(())
        );
    }
}

#[test]
fn concurrent_calls_do_not_exceed_the_limit() {
    let (_directory, store) = open();
    let limits = [limit(Window::PerHour, 10)];
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let other_store = Store::open(store.path()).unwrap();
                let limits = &limits;
                scope.spawn(move || {
                    let take = |_: &i32| other_store.take("acme", limits, at(0)).unwrap().is_ok();
                    (0..10).filter(take).count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(taken, 10);
}

#[test]
fn checking_a_limit_counts_nothing() {
    let (_directory, store) = open();
    let limits = [limit(Window::PerHour, 1)];
    for _ in 0..3 {
        assert_eq!(store.used_up("acme", &limits, at(0)).unwrap(), None);
    }
    assert_eq!(store.take("acme", &limits, at(0)).unwrap(), Ok(()));
}
