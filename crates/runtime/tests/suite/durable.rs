//! The port to durable storage: typed errors, a run without an owner, and the queries of a service.

use windlass_core::approval::PersonDecision;
use windlass_core::durable::ResumeReason;
use windlass_core::run::{Event, RunEnd};
use windlass_runtime::{
    DriveError, Durable as _, DurableError, RunMonitor as _, Stored, cancel_unowned,
};
use windlass_spec::RunId;
use windlass_store::RunState;

use super::fixture::{RunFixture, finishing_model, paying_model, state};
use super::support::{identity, new_task};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_an_owner_takes_its_inbox_and_is_cancelled() {
    let fixture = RunFixture::new();
    let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    fixture.decide("bob", PersonDecision::Approve);
    let stored = Stored::new(fixture.store(), identity("ann"));
    let ann = identity("ann").principal;

    let owner = stored.take_over(run.id()).await.unwrap();
    let owned = cancel_unowned(&stored, run.id(), &ann).await;
    assert!(
        matches!(
            owned,
            Err(DriveError::Durable(DurableError::OwnedElsewhere(_)))
        ),
        "{owned:?}"
    );
    drop(owner);

    let end = cancel_unowned(&stored, run.id(), &ann).await.unwrap();
    assert_eq!(end, RunEnd::Cancelled);
    assert_eq!(state(stored.store(), run.id()), RunState::Ended);
    assert!(stored.store().inbox(run.id()).unwrap().is_empty());
    let events = stored.events_from(run.id(), 1).await.unwrap();
    let last: Vec<&Event> = events
        .iter()
        .rev()
        .take(2)
        .map(|(_, event)| event)
        .collect();
    assert!(
        matches!(
            last[..],
            [Event::Cancelled { by: Some(_), .. }, Event::Settled { .. }]
        ),
        "{last:?}"
    );
    assert!(fixture.effects().is_empty());

    let again = cancel_unowned(&stored, run.id(), &ann).await;
    assert!(
        matches!(again, Err(DriveError::Durable(DurableError::RunEnded(_)))),
        "{again:?}"
    );
    let none = cancel_unowned(&stored, &RunId::new("none").unwrap(), &ann).await;
    assert!(
        matches!(none, Err(DriveError::Durable(DurableError::RunNotFound(_)))),
        "{none:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_resumable_between_the_decision_and_its_resumption() {
    let fixture = RunFixture::new();
    let stored = Stored::new(fixture.store(), identity("ann"));
    let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    assert!(stored.resumable().await.unwrap().is_empty());
    fixture.decide("bob", PersonDecision::Approve);
    let resumable = stored.resumable().await.unwrap();
    assert_eq!(resumable.len(), 1);
    assert_eq!(resumable[0].run, *run.id());
    assert_eq!(resumable[0].reason, ResumeReason::Command);
    let before = stored.last_position(run.id()).await.unwrap();
    fixture.resume(finishing_model(), run.id()).await;
    assert!(stored.resumable().await.unwrap().is_empty());
    let new = stored.events_from(run.id(), before + 1).await.unwrap();
    assert!(matches!(new[0], (seq, Event::Resumed { .. }) if seq == before + 1));
    assert_eq!(fixture.effects().len(), 1);
}
