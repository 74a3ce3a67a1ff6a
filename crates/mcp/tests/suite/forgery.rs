//! Forged approvals of a server's irreversible tool: for another call, by another tenant, too late, twice,
//! concurrently, or against policies that forbid it by now.

use std::sync::{Arc, Barrier};
use std::thread;

use serde_json::json;
use windlass_core::approval::{Digest, PersonDecision, Principal, TenantPrincipal};
use windlass_core::model::ModelAnswer;
use windlass_core::run::RunEnd;
use windlass_mcp::Servers;
use windlass_runtime::now;
use windlass_spec::{ErrorCategory, NonEmptyText};
use windlass_tools::ToolLibrary;

use super::test_project::{TestProject, call, identity, new_task, outcomes};

fn post(text: &str) -> ModelAnswer {
    call("public__post_publicly", json!({ "text": text }))
}

/// A project with a server that posts publicly, and the server's tools.
async fn posting_project() -> (TestProject, Servers, ToolLibrary) {
    let project = TestProject::new();
    let server = project.server("public", &["takes-text"]);
    project.connect(&server).await;
    let servers = project.servers(&[server]);
    let library = servers.accepted_tools().unwrap().library;
    (project, servers, library)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_valid_for_one_call_once() {
    let (project, servers, library) = posting_project().await;
    let driver = project.driver(&library, vec![post("one"), post("two")]);
    let run = driver.start(new_task()).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    // Another digest, another tenant and a second decision are refused.
    let store = project.store();
    let approval = project.pending().remove(0);
    let other = Digest::of_json(&json!("another call"));
    let bob = identity("bob");
    let decide = |digest| {
        let approve = PersonDecision::Approve;
        store.decide(approval.call(), digest, &bob, approve, now())
    };
    assert!(decide(Some(&other)).is_err());
    let other_tenant = TenantPrincipal::new(
        NonEmptyText::new("elsewhere").unwrap(),
        Principal::new("eve").unwrap(),
    );
    let digest = approval.digest();
    let by_other_tenant = store.decide(
        approval.call(),
        Some(&digest),
        &other_tenant,
        PersonDecision::Approve,
        now(),
    );
    assert!(by_other_tenant.is_err());
    decide(Some(&digest)).unwrap();
    assert!(decide(Some(&digest)).is_err());
    let run = driver.resume(run.id()).await.unwrap();
    // Another text needs another approval.
    assert_eq!(project.effects(), ["post_publicly"]);
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    project.decide(PersonDecision::Reject { message: None });
    let run = driver.resume(run.id()).await.unwrap();
    let Some(RunEnd::Failed { category, .. }) = run.end() else {
        panic!("{:?}", run.end());
    };
    assert_eq!(*category, ErrorCategory::Rejected);
    assert_eq!(project.effects(), ["post_publicly"]);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_approval_is_refused() {
    let (project, servers, library) = posting_project().await;
    let driver = project.driver(&library, vec![post("one")]);
    let run = driver.start(new_task()).await.unwrap();
    let approval = project.pending().remove(0);
    let later = approval.request().expires_at;
    let store = project.store();
    let bob = identity("bob");
    let decided = store.decide(approval.call(), None, &bob, PersonDecision::Approve, later);
    assert!(decided.is_err());
    let driver = project.driver_with_clock(Arc::new(move || later), &library, vec![]);
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(project.effects(), [""; 0]);
    assert!(outcomes(&run)[0].is_err());
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_approvals_are_given_once_and_used_once() {
    let (project, servers, library) = posting_project().await;
    let driver = project.driver(&library, vec![post("one")]);
    let run = driver.start(new_task()).await.unwrap();
    let approval = project.pending().remove(0);
    const PEOPLE: usize = 8;
    let barrier = Barrier::new(PEOPLE);
    let given = thread::scope(|scope| {
        let decide = |person: usize| {
            // Each has its own database connection, like a separate process.
            let (store, who) = (project.store(), identity(&format!("person{person}")));
            let (approval, barrier) = (&approval, &barrier);
            scope.spawn(move || {
                barrier.wait();
                store.decide(approval.call(), None, &who, PersonDecision::Approve, now())
            })
        };
        let people: Vec<_> = (0..PEOPLE).map(decide).collect();
        let decided = people.into_iter().map(|person| person.join().unwrap());
        decided.filter(Result::is_ok).count()
    });
    assert_eq!(given, 1);
    let drivers: Vec<_> = (0..4).map(|_| project.driver(&library, vec![])).collect();
    let resumed = drivers.iter().map(|driver| driver.resume(run.id()));
    // Drivers that come while another resumes the run get an error.
    let resumed = futures::future::join_all(resumed).await;
    assert!(resumed.iter().any(Result::is_ok));
    assert_eq!(project.effects(), ["post_publicly"]);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_does_not_override_a_new_forbid_policy() {
    let (mut project, servers, library) = posting_project().await;
    let driver = project.driver(&library, vec![post("one")]);
    let run = driver.start(new_task()).await.unwrap();
    project.decide(PersonDecision::Approve);
    project
        .governance
        .policies
        .push_str("\n@id(\"off\") forbid (principal, action == Action::\"public__post_publicly\", resource);\n");
    let run = project
        .driver(&library, vec![])
        .resume(run.id())
        .await
        .unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(project.effects(), [""; 0]);
    let refused = outcomes(&run)[0].clone().unwrap_err();
    assert_eq!(refused.category, ErrorCategory::PermissionDenied);
    servers.close().await;
}
