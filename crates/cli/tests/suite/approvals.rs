//! People see what agents want to do and decide about it. How calls are approved is in `approving.rs`.

use serde_json::{Value, json};
use windlass_core::approval::{
    ApprovalStatus, Ask, FormRequest, Identity, Outcome, Principal, Question,
};
use windlass_spec::SecurityLevel;

use super::program::Place;
use super::seeded::{
    ask, at, authorize, begin, begin_as, begin_for, call, leave, open, question, request, run_as,
    stored, text, wants_to_mail, wants_to_pay, work_by_hand,
};
use super::session::Session;

const ID: &str = "r1:1:0";

#[test]
fn what_waits_is_listed_with_its_gravity_and_time() {
    let place = wants_to_pay(SecurityLevel::High);
    let told = run_as(&place, "bea", &["approvals", "list"]);
    let row = told.out.lines().nth(1).unwrap();
    for part in [
        ID,
        "pay",
        "pending",
        "irreversible",
        "HIGH",
        "1 min",
        "23 h 58 min",
    ] {
        assert!(row.contains(part), "{part}: {}", told.out);
    }
    assert!(row.ends_with("  r1"), "{row}");

    let listed = run_as(&place, "bea", &["approvals", "list", "--json"]).json();
    assert_eq!(listed["id"], ID);
    assert_eq!(listed["question"]["tool_name"], "pay");
    assert_eq!(listed["outermost_run"], "r1");
    assert!(listed["seconds_left"].as_f64().unwrap() > 80_000.0);

    run_as(&place, "bea", &["approvals", "reject", ID]);
    let told = run_as(&place, "bea", &["approvals", "list"]);
    assert_eq!(
        (told.out.as_str(), told.err.as_str()),
        ("", "no questions are pending\n")
    );
    let told = run_as(&place, "bea", &["approvals", "list", "--all"]);
    assert!(told.out.contains("rejected"), "{told:?}");
}

#[test]
fn questions_of_one_run_are_those_of_its_sub_agents_too() {
    let place = Place::new();
    let store = open(&place);
    for (run, parent) in [("r1.1.0", Some("r1:1:0")), ("r1", None), ("r10", None)] {
        let journal = begin_for(&store, run, parent, &[("search", json!({"query": "x"}))]);
        ask(
            &journal,
            request(&format!("{run}:1:0"), question(&[], true)),
        );
        leave(journal);
    }
    let listed = run_as(
        &place,
        "bea",
        &["approvals", "list", "--run", "r1", "--json"],
    );
    let ids: Vec<Value> = listed
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, ["r1.1.0:1:0", "r1:1:0"], "the oldest first");
    run_as(&place, "bea", &["approvals", "list", "--run", "r2"]).is_refused(7, "r2");
}

#[test]
fn nothing_in_the_form_of_a_server_can_pass_for_a_line_of_ours() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(&store, "r1", &[("search", json!({"query": "x"}))]);
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
    leave(journal);
    let told = run_as(&place, "bea", &["approvals", "show", ID]).out;
    let begins = |name: &str| {
        let lines = told.lines();
        lines
            .filter(|line| line.starts_with(&format!("  {name} ")))
            .count()
    };
    let names = ["status", "field", "risk", "decided"].map(begins);
    assert_eq!(names, [1, 2, 0, 0], "{told}");
    assert!(told.contains("it's\\u{a}  risk"), "{told}");
    // Whoever copies the command runs that one and no other.
    assert!(told.contains(r#"'{"it'\''s\n"#), "{told}");
}

#[test]
fn a_question_is_shown_with_everything_and_nothing_in_it_can_hide() {
    let place = Place::new();
    let store = open(&place);
    let arguments = json!({"to": "bob\u{202E}ecila\u{200B}\u{1b}[2J", "amount": 10});
    let journal = begin_for(
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
    let told = run_as(&place, "bea", &["approvals", "show", "r1.1.0"]);
    for part in [
        "status            pending",
        "time left         23 h 58 min",
        "agent clerk, on behalf of ada of local",
        "works for         r1:1:0",
        "may decide        bea, cem",
        "risk              irreversible, by declaration",
        "security level    HIGH: one person approves and types the tool's name",
        "rule              irreversible-asks",
        "\"amount\": 10,",
        r#""to": "bob\u202eecila\u200b\u001b[2J""#,
        "\"note\": \"none\"",
        "windlass approvals approve r1.1.0:1:0 --digest sha256:",
        "windlass approvals reject r1.1.0:1:0",
        "windlass approvals respond r1.1.0:1:0",
    ] {
        assert!(told.out.contains(part), "{part}:\n{}", told.out);
    }
    assert!(told.out.is_ascii(), "{}", told.out);
    let is_risk = |line: &&str| line.starts_with("  risk ");
    assert_eq!(told.out.lines().filter(is_risk).count(), 1, "{}", told.out);

    let shown = run_as(&place, "bea", &["approvals", "show", "r1.1.0", "--json"]).json();
    assert_eq!(shown["assessment"]["source"], "declaration");
    assert_eq!(shown["added_by_default"], json!({"note": "none"}));
    assert_eq!(shown["parents"], json!(["r1:1:0"]));
    assert_eq!(shown["commands"].as_array().unwrap().len(), 3);
}

#[test]
fn a_no_is_told_to_the_model() {
    let place = wants_to_pay(SecurityLevel::Critical);
    let told = run_as(
        &place,
        "bea",
        &["approvals", "reject", ID, "--message", "Paid last week."],
    );
    assert!(
        told.out
            .starts_with("rejected: pay (r1:1:0)\ncontinue it with"),
        "{told:?}"
    );
    let Some(Outcome::Rejected { by, message }) = stored(&place, ID).outcome() else {
        panic!("{told:?}")
    };
    assert_eq!(
        (by.as_str(), message),
        ("bea", Some(text("Paid last week.")))
    );
}

#[test]
fn a_response_stands_in_for_the_tool() {
    for (typed, expected) in [
        (r#"{"paid": true}"#, json!({"paid": true})),
        ("paid by hand", json!("paid by hand")),
    ] {
        let place = wants_to_pay(SecurityLevel::High);
        let missing = run_as(&place, "bea", &["approvals", "respond", ID]);
        missing.is_refused(2, "instead of the tool's result is missing");
        let told = run_as(&place, "bea", &["approvals", "respond", ID, typed]);
        assert_eq!(told.code, 0, "{told:?}");
        assert_eq!(
            stored(&place, ID).outcome(),
            Some(Outcome::Responded(expected))
        );
    }
}

#[test]
fn questions_are_answered_and_work_is_done() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(&store, "r1", &[("search", json!({"query": "x"}))]);
    ask(
        &journal,
        request("r1:1:0", question(&["main", "next"], false)),
    );
    ask(&journal, request("r1:1:1", question(&["main"], true)));
    ask(&journal, request("r1:1:2", work_by_hand()));

    let shown = run_as(&place, "bea", &["approvals", "show", "r1:1:0"]);
    for part in [
        "Which branch?",
        "There are two.",
        "option            main",
        "no: one of the options",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let approve = run_as(&place, "bea", &["approvals", "approve", "r1:1:0"]);
    approve.is_refused(2, "asks for no call that could be approved");
    let wrong = run_as(&place, "bea", &["approvals", "respond", "r1:1:0", "master"]);
    wrong.is_refused(2, "answer one of: main, next");
    run_as(&place, "bea", &["approvals", "respond", "r1:1:0"])
        .is_refused(2, "the answer is missing");
    let told = run_as(&place, "bea", &["approvals", "respond", "r1:1:0", "next"]);
    // The run is open: this test has it in hand.
    assert!(
        told.out
            .contains("the process that drives the run takes it up"),
        "{told:?}"
    );
    assert_eq!(
        stored(&place, "r1:1:0").outcome(),
        Some(Outcome::Answered(text("next")))
    );
    run_as(&place, "bea", &["approvals", "respond", "r1:1:1", "12"]);
    assert_eq!(
        stored(&place, "r1:1:1").outcome(),
        Some(Outcome::Answered(text("12")))
    );

    let shown = run_as(&place, "bea", &["approvals", "show", "r1:1:2"]);
    assert!(shown.out.contains("https://example.org/"), "{shown:?}");
    let told = run_as(&place, "bea", &["approvals", "respond", "r1:1:2"]);
    assert!(
        told.out.starts_with("done: Please solve the puzzle."),
        "{told:?}"
    );
    assert_eq!(
        stored(&place, "r1:1:2").outcome(),
        Some(Outcome::Done(None))
    );
}

#[test]
fn the_outermost_run_is_the_one_to_go_on_with() {
    let place = Place::new();
    let store = open(&place);
    leave(begin(&store, "r1", &[]));
    leave(begin_for(&store, "r1.1.0", Some("r1:1:0"), &[]));
    let arguments = json!({"to": "bob", "text": "hi"});
    let calls = [("mail", arguments.clone())];
    let journal = begin_for(&store, "r1.1.0.2.1", Some("r1.1.0:2:1"), &calls);
    let question = authorize("mail", arguments, SecurityLevel::Medium);
    ask(&journal, request("r1.1.0.2.1:1:0", question));
    leave(journal);
    let told = run_as(&place, "bea", &["approvals", "approve", "r1"]);
    assert!(
        told.out
            .ends_with("continue it with: windlass runs resume r1\n"),
        "{told:?}"
    );
}

#[test]
fn what_cannot_be_decided_says_why() {
    let decide = |place: &Place, id: &str, word: &str, code: i32| {
        for arguments in [
            &["approvals", "approve", id, "--yes", "--json"][..],
            &["approvals", "respond", id, "x", "--json"],
            &["approvals", "reject", id, "--json"],
        ] {
            let told = run_as(place, "bea", arguments);
            told.is_refused(code, "");
            assert_eq!(told.json()["error"], word, "{told:?}");
        }
    };
    let place = wants_to_pay(SecurityLevel::High);
    decide(&place, "r2", "no_such_approval", 7);
    decide(&place, "r1:1:7", "no_such_approval", 7);
    run_as(&place, "cem", &["approvals", "reject", ID]);
    decide(&place, ID, "already_decided", 8);
    let told = run_as(&place, "bea", &["approvals", "approve", ID]);
    told.is_refused(8, "is already rejected; it is not decided twice");

    let place = Place::new();
    let store = open(&place);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = begin(
        &store,
        "r1",
        &[("pay", arguments.clone()), ("pay", arguments.clone())],
    );
    let pay = || authorize("pay", arguments.clone(), SecurityLevel::High);
    let mut late = request("r1:1:0", pay());
    late.expires_at = at(-1);
    ask(&journal, late);
    decide(&place, "r1:1:0", "expired", 8);
    assert_eq!(stored(&place, "r1:1:0").status(), ApprovalStatus::Expired);

    let mut others = request("r1:1:1", pay());
    others.approvers = vec![Principal::new("cem").unwrap()];
    ask(&journal, others);
    decide(&place, "r1:1:1", "not_entitled", 3);
}

#[test]
fn a_part_of_an_id_that_fits_several_is_refused_with_all_of_them() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(&store, "r1", &[]);
    for index in 0..2 {
        ask(
            &journal,
            request(&format!("r1:1:{index}"), question(&[], true)),
        );
    }
    let told = run_as(
        &place,
        "bea",
        &["approvals", "respond", "r1", "x", "--json"],
    );
    told.is_refused(2, "`r1` fits 2 questions:\n  r1:1:0\n  r1:1:1");
    assert_eq!(told.json()["error"], "ambiguous");
    assert_eq!(
        run_as(&place, "bea", &["approvals", "respond", "1:1", "x"]).code,
        0
    );
    assert_eq!(
        run_as(&place, "bea", &["approvals", "respond", "r1", "x"]).code,
        0,
        "one is left"
    );
}

#[test]
fn a_clock_that_went_backwards_is_told_and_only_a_no_is_taken() {
    let place = Place::new();
    let store = open(&place);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = begin(&store, "r1", &[("pay", arguments.clone())]);
    let mut asked = request(ID, authorize("pay", arguments, SecurityLevel::High));
    (asked.asked_at, asked.expires_at) = (at(3_600), at(7_200));
    ask(&journal, asked);
    let shown = run_as(&place, "bea", &["approvals", "show", ID]);
    assert!(
        shown.out.contains("before the question was asked"),
        "{shown:?}"
    );
    for arguments in [
        &["approvals", "approve", ID, "--yes", "--json"][..],
        &["approvals", "respond", ID, "x", "--json"],
    ] {
        let told = run_as(&place, "bea", arguments);
        told.is_refused(8, "the clock went backwards");
        assert_eq!(told.json()["error"], "clock");
    }
    assert_eq!(run_as(&place, "bea", &["approvals", "reject", ID]).code, 0);
}

#[test]
fn questions_of_other_tenants_are_not_there() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin_as(&store, "acme", "r1", None, &[]);
    let mut asked = request(ID, question(&[], true));
    asked.principal = Identity::new(text("acme"), Principal::new("ada").unwrap());
    ask(&journal, asked);
    assert_eq!(
        run_as(&place, "bea", &["approvals", "list", "--all"]).out,
        ""
    );
    for command in ["show", "approve", "reject"] {
        run_as(&place, "bea", &["approvals", command, ID]).is_refused(7, "there is no question");
    }
}

#[test]
fn who_watches_is_told_of_questions_and_how_they_are_settled() {
    let place = wants_to_mail();
    let mut session = Session::start(place.command(&["approvals", "watch"]));
    session.expect("asked r1:1:0 mail reversible_with_delay MEDIUM 23 h 58 min left");
    let store = open(&place);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = begin(&store, "r2", &[("pay", arguments.clone())]);
    ask(
        &journal,
        request(
            "r2:1:0",
            authorize("pay", arguments, SecurityLevel::Critical),
        ),
    );
    session.expect("asked r2:1:0 pay irreversible CRITICAL");
    run_as(&place, "bea", &["approvals", "approve", "r2", "--yes"]);
    session.expect("approved once r2:1:0 pay by bea; a second person has to approve");
    run_as(&place, "cem", &["approvals", "approve", "r2", "--yes"]);
    session.expect("approved r2:1:0 pay by bea and cem");
    run_as(&place, "bea", &["approvals", "reject", "r1"]);
    session.expect("rejected r1:1:0 mail by bea");
    session.interrupt();
    assert_eq!(session.end(), 130);
}

#[test]
fn programs_that_watch_get_an_object_a_line() {
    let place = wants_to_mail();
    let mut session = Session::start(place.command(&["approvals", "watch", "--json"]));
    session.expect("}}\n");
    let asked: Value = serde_json::from_str(session.last_line()).unwrap();
    assert_eq!(
        (&asked["event"], &asked["question"]["id"]),
        (&json!("asked"), &json!(ID))
    );
    run_as(&place, "bea", &["approvals", "respond", ID, "sent"]);
    session.expect("\"settled\"");
    session.expect("\n");
    let settled: Value = serde_json::from_str(session.last_line()).unwrap();
    assert_eq!(settled["question"]["status"], "approved");
    assert_eq!(settled["question"]["decisions"][0]["decision"], "respond");
    session.interrupt();
    assert_eq!(session.end(), 130);
}
