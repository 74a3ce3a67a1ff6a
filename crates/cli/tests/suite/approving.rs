//! The approval of calls: confirmation, edited arguments and standing approvals.

use serde_json::json;
use windlass_core::approval::{ApprovalOutcome, ApprovalStatus, StandingScope};
use windlass_spec::SecurityLevel;
use windlass_store::{InboxAction, StandingFilter};

use super::program::TestProject;
use super::seeded::{
    approve_shown, ask, authorize, call, identity, object, open, project_with_pending_mail,
    project_with_pending_payment, request, run_as, start_run, stored,
};
use super::session::Session;

const ID: &str = "r1:1:0";

/// The digest of the request, as `show` prints it.
fn digest(project: &TestProject) -> String {
    let shown = run_as(project, "bea", &["approvals", "show", ID, "--json"]);
    shown.json()["digest_now"].as_str().unwrap().to_owned()
}

#[test]
fn high_level_call_needs_a_digest_or_yes_without_a_terminal() {
    let project = project_with_pending_payment(SecurityLevel::High);
    let output = run_as(&project, "bea", &["approvals", "approve", ID]);
    output.assert_refused(2, "windlass approvals show r1:1:0");
    assert!(
        !output.err.contains("sha256:"),
        "the digest proves that the approver has seen the call: {output:?}"
    );
    assert!(output.err.contains("--yes"), "{output:?}");
    assert_eq!(stored(&project, ID).status(), ApprovalStatus::Pending);

    let malformed = run_as(
        &project,
        "bea",
        &["approvals", "approve", ID, "--digest", "abc"],
    );
    malformed.assert_refused(2, "is not a digest");
    let other = format!("sha256:{}", "0".repeat(64));
    let other = run_as(
        &project,
        "bea",
        &["approvals", "approve", ID, "--digest", &other, "--json"],
    );
    other.assert_refused(8, "the decision is for the digest sha256:0000");
    assert_eq!(other.json()["error"], "digest_differs");
    assert_eq!(stored(&project, ID).status(), ApprovalStatus::Pending);

    let output = run_as(
        &project,
        "bea",
        &["approvals", "approve", ID, "--digest", &digest(&project)],
    );
    assert_eq!((output.code, output.err.as_str()), (0, ""), "{output:?}");
    assert_eq!(
        output.out,
        "approved: pay (r1:1:0)\nresume with: windlass runs resume r1\n"
    );
    assert!(matches!(
        stored(&project, ID).outcome(),
        Some(ApprovalOutcome::Run {
            is_edited: false,
            ..
        })
    ));
    let mail = open(&project).inbox(&call(ID).run).unwrap();
    assert!(
        matches!(mail[0].action, InboxAction::Settled(_)),
        "{mail:?}"
    );
    assert_eq!(mail[0].by, Some(identity("bea").principal));
}

#[test]
fn yes_approves_a_high_level_call() {
    let project = project_with_pending_payment(SecurityLevel::High).with_approvers(&["bea"]);
    let output = run_as(
        &project,
        "bea",
        &["approvals", "approve", "r1", "--yes", "--json"],
    );
    let decided = output.json();
    assert_eq!(decided["status"], "approved");
    assert_eq!(
        (&decided["by"], &decided["decision"]),
        (&json!("bea"), &json!("approve"))
    );
    assert_eq!(decided["run_state"], "waiting");
    assert_eq!(decided["next"], "windlass runs resume r1");
}

#[test]
fn at_a_terminal_the_tool_name_must_be_typed() {
    let project = project_with_pending_payment(SecurityLevel::High);
    for (typed, why) in [("\n", "nothing was typed"), ("yes\n", "`yes` is not `pay`")] {
        let mut command = project.command(&["approvals", "approve", ID]);
        command.env("WINDLASS_TEST_PRINCIPAL", "bea");
        let mut session = Session::at_a_terminal(&command);
        session.expect("\"amount\": 10");
        session.expect("type `pay` to approve this call: ");
        session.send(typed);
        session.expect(why);
        session.expect("nothing was decided");
        assert_eq!(session.end(), 1);
        assert_eq!(stored(&project, ID).status(), ApprovalStatus::Pending);
    }
    // A digest identifies the call and does not confirm it.
    let digest = digest(&project);
    let mut command = project.command(&["approvals", "approve", ID, "--digest", &digest]);
    command.env("WINDLASS_TEST_PRINCIPAL", "bea");
    let mut session = Session::at_a_terminal(&command);
    session.expect("type `pay` to approve this call: ");
    session.send("pay\n");
    session.expect("approved: pay");
    assert_eq!(session.end(), 0);
    assert_eq!(stored(&project, ID).status(), ApprovalStatus::Approved);
}

#[test]
fn critical_call_needs_a_second_approver() {
    let project = project_with_pending_payment(SecurityLevel::Critical);
    let project = project.with_approvers(&["bea", "cem"]);
    let first = approve_shown(&project, "bea", ID);
    assert_eq!(first.code, 0);
    assert!(
        first
            .out
            .contains("waiting for a second, different approver"),
        "{first:?}"
    );
    assert!(!first.out.contains("resume"), "{first:?}");
    let shown = run_as(&project, "bea", &["approvals", "show", ID]);
    assert!(
        shown.out.contains("needs a second, different approver"),
        "{shown:?}"
    );
    assert!(shown.out.contains("by bea at"), "{shown:?}");

    let digest = digest(&project);
    for same in ["bea", "Bea"] {
        let approve = ["approvals", "approve", ID, "--yes", "--digest", &digest];
        let again = run_as(&project, same, &[&approve[..], &["--json"]].concat());
        again.assert_refused(3, "another approver is required");
        assert_eq!(again.json()["error"], "same_person");
    }
    let second = approve_shown(&project, "cem", ID);
    assert!(second.out.contains("windlass runs resume r1"), "{second:?}");
    assert_eq!(stored(&project, ID).status(), ApprovalStatus::Approved);
}

#[test]
fn edited_arguments_are_checked_against_the_schema() {
    let project = project_with_pending_payment(SecurityLevel::High).with_approvers(&["bea"]);
    let edit = |json: &str| {
        run_as(
            &project,
            "bea",
            &["approvals", "approve", ID, "--yes", "--edit", json],
        )
    };
    let output = edit(r#"{"to": 7, "amount": "ten", "extra": 1}"#);
    output.assert_refused(2, "the arguments do not fit `pay`");
    for part in [
        "/to: expected",
        "/amount: expected",
        "/extra",
        "hint: it takes (to: Text",
    ] {
        assert!(output.err.contains(part), "{part}: {output:?}");
    }
    edit("[1]").assert_refused(2, "the arguments do not fit");
    edit("{").assert_refused(2, "not JSON");
    assert_eq!(stored(&project, ID).status(), ApprovalStatus::Pending);

    let output = edit(r#"{"to": "bob", "amount": 7}"#);
    assert!(
        output
            .out
            .starts_with("approved with edited arguments: pay"),
        "{output:?}"
    );
    let Some(ApprovalOutcome::Run {
        arguments,
        is_edited: true,
        ..
    }) = stored(&project, ID).outcome()
    else {
        panic!("{output:?}")
    };
    assert_eq!(arguments, object(json!({"to": "bob", "amount": 7})));
}

/// A project with a payment that needs two approvers. The first edited its arguments.
fn project_with_edited_payment() -> TestProject {
    let project = project_with_pending_payment(SecurityLevel::Critical);
    let project = project.with_approvers(&["bea", "cem"]);
    let edited = r#"{"to": "bob", "amount": 7}"#;
    let shown = digest(&project);
    let approve = ["approvals", "approve", ID, "--yes", "--digest", &shown];
    run_as(
        &project,
        "bea",
        &[&approve[..], &["--edit", edited]].concat(),
    );
    project
}

#[test]
fn second_approver_needs_the_digest_of_edited_arguments() {
    let project = project_with_edited_payment();
    let blind = run_as(
        &project,
        "cem",
        &["approvals", "approve", ID, "--yes", "--json"],
    );
    blind.assert_refused(8, "approved with the digest");
    assert_eq!(blind.json()["error"], "digest_needed");
    let shown = digest(&project);
    let approve = ["approvals", "approve", ID, "--yes", "--digest", &shown];
    let edited = ["--edit", r#"{"to": "bob", "amount": 8}"#];
    let other = run_as(&project, "cem", &[&approve[..], &edited].concat());
    other.assert_refused(8, "bea approved other arguments");
    let shown = run_as(&project, "cem", &["approvals", "show", ID]);
    assert!(shown.out.contains("first requested"), "{shown:?}");
    let output = approve_shown(&project, "cem", ID);
    assert_eq!(output.code, 0, "{output:?}");
}

#[test]
fn edited_arguments_can_raise_the_security_level() {
    let project = TestProject::new();
    let store = open(&project);
    let arguments = json!({"sql": "UPDATE notes SET done = 1 WHERE id = 7"});
    let journal = start_run(&store, "r1", &[("change", arguments.clone())]);
    let question = authorize("change", arguments, SecurityLevel::Medium);
    ask(&journal, request(ID, question));
    let edited = r#"{"sql": "DROP TABLE notes"}"#;
    let output = run_as(
        &project,
        "bea",
        &["approvals", "approve", ID, "--edit", edited],
    );
    output.assert_refused(2, "security level HIGH");
    let always = [
        "approvals",
        "approve",
        ID,
        "--yes",
        "--always",
        "--edit",
        edited,
    ];
    run_as(&project, "bea", &always).assert_refused(2, "cannot be undone");
    let harmless = r#"{"sql": "UPDATE notes SET done = 0 WHERE id = 7"}"#;
    let output = run_as(
        &project,
        "bea",
        &["approvals", "approve", ID, "--edit", harmless],
    );
    assert_eq!(output.code, 0, "{output:?}");
}

#[test]
fn always_is_refused_for_irreversible_calls() {
    let project = project_with_pending_payment(SecurityLevel::High);
    for option in ["--always", "--always=tool", "--always=call"] {
        let output = run_as(
            &project,
            "bea",
            &["approvals", "approve", ID, "--yes", option],
        );
        output.assert_refused(
            2,
            "cannot be undone, and such calls need approval every time",
        );
    }
    assert_eq!(
        stored(&project, ID).status(),
        ApprovalStatus::Pending,
        "nothing was decided"
    );
    assert!(
        open(&project)
            .standing(&StandingFilter::default())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn always_grants_a_standing_approval_for_the_run() {
    for (option, is_for_the_tool) in [("--always", false), ("--always=tool", true)] {
        let project = project_with_pending_mail();
        let output = run_as(&project, "bea", &["approvals", "approve", ID, option]);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(
            output.out.contains("calls that cannot be undone still ask"),
            "{output:?}"
        );
        let given = open(&project).standing(&StandingFilter::default()).unwrap();
        let standing = &given[0].standing;
        assert_eq!(standing.principal(), &identity("ada"));
        assert_eq!(standing.granted_by(), &identity("bea").principal);
        assert_eq!(standing.scope() == StandingScope::Tool, is_for_the_tool);
        assert_eq!(
            json!(standing.reach()),
            json!({"reach": "run", "run": "r1"})
        );
        assert!(!standing.covers_irreversible());
    }
}

#[test]
fn at_a_terminal_edited_arguments_are_shown_to_the_second_approver() {
    let project = project_with_edited_payment();
    let mut command = project.command(&["approvals", "approve", ID, "--yes"]);
    command.env("WINDLASS_TEST_PRINCIPAL", "cem");
    let mut session = Session::at_a_terminal(&command);
    session.expect("approved with the digest");
    assert_eq!(session.end(), 8);
    let mut command = project.command(&["approvals", "approve", ID]);
    command.env("WINDLASS_TEST_PRINCIPAL", "cem");
    let mut session = Session::at_a_terminal(&command);
    session.expect("\"amount\": 7");
    session.expect("type `pay`");
    session.send("pay\n");
    session.expect("approved: pay");
    assert_eq!(session.end(), 0);
}
