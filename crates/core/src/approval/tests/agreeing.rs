//! Who has to agree: groups, the user of the run, escalation and means.

use super::*;

fn principals(names: &[&str]) -> Vec<Principal> {
    let names = names.iter();
    names.map(|name| Principal::new(*name).unwrap()).collect()
}

fn group(name: &str, count: usize, members: &[&str]) -> GroupQuorum {
    GroupQuorum {
        group: name.to_owned(),
        count,
        members: principals(members),
        escalation: None,
    }
}

fn asked(level: SecurityLevel, groups: Vec<GroupQuorum>) -> Result<Approval, ApprovalError> {
    let mut request = Request::new(call(), identity("ada"), authorize(level), at(0));
    request.quorum = Some(Quorum { groups });
    Approval::ask(request)
}

fn approve(approval: &mut Approval, by: &str, second: i64) -> Result<DecisionEffect, DecideError> {
    approval.decide(&identity(by), PersonDecision::Approve, None, at(second))
}

#[test]
fn every_group_has_to_agree() {
    let groups = vec![
        group("finance", 2, &["bob", "cem", "dan"]),
        group("legal", 1, &["lea", "dan"]),
    ];
    let mut approval = asked(SecurityLevel::High, groups).unwrap();
    assert_eq!(approval.still_needed(), 2);
    let stranger = approve(&mut approval, "eve", 1);
    assert!(
        matches!(stranger, Err(DecideError::NotEntitled(_))),
        "{stranger:?}"
    );
    for (by, needed) in [("bob", 1), ("cem", 1), ("lea", 0)] {
        approve(&mut approval, by, 2).unwrap();
        assert_eq!(approval.still_needed(), needed, "{by}");
    }
    assert_eq!(approval.status(), ApprovalStatus::Approved);
    // It is read back as it is.
    let text = serde_json::to_string(&approval).unwrap();
    assert_eq!(serde_json::from_str::<Approval>(&text).unwrap(), approval);
}

#[test]
fn a_critical_call_of_a_group_needs_two_of_whom_the_group_is_one() {
    let groups = vec![group("finance", 1, &["bob", "cem"])];
    let mut approval = asked(SecurityLevel::Critical, groups).unwrap();
    approve(&mut approval, "bob", 1).unwrap();
    assert_eq!(approval.still_needed(), 1);
    approve(&mut approval, "cem", 1).unwrap();
    assert_eq!(approval.still_needed(), 0);
}

#[test]
fn the_user_of_the_run_is_left_out_where_several_are_needed() {
    let one = vec![group("finance", 1, &["ada", "bob"])];
    let mut approval = asked(SecurityLevel::High, one).unwrap();
    approve(&mut approval, "ada", 1).unwrap();
    assert_eq!(approval.status(), ApprovalStatus::Approved);
    for (level, groups) in [
        (SecurityLevel::Critical, Vec::new()),
        (
            SecurityLevel::High,
            vec![group("finance", 2, &["ada", "bob", "cem"])],
        ),
        (
            SecurityLevel::High,
            vec![
                group("finance", 1, &["Ada", "bob"]),
                group("legal", 1, &["lea"]),
            ],
        ),
    ] {
        let mut approval = asked(level, groups).unwrap();
        for name in ["ada", "ADA"] {
            let own = approve(&mut approval, name, 1);
            assert!(
                matches!(own, Err(DecideError::ActsFor(_))),
                "{name}: {own:?}"
            );
        }
        // They may still reject it.
        let rejection = PersonDecision::Reject { message: None };
        approval
            .decide(&identity("ada"), rejection, None, at(2))
            .unwrap();
    }
}

#[test]
fn a_question_from_before_there_were_groups_is_read_as_it_was() {
    let mut approval = pending(authorize(SecurityLevel::Critical));
    approve(&mut approval, "ada", 1).unwrap();
    approve(&mut approval, "bob", 2).unwrap();
    let text = serde_json::to_string(&approval).unwrap();
    assert!(!text.contains("quorum"), "{text}");
    assert_eq!(serde_json::from_str::<Approval>(&text).unwrap(), approval);
}

#[test]
fn others_decide_only_from_the_time_of_the_escalation_on() {
    let mut finance = group("finance", 2, &["bob"]);
    finance.escalation = Some(Escalation {
        group: "leads".to_owned(),
        members: principals(&["lea"]),
        at: at(60),
    });
    let mut approval = asked(SecurityLevel::High, vec![finance]).unwrap();
    let early = approve(&mut approval, "lea", 59);
    assert!(
        matches!(early, Err(DecideError::NotEntitled(_))),
        "{early:?}"
    );
    approve(&mut approval, "bob", 59).unwrap();
    approve(&mut approval, "lea", 60).unwrap();
    assert_eq!(approval.status(), ApprovalStatus::Approved);
}

#[test]
fn a_group_with_too_few_members_is_not_asked() {
    for (members, found) in [(&["bob"][..], 1), (&["ada", "bob"], 1), (&[], 0)] {
        let error = asked(SecurityLevel::High, vec![group("finance", 2, members)]).unwrap_err();
        let ApprovalError::TooFewCandidates(few) = error else {
            panic!("{error}")
        };
        assert_eq!((few.needed, few.found), (2, found), "{few}");
        assert_eq!(few.is_requester_left_out, members.contains(&"ada"));
    }
    let approval = asked(SecurityLevel::Critical, Vec::new()).unwrap();
    let check = |names: &[&str]| approval.check_candidates(&principals(names));
    check(&["bob", "cem"]).unwrap();
    for names in [&["ada", "bob"][..], &["bob", "BOB"], &[]] {
        assert!(check(names).is_err(), "{names:?}");
    }
}

#[test]
fn the_signed_text_differs_with_everything_that_counts() {
    let decide = |by: &str, decision: PersonDecision, means: DecisionMeans, second: i64| {
        let mut approval = asked(SecurityLevel::High, Vec::new()).unwrap();
        let attestation = Attestation::new(Signer::Approver, means);
        approval
            .decide_attested(&identity(by), Some(attestation), decision, None, at(second))
            .unwrap();
        let text = approval.signed_text(approval.decisions().last().unwrap());
        approval.sign(|signed| {
            assert_eq!(signed, text);
            "00".repeat(64)
        });
        approval.sign(|_| panic!("it is signed once"));
        text
    };
    let edit = |amount: i64| PersonDecision::ApproveEdited {
        arguments: object(json!({"to": "bob", "amount": amount})),
    };
    let texts = [
        decide("bob", PersonDecision::Approve, DecisionMeans::Terminal, 1),
        decide("cem", PersonDecision::Approve, DecisionMeans::Terminal, 1),
        decide("bob", PersonDecision::Approve, DecisionMeans::Digest, 1),
        decide("bob", PersonDecision::Approve, DecisionMeans::Terminal, 2),
        decide("bob", edit(7), DecisionMeans::Terminal, 1),
        decide("bob", edit(8), DecisionMeans::Terminal, 1),
    ];
    let different: std::collections::BTreeSet<&String> = texts.iter().collect();
    assert_eq!(different.len(), texts.len());
    assert!(texts[0].starts_with("windlass decision 1\n{\"approval\":\"r1:2:0\","));
}
