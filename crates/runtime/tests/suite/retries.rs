//! Failed calls that are tried again, on a real database.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use windlass_core::gate::ToolRule;
use windlass_core::run::{CallEnd, Event, RunEnd};
use windlass_runtime::Crew;
use windlass_spec::registry::{RateLimits, Window};
use windlass_spec::{CallState, ErrorCategory};
use windlass_tools::ToolError;

use super::fixture::RunFixture;
use super::registry::member_calling;
use super::support::new_task;

/// Runs an agent once whose tool fails this often. Returns how often the tool ran and the events of the run.
async fn run_with(fixture: &RunFixture, failures: u32) -> (u32, CallState, Vec<Event>) {
    let ran = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&ran);
    let member = member_calling(1, move |_| {
        let before = count.fetch_add(1, Ordering::SeqCst);
        async move {
            match before < failures {
                true => Err(ToolError::of(ErrorCategory::Unavailable, "it is down")),
                false => Ok(json!("fine")),
            }
        }
    });
    let driver = fixture.driver_with(Crew::new(member));
    let run = driver.start(new_task("Try it.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let state = run.calls().next().unwrap().state();
    let store = fixture.store();
    // Another process reads the same.
    let folded = store.fold(run.id()).unwrap();
    assert_eq!(folded.calls().next().unwrap().state(), state);
    let events = store.events(run.id()).unwrap();
    let events = events.into_iter().map(|(_, event)| event).collect();
    (ran.load(Ordering::SeqCst), state, events)
}

fn retries(events: &[Event]) -> usize {
    let retries = events
        .iter()
        .filter(|event| matches!(event, Event::CallRetried { .. }));
    retries.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reversible_call_is_tried_again_within_its_bounds() {
    let fixture = RunFixture::new();
    let (ran, state, events) = run_with(&fixture, 2).await;
    assert_eq!((ran, state, retries(&events)), (3, CallState::Success, 2));
    let ends = events
        .iter()
        .filter(|event| matches!(event, Event::CallEnded { .. }));
    assert_eq!(ends.count(), 1, "one call has one end");
    let fixture = RunFixture::new();
    let (ran, state, events) = run_with(&fixture, 10).await;
    assert_eq!((ran, state, retries(&events)), (3, CallState::Error, 2));
    let last = events.iter().rev().find_map(|event| match event {
        Event::CallEnded { end, .. } => Some(end),
        _ => None,
    });
    assert!(matches!(last, Some(CallEnd::Error(_))), "{last:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_counts_towards_the_rate_limits() {
    let mut fixture = RunFixture::new();
    let limits = RateLimits::none().with(Window::PerHour, NonZeroU32::new(2).unwrap());
    let rule = ToolRule {
        limits,
        ..ToolRule::default()
    };
    fixture.governance.tools.insert("shake".to_owned(), rule);
    let (ran, state, events) = run_with(&fixture, 10).await;
    assert_eq!((ran, state, retries(&events)), (2, CallState::Error, 1));
}
