//! A person approves a call: with how much care, with which arguments, for how long.

use serde_json::json;
use windlass_core::approval::{ApprovalStatus, Outcome, Scope};
use windlass_spec::SecurityLevel;
use windlass_store::{InboxAction, StandingFilter};

use super::program::Place;
use super::seeded::{
    ask, authorize, begin, call, object, open, request, run_as, stored, wants_to_mail,
    wants_to_pay, who,
};
use super::session::Session;

const ID: &str = "r1:1:0";

/// The digest of what is asked, as `show` prints it.
fn digest(place: &Place) -> String {
    let shown = run_as(place, "bea", &["approvals", "show", ID, "--json"]);
    shown.json()["digest_now"].as_str().unwrap().to_owned()
}

#[test]
fn a_grave_call_is_not_approved_off_a_terminal_without_digest_or_yes() {
    let place = wants_to_pay(SecurityLevel::High);
    let told = run_as(&place, "bea", &["approvals", "approve", ID]);
    told.is_refused(2, "windlass approvals show r1:1:0");
    assert!(
        !told.err.contains("sha256:"),
        "whoever gives it has looked: {told:?}"
    );
    assert!(told.err.contains("--yes"), "{told:?}");
    assert_eq!(stored(&place, ID).status(), ApprovalStatus::Pending);

    let malformed = run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--digest", "abc"],
    );
    malformed.is_refused(2, "is no digest");
    let other = format!("sha256:{}", "0".repeat(64));
    let other = run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--digest", &other, "--json"],
    );
    other.is_refused(8, "the decision is about sha256:0000");
    assert_eq!(other.json()["error"], "digest_differs");
    assert_eq!(stored(&place, ID).status(), ApprovalStatus::Pending);

    let told = run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--digest", &digest(&place)],
    );
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    assert_eq!(
        told.out,
        "approved: pay (r1:1:0)\ncontinue it with: windlass runs resume r1\n"
    );
    assert!(matches!(
        stored(&place, ID).outcome(),
        Some(Outcome::Run {
            is_edited: false,
            ..
        })
    ));
    let mail = open(&place).inbox(&call(ID).run).unwrap();
    assert!(
        matches!(mail[0].action, InboxAction::Settled(_)),
        "{mail:?}"
    );
    assert_eq!(mail[0].by, Some(who("bea").principal));
}

#[test]
fn yes_approves_a_grave_call_for_programs() {
    let place = wants_to_pay(SecurityLevel::High);
    let told = run_as(
        &place,
        "bea",
        &["approvals", "approve", "r1", "--yes", "--json"],
    );
    let decided = told.json();
    assert_eq!(decided["status"], "approved");
    assert_eq!(
        (&decided["by"], &decided["decision"]),
        (&json!("bea"), &json!("approve"))
    );
    assert_eq!(decided["run_state"], "waiting");
    assert_eq!(decided["next"], "windlass runs resume r1");
}

#[test]
fn at_a_terminal_the_name_of_the_tool_is_typed() {
    let place = wants_to_pay(SecurityLevel::High);
    for (typed, why) in [("\n", "nothing was typed"), ("yes\n", "`yes` is not `pay`")] {
        let mut command = place.command(&["approvals", "approve", ID]);
        command.env("WINDLASS_TEST_PRINCIPAL", "bea");
        let mut session = Session::at_a_terminal(&command);
        session.expect("\"amount\": 10");
        session.expect("type `pay` to approve this call: ");
        session.send(typed);
        session.expect(why);
        session.expect("nothing was decided");
        assert_eq!(session.end(), 1);
        assert_eq!(stored(&place, ID).status(), ApprovalStatus::Pending);
    }
    // A digest says what is approved, not that it is.
    let digest = digest(&place);
    let mut command = place.command(&["approvals", "approve", ID, "--digest", &digest]);
    command.env("WINDLASS_TEST_PRINCIPAL", "bea");
    let mut session = Session::at_a_terminal(&command);
    session.expect("type `pay` to approve this call: ");
    session.send("pay\n");
    session.expect("approved: pay");
    assert_eq!(session.end(), 0);
    assert_eq!(stored(&place, ID).status(), ApprovalStatus::Approved);
}

#[test]
fn a_critical_call_needs_a_second_person() {
    let place = wants_to_pay(SecurityLevel::Critical);
    let first = run_as(&place, "bea", &["approvals", "approve", ID, "--yes"]);
    assert_eq!(first.code, 0);
    assert!(
        first
            .out
            .contains("a second, different person must approve"),
        "{first:?}"
    );
    assert!(!first.out.contains("resume"), "{first:?}");
    let shown = run_as(&place, "bea", &["approvals", "show", ID]);
    assert!(
        shown.out.contains("one more person has to approve"),
        "{shown:?}"
    );
    assert!(shown.out.contains("by bea at"), "{shown:?}");

    for same in ["bea", "Bea"] {
        let again = run_as(
            &place,
            same,
            &["approvals", "approve", ID, "--yes", "--json"],
        );
        again.is_refused(3, "a second person has to");
        assert_eq!(again.json()["error"], "same_person");
    }
    let second = run_as(&place, "cem", &["approvals", "approve", ID, "--yes"]);
    assert!(second.out.contains("windlass runs resume r1"), "{second:?}");
    assert_eq!(stored(&place, ID).status(), ApprovalStatus::Approved);
}

#[test]
fn other_arguments_must_fit_the_tool() {
    let place = wants_to_pay(SecurityLevel::High);
    let edit = |json: &str| {
        run_as(
            &place,
            "bea",
            &["approvals", "approve", ID, "--yes", "--edit", json],
        )
    };
    let told = edit(r#"{"to": 7, "amount": "ten", "extra": 1}"#);
    told.is_refused(2, "the arguments do not fit `pay`");
    for part in [
        "/to: expected",
        "/amount: expected",
        "/extra",
        "hint: it takes (to: Text",
    ] {
        assert!(told.err.contains(part), "{part}: {told:?}");
    }
    edit("[1]").is_refused(2, "the arguments do not fit");
    edit("{").is_refused(2, "not JSON");
    assert_eq!(stored(&place, ID).status(), ApprovalStatus::Pending);

    let told = edit(r#"{"to": "bob", "amount": 7}"#);
    assert!(
        told.out.starts_with("approved with other arguments: pay"),
        "{told:?}"
    );
    let Some(Outcome::Run {
        arguments,
        is_edited: true,
        ..
    }) = stored(&place, ID).outcome()
    else {
        panic!("{told:?}")
    };
    assert_eq!(arguments, object(json!({"to": "bob", "amount": 7})));
}

#[test]
fn who_approves_second_says_what_they_saw_once_the_first_changed_it() {
    let place = wants_to_pay(SecurityLevel::Critical);
    let edited = r#"{"to": "bob", "amount": 7}"#;
    run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--yes", "--edit", edited],
    );
    let blind = run_as(
        &place,
        "cem",
        &["approvals", "approve", ID, "--yes", "--json"],
    );
    blind.is_refused(8, "bea changed the arguments");
    assert_eq!(blind.json()["error"], "digest_needed");
    let other = run_as(
        &place,
        "cem",
        &[
            "approvals",
            "approve",
            ID,
            "--yes",
            "--edit",
            r#"{"to": "bob", "amount": 8}"#,
        ],
    );
    other.is_refused(8, "bea approved other arguments");
    let shown = run_as(&place, "cem", &["approvals", "show", ID]);
    assert!(shown.out.contains("first asked with"), "{shown:?}");
    let told = run_as(
        &place,
        "cem",
        &["approvals", "approve", ID, "--digest", &digest(&place)],
    );
    assert_eq!(told.code, 0, "{told:?}");
}

#[test]
fn a_graver_edit_needs_the_care_of_what_would_run() {
    let place = Place::new();
    let store = open(&place);
    let arguments = json!({"sql": "UPDATE notes SET done = 1 WHERE id = 7"});
    let journal = begin(&store, "r1", &[("change", arguments.clone())]);
    let question = authorize("change", arguments, SecurityLevel::Medium);
    ask(&journal, request(ID, question));
    let edited = r#"{"sql": "DROP TABLE notes"}"#;
    let told = run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--edit", edited],
    );
    told.is_refused(2, "security level HIGH");
    let always = [
        "approvals",
        "approve",
        ID,
        "--yes",
        "--always",
        "--edit",
        edited,
    ];
    run_as(&place, "bea", &always).is_refused(2, "cannot be undone");
    let harmless = r#"{"sql": "UPDATE notes SET done = 0 WHERE id = 7"}"#;
    let told = run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--edit", harmless],
    );
    assert_eq!(told.code, 0, "{told:?}");
}

#[test]
fn always_is_never_for_what_cannot_be_undone() {
    let place = wants_to_pay(SecurityLevel::High);
    for option in ["--always", "--always=tool", "--always=call"] {
        let told = run_as(
            &place,
            "bea",
            &["approvals", "approve", ID, "--yes", option],
        );
        told.is_refused(
            2,
            "cannot be undone, and such calls are asked about every time",
        );
    }
    assert_eq!(
        stored(&place, ID).status(),
        ApprovalStatus::Pending,
        "nothing was decided"
    );
    assert!(
        open(&place)
            .standing(&StandingFilter::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn always_gives_leave_for_this_run() {
    for (option, is_for_the_tool) in [("--always", false), ("--always=tool", true)] {
        let place = wants_to_mail();
        let told = run_as(&place, "bea", &["approvals", "approve", ID, option]);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(
            told.out.contains("calls that cannot be undone will"),
            "{told:?}"
        );
        let given = open(&place).standing(&StandingFilter::default()).unwrap();
        let standing = &given[0].standing;
        assert_eq!(standing.principal(), &who("ada"));
        assert_eq!(standing.granted_by(), &who("bea").principal);
        assert_eq!(standing.scope() == Scope::Tool, is_for_the_tool);
        assert_eq!(
            json!(standing.reach()),
            json!({"reach": "run", "run": "r1"})
        );
        assert!(!standing.covers_irreversible());
    }
}

#[test]
fn at_a_terminal_too_nobody_agrees_unseen_to_what_another_changed() {
    let place = wants_to_pay(SecurityLevel::Critical);
    let edited = r#"{"to": "bob", "amount": 7}"#;
    run_as(
        &place,
        "bea",
        &["approvals", "approve", ID, "--yes", "--edit", edited],
    );
    let mut command = place.command(&["approvals", "approve", ID, "--yes"]);
    command.env("WINDLASS_TEST_PRINCIPAL", "cem");
    let mut session = Session::at_a_terminal(&command);
    session.expect("bea changed the arguments");
    assert_eq!(session.end(), 8);
    let mut command = place.command(&["approvals", "approve", ID]);
    command.env("WINDLASS_TEST_PRINCIPAL", "cem");
    let mut session = Session::at_a_terminal(&command);
    session.expect("\"amount\": 7");
    session.expect("type `pay`");
    session.send("pay\n");
    session.expect("approved: pay");
    assert_eq!(session.end(), 0);
}
