//! Leave that was not given, for a server's tool that cannot be undone: for another call, by somebody
//! else, too late, twice, at the same time, or under policies that say no by now.

use std::sync::{Arc, Barrier};
use std::thread;

use serde_json::json;
use windlass_core::approval::{Digest, Identity, PersonDecision, Principal};
use windlass_core::model::ModelAnswer;
use windlass_core::run::RunEnd;
use windlass_runtime::now;
use windlass_spec::{ErrorCategory, NonEmptyText};

use super::house::{House, call, identity, new_task, outcomes};

fn post(text: &str) -> ModelAnswer {
    call("public__post_publicly", json!({ "text": text }))
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_for_a_servers_tool_is_for_one_call_and_once() {
    let house = House::new();
    let server = house.server("public", &["takes-text"]);
    house.meet(&server).await;
    let servers = house.servers(std::slice::from_ref(&server));
    let library = servers.offered().unwrap().library;
    let driver = house.driver(&library, vec![post("one"), post("two")]);
    let run = driver.start(new_task()).await.unwrap();
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    // Not by the one it acts for under another digest, not twice, not at the same time.
    let store = house.store();
    let asked = house.pending().remove(0);
    let other = Digest::of_json(&json!("another call"));
    let bob = identity("bob");
    let decide = |digest| {
        let approve = PersonDecision::Approve;
        store.decide(asked.call(), digest, &bob, approve, now())
    };
    assert!(decide(Some(&other)).is_err());
    let stranger = Identity::new(
        NonEmptyText::new("elsewhere").unwrap(),
        Principal::new("eve").unwrap(),
    );
    let digest = asked.digest();
    let by_stranger = store.decide(
        asked.call(),
        Some(&digest),
        &stranger,
        PersonDecision::Approve,
        now(),
    );
    assert!(by_stranger.is_err());
    decide(Some(&digest)).unwrap();
    assert!(decide(Some(&digest)).is_err());
    let run = driver.resume(run.id()).await.unwrap();
    // Another text is another question.
    assert_eq!(house.effects(), ["post_publicly"]);
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    house.decide(PersonDecision::Reject { message: None });
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(house.effects(), ["post_publicly"]);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_that_comes_too_late_is_none() {
    let house = House::new();
    let server = house.server("public", &["takes-text"]);
    house.meet(&server).await;
    let servers = house.servers(std::slice::from_ref(&server));
    let library = servers.offered().unwrap().library;
    let driver = house.driver(&library, vec![post("one")]);
    let run = driver.start(new_task()).await.unwrap();
    let asked = house.pending().remove(0);
    let later = asked.request().expires_at;
    let store = house.store();
    let bob = identity("bob");
    let decided = store.decide(asked.call(), None, &bob, PersonDecision::Approve, later);
    assert!(decided.is_err());
    let driver = house.driver_by(Arc::new(move || later), &library, vec![]);
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(house.effects(), [""; 0]);
    assert!(outcomes(&run)[0].is_err());
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_given_by_many_at_once_is_given_once_and_used_once() {
    let house = House::new();
    let server = house.server("public", &["takes-text"]);
    house.meet(&server).await;
    let servers = house.servers(std::slice::from_ref(&server));
    let library = servers.offered().unwrap().library;
    let driver = house.driver(&library, vec![post("one")]);
    let run = driver.start(new_task()).await.unwrap();
    let asked = house.pending().remove(0);
    const PEOPLE: usize = 8;
    let barrier = Barrier::new(PEOPLE);
    let given = thread::scope(|scope| {
        let decide = |person: usize| {
            // Each with a connection of its own, as from a process of its own.
            let (store, who) = (house.store(), identity(&format!("person{person}")));
            let (asked, barrier) = (&asked, &barrier);
            scope.spawn(move || {
                barrier.wait();
                store.decide(asked.call(), None, &who, PersonDecision::Approve, now())
            })
        };
        let people: Vec<_> = (0..PEOPLE).map(decide).collect();
        let decided = people.into_iter().map(|person| person.join().unwrap());
        decided.filter(Result::is_ok).count()
    });
    assert_eq!(given, 1);
    let drivers: Vec<_> = (0..4).map(|_| house.driver(&library, vec![])).collect();
    let resumed = drivers.iter().map(|driver| driver.resume(run.id()));
    // Those that come while one is at it are told so.
    let resumed = futures::future::join_all(resumed).await;
    assert!(resumed.iter().any(Result::is_ok));
    assert_eq!(house.effects(), ["post_publicly"]);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_that_the_policies_take_back_is_none() {
    let mut house = House::new();
    let server = house.server("public", &["takes-text"]);
    house.meet(&server).await;
    let servers = house.servers(std::slice::from_ref(&server));
    let library = servers.offered().unwrap().library;
    let driver = house.driver(&library, vec![post("one")]);
    let run = driver.start(new_task()).await.unwrap();
    house.decide(PersonDecision::Approve);
    house
        .governance
        .policies
        .push_str("\n@id(\"off\") forbid (principal, action == Action::\"public__post_publicly\", resource);\n");
    let run = house
        .driver(&library, vec![])
        .resume(run.id())
        .await
        .unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(house.effects(), [""; 0]);
    let refused = outcomes(&run)[0].clone().unwrap_err();
    assert_eq!(refused.category, ErrorCategory::PermissionDenied);
    servers.close().await;
}
