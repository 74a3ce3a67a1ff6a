//! Any sequence of transitions leaves a valid approval.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Decide {
        by: usize,
        decision: PersonDecision,
        digest: StatedDigest,
    },
    Expire,
    Cancel,
}

#[derive(Debug, Clone, Copy)]
enum StatedDigest {
    None,
    Current,
    Original,
    Other,
}

fn any_step() -> impl Strategy<Value = (Step, i64)> {
    let decision = prop_oneof![
        3 => Just(PersonDecision::Approve),
        3 => (5_i64..8).prop_map(edited),
        1 => Just(reject()),
        1 => Just(PersonDecision::Respond { value: json!({"paid": 1.5}) }),
        1 => Just(PersonDecision::Answer { text: text("main") }),
        1 => Just(PersonDecision::Done { note: None }),
    ];
    let digest = prop_oneof![
        Just(StatedDigest::None),
        Just(StatedDigest::Current),
        Just(StatedDigest::Original),
        Just(StatedDigest::Other),
    ];
    let decide = (0..4_usize, decision, digest).prop_map(|(by, decision, digest)| Step::Decide {
        by,
        decision,
        digest,
    });
    let step = prop_oneof![8 => decide, 1 => Just(Step::Expire), 1 => Just(Step::Cancel)];
    // Clocks of several machines differ: times may be out of order and after the expiry.
    (step, -10_i64..100_000)
}

fn any_question() -> impl Strategy<Value = Question> {
    prop_oneof![
        1 => Just(authorize(SecurityLevel::High)),
        2 => Just(authorize(SecurityLevel::Critical)),
        1 => Just(ask()),
        1 => Just(intervene()),
    ]
}

fn apply(approval: &mut Approval, step: Step, second: i64) {
    let people = [
        identity("bea"),
        identity("Bea"),
        identity("cem"),
        identity("dan"),
    ];
    match step {
        Step::Decide {
            by,
            decision,
            digest,
        } => {
            let digest = match digest {
                StatedDigest::None => None,
                StatedDigest::Current => Some(approval.digest()),
                StatedDigest::Original => Some(approval.asked_digest()),
                StatedDigest::Other => Some(Digest::of_json(&json!("something else"))),
            };
            let before = approval.clone();
            let result = approval.decide(&people[by], decision, digest.as_ref(), at(second));
            if result.is_err() {
                assert_eq!(*approval, before, "a refused decision changes nothing");
            }
        }
        Step::Expire => _ = approval.expire(at(second)),
        Step::Cancel => _ = approval.cancel(at(second)),
    }
}

proptest! {
    #[test]
    fn any_order_of_transitions_leaves_a_valid_approval_and_a_settled_one_never_changes(
        question in any_question(),
        steps in prop::collection::vec(any_step(), 0..12),
    ) {
        let mut approval = pending(question);
        for (step, second) in steps {
            let before = approval.clone();
            apply(&mut approval, step, second);
            if before.status() != ApprovalStatus::Pending {
                prop_assert_eq!(&approval, &before);
            }
            let written = serde_json::to_string(&approval).unwrap();
            let read: Approval = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(&read, &approval);

            let is_settled = approval.status() != ApprovalStatus::Pending;
            prop_assert_eq!(approval.outcome().is_some(), is_settled);
            prop_assert_eq!(approval.settled_at().is_some(), is_settled);
            prop_assert_eq!(approval.asked_digest(), before.asked_digest());
            if let Some(ApprovalOutcome::Run { arguments, digest, .. }) = approval.outcome() {
                let approving: Vec<_> = approval
                    .decisions()
                    .iter()
                    .filter(|decided| decided.decision.is_approval())
                    .collect();
                prop_assert_eq!(approving.len(), approval.question().needed());
                prop_assert_eq!(digest, Digest::of_call(&tool(), &arguments));
                for (position, decided) in approving.iter().enumerate() {
                    prop_assert_eq!(decided.digest, digest);
                    for other in &approving[..position] {
                        prop_assert!(!other.by.is_same_person(&decided.by));
                    }
                }
            }
        }
    }
}
