use windlass_spec::RunId;

use super::*;

fn digest() -> Digest {
    authorize(SecurityLevel::High).digest()
}

fn granted(scope: Scope, reach: Reach) -> Standing {
    let by = who("bea").principal;
    Standing::new(who("ada"), tool(), scope, reach, by, at(0)).unwrap()
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

/// A call that every standing approval above covers, changed as told.
fn covers(standing: &Standing, change: impl FnOnce(&mut Parts)) -> bool {
    let mut parts = Parts {
        principal: who("ada"),
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

struct Parts {
    principal: Identity,
    run: RunId,
    tool: ToolName,
    digest: Digest,
    risk: RiskLevel,
    security_level: SecurityLevel,
    at: Timestamp,
}

fn every_kind() -> Vec<Standing> {
    let exact = Scope::ToolWithArguments { digest: digest() };
    vec![
        granted(Scope::Tool, in_run()),
        granted(Scope::Tool, until()),
        granted(exact, in_run()),
        granted(exact, until()),
    ]
}

#[test]
fn a_standing_approval_covers_what_it_says() {
    for standing in every_kind() {
        assert!(covers(&standing, |_| {}), "{standing:?}");
    }
}

#[test]
fn a_standing_approval_never_widens() {
    for standing in every_kind() {
        assert!(!covers(&standing, |call| {
            call.tool = ToolName::new("Pay").unwrap();
        }));
        assert!(!covers(&standing, |call| call.principal = who("bea")));
        assert!(!covers(&standing, |call| call.at = at(-1)));
        let is_exact = standing.scope() != Scope::Tool;
        let others = Digest::of_call(&tool(), &Map::new());
        assert_eq!(covers(&standing, |call| call.digest = others), !is_exact);
        let is_for_a_run = matches!(standing.reach(), Reach::Run { .. });
        let elsewhere = covers(&standing, |call| call.run = run("r2"));
        assert_eq!(elsewhere, !is_for_a_run);
        assert_eq!(covers(&standing, |call| call.at = at(100)), is_for_a_run);
    }
}

#[test]
fn one_for_no_arguments_covers_calls_without_arguments_only() {
    let none = Digest::of_call(&tool(), &Map::new());
    let standing = granted(Scope::ToolWithArguments { digest: none }, in_run());
    assert!(covers(&standing, |call| call.digest = none));
    assert!(!covers(&standing, |_| {}));
}

#[test]
fn what_cannot_be_undone_is_covered_only_if_the_operator_said_so() {
    for standing in every_kind() {
        let irreversible = |call: &mut Parts| call.risk = RiskLevel::Irreversible;
        assert!(!covers(&standing, irreversible));
        assert!(covers(&standing.also_irreversible(), irreversible));
    }
}

#[test]
fn what_two_people_must_agree_to_is_never_covered() {
    for standing in every_kind() {
        assert!(!covers(&standing.also_irreversible(), |call| {
            call.security_level = SecurityLevel::Critical;
        }));
    }
}

#[test]
fn a_revoked_one_covers_nothing() {
    let mut standing = granted(Scope::Tool, until());
    assert!(standing.revoke(&who("cem").principal, at(5)));
    assert!(!standing.revoke(&who("dan").principal, at(6)));
    assert_eq!(standing.revoked().unwrap().by, who("cem").principal);
    assert!(!covers(&standing, |_| {}));
}

#[test]
fn one_that_ends_before_it_begins_is_refused() {
    let by = who("bea").principal;
    let ended = Reach::Until { until: at(0) };
    let refused = Standing::new(who("ada"), tool(), Scope::Tool, ended, by, at(0));
    assert_eq!(refused, Err(NotAStanding::EndsTooEarly));
}

#[test]
fn every_standing_approval_reads_back_as_it_was() {
    for standing in every_kind() {
        let mut revoked = standing.clone().also_irreversible();
        revoked.revoke(&who("cem").principal, at(5));
        for standing in [standing, revoked] {
            let written = serde_json::to_string(&standing).unwrap();
            assert_eq!(
                serde_json::from_str::<Standing>(&written).unwrap(),
                standing
            );
        }
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&every_kind()).unwrap());
}

#[test]
fn a_scope_that_is_not_said_is_not_guessed() {
    let mut written = serde_json::to_value(granted(Scope::Tool, in_run())).unwrap();
    let fields = written.as_object_mut().unwrap();
    fields.remove("scope");
    assert!(serde_json::from_value::<Standing>(written).is_err());
}
