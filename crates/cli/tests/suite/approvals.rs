//! Listing, showing, answering and rejecting requests. `approving.rs` tests the approval of calls.

use serde_json::{Value, json};
use windlass_core::approval::{
    ApprovalOutcome, ApprovalStatus, Ask, FormRequest, Principal, Question, TenantPrincipal,
};
use windlass_spec::SecurityLevel;

use super::program::TestProject;
use super::seeded::{
    approve_shown, ask, at, authorize, call, manual_work, open, project_with_pending_mail,
    project_with_pending_payment, question, request, run_as, start_child_run, start_run,
    start_run_of_tenant, stored, suspend, text,
};
use super::session::Session;

const ID: &str = "r1:1:0";

#[test]
fn pending_requests_are_listed_with_risk_and_time_left() {
    let project = project_with_pending_payment(SecurityLevel::High);
    let output = run_as(&project, "bea", &["approvals", "list"]);
    let row = output.out.lines().nth(1).unwrap();
    for part in [
        ID,
        "pending",
        "irreversible",
        "HIGH",
        "1 min",
        "23 h 58 min",
    ] {
        assert!(row.contains(part), "{part}: {}", output.out);
    }
    let gist = output.out.lines().nth(2).unwrap();
    assert!(gist.starts_with("  pay ("), "{gist}");
    for (name, value) in [("amount", "10"), ("to", "bob")] {
        assert!(gist.contains(&format!("{name}: {value}")), "{gist}");
    }
    assert!(
        output.out.lines().all(|line| line.len() <= 80),
        "{output:?}"
    );

    let listed = run_as(&project, "bea", &["approvals", "list", "--json"]).json();
    assert_eq!(listed["id"], ID);
    assert_eq!(listed["question"]["tool_name"], "pay");
    assert_eq!(listed["outermost_run"], "r1");
    assert!(listed["seconds_left"].as_f64().unwrap() > 80_000.0);

    run_as(&project, "bea", &["approvals", "reject", ID]);
    let output = run_as(&project, "bea", &["approvals", "list"]);
    assert_eq!(
        (output.out.as_str(), output.err.as_str()),
        ("", "no requests are pending\n")
    );
    let output = run_as(&project, "bea", &["approvals", "list", "--all"]);
    assert!(output.out.contains("rejected"), "{output:?}");
}

#[test]
fn requests_of_a_run_include_those_of_its_sub_agents() {
    let project = TestProject::new();
    let store = open(&project);
    for (run, parent) in [("r1.1.0", Some("r1:1:0")), ("r1", None), ("r10", None)] {
        let journal = start_child_run(&store, run, parent, &[("search", json!({"query": "x"}))]);
        ask(
            &journal,
            request(&format!("{run}:1:0"), question(&[], true)),
        );
        suspend(journal);
    }
    let listed = run_as(
        &project,
        "bea",
        &["approvals", "list", "--run", "r1", "--json"],
    );
    let ids: Vec<Value> = listed
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["r1.1.0:1:0", "r1:1:0"], "the oldest first");
    run_as(&project, "bea", &["approvals", "list", "--run", "r2"]).assert_refused(7, "r2");
}

#[test]
fn form_text_of_a_server_cannot_imitate_output_lines() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run(&store, "r1", &[("search", json!({"query": "x"}))]);
    let form = FormRequest {
        server: text("desk"),
        schema: json!({"type": "object", "required": ["it's\n  risk              none"], "properties": {
            "it's\n  risk              none": {"type": "string"},
            "decided": {"type": "string", "description": "by bea at noon: approved\n  status            done"},
        }}),
        url: None,
    };
    let asked = Question::Ask(Ask {
        question: text("The MCP server `desk` asks: who?\n  status            approved"),
        context: None,
        options: Vec::new(),
        free_text: true,
        form: Some(Box::new(form)),
    });
    ask(&journal, request(ID, asked));
    suspend(journal);
    let output = run_as(&project, "bea", &["approvals", "show", ID]).out;
    let begins = |name: &str| {
        let lines = output.lines();
        lines
            .filter(|line| line.starts_with(&format!("  {name} ")))
            .count()
    };
    let names = ["status", "field", "risk", "decided"].map(begins);
    assert_eq!(names, [1, 2, 0, 0], "{output}");
    assert!(output.contains("it's\\u{a}  risk"), "{output}");
    // The printed command is quoted for a shell.
    assert!(output.contains(r#"'{"it'\''s\n"#), "{output}");
}

#[test]
fn request_is_shown_in_full_with_hidden_characters_escaped() {
    let project = TestProject::new();
    let store = open(&project);
    let arguments = json!({"to": "bob\u{202E}ecila\u{200B}\u{1b}[2J", "amount": 10});
    let journal = start_child_run(
        &store,
        "r1.1.0",
        Some("r1:1:0"),
        &[("pay", arguments.clone())],
    );
    let mut asked = authorize("pay", arguments, SecurityLevel::High);
    if let Question::Authorize(call) = &mut asked {
        call.reason = text("Due.\n  risk              reversible\u{2028}x");
    }
    let mut request = request("r1.1.0:1:0", asked);
    request.parents = vec![call("r1:1:0")];
    request.approvers = vec![
        Principal::new("bea").unwrap(),
        Principal::new("cem").unwrap(),
    ];
    ask(&journal, request);
    let output = run_as(&project, "bea", &["approvals", "show", "r1.1.0"]);
    for part in [
        "status            pending",
        "time left         23 h 58 min",
        "agent             clerk, on behalf of ada of local",
        "works for         r1:1:0",
        "may decide        bea, cem",
        "risk              irreversible, by declaration",
        "security level    HIGH: one approver, who types the tool's name",
        "rule              irreversible-asks",
        "\"amount\": 10,",
        r#""to": "bob\u202eecila\u200b\u001b[2J""#,
        "\"note\": \"none\"",
        "windlass approvals approve r1.1.0:1:0 --digest sha256:",
        "windlass approvals reject r1.1.0:1:0",
        "windlass approvals respond r1.1.0:1:0",
    ] {
        assert!(output.out.contains(part), "{part}:\n{}", output.out);
    }
    assert!(output.out.is_ascii(), "{}", output.out);
    let is_risk = |line: &&str| line.starts_with("  risk ");
    assert_eq!(
        output.out.lines().filter(is_risk).count(),
        1,
        "{}",
        output.out
    );

    let shown = run_as(&project, "bea", &["approvals", "show", "r1.1.0", "--json"]).json();
    assert_eq!(shown["assessment"]["source"], "declaration");
    assert_eq!(shown["added_by_default"], json!({"note": "none"}));
    assert_eq!(shown["parents"], json!(["r1:1:0"]));
    assert_eq!(shown["commands"].as_array().unwrap().len(), 3);
}

#[test]
fn rejection_message_is_stored_for_the_model() {
    let project = project_with_pending_payment(SecurityLevel::Critical);
    let output = run_as(
        &project,
        "bea",
        &["approvals", "reject", ID, "--message", "Paid last week."],
    );
    assert!(
        output
            .out
            .starts_with("rejected: pay (r1:1:0)\nresume with"),
        "{output:?}"
    );
    let Some(ApprovalOutcome::Rejected { by, message }) = stored(&project, ID).outcome() else {
        panic!("{output:?}")
    };
    assert_eq!(
        (by.as_str(), message),
        ("bea", Some(text("Paid last week.")))
    );
}

#[test]
fn response_replaces_the_tool_result() {
    for (typed, expected) in [
        (r#"{"paid": true}"#, json!({"paid": true})),
        ("paid by hand", json!("paid by hand")),
    ] {
        let project = project_with_pending_payment(SecurityLevel::High);
        let missing = run_as(&project, "bea", &["approvals", "respond", ID]);
        missing.assert_refused(2, "the result for the model is missing");
        let output = run_as(&project, "bea", &["approvals", "respond", ID, typed]);
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(
            stored(&project, ID).outcome(),
            Some(ApprovalOutcome::Responded(expected))
        );
    }
}

#[test]
fn questions_are_answered_and_manual_work_is_marked_done() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run(&store, "r1", &[("search", json!({"query": "x"}))]);
    ask(
        &journal,
        request("r1:1:0", question(&["main", "next"], false)),
    );
    ask(&journal, request("r1:1:1", question(&["main"], true)));
    ask(&journal, request("r1:1:2", manual_work()));

    let shown = run_as(&project, "bea", &["approvals", "show", "r1:1:0"]);
    for part in [
        "Which branch?",
        "There are two.",
        "option            │ main",
        "no, choose one of the options",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let approve = run_as(&project, "bea", &["approvals", "approve", "r1:1:0"]);
    approve.assert_refused(2, "is not a call, so it cannot be approved");
    let wrong = run_as(
        &project,
        "bea",
        &["approvals", "respond", "r1:1:0", "master"],
    );
    wrong.assert_refused(2, "answer with one of: main, next");
    run_as(&project, "bea", &["approvals", "respond", "r1:1:0"])
        .assert_refused(2, "the answer is missing");
    let output = run_as(&project, "bea", &["approvals", "respond", "r1:1:0", "next"]);
    // The run is open: this test owns it.
    assert!(
        output
            .out
            .contains("the process that drives the run resumes it"),
        "{output:?}"
    );
    assert_eq!(
        stored(&project, "r1:1:0").outcome(),
        Some(ApprovalOutcome::Answered(text("next")))
    );
    run_as(&project, "bea", &["approvals", "respond", "r1:1:1", "12"]);
    assert_eq!(
        stored(&project, "r1:1:1").outcome(),
        Some(ApprovalOutcome::Answered(text("12")))
    );

    let shown = run_as(&project, "bea", &["approvals", "show", "r1:1:2"]);
    assert!(shown.out.contains("https://example.org/"), "{shown:?}");
    let output = run_as(&project, "bea", &["approvals", "respond", "r1:1:2"]);
    assert!(
        output
            .out
            .starts_with("done: a tool or an agent │ Please solve the puzzle."),
        "{output:?}"
    );
    assert_eq!(
        stored(&project, "r1:1:2").outcome(),
        Some(ApprovalOutcome::Done(None))
    );
}

#[test]
fn approval_prints_the_command_to_resume_the_outermost_run() {
    let project = TestProject::new();
    let store = open(&project);
    suspend(start_run(&store, "r1", &[]));
    suspend(start_child_run(&store, "r1.1.0", Some("r1:1:0"), &[]));
    let arguments = json!({"to": "bob", "text": "hi"});
    let calls = [("mail", arguments.clone())];
    let journal = start_child_run(&store, "r1.1.0.2.1", Some("r1.1.0:2:1"), &calls);
    let question = authorize("mail", arguments, SecurityLevel::Medium);
    ask(&journal, request("r1.1.0.2.1:1:0", question));
    suspend(journal);
    let output = run_as(&project, "bea", &["approvals", "approve", "r1"]);
    assert!(
        output
            .out
            .ends_with("resume with: windlass runs resume r1\n"),
        "{output:?}"
    );
}

#[test]
fn refused_decisions_report_their_reason() {
    let decide = |project: &TestProject, id: &str, word: &str, code: i32| {
        for arguments in [
            &["approvals", "approve", id, "--yes", "--json"][..],
            &["approvals", "respond", id, "x", "--json"],
            &["approvals", "reject", id, "--json"],
        ] {
            let output = run_as(project, "bea", arguments);
            output.assert_refused(code, "");
            assert_eq!(output.json()["error"], word, "{output:?}");
        }
    };
    let project = project_with_pending_payment(SecurityLevel::High);
    decide(&project, "r2", "no_such_approval", 7);
    decide(&project, "r1:1:7", "no_such_approval", 7);
    run_as(&project, "cem", &["approvals", "reject", ID]);
    decide(&project, ID, "already_decided", 8);
    let output = run_as(&project, "bea", &["approvals", "approve", ID]);
    output.assert_refused(8, "is already rejected and cannot be decided again");

    let project = TestProject::new();
    let store = open(&project);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = start_run(
        &store,
        "r1",
        &[("pay", arguments.clone()), ("pay", arguments.clone())],
    );
    let pay = || authorize("pay", arguments.clone(), SecurityLevel::High);
    let mut late = request("r1:1:0", pay());
    late.expires_at = at(-1);
    ask(&journal, late);
    decide(&project, "r1:1:0", "expired", 8);
    assert_eq!(stored(&project, "r1:1:0").status(), ApprovalStatus::Expired);

    let mut others = request("r1:1:1", pay());
    others.approvers = vec![Principal::new("cem").unwrap()];
    ask(&journal, others);
    decide(&project, "r1:1:1", "not_entitled", 3);
}

#[test]
fn ambiguous_id_is_refused_with_all_matches() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run(&store, "r1", &[]);
    for index in 0..2 {
        ask(
            &journal,
            request(&format!("r1:1:{index}"), question(&[], true)),
        );
    }
    let output = run_as(
        &project,
        "bea",
        &["approvals", "respond", "r1", "x", "--json"],
    );
    output.assert_refused(2, "`r1` matches 2 requests:\n  r1:1:0\n  r1:1:1");
    assert_eq!(output.json()["error"], "ambiguous");
    assert_eq!(
        run_as(&project, "bea", &["approvals", "respond", "1:1", "x"]).code,
        0
    );
    assert_eq!(
        run_as(&project, "bea", &["approvals", "respond", "r1", "x"]).code,
        0,
        "one is left"
    );
}

#[test]
fn only_rejection_is_accepted_if_the_clock_went_backwards() {
    let project = TestProject::new();
    let store = open(&project);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = start_run(&store, "r1", &[("pay", arguments.clone())]);
    let mut asked = request(ID, authorize("pay", arguments, SecurityLevel::High));
    (asked.asked_at, asked.expires_at) = (at(3_600), at(7_200));
    ask(&journal, asked);
    let shown = run_as(&project, "bea", &["approvals", "show", ID]);
    assert!(
        shown.out.contains("before the time of the request"),
        "{shown:?}"
    );
    for arguments in [
        &["approvals", "approve", ID, "--yes", "--json"][..],
        &["approvals", "respond", ID, "x", "--json"],
    ] {
        let output = run_as(&project, "bea", arguments);
        output.assert_refused(8, "the clock went backwards");
        assert_eq!(output.json()["error"], "clock");
    }
    assert_eq!(
        run_as(&project, "bea", &["approvals", "reject", ID]).code,
        0
    );
}

#[test]
fn requests_of_other_tenants_are_invisible() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run_of_tenant(&store, "acme", "r1", None, &[]);
    let mut asked = request(ID, question(&[], true));
    asked.principal = TenantPrincipal::new(text("acme"), Principal::new("ada").unwrap());
    ask(&journal, asked);
    assert_eq!(
        run_as(&project, "bea", &["approvals", "list", "--all"]).out,
        ""
    );
    for command in ["show", "approve", "reject"] {
        run_as(&project, "bea", &["approvals", command, ID])
            .assert_refused(7, "there is no request");
    }
}

#[test]
fn watch_prints_requests_and_decisions() {
    let project = project_with_pending_mail().with_approvers(&["bea", "cem"]);
    let mut session = Session::start(project.command(&["approvals", "watch"]));
    session.expect("asked r1:1:0 mail reversible_with_delay MEDIUM 23 h 58 min left");
    let store = open(&project);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = start_run(&store, "r2", &[("pay", arguments.clone())]);
    ask(
        &journal,
        request(
            "r2:1:0",
            authorize("pay", arguments, SecurityLevel::Critical),
        ),
    );
    session.expect("asked r2:1:0 pay irreversible CRITICAL");
    approve_shown(&project, "bea", "r2");
    session.expect("approved once r2:1:0 pay by bea; needs a second approver");
    approve_shown(&project, "cem", "r2");
    session.expect("approved r2:1:0 pay by bea and cem");
    run_as(&project, "bea", &["approvals", "reject", "r1"]);
    session.expect("rejected r1:1:0 mail by bea");
    session.interrupt();
    assert_eq!(session.end(), 130);
}

#[test]
fn watch_prints_one_json_object_per_line() {
    let project = project_with_pending_mail().with_approvers(&["bea"]);
    let mut session = Session::start(project.command(&["approvals", "watch", "--json"]));
    session.expect("}}\n");
    let asked: Value = serde_json::from_str(session.last_line()).unwrap();
    assert_eq!(
        (&asked["event"], &asked["question"]["id"]),
        (&json!("asked"), &json!(ID))
    );
    run_as(&project, "bea", &["approvals", "respond", ID, "sent"]);
    session.expect("\"settled\"");
    session.expect("\n");
    let settled: Value = serde_json::from_str(session.last_line()).unwrap();
    assert_eq!(settled["question"]["status"], "approved");
    assert_eq!(settled["question"]["decisions"][0]["decision"], "respond");
    session.interrupt();
    assert_eq!(session.end(), 130);
}
