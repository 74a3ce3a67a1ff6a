//! Decisions of enrolled approvers: signed, checked when they are stored and when the call starts, and useless to
//! whoever can write the database and has even the key of its MACs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use windlass_core::approval::{
    Approval, DecisionMeans, PersonDecision, Quorum, Request, TenantPrincipal,
};
use windlass_keys::{
    Approver, ApproverKey, Approvers, Delegation, InstallationKey, JournalKey, KeyDirectory,
};
use windlass_spec::{SecurityLevel, Timestamp};
use windlass_store::{
    Authentication, DecisionSigner, Error, NewDecision, Options, RunJournal, Store,
};

use super::questions::{
    approval, ask_question, authorize, call, digest, edited, identity, now, reject, request, text,
};
use super::support::{at, start};

/// A store with approvers, and a run that asks.
struct Installation {
    directory: tempfile::TempDir,
    approvers: Approvers,
    store: Store,
    journal: RunJournal,
}

impl Installation {
    /// The run acts for `ada`, who is the first approver.
    fn new(level: SecurityLevel) -> Self {
        let asked = Request {
            question: authorize(level),
            quorum: Some(Quorum::default()),
            ..request(call("r1", 0))
        };
        Self::asking(&Approval::ask(asked).unwrap())
    }

    fn asking(asked: &Approval) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keys = KeyDirectory::new(directory.path().join("keys"));
        let approvers = Approvers::in_directory(keys);
        approvers.establish("ada", at(0).as_microseconds()).unwrap();
        let store = open(directory.path(), Some(&approvers));
        let (journal, _) = start(&store, "r1");
        ask_question(&journal, asked);
        Self {
            directory,
            approvers,
            store,
            journal,
        }
    }

    fn enrol(&self, name: &str) {
        let key = ApproverKey::create(self.approvers.directory(), name, None).unwrap();
        let approver = Approver {
            name: name.to_owned(),
            key: key.map(|key| key.public()),
            unattended: false,
            added_at: 0,
        };
        self.approvers.change(|list| list.add(approver)).unwrap();
    }

    fn key(&self, name: &str) -> Arc<ApproverKey> {
        let key = ApproverKey::read(self.approvers.directory(), name, None);
        Arc::new(key.unwrap().unwrap())
    }

    fn signer(&self, name: &str, means: DecisionMeans) -> DecisionSigner {
        DecisionSigner::of_approver(self.key(name), means)
    }

    fn decide(
        &self,
        by: &str,
        signer: Option<DecisionSigner>,
        decision: PersonDecision,
        at: Timestamp,
    ) -> Result<Approval, Error> {
        let new = NewDecision {
            call: call("r1", 0),
            digest: Some(self.pending().digest()),
            decision,
        };
        self.store.decide_signed(new, &identity(by), signer, at)
    }

    /// Approves at a terminal with the approver's own key.
    fn approve(&self, by: &str) -> Result<Approval, Error> {
        let signer = self.signer(by, DecisionMeans::Terminal);
        self.decide(by, Some(signer), PersonDecision::Approve, now())
    }

    fn pending(&self) -> Approval {
        self.store.approval(&call("r1", 0), now()).unwrap()
    }

    /// Why the approval does not permit the call, if it does not.
    fn unproven(&self) -> Option<String> {
        self.store.evidence(&call("r1", 0)).unwrap().unproven
    }

    /// The same journal, opened by a program that has the key of its MACs and no approvers.
    fn without_approvers(&self) -> Store {
        open(self.directory.path(), None)
    }
}

fn open(directory: &std::path::Path, approvers: Option<&Approvers>) -> Store {
    let options = Options {
        authentication: Authentication::Key(JournalKey::new(&[7; 32])),
        approvers: approvers.cloned(),
        ..Options::default()
    };
    Store::open_with(directory.join("windlass.db"), options).unwrap()
}

fn assert_not_proven(decided: Result<Approval, Error>, word: &str) {
    match decided {
        Err(Error::NotProven { reason, .. }) => assert!(reason.contains(word), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signed_approval_of_an_enrolled_approver_permits_the_call() {
    let installation = Installation::new(SecurityLevel::High);
    let approved = installation.approve("ada").unwrap();
    let proof = approved.decisions()[0].proof.as_ref().unwrap();
    assert_eq!(proof.signature.len(), 128);
    assert_eq!(installation.unproven(), None);
    let evidence = installation.store.evidence(&call("r1", 0)).unwrap();
    assert_eq!(evidence.authorized, Some(digest(10)));
    assert_eq!(installation.journal.inbox().unwrap().len(), 1);
}

#[test]
fn nobody_else_can_approve() {
    let installation = Installation::new(SecurityLevel::High);
    let approve = |by, signer| installation.decide(by, signer, PersonDecision::Approve, now());
    assert_not_proven(approve("ada", None), "did not sign");
    let ada = || Some(installation.signer("ada", DecisionMeans::Terminal));
    assert_not_proven(approve("eve", ada()), "`eve` is not an approver");
    installation.enrol("bob");
    assert_not_proven(approve("bob", ada()), "not one of `bob`");
    let reply = PersonDecision::Respond {
        value: "done".into(),
    };
    let replied = installation.decide("eve", None, reply, now());
    assert_not_proven(replied, "did not sign");
    assert!(installation.pending().decisions().is_empty());
    // Nothing runs after a rejection.
    installation.decide("eve", None, reject(), now()).unwrap();
}

#[test]
fn what_was_signed_cannot_be_changed_by_who_has_the_key_of_the_journal() {
    // Somebody who can write the database, and has the key of its MACs, decides in the name of Ada.
    let forged = Installation::new(SecurityLevel::High);
    let store = forged.without_approvers();
    let decision = PersonDecision::Approve;
    store
        .decide(&call("r1", 0), None, &identity("ada"), decision, now())
        .unwrap();
    assert!(forged.unproven().unwrap().contains("did not sign"));

    // They copy a signature of Ada: of another question, another decision, and another time.
    let other = Installation::new(SecurityLevel::High);
    let signature = |decided: Result<Approval, Error>| -> String {
        let decided = decided.unwrap();
        decided.decisions()[0]
            .proof
            .as_ref()
            .unwrap()
            .signature
            .clone()
    };
    let of_other = signature(other.approve("ada"));
    let mut found = 0;
    for (name, value) in [
        ("signature", of_other.as_str()),
        ("at", "2025-10-09T08:54:21Z"),
        ("by", "eve"),
        ("means", "page"),
        ("signer", "server"),
        ("on_behalf_of", "eve"),
    ] {
        let installation = Installation::new(SecurityLevel::High);
        installation.approve("ada").unwrap();
        let stored = installation.pending();
        let mut changed = serde_json::to_value(&stored).unwrap();
        match name {
            "at" | "by" => changed["decisions"][0][name] = value.into(),
            _ => changed["decisions"][0]["proof"][name] = value.into(),
        }
        if name == "at" {
            changed["settled_at"] = value.into();
        }
        let changed: Approval = serde_json::from_value(changed).unwrap();
        assert_ne!(changed, stored, "{name}");
        let checked = installation.store.check_decisions(&changed);
        assert!(matches!(checked, Err(Error::NotProven { .. })), "{name}");
        installation.store.check_decisions(&stored).unwrap();
        found += 1;
    }
    assert_eq!(found, 6);
}

#[test]
fn edited_arguments_are_signed() {
    let installation = Installation::new(SecurityLevel::High);
    let signer = installation.signer("ada", DecisionMeans::Terminal);
    let approved = installation.decide("ada", Some(signer), edited(7), now());
    let text = serde_json::to_string(&approved.unwrap()).unwrap();
    let raised: Approval = {
        let (from, to) = (digest(7).to_string(), digest(9).to_string());
        let text = text
            .replace("\"amount\":7", "\"amount\":9")
            .replace(&from, &to);
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(raised.digest(), digest(9));
    let checked = installation.store.check_decisions(&raised);
    assert!(
        matches!(checked, Err(Error::NotProven { .. })),
        "{checked:?}"
    );
}

#[test]
fn an_approver_who_was_removed_or_has_another_key_does_not_count_any_more() {
    let installation = Installation::new(SecurityLevel::High);
    installation.enrol("bob");
    installation.approve("bob").unwrap();
    assert_eq!(installation.unproven(), None);
    let approvers = &installation.approvers;
    approvers.change(|list| list.remove("bob")).unwrap();
    assert!(installation.unproven().unwrap().contains("not an approver"));
    ApproverKey::delete(approvers.directory(), "bob").unwrap();
    installation.enrol("bob");
    assert!(
        installation
            .unproven()
            .unwrap()
            .contains("not one of `bob`")
    );
}

#[test]
fn a_list_that_is_missing_or_foreign_or_readable_by_others_permits_nothing() {
    let installation = Installation::new(SecurityLevel::High);
    let path = installation.approvers.path();
    let list = fs::read(&path).unwrap();
    let other = Installation::new(SecurityLevel::High);
    let foreign = fs::read(other.approvers.path()).unwrap();
    let spoil: [&dyn Fn(); 3] = [
        &|| fs::remove_file(&path).unwrap(),
        &|| fs::write(&path, &foreign).unwrap(),
        &|| fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap(),
    ];
    for spoil in spoil {
        spoil();
        let approved = installation.approve("ada");
        assert!(
            matches!(approved, Err(Error::KeyUnusable(_))),
            "{approved:?}"
        );
        assert!(installation.store.approvers().is_err());
        fs::write(&path, &list).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
    installation.approve("ada").unwrap();
    fs::remove_file(&path).unwrap();
    let evidence = installation.store.evidence(&call("r1", 0));
    assert!(
        matches!(evidence, Err(Error::KeyUnusable(_))),
        "{evidence:?}"
    );
}

#[test]
fn what_was_decided_before_there_were_approvers_counts_where_one_suffices() {
    for (level, asked_at, decided_at, counts) in [
        (SecurityLevel::High, 0, 60, true),
        (SecurityLevel::High, 0, 120, false),
        (SecurityLevel::Critical, 0, 60, false),
    ] {
        let asked = Request {
            question: authorize(level),
            ..Request::new(
                call("r1", 0),
                identity("ada"),
                authorize(level),
                at(asked_at),
            )
        };
        let directory = tempfile::tempdir().unwrap();
        let old = open(directory.path(), None);
        let (journal, _) = start(&old, "r1");
        ask_question(&journal, &Approval::ask(asked).unwrap());
        let people: &[&str] = match level {
            SecurityLevel::Critical => &["bea", "cem"],
            _ => &["bea"],
        };
        for by in people {
            let decision = PersonDecision::Approve;
            old.decide(
                &call("r1", 0),
                None,
                &identity(by),
                decision,
                at(decided_at),
            )
            .unwrap();
        }
        drop(journal);
        drop(old);
        let keys = KeyDirectory::new(directory.path().join("keys"));
        let approvers = Approvers::in_directory(keys);
        approvers
            .establish("ada", at(100).as_microseconds())
            .unwrap();
        let store = open(directory.path(), Some(&approvers));
        let evidence = store.evidence(&call("r1", 0)).unwrap();
        assert_eq!(evidence.unproven.is_none(), counts, "{evidence:?}");
    }
}

#[test]
fn a_decision_from_before_the_question_does_not_count() {
    let installation = Installation::new(SecurityLevel::High);
    let signer = Some(installation.signer("ada", DecisionMeans::Terminal));
    let decided = installation.decide("ada", signer, PersonDecision::Approve, at(-1));
    assert_not_proven(decided, "the clock went backwards");
}

#[test]
fn two_approvers_are_two_keys_and_the_user_of_the_run_is_none_of_them() {
    let installation = Installation::new(SecurityLevel::Critical);
    for name in ["bob", "cem"] {
        installation.enrol(name);
    }
    let by_requester = installation.approve("ada").unwrap_err();
    assert!(
        by_requester.to_string().contains("acts for ada"),
        "{by_requester}"
    );
    installation.approve("bob").unwrap();
    // Bob's key in the name of Cem, and Bob once more.
    let bob = Some(installation.signer("bob", DecisionMeans::Terminal));
    let as_cem = installation.decide("cem", bob, PersonDecision::Approve, now());
    assert_not_proven(as_cem, "not one of `cem`");
    let again = installation.approve("bob").unwrap_err();
    assert!(matches!(again, Error::Undecided { .. }), "{again}");
    assert_eq!(installation.pending().still_needed(), 1);
    installation.approve("cem").unwrap();
    assert_eq!(installation.unproven(), None);
}

#[test]
fn weak_means_do_not_count_for_calls_of_a_high_level() {
    for (level, means, counts) in [
        (SecurityLevel::High, DecisionMeans::Command, false),
        (SecurityLevel::High, DecisionMeans::Digest, true),
        (SecurityLevel::High, DecisionMeans::OwnCall, true),
        (SecurityLevel::High, DecisionMeans::Unattended, false),
        (SecurityLevel::Critical, DecisionMeans::Digest, false),
        (SecurityLevel::Critical, DecisionMeans::OwnCall, false),
        (SecurityLevel::Critical, DecisionMeans::Terminal, true),
    ] {
        let installation = Installation::new(level);
        installation.enrol("bob");
        let signer = Some(installation.signer("bob", means));
        let decided = installation.decide("bob", signer, PersonDecision::Approve, now());
        assert_eq!(decided.is_ok(), counts, "{level} {means}: {decided:?}");
    }
}

#[test]
fn a_key_that_may_decide_unattended_counts_until_that_is_withdrawn() {
    let installation = Installation::new(SecurityLevel::High);
    let permit = |unattended: bool| {
        let change = |list: &mut windlass_keys::ApproverList| {
            list.approvers[0].unattended = unattended;
            Ok(())
        };
        installation.approvers.change(change).unwrap();
    };
    permit(true);
    let signer = Some(installation.signer("ada", DecisionMeans::Unattended));
    installation
        .decide("ada", signer, PersonDecision::Approve, now())
        .unwrap();
    assert_eq!(installation.unproven(), None);
    permit(false);
    assert!(
        installation
            .unproven()
            .unwrap()
            .contains("must not approve")
    );
}

#[test]
fn a_server_attests_only_enrolled_approvers_and_only_with_the_key_of_the_installation() {
    let installation = Installation::new(SecurityLevel::High);
    let server = |keys: &KeyDirectory| {
        let key = InstallationKey::read_or_create(keys).unwrap();
        Some(DecisionSigner::of_server(
            Arc::new(key),
            DecisionMeans::Page,
        ))
    };
    let own = || server(installation.approvers.directory());
    let approve = |by, signer| installation.decide(by, signer, PersonDecision::Approve, now());
    assert_not_proven(approve("dan", own()), "not an approver");
    // Dan decides only through the server and has no key.
    let dan = Approver {
        name: "dan".to_owned(),
        key: None,
        unattended: false,
        added_at: 0,
    };
    installation.approvers.change(|list| list.add(dan)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let other = server(&KeyDirectory::new(directory.path().join("keys")));
    assert_not_proven(approve("dan", other), "not one of `dan`");
    approve("dan", own()).unwrap();
    assert_eq!(installation.unproven(), None);
}

#[test]
fn a_delegate_decides_until_the_date_and_not_for_the_user_of_the_run() {
    let installation = Installation::new(SecurityLevel::Critical);
    for name in ["bob", "cem", "dora"] {
        installation.enrol(name);
    }
    let delegate = |from: &str, until: i64| {
        let (until, made) = (at(until).as_microseconds(), at(1).as_microseconds());
        let delegation = Delegation::sign(&installation.key(from), "dora", until, made);
        let change = |list: &mut windlass_keys::ApproverList| {
            list.delegations.push(delegation);
            Ok(())
        };
        installation.approvers.change(change).unwrap();
    };
    let by_dora = |from: &TenantPrincipal, second: i64| {
        let signer = installation.signer("dora", DecisionMeans::Terminal);
        let signer = signer.on_behalf_of(Some(from.principal.clone()));
        installation.decide("dora", Some(signer), PersonDecision::Approve, at(second))
    };
    assert_not_proven(by_dora(&identity("bob"), 60), "has not delegated");
    delegate("bob", 100);
    delegate("ada", 100);
    assert_not_proven(by_dora(&identity("bob"), 100), "has not delegated");
    let for_requester = by_dora(&identity("ada"), 60).unwrap_err();
    assert!(
        for_requester.to_string().contains("acts for ada"),
        "{for_requester}"
    );
    by_dora(&identity("bob"), 60).unwrap();
    // Bob and who decides for him are one of two.
    let bob = installation.approve("bob").unwrap_err();
    assert!(
        bob.to_string().contains("another approver is required"),
        "{bob}"
    );
    installation.approve("cem").unwrap();
    assert_eq!(installation.unproven(), None);
}

#[test]
fn an_answer_that_takes_effect_at_once_is_checked_too() {
    let question = windlass_core::approval::Question::Ask(windlass_core::approval::Ask {
        question: text("Did it happen?"),
        context: None,
        options: Vec::new(),
        free_text: true,
        form: None,
    });
    let asked = Request {
        question,
        ..request(call("r1", 0))
    };
    let installation = Installation::asking(&Approval::ask(asked).unwrap());
    let answer = || PersonDecision::Answer {
        text: text("It did not happen"),
    };
    let forged = installation.without_approvers();
    forged
        .decide(&call("r1", 0), None, &identity("ada"), answer(), now())
        .unwrap();
    let stored = installation.pending();
    let checked = installation.store.check_decisions(&stored);
    assert!(
        matches!(checked, Err(Error::NotProven { .. })),
        "{checked:?}"
    );
}

#[test]
fn a_store_without_a_list_accepts_decisions_as_before() {
    let (_directory, store) = super::support::open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    super::questions::approve(&store, None, now()).unwrap();
    assert_eq!(store.approvers().unwrap(), None);
    assert_eq!(store.evidence(&call("r1", 0)).unwrap().unproven, None);
}
