use windlass_spec::RunId;

use super::*;

fn digest() -> Digest {
    authorize(SecurityLevel::High).digest()
}

fn granted(scope: StandingScope, reach: Reach) -> StandingApproval {
    let by = identity("bea").principal;
    StandingApproval::new(identity("ada"), tool(), scope, reach, by, at(0)).unwrap()
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn in_run() -> Reach {
    Reach::Run { run: run("r1") }
}

fn until() -> Reach {
    Reach::Until { until: at(100) }
}

/// Whether a standing approval covers a call that is in every scope above, after `change`.
fn covers(standing: &StandingApproval, change: impl FnOnce(&mut CallParts)) -> bool {
    let mut parts = CallParts {
        principal: identity("ada"),
        run: run("r1"),
        tool: tool(),
        digest: digest(),
        risk: RiskLevel::ReversibleWithDelay,
        security_level: SecurityLevel::Medium,
        at: at(10),
    };
    change(&mut parts);
    standing.covers(&StandingCall {
        principal: &parts.principal,
        run: &parts.run,
        tool: &parts.tool,
        digest: parts.digest,
        risk: parts.risk,
        security_level: parts.security_level,
        at: parts.at,
    })
}

struct CallParts {
    principal: TenantPrincipal,
    run: RunId,
    tool: ToolName,
    digest: Digest,
    risk: RiskLevel,
    security_level: SecurityLevel,
    at: Timestamp,
}

fn every_kind() -> Vec<StandingApproval> {
    let exact = StandingScope::ToolWithArguments { digest: digest() };
    vec![
        granted(StandingScope::Tool, in_run()),
        granted(StandingScope::Tool, until()),
        granted(exact, in_run()),
        granted(exact, until()),
    ]
}

#[test]
fn standing_approval_covers_calls_in_its_scope() {
    for standing in every_kind() {
        assert!(covers(&standing, |_| {}), "{standing:?}");
    }
}

#[test]
fn standing_approval_covers_nothing_outside_its_scope() {
    for standing in every_kind() {
        assert!(!covers(&standing, |call| {
            call.tool = ToolName::new("Pay").unwrap();
        }));
        assert!(!covers(&standing, |call| call.principal = identity("bea")));
        assert!(!covers(&standing, |call| call.at = at(-1)));
        let is_exact = standing.scope() != StandingScope::Tool;
        let others = Digest::of_call(&tool(), &Map::new());
        assert_eq!(covers(&standing, |call| call.digest = others), !is_exact);
        let is_for_a_run = matches!(standing.reach(), Reach::Run { .. });
        let elsewhere = covers(&standing, |call| call.run = run("r2"));
        assert_eq!(elsewhere, !is_for_a_run);
        assert_eq!(covers(&standing, |call| call.at = at(100)), is_for_a_run);
    }
}

#[test]
fn standing_approval_without_arguments_covers_only_calls_without_arguments() {
    let none = Digest::of_call(&tool(), &Map::new());
    let standing = granted(StandingScope::ToolWithArguments { digest: none }, in_run());
    assert!(covers(&standing, |call| call.digest = none));
    assert!(!covers(&standing, |_| {}));
}

#[test]
fn irreversible_call_is_covered_only_if_the_operator_allows_it() {
    for standing in every_kind() {
        let irreversible = |call: &mut CallParts| call.risk = RiskLevel::Irreversible;
        assert!(!covers(&standing, irreversible));
        assert!(covers(&standing.also_irreversible(), irreversible));
    }
}

#[test]
fn critical_call_is_never_covered() {
    for standing in every_kind() {
        assert!(!covers(&standing.also_irreversible(), |call| {
            call.security_level = SecurityLevel::Critical;
        }));
    }
}

#[test]
fn revoked_standing_approval_covers_nothing() {
    let mut standing = granted(StandingScope::Tool, until());
    assert!(standing.revoke(&identity("cem").principal, at(5)));
    assert!(!standing.revoke(&identity("dan").principal, at(6)));
    assert_eq!(standing.revoked().unwrap().by, identity("cem").principal);
    assert!(!covers(&standing, |_| {}));
}

#[test]
fn standing_approval_that_ends_before_it_starts_is_refused() {
    let by = identity("bea").principal;
    let ended = Reach::Until { until: at(0) };
    let refused = StandingApproval::new(
        identity("ada"),
        tool(),
        StandingScope::Tool,
        ended,
        by,
        at(0),
    );
    assert_eq!(refused, Err(InvalidStanding::EndsTooEarly));
}

#[test]
fn every_standing_approval_reads_back_as_it_was() {
    for standing in every_kind() {
        let mut revoked = standing.clone().also_irreversible();
        revoked.revoke(&identity("cem").principal, at(5));
        for standing in [standing, revoked] {
            let written = serde_json::to_string(&standing).unwrap();
            assert_eq!(
                serde_json::from_str::<StandingApproval>(&written).unwrap(),
                standing
            );
        }
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&every_kind()).unwrap());
}

#[test]
fn standing_approval_without_a_scope_is_refused() {
    let mut written = serde_json::to_value(granted(StandingScope::Tool, in_run())).unwrap();
    let fields = written.as_object_mut().unwrap();
    fields.remove("scope");
    assert!(serde_json::from_value::<StandingApproval>(written).is_err());
}
