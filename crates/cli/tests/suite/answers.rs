//! What tools answer and what people decide about: results next to other fields, numbers as they are written, and
//! everything that a tool wants its approver to see.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use windlass_keys::PublicKey;

use super::program::{TestProject, example};
use super::seeded::CommandOutput;
use super::session::Session;

/// Prints the file that its argument names. With a proof of an approval, the file whose name ends in `.ok`.
const SHAPE: &str = r#"
input=$(cat)
echo "$WINDLASS_APPROVAL" >> claims
file=$(echo "$input" | sed 's/.*"shape": *"\([^"]*\)".*/\1/')
if [ -n "$WINDLASS_APPROVAL" ] && [ -e "$file.ok" ]; then
  cat "$file.ok"
  [ ! -e "$file.next" ] || mv "$file.next" "$file.ok"
else
  cat "$file"
fi
"#;

const LIBRARY: &str = r#"
name = "tools"

[tools.shape]
description = "Answers with a shape"
signature = "(shape: Text) --> IO Object"
command = ["sh", "shape.sh"]

[tools.record]
description = "Answers with a record"
signature = "(shape: Text) --> IO {v: Int}"
command = ["sh", "shape.sh"]

[tools.pay]
description = "Pays an amount of money"
signature = "(to: Text, amount: Double) --> IO Object"
command = ["cat"]

[tools.mail]
description = "Sends a mail"
signature = "(to: Text) --> IO Object"
command = ["cat"]

[tools.count]
description = "Counts up to a number"
signature = "(n: Int) --> IO Object"
command = ["cat"]
"#;

const AGENT: &str = r#"[boss:Agent {description: "Delegates payments", instruction: "Delegate.", model: "OpenAI/m"} |
  [payer:Agent {description: "Pays what is due", instruction: "Pay.", model: "OpenAI/m"} |
    [pay:Tool {description: "Pays an amount of money", risk: irreversible} | (to::Text)==>(amount::Double)==>(::Object)]]]
[clerk:Agent {description: "Does all of it", instruction: "Work.", model: "OpenAI/m"} |
  [shape:Tool {description: "Answers with a shape", risk: reversible} | (shape::Text)==>(::Object)],
  [record:Tool {description: "Answers with a record", risk: reversible, typeSignature: "(shape: Text) --> IO {v: Int}"}],
  [count:Tool {description: "Counts up to a number", risk: reversible} | (n::Int)==>(::Object)],
  [mail:Tool {description: "Sends a mail", risk: reversible_with_delay} | (to::Text)==>(::Object)]]"#;

const QUESTION: &str = r#"{"status": "human_input_requested", "action": "ask_human", "hil_required": true,
  "message": "Please look at this.", "timestamp": "2026-01-01T00:00:00Z", "data": {"question": "Which colour?",
  "user_id": "u-77", "instruction": "pick one of them", "options": ["red", "blue"]}}"#;

const CALL_REQUEST: &str = r#"{"status": "authorization_requested", "action": "request_authorization", "hil_required": true,
  "message": "Look.", "timestamp": "2026-01-01T00:00:00Z", "data": {"request_id": "req1", "tool_name": "drop_table",
  "tool_args": {"table": "users", "vault_id": "vault_in_args"}, "reason": "because", "security_level": "BOGUS",
  "expires_at": "2090-01-01T00:00:00Z", "oauth_url": "https://oauth.example/p4", "screenshot": "SHOTP4"}}"#;

const CREDENTIALS: &str = r#"{"status": "authorization_required", "action": "request_authorization", "hil_required": true,
  "message": "Use the stored login?", "data": {"auth_type": "social", "provider": "google", "url": "https://a.example/",
  "oauth_url": "https://oauth.example/p5", "credential_preview": {"vault_id": "vault_in_preview"},
  "details": {"page": 1, "screenshot": "SHOT_IN_DETAILS"}}}"#;

fn project() -> TestProject {
    let signed_in = r#"{"signed_in": true}"#;
    TestProject::new()
        .with("shape.sh", SHAPE)
        .with("tools.toml", LIBRARY)
        .with("agent.gram", AGENT)
        .with("question", QUESTION)
        .with("call", CALL_REQUEST)
        .with("call.ok", signed_in)
        .with("credentials", CREDENTIALS)
        .with("credentials.ok", signed_in)
        .with_approvers(&["operator"])
}

fn run(project: &TestProject, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(&mut project.command(arguments))
}

/// Calls a tool by hand.
fn call(project: &TestProject, tool: &str, arguments: &[&str]) -> CommandOutput {
    let command = ["tools", "call", tool, "--library", "tools.toml"];
    run(project, &[&command[..], arguments].concat())
}

fn call_of_clerk(project: &TestProject, tool: &str, arguments: &[&str]) -> CommandOutput {
    let agent = ["--agent-file", "agent.gram"];
    call(project, tool, &[&agent[..], arguments].concat())
}

/// The request that is pending, or else the only one, as JSON.
fn request(project: &TestProject) -> Value {
    let mut listed = run(project, &["approvals", "list", "--json"]).out;
    if listed.is_empty() {
        listed = run(project, &["approvals", "list", "--all", "--json"]).out;
    }
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed["call"].as_str().unwrap();
    run(project, &["approvals", "show", id, "--json"]).json()
}

fn approve_and_resume(project: &TestProject) -> CommandOutput {
    let shown = request(project);
    let (id, digest) = (&shown["call"], &shown["digest_now"]);
    let approve = [
        "approvals",
        "approve",
        id.as_str().unwrap(),
        "--yes",
        "--digest",
    ];
    let approved = run(
        project,
        &[&approve[..], &[digest.as_str().unwrap()]].concat(),
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    run(project, &["runs", "resume", shown["run"].as_str().unwrap()])
}

#[test]
fn a_declared_record_may_have_other_fields_next_to_it() {
    let time = "2026-01-01T00:00:00Z";
    for answer in [
        json!({"status": "success", "action": "t", "data": {"v": 1}, "message": "Done", "timestamp": time}),
        json!({"status": "success", "action": "t", "data": {"v": 1}, "request_id": "r", "timestamp": time}),
        json!({"status": "success", "action": "t", "data": {"v": 1}, "metadata": {"m": 1}, "timestamp": time}),
        json!({"status": "ok", "data": {"v": 1}}),
        json!({"status": "success", "action": "t", "data": {"v": 1}, "timestamp": "2026-01-01T..."}),
        json!({"status": "success", "v": 1, "message": "Done", "timestamp": "2026-01-01T..."}),
    ] {
        let project = project().with("answer", answer.to_string());
        let called = call_of_clerk(&project, "record", &["shape=answer", "--json"]);
        assert_eq!(called.code, 0, "{answer}: {called:?}");
        assert_eq!(called.json()["data"]["v"], 1, "{answer}");
    }
    // Data of another type is an error, whatever is next to it.
    let wrong = json!({"status": "success", "action": "t", "data": {"v": "x"}, "message": "Done"});
    let project = project().with("answer", wrong.to_string());
    let called = call_of_clerk(&project, "record", &["shape=answer", "--json"]);
    assert_eq!(called.json()["category"], "invalid_output", "{called:?}");
}

#[test]
fn numbers_reach_tools_and_approvers_as_they_are_written() {
    let project = project();
    let called = call_of_clerk(&project, "count", &["--args", r#"{"n": 1e3}"#, "--json"]);
    assert_eq!(called.json()["data"], json!({"n": 1000}), "{called:?}");
    for arguments in [
        &["--args", r#"{"n": 123456789012345678901234}"#][..],
        &["n=123456789012345678901234"],
    ] {
        let refused = call_of_clerk(&project, "count", arguments);
        assert_eq!(refused.code, 1, "{refused:?}");
        let why = "the number 123456789012345678901234 cannot be kept exactly";
        assert!(refused.err.contains(why), "{refused:?}");
    }

    let waiting = call(
        &project,
        "pay",
        &["--args", r#"{"to": "a", "amount": 1e16}"#],
    );
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let shown = request(&project);
    let id = shown["call"].as_str().unwrap();
    let text = run(&project, &["approvals", "show", id]).out;
    assert!(text.contains("\"amount\": 10000000000000000,\n"), "{text}");
    let large = r#"{"to": "a", "amount": 12345678901234567.89}"#;
    for decision in [
        &["approve", id, "--yes", "--edit", large][..],
        &["respond", id, r#"{"paid": 123456789012345678901234}"#],
    ] {
        let refused = run(&project, &[&["approvals"], decision].concat());
        refused.assert_refused(2, "cannot be kept exactly");
    }
    let respond = ["approvals", "respond", id, r#"{"paid": 1.50}"#];
    assert_eq!(run(&project, &respond).code, 0);
    let decided = &request(&project)["decisions"][0];
    assert_eq!(decided["value"], json!({"paid": 1.5}), "{decided}");
}

#[test]
fn a_model_is_told_that_its_number_cannot_be_kept() {
    let arguments = r#"{"n": 123456789012345678901234}"#;
    let called = json!({"calls": [{"tool": "count", "arguments": {"text": arguments}}]});
    let finish = json!({"calls": [{"tool": "finish", "arguments": {"json": {"answer": "Done."}}}]});
    let project = project().with("m.jsonl", format!("{called}\n{finish}\n"));
    let run_task = [
        "run",
        "agent.gram",
        "Count.",
        "--agent",
        "clerk",
        "--library",
        "tools.toml",
    ];
    let model = ["--model", "scripted:m.jsonl"];
    let ran = run(&project, &[&run_task[..], &model].concat());
    let why = "the number 123456789012345678901234 cannot be kept exactly";
    assert!(ran.err.contains(why), "{ran:?}");
}

#[test]
fn the_prompt_shows_what_the_tool_wants_the_user_to_read() {
    let project = project();
    let command = [
        "tools",
        "call",
        "shape",
        "--library",
        "tools.toml",
        "--agent-file",
        "agent.gram",
        "shape=question",
    ];
    let mut session = Session::at_a_terminal(&project.command(&command));
    for part in [
        "Please look at this.",
        "pick one of them",
        "u-77",
        "Which colour?",
        "options:",
    ] {
        session.expect(part);
    }
    session.expect("Your answer");
    session.send("\r");
    assert_eq!(session.end(), 4);
}

#[test]
fn everything_in_a_request_of_a_tool_reaches_the_approver_and_nothing_secret_is_stored() {
    let stored = |project: &TestProject| -> Vec<u8> {
        let entries = std::fs::read_dir(project.path("data")).unwrap();
        let files = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap_or_default());
        files.flatten().collect()
    };
    for (shape, shown, secrets) in [
        (
            "call",
            &[
                "drop_table",
                "https://oauth.example/p4",
                "SHOTP4",
                "vault_in_args",
            ][..],
            &["SHOTP4", "vault_in_args"][..],
        ),
        (
            "credentials",
            &[
                "https://oauth.example/p5",
                "vault_in_preview",
                "SHOT_IN_DETAILS",
                "social",
            ],
            &["vault_in_preview", "SHOT_IN_DETAILS"],
        ),
    ] {
        let project = project();
        let waiting = call_of_clerk(&project, "shape", &[&format!("shape={shape}"), "--json"]);
        assert_eq!(waiting.code, 4, "{waiting:?}");
        let request = request(&project);
        let id = request["call"].as_str().unwrap();
        let text = run(&project, &["approvals", "show", id]).out;
        let response = request["response"]["data"].to_string();
        for part in shown {
            assert!(text.contains(part), "{part}: {text}");
            assert!(response.contains(part), "{part}: {response}");
            assert!(waiting.out.contains(part), "{part}: {waiting:?}");
        }
        let bytes = stored(&project);
        for secret in secrets {
            let is_in = bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!is_in, "{secret}");
        }
        let resumed = approve_and_resume(&project);
        assert!(resumed.out.contains("signed_in"), "{resumed:?}");
    }
}

#[test]
fn a_security_level_that_cannot_be_read_is_high() {
    let project = project();
    call_of_clerk(&project, "shape", &["shape=call"]);
    let request = request(&project);
    assert_eq!(request["question"]["security_level"], "HIGH", "{request}");
    let response = &request["response"]["data"];
    assert_eq!(response["reported_tool_name"], "drop_table", "{response}");
    assert_eq!(response["tool_name"], "shape", "{response}");
}

#[test]
fn each_attempt_of_an_approved_call_has_a_statement_with_an_id_of_its_own() {
    let failed = r#"{"status": "error", "action": "t", "data": {}, "error": "busy", "category": "unavailable",
        "retryable": true, "effect": "none", "timestamp": "2026-01-01T00:00:00Z"}"#;
    let project = project()
        .with("credentials.ok", failed)
        .with("credentials.next", r#"{"signed_in": true}"#);
    call_of_clerk(&project, "shape", &["shape=credentials"]);
    let resumed = approve_and_resume(&project);
    assert!(resumed.out.contains("signed_in"), "{resumed:?}");
    let key = project.read("state/windlass/keys/installation.pub");
    let key = PublicKey::parse(&key).unwrap();
    let claims = project.read("claims");
    let ids: Vec<Value> = claims
        .lines()
        .filter(|statement| !statement.is_empty())
        .map(|statement| key.claims("windlass-approval+jwt", statement).unwrap()["jti"].clone())
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn an_approved_call_has_another_idempotency_key_than_the_one_that_asked() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = server.local_addr().unwrap().to_string();
    let url = format!("http://{host}/mail");
    let asks = CREDENTIALS.to_owned();
    let served = std::thread::spawn(move || {
        let mut keys = Vec::new();
        for body in [asks.as_str(), r#"{"sent": true}"#] {
            let (mut stream, _) = server.accept().unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let mut request = String::new();
            while !request.contains("\r\n\r\n") {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).unwrap();
                request += &String::from_utf8_lossy(&bytes[..count]);
            }
            let key = request.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let is_key = name.eq_ignore_ascii_case("idempotency-key");
                is_key.then(|| value.to_owned())
            });
            keys.push(key.unwrap());
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let length = body.len();
            write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        }
        keys
    });
    let library = format!(
        "name = \"tools\"\n[tools.mail]\ndescription = \"Sends a mail\"\n\
         signature = \"(to: Text) --> IO Object\"\nhttp = {{ url = \"{url}\", method = \"POST\", allowed_hosts = [\"{host}\"] }}\n"
    );
    let project = project().with("tools.toml", library);
    let waiting = call_of_clerk(&project, "mail", &["to=ada"]);
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let mut last = approve_and_resume(&project);
    if last.code == 4 {
        // The first approval was that of the call itself.
        last = approve_and_resume(&project);
    }
    assert!(last.out.contains("sent"), "{last:?}");
    let keys = served.join().unwrap();
    assert_eq!(keys[1], format!("{}:approved", keys[0]));
}

#[test]
fn durations_do_not_contain_the_time_a_person_took() {
    let project = project();
    call_of_clerk(&project, "shape", &["shape=credentials"]);
    std::thread::sleep(Duration::from_secs(2));
    approve_and_resume(&project);
    let connection = Connection::open(project.path("data/windlass.db")).unwrap();
    let query = "SELECT duration_ms FROM tool_call_log
         UNION ALL SELECT value ->> '$.duration_ms' FROM agent_executions, json_each(tool_calls)";
    let mut select = connection.prepare(query).unwrap();
    let durations = select.query_map([], |row| row.get::<_, i64>(0)).unwrap();
    let durations: Vec<i64> = durations.map(Result::unwrap).collect();
    assert_eq!(durations.len(), 2);
    assert!(
        durations.iter().all(|duration| *duration < 1_900),
        "{durations:?}"
    );
}

const FINISH_PAID: &str =
    r#"{"calls": [{"tool": "finish", "arguments": {"json": {"answer": "I could not pay."}}}]}"#;

fn pay_turn() -> String {
    let arguments = json!({"json": {"to": "a", "amount": 1}});
    json!({"calls": [{"tool": "pay", "arguments": arguments}]}).to_string()
}

#[test]
fn a_conversation_keeps_the_answer_after_a_rejection() {
    let answers = format!("{}\n{FINISH_PAID}\n{{\"text\": \"Well.\"}}\n", pay_turn());
    let project = project().with("m.jsonl", answers);
    let command = [
        "chat",
        "agent.gram",
        "--agent",
        "payer",
        "--library",
        "tools.toml",
        "--model",
        "scripted:m.jsonl",
    ];
    let mut session = Session::at_a_terminal(&project.command(&command));
    session.expect("/help");
    session.send("Pay.\r");
    session.expect("Type `pay` to approve, or reject");
    session.send("reject\r");
    session.expect("Reason");
    session.send("\r");
    session.expect("I could not pay.");
    session.expect("error: ");
    session.send("What now?\r");
    session.expect("Well.");
    session.send("/quit\r");
    session.end();
    let listed = run(&project, &["trace", "list", "--json", "--limit", "1"]).json();
    let exported = run(
        &project,
        &["trace", "export", listed["run"].as_str().unwrap()],
    )
    .out;
    let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    let conversation = first["event"]["task"]["conversation"].to_string();
    assert!(conversation.contains("I could not pay."), "{conversation}");
}

#[test]
fn a_rejection_in_a_sub_agent_is_the_end_of_the_run() {
    let delegate = json!({"calls": [{"tool": "payer", "arguments": {"json": {"task": "Pay."}}}]});
    let answers = format!("{delegate}\n{}\n{FINISH_PAID}\n{FINISH_PAID}\n", pay_turn());
    let project = project().with("m.jsonl", answers);
    let run_task = [
        "run",
        "agent.gram",
        "Pay.",
        "--agent",
        "boss",
        "--library",
        "tools.toml",
    ];
    let model = ["--model", "scripted:m.jsonl"];
    let waiting = run(&project, &[&run_task[..], &model].concat());
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let shown = request(&project);
    let reject = ["approvals", "reject", shown["call"].as_str().unwrap()];
    assert_eq!(run(&project, &reject).code, 0);
    let outermost = shown["outermost_run"].as_str().unwrap();
    let resumed = run(&project, &["runs", "resume", outermost]);
    assert_eq!(resumed.code, 3, "{resumed:?}");
    assert!(resumed.err.contains("rejected"), "{resumed:?}");
}

#[test]
fn a_rule_that_permits_a_call_is_not_the_reason_of_the_question() {
    let mail =
        json!({"calls": [{"tool": "mail", "arguments": {"json": {"to": "a"}}, "confidence": 0.5}]});
    let project = project().with("m.jsonl", mail.to_string());
    let run_task = [
        "run",
        "agent.gram",
        "Mail.",
        "--agent",
        "clerk",
        "--library",
        "tools.toml",
    ];
    let waiting = run(
        &project,
        &[&run_task[..], &["--model", "scripted:m.jsonl"]].concat(),
    );
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let question = &request(&project)["question"];
    assert!(
        question["reason"]
            .to_string()
            .contains("below the threshold"),
        "{question}"
    );
    assert_eq!(question["rule"], Value::Null, "{question}");
}

#[test]
fn the_last_request_needs_no_id() {
    let project = project();
    call(&project, "pay", &["to=a", "amount=1"]);
    call(&project, "pay", &["to=b", "amount=2"]);
    let shown = run(&project, &["approvals", "show", "--last", "--json"]).json();
    assert_eq!(shown["arguments_now"]["to"], "b", "{shown}");
    let answered = run(
        &project,
        &["approvals", "respond", "--last", "{\"paid\": 2}"],
    );
    assert_eq!(answered.code, 0, "{answered:?}");
    let rejected = run(&project, &["approvals", "reject", "--last"]);
    assert_eq!(rejected.code, 0, "{rejected:?}");
    let none = run(&project, &["approvals", "show", "--last"]);
    none.assert_refused(7, "no requests are pending");
    let none = run(&project, &["holds", "undo", "--last"]);
    none.assert_refused(7, "no calls are held");
}

#[test]
fn an_approval_in_another_command_notices_a_decision_made_elsewhere() {
    let project = project();
    call(&project, "pay", &["to=a", "amount=1"]);
    let shown = request(&project);
    let id = shown["call"].as_str().unwrap();
    let mut session = Session::at_a_terminal(&project.command(&["approvals", "approve", id]));
    session.expect("type `pay` to approve this call:");
    session.send("pa");
    assert_eq!(run(&project, &["approvals", "reject", id]).code, 0);
    session.expect("no longer open: rejected by operator elsewhere");
    assert_eq!(session.end(), 8);
}

#[test]
fn an_approval_that_resumes_the_run_does_not_say_how_to_resume_it() {
    let project = project();
    call_of_clerk(&project, "shape", &["shape=credentials"]);
    let shown = request(&project);
    let (id, digest) = (&shown["call"], &shown["digest_now"]);
    let approve = [
        "approvals",
        "approve",
        id.as_str().unwrap(),
        "--yes",
        "--resume",
        "--digest",
    ];
    let approved = run(
        &project,
        &[&approve[..], &[digest.as_str().unwrap()]].concat(),
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    assert!(approved.out.contains("signed_in"), "{approved:?}");
    assert!(!approved.out.contains("resume with"), "{approved:?}");
}

#[test]
fn a_batch_with_an_invalid_line_fails_even_if_a_task_waits() {
    let tasks = "{\"task_id\": \"1\", \"description\": \"Pay.\"}\nnot a task\n";
    let project = project()
        .with("m.jsonl", pay_turn())
        .with("tasks.jsonl", tasks);
    let batch = [
        "run",
        "agent.gram",
        "--agent",
        "payer",
        "--library",
        "tools.toml",
        "--tasks",
        "tasks.jsonl",
        "--model",
        "scripted:m.jsonl",
    ];
    let ran = run(&project, &batch);
    assert!(ran.err.contains("1 wait for an approval"), "{ran:?}");
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn an_agent_in_json_is_not_formatted_as_gram() {
    let project = project();
    let agent = run(&project, &["agent", "show", "agent.gram", "--json"]).out;
    let project = project.with("agent.json", agent);
    let formatted = run(&project, &["fmt", "agent.json"]);
    formatted.assert_refused(1, "`agent.json` is JSON");
    assert!(
        formatted.err.contains("agent.json` writes it as gram text"),
        "{formatted:?}"
    );
}

#[test]
fn models_of_agents_tools_and_words_have_schemas() {
    let project = project();
    for name in [
        "Agent",
        "ToolSpecification",
        "RiskLevel",
        "ToolStatus",
        "SecurityLevel",
        "InterventionType",
    ] {
        let schema = run(&project, &["schema", "--model", name]).json();
        assert_eq!(schema["title"], name);
    }
}

#[test]
fn requests_joined_by_and_are_several_missing_tools() {
    let project = project().with("researcher.gram", example("researcher.gram"));
    for (task, missing) in [
        (
            "Transfer 100 dollars to Bob and post a tweet",
            &["transfer", "tweet"][..],
        ),
        (
            "Show my bank account balance and my calendar for Monday",
            &["bank", "calendar"],
        ),
    ] {
        let checked = run(
            &project,
            &[
                "gaps",
                "check",
                task,
                "--agent",
                "researcher.gram",
                "--json",
            ],
        );
        let checked = checked.json();
        let names = checked["report"]["missing_tools"].as_array().unwrap();
        for word in missing {
            let has = |name: &Value| name.as_str().unwrap().contains(word);
            assert_eq!(
                names.iter().filter(|name| has(name)).count(),
                1,
                "{word}: {checked}"
            );
        }
        let all = |name: &Value| {
            missing
                .iter()
                .all(|word| name.as_str().unwrap().contains(word))
        };
        assert!(!names.iter().any(all), "{checked}");
    }
}

#[test]
fn a_check_for_gaps_names_a_tool_that_is_switched_off() {
    let project = project().with(
        "windlass.toml",
        "[categories.mails]\nschema = \"{region: Maybe Text}\"\nenabled = false\n[categories.mails.tools.mail]\n",
    );
    let checked = run(
        &project,
        &[
            "gaps",
            "check",
            "Send a mail to Ann",
            "--agent",
            "agent.gram",
        ],
    );
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(
        checked.out.contains("disabled: `mail` would do this"),
        "{checked:?}"
    );
}
