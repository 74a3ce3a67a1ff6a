//! Tests of what operators stopped: the start of a call and a stop exclude each other.

use std::sync::Barrier;

use windlass_core::stop::{StopOrder, StopTarget, StoppableWork};
use windlass_spec::{AgentName, NonEmptyText};
use windlass_store::{AtomicWrite, Error, Store};

use super::questions::{event, identity, tool};
use super::support::{at, id, open, start};

fn order() -> StopOrder {
    StopOrder {
        tenant: Some(identity("bea").tenant),
        target: StopTarget::Tool(tool()),
        by: identity("bea").principal,
        at: at(1),
        reason: NonEmptyText::new("wrong account").ok(),
    }
}

fn unstopped(run: &str) -> AtomicWrite {
    AtomicWrite::Unstopped(Box::new(StoppableWork {
        who: identity("ada"),
        run: id(run),
        agents: vec![AgentName::new("helper").unwrap()],
        tool: Some(tool()),
    }))
}

#[test]
fn after_a_stop_no_process_stores_the_start_of_a_call() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let other = Store::open(store.path()).unwrap();
    other.stop(&identity("bea").tenant, order()).unwrap();
    let refused = journal.append_with(&event(&journal, 2), vec![unstopped("r1")]);
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, Error::Stopped(found) if **found == order()),
        "{refused}"
    );
    assert!(refused.is_refusal());
    assert!(refused.to_string().contains("bea stopped"), "{refused}");
    assert_eq!(store.events(&id("r1")).unwrap().len(), 1);
    other.start_again(&identity("bea").tenant, order()).unwrap();
    let seq = journal.append_with(&event(&journal, 3), vec![unstopped("r1")]);
    assert_eq!(seq.unwrap(), 2, "the refusal left no gap");
    let foreign = journal.append_with(&event(&journal, 4), vec![unstopped("r2")]);
    assert!(foreign.is_err());
}

/// Whichever comes first: what was stored before the stop returned may run, and nothing after it.
#[test]
fn a_stop_and_the_start_of_a_call_exclude_each_other() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let other = Store::open(store.path()).unwrap();
    let (mut began, mut refused) = (0, 0);
    for round in 0..30 {
        let barrier = Barrier::new(2);
        let (is_started, events_then) = std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                barrier.wait();
                std::thread::sleep(std::time::Duration::from_micros(round % 3 * 400));
                journal
                    .append_with(&event(&journal, 2), vec![unstopped("r1")])
                    .is_ok()
            });
            let stopping = scope.spawn(|| {
                barrier.wait();
                other.stop(&identity("bea").tenant, order()).unwrap();
                other.events(&id("r1")).unwrap().len()
            });
            (starting.join().unwrap(), stopping.join().unwrap())
        });
        let events_now = store.events(&id("r1")).unwrap().len();
        assert_eq!(events_then, events_now, "nothing began after the stop");
        match is_started {
            true => began += 1,
            false => refused += 1,
        }
        other.start_again(&identity("bea").tenant, order()).unwrap();
    }
    assert_eq!(began + refused, 30);
    assert!(refused > 0, "the stop never came first");
}
