//! Tests of standing approvals: granted, listed and revoked.

use windlass_core::approval::{
    Digest, Reach, StandingApproval, StandingCall, StandingScope, TenantPrincipal,
};
use windlass_spec::{RiskLevel, RunId, SecurityLevel, ToolName};
use windlass_store::{Error, StandingFilter, StandingId, Store};

use super::questions::{digest, identity, other_tenant, tool};
use super::support::{at, id, open};

fn granted(scope: StandingScope, reach: Reach) -> StandingApproval {
    StandingApproval::new(
        identity("ada"),
        tool(),
        scope,
        reach,
        identity("bea").principal,
        at(0),
    )
    .unwrap()
}

fn until(second: i64) -> Reach {
    Reach::Until { until: at(second) }
}

fn covering(
    store: &Store,
    principal: &TenantPrincipal,
    run: &RunId,
    digest: Digest,
) -> Option<StandingId> {
    let call = StandingCall {
        principal,
        run,
        tool: &tool(),
        digest,
        risk: RiskLevel::ReversibleWithDelay,
        security_level: SecurityLevel::Medium,
        at: at(10),
    };
    store.covering(&call).unwrap().map(|stored| stored.id)
}

#[test]
fn a_standing_approval_of_another_process_covers_a_call() {
    let (_directory, store) = open();
    let other_store = Store::open(store.path()).unwrap();
    let exact = granted(
        StandingScope::ToolWithArguments { digest: digest(10) },
        until(100),
    );
    let for_run = granted(StandingScope::Tool, Reach::Run { run: id("r1") });
    let exact_id = other_store.grant_standing(&exact).unwrap();
    let run_id = other_store.grant_standing(&for_run).unwrap();
    let ada = identity("ada");
    assert_eq!(
        covering(&store, &ada, &id("r2"), digest(10)),
        Some(exact_id)
    );
    assert_eq!(covering(&store, &ada, &id("r1"), digest(99)), Some(run_id));
    assert_eq!(covering(&store, &ada, &id("r2"), digest(99)), None);
    assert_eq!(
        covering(&store, &identity("bea"), &id("r1"), digest(10)),
        None
    );
    assert_eq!(
        covering(&store, &other_tenant(), &id("r1"), digest(10)),
        None
    );
}

#[test]
fn a_revoked_standing_approval_covers_nothing_and_stays_listed() {
    let (_directory, store) = open();
    let standing = store
        .grant_standing(&granted(StandingScope::Tool, until(100)))
        .unwrap();
    let theirs = store.revoke_standing(standing, &other_tenant(), at(5));
    assert!(
        matches!(theirs, Err(Error::NoSuchStanding(_))),
        "{theirs:?}"
    );
    let unknown = store.revoke_standing(StandingId::new(99), &identity("bea"), at(5));
    assert!(matches!(unknown, Err(Error::NoSuchStanding(99))));
    assert!(covering(&store, &identity("ada"), &id("r1"), digest(1)).is_some());
    for by in ["cem", "dan"] {
        let revoked = store
            .revoke_standing(standing, &identity(by), at(5))
            .unwrap();
        assert_eq!(revoked.revoked().unwrap().by, identity("cem").principal);
    }
    assert_eq!(
        covering(&store, &identity("ada"), &id("r1"), digest(1)),
        None
    );
    let all = store.standing(&StandingFilter::default()).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(
        all[0].standing.revoked().unwrap().by,
        identity("cem").principal
    );
}

#[test]
fn standing_approvals_are_listed_by_tenant_tool_and_validity() {
    let (_directory, store) = open();
    let past = store
        .grant_standing(&granted(StandingScope::Tool, until(10)))
        .unwrap();
    let lasting = store
        .grant_standing(&granted(StandingScope::Tool, until(100)))
        .unwrap();
    let ids = |filter: StandingFilter| -> Vec<StandingId> {
        let found = store.standing(&filter).unwrap();
        found.into_iter().map(|stored| stored.id).collect()
    };
    let all = StandingFilter::default;
    assert_eq!(ids(all()), [past, lasting]);
    let in_force = StandingFilter {
        in_force_at: Some(at(10)),
        principal: Some("ada".to_owned()),
        ..all()
    };
    assert_eq!(ids(in_force), [lasting]);
    for none in [
        StandingFilter {
            tenant: Some("other".to_owned()),
            ..all()
        },
        StandingFilter {
            tool: Some(ToolName::new("repay").unwrap()),
            ..all()
        },
    ] {
        assert!(ids(none).is_empty());
    }
}
