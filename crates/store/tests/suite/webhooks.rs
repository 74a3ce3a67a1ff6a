//! Events for webhooks: stored with what they are about, and claimed by one worker.

use std::time::Duration;

use windlass_core::approval::{Approval, PersonDecision};
use windlass_core::run::RunEnd;
use windlass_spec::{SecurityLevel, Timestamp};
use windlass_store::{
    DeliveryClaim, DeliveryFilter, DeliveryOutcome, DeliveryState, Durability, Error, RunJournal,
    Store, WebhookDelivery, WebhookRegistration,
};

use super::questions::{approval, ask_question, authorize, call, event, identity, now, request};
use super::support::{id, open, start, time_passed};

const ALL: [&str; 6] = [
    "approval.asked",
    "approval.decided",
    "approval.expiring",
    "approval.closed",
    "run.ended",
    "gap.recorded",
];

const FILE: &str = "/project/windlass.toml";

fn webhook(name: &str, events: &[&'static str]) -> WebhookRegistration {
    WebhookRegistration {
        declared_in: FILE.to_owned(),
        name: name.to_owned(),
        events: events.to_vec(),
        expiring: Duration::from_secs(60),
    }
}

fn register(store: &Store, webhooks: &[WebhookRegistration]) {
    let files = [FILE.to_owned()];
    store.register_webhooks(webhooks, &files, now()).unwrap();
}

fn deliveries(store: &Store) -> Vec<WebhookDelivery> {
    let mut all = store.deliveries(&DeliveryFilter::default()).unwrap();
    all.reverse();
    all
}

fn events(store: &Store) -> Vec<String> {
    deliveries(store).into_iter().map(|one| one.event).collect()
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_microseconds(now().as_microseconds() + seconds * 1_000_000)
}

fn claim(worker: &str) -> DeliveryClaim {
    DeliveryClaim {
        worker: worker.to_owned(),
        declared_in: FILE.to_owned(),
        webhook: "one".to_owned(),
        tenant: None,
        lease: Duration::from_secs(10),
        limit: 10,
    }
}

/// A store with a webhook for all events, and a run that asks.
fn asking() -> (tempfile::TempDir, Store, RunJournal) {
    let (directory, store) = open();
    register(&store, &[webhook("one", &ALL)]);
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    (directory, store, journal)
}

#[test]
fn nothing_is_stored_for_webhooks_before_there_are_any() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    journal.end(&RunEnd::Completed).unwrap();
    register(&store, &[webhook("one", &ALL)]);
    assert_eq!(events(&store), Vec::<String>::new());
}

#[test]
fn an_event_is_stored_for_each_webhook_that_wants_it() {
    let (_directory, store) = open();
    let some = webhook("some", &["run.ended"]);
    register(&store, &[webhook("one", &ALL), some]);
    let (journal, _) = start(&store, "r1");
    let mut critical = request(call("r1", 0));
    critical.question = authorize(SecurityLevel::Critical);
    ask_question(&journal, &Approval::ask(critical).unwrap());
    let decide = |by: &str| {
        store.decide(
            &call("r1", 0),
            None,
            &identity(by),
            PersonDecision::Approve,
            now(),
        )
    };
    decide("bea").unwrap();
    decide("cid").unwrap();
    journal.end(&RunEnd::Completed).unwrap();
    let found: Vec<(String, String, Option<u64>)> = deliveries(&store)
        .into_iter()
        .map(|one| (one.webhook, one.event, one.decision))
        .collect();
    let event =
        |webhook: &str, event: &str, decision| (webhook.to_owned(), event.to_owned(), decision);
    assert_eq!(
        found,
        [
            event("one", "approval.asked", None),
            event("one", "approval.decided", Some(0)),
            event("one", "approval.decided", Some(1)),
            event("one", "run.ended", None),
            event("some", "run.ended", None),
        ]
    );
    let first = &deliveries(&store)[0];
    assert_eq!(
        (&first.call, first.question),
        (&Some(call("r1", 0)), Some(1))
    );
    assert!(first.id.starts_with("msg_") && first.id.len() == 36);
}

#[test]
fn an_event_that_is_refused_is_not_stored_for_webhooks() {
    let (_directory, store, journal) = asking();
    let again = journal.append_asking(&event(&journal, 2), &approval(call("r1", 0)));
    assert!(matches!(again, Err(Error::AlreadyAsked(_))), "{again:?}");
    assert_eq!(events(&store), ["approval.asked"]);
}

#[test]
fn a_run_that_waits_or_works_for_another_run_does_not_end() {
    let (_directory, store) = open();
    register(&store, &[webhook("one", &["run.ended"])]);
    let (journal, _) = start(&store, "r1");
    let (child, _) = start(&store, "r1.1.0");
    child.append(&time_passed(2), Durability::Synced).unwrap();
    child.end(&RunEnd::Completed).unwrap();
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    drop(journal);
    assert_eq!(events(&store), Vec::<String>::new());
    let journal = store.take_over(&id("r1")).unwrap();
    journal.end(&RunEnd::Cancelled).unwrap();
    assert_eq!(events(&store), ["run.ended"]);
}

#[test]
fn a_question_is_announced_once_and_closed_when_it_expires() {
    let (_directory, store, _journal) = asking();
    let expires = store.approval(&call("r1", 0), now()).unwrap();
    let expires = expires.request().expires_at.as_microseconds();
    let before = |seconds: i64| Timestamp::from_microseconds(expires - seconds * 1_000_000);
    store.announce_expiring(before(61)).unwrap();
    assert_eq!(events(&store), ["approval.asked"]);
    for _ in 0..3 {
        store.announce_expiring(before(59)).unwrap();
    }
    assert_eq!(events(&store), ["approval.asked", "approval.expiring"]);
    store.sweep(before(-1)).unwrap();
    store.announce_expiring(before(-1)).unwrap();
    assert_eq!(
        events(&store),
        ["approval.asked", "approval.expiring", "approval.closed"]
    );
}

#[test]
fn an_event_is_claimed_by_one_worker_until_its_claim_ends() {
    let (_directory, store, _journal) = asking();
    let other = Store::open(store.path()).unwrap();
    let mine = store.claim_deliveries(&claim("a"), now()).unwrap();
    assert_eq!((mine.len(), mine[0].attempts), (1, 1));
    assert_eq!(other.claim_deliveries(&claim("b"), later(9)).unwrap(), []);
    let theirs = other.claim_deliveries(&claim("b"), later(10)).unwrap();
    assert_eq!((&theirs[0].id, theirs[0].attempts), (&mine[0].id, 2));
    // The first worker is too late.
    let number = mine[0].number;
    let is_mine = store.settle_delivery(number, "a", &DeliveryOutcome::Received, later(11));
    assert!(!is_mine.unwrap());
    let again = DeliveryOutcome::Again("it answered 500".to_owned(), later(60));
    assert!(
        other
            .settle_delivery(number, "b", &again, later(11))
            .unwrap()
    );
    assert_eq!(store.claim_deliveries(&claim("a"), later(59)).unwrap(), []);
    let last = store.claim_deliveries(&claim("a"), later(60)).unwrap();
    assert_eq!(last[0].error.as_deref(), Some("it answered 500"));
    let received = store.settle_delivery(number, "a", &DeliveryOutcome::Received, later(61));
    assert!(received.unwrap());
    assert_eq!(deliveries(&store)[0].state, DeliveryState::Delivered);
    assert_eq!(
        store.claim_deliveries(&claim("a"), later(9_999)).unwrap(),
        []
    );
}

#[test]
fn a_worker_of_a_tenant_takes_no_events_of_another() {
    let (_directory, store, _journal) = asking();
    let rival = DeliveryClaim {
        tenant: Some("rival".to_owned()),
        ..claim("a")
    };
    assert_eq!(store.claim_deliveries(&rival, now()).unwrap(), []);
    let found = deliveries(&store).remove(0);
    assert_eq!(store.delivery("rival", &found.id).unwrap(), None);
    assert_eq!(store.retry_delivery("rival", &found.id).unwrap(), None);
    let own = DeliveryClaim {
        tenant: Some(found.tenant.clone()),
        ..claim("a")
    };
    assert_eq!(store.claim_deliveries(&own, now()).unwrap().len(), 1);
}

#[test]
fn an_event_that_was_given_up_is_sent_again_on_request() {
    let (_directory, store, _journal) = asking();
    let taken = store
        .claim_deliveries(&claim("a"), now())
        .unwrap()
        .remove(0);
    let dead = DeliveryOutcome::Dead("it is gone".to_owned());
    store
        .settle_delivery(taken.number, "a", &dead, now())
        .unwrap();
    let counts = store.delivery_counts(None).unwrap();
    assert_eq!((counts[0].dead, counts[0].pending), (1, 0));
    assert_eq!(
        store.claim_deliveries(&claim("a"), later(9_999)).unwrap(),
        []
    );
    let again = store
        .retry_delivery(&taken.tenant, &taken.id)
        .unwrap()
        .unwrap();
    assert_eq!((again.state, again.attempts), (DeliveryState::Pending, 0));
    assert_eq!(store.claim_deliveries(&claim("a"), now()).unwrap().len(), 1);
}

#[test]
fn events_of_a_webhook_that_is_gone_are_given_up() {
    let (_directory, store, journal) = asking();
    // The configuration of another project does not know this webhook.
    let elsewhere = ["/other/windlass.toml".to_owned()];
    store.register_webhooks(&[], &elsewhere, now()).unwrap();
    assert_eq!(deliveries(&store)[0].state, DeliveryState::Pending);
    register(&store, &[]);
    let found = deliveries(&store).remove(0);
    assert_eq!(found.state, DeliveryState::Dead);
    assert!(found.error.unwrap().contains("configuration"));
    journal.end(&RunEnd::Completed).unwrap();
    assert_eq!(events(&store), ["approval.asked"]);
}
