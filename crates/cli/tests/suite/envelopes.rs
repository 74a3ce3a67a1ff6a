//! Tools that answer in older shapes, as a user meets them: what they ask, the proof of the approval, and the notices.

use rusqlite::Connection;
use serde_json::{Value, json};
use windlass_keys::PublicKey;

use super::program::TestProject;
use super::seeded::CommandOutput;

/// A tool that asks to use stored credentials, until it gets a statement that it has not seen before.
const SIGN_IN: &str = r#"
echo "$WINDLASS_APPROVAL" >> asked
if [ -n "$WINDLASS_APPROVAL" ] && ! grep -qxF "$WINDLASS_APPROVAL" used 2>/dev/null; then
  echo "$WINDLASS_APPROVAL" >> used
  cat > input
  echo '{"signed_in": true}'
  exit
fi
cat <<'END'
{
    "hil_required": true,
    "status": "authorization_required",
    "action": "request_authorization",
    "message": "Found stored credentials for Google. Authorize usage?",
    "data": {
        "auth_type": "social",
        "provider": "google",
        "url": "https://accounts.example.org/",
        "credential_preview": {
            "provider": "google",
            "vault_id": "vault_xxx",
            "stored_at": "2025-01-15"
        },
        "screenshot": "https://shots.example.org/1.png",
        "details": "The page asks for a login.",
        "user_id": "ada",
        "instructions": "Check the address first."
    }
}
END
"#;

const LIBRARY: &str = r#"
name = "tools"

[tools.sign_in]
description = "Signs in with stored credentials"
signature = "(site: Text) --> IO Object"
command = ["sh", "sign_in.sh"]

[tools.orders]
description = "Lists the orders of a shop"
signature = "() --> IO Object"
command = ["cat", "orders.json"]
envelope = "never"
"#;

const AGENT: &str = r#"[a:Agent {instruction: "Sign in.", model: "m"} |
  [sign_in:Tool {description: "Signs in with stored credentials", risk: reversible} | (site::Text)==>(::Object)],
  [orders:Tool {description: "Lists the orders of a shop", risk: reversible} | ()==>(::Object)]]"#;

fn project() -> TestProject {
    TestProject::new()
        .with("sign_in.sh", SIGN_IN)
        .with("tools.toml", LIBRARY)
        .with("agent.gram", AGENT)
        .with("orders.json", r#"{"status": "pending", "order": 5}"#)
}

fn run(project: &TestProject, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(&mut project.command(arguments))
}

const CALL: [&str; 8] = [
    "tools",
    "call",
    "sign_in",
    "--library",
    "tools.toml",
    "--agent-file",
    "agent.gram",
    "site=shop",
];

#[test]
fn an_approved_tool_is_called_again_with_a_signed_proof_and_its_secrets_are_not_stored() {
    let project = project().with_approvers(&["operator"]);
    let waiting = run(&project, &[&CALL[..], &["--json"]].concat());
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let asked: Value = waiting.json();
    assert_eq!(asked["status"], "authorization_requested", "{asked}");
    assert_eq!(
        asked["message"],
        "Found stored credentials for Google. Authorize usage?"
    );
    assert_eq!(asked["data"]["tool_name"], "sign_in");
    assert_eq!(asked["data"]["user_id"], "ada");
    assert_eq!(asked["data"]["instruction"], "Check the address first.");

    let shown = run(
        &project,
        &["approvals", "show", "--json", &call_id(&project)],
    );
    let shown = shown.json();
    let credentials = &shown["question"]["credentials"];
    assert_eq!(credentials["credential_preview"]["vault_id"], "vault_xxx");
    assert_eq!(credentials["screenshot"], "https://shots.example.org/1.png");
    assert_eq!(shown["response"]["status"], "authorization_requested");
    let text = run(&project, &["approvals", "show", &call_id(&project)]).out;
    for part in ["vault_xxx", "Check the address first.", "asked to"] {
        assert!(text.contains(part), "{text}");
    }
    let exported = run(&project, &["trace", "export", run_id(&shown)]).out;
    for secret in ["vault_xxx", "2025-01-15", "shots.example.org"] {
        assert!(!exported.contains(secret), "{exported}");
        for entry in std::fs::read_dir(project.path("data")).unwrap() {
            let path = entry.unwrap().path();
            let content = std::fs::read(&path).unwrap_or_default();
            let is_in = content
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!is_in, "{secret} in {}", path.display());
        }
    }

    let approved = run(
        &project,
        &["approvals", "approve", &call_id(&project), "--yes"],
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    let resumed = run(&project, &["runs", "resume", run_id(&shown)]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.out.contains("signed_in"), "{resumed:?}");

    // The tool was asked twice: without and with the statement, which the installation signed.
    let statements = project.read("asked");
    let statement = statements.lines().nth(1).unwrap();
    assert_eq!(statements.lines().count(), 2);
    let key = project.read("state/windlass/keys/installation.pub");
    let key = PublicKey::parse(&key).unwrap();
    let claims = key.claims("windlass-approval+jwt", statement).unwrap();
    assert_eq!(claims["tool"], "sign_in");
    assert_eq!(claims["approval"], shown["call"]);
    assert_eq!(claims["call_digest"], shown["digest"]);
    let input: Value = serde_json::from_str(&project.read("input")).unwrap();
    assert_eq!(
        input,
        json!({"site": "shop", "windlass_approval": statement})
    );

    // Journal, `tool_call_log`, `agent_executions` and `executions` have the same one end.
    assert_eq!(ends(&project), ("success".to_owned(), 1));
    let trace = run(&project, &["trace", "show", run_id(&shown), "--json"]).json();
    assert_eq!(trace["response"]["tool_calls"][0]["status"], "success");
    assert_eq!(
        trace["response"]["tool_calls"][0]["result"],
        json!({"signed_in": true})
    );
    let codes: Vec<&Value> = trace["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| &n["code"])
        .collect();
    assert!(codes.contains(&&json!("timestamp-missing")), "{codes:?}");
    let statistics = run(&project, &["tools", "stats", "--json"]).json();
    assert_eq!(statistics["tool"], "sign_in");
    assert!(
        statistics["notice_count"].as_u64() > Some(0),
        "{statistics}"
    );
    let doctor = run(&project, &["doctor", "--offline"]).out;
    assert!(
        doctor.contains("`sign_in` answers in an older shape"),
        "{doctor}"
    );
}

#[test]
fn a_rejected_tool_has_the_same_end_everywhere() {
    let project = project();
    let waiting = run(&project, &CALL);
    assert_eq!(waiting.code, 4, "{waiting:?}");
    assert!(
        waiting.err.contains("`sign_in` answers in an older shape"),
        "{waiting:?}"
    );
    let id = call_id(&project);
    run(
        &project,
        &["approvals", "reject", &id, "--message", "Not now."],
    );
    let resumed = run(&project, &["runs", "resume", id.split(':').next().unwrap()]);
    assert_eq!(project.read("asked").lines().count(), 1);
    assert_eq!(ends(&project), ("failed".to_owned(), 1), "{resumed:?}");
}

#[test]
fn data_that_only_looks_like_an_envelope_stays_data() {
    let project = project();
    let called = run(
        &project,
        &[
            "tools",
            "call",
            "orders",
            "--library",
            "tools.toml",
            "--agent-file",
            "agent.gram",
            "--json",
        ],
    );
    assert_eq!(called.code, 0, "{called:?}");
    assert_eq!(
        called.json()["data"],
        json!({"status": "pending", "order": 5})
    );
}

#[test]
fn an_answer_is_checked_and_models_have_schemas() {
    let project = project().with("answer.json", r#"{"status": "SUCCESS", "data": {"a": 1}}"#);
    let checked = run(
        &project,
        &["envelope", "check", "answer.json", "--tool", "search"],
    );
    assert_eq!(checked.code, 1, "{checked:?}");
    let normalised: Value = serde_json::from_str(&checked.out).unwrap();
    assert_eq!(normalised["status"], "success");
    assert_eq!(normalised["action"], "search");
    assert!(
        checked.err.contains("word-spelling at `/status`"),
        "{checked:?}"
    );
    let json = run(&project, &["envelope", "check", "answer.json", "--json"]).json();
    assert_eq!(json["notices"][0]["code"], "word-spelling");
    let canonical = project.with("answer.json", normalised.to_string());
    let checked = run(&canonical, &["envelope", "check", "answer.json"]);
    assert_eq!((checked.code, checked.err.as_str()), (0, ""));

    let schema = run(&canonical, &["schema", "--model", "ToolGapReport"]).json();
    let example = &schema["examples"][0]["missing_tools"];
    assert_eq!(*example, json!(["financial_data_api", "account_access"]));
    let unknown = run(&canonical, &["schema", "--model", "ToolGapRepo"]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.err.contains("did you mean `ToolGapReport`?"),
        "{unknown:?}"
    );
}

/// The id of the only request.
fn call_id(project: &TestProject) -> String {
    let listed = run(project, &["approvals", "list", "--all", "--json"]).json();
    listed["call"].as_str().unwrap().to_owned()
}

fn run_id(shown: &Value) -> &str {
    shown["run"].as_str().unwrap()
}

/// How the only call ended: the same in all tables, and how many rows each has.
fn ends(project: &TestProject) -> (String, usize) {
    let connection = Connection::open(project.path("data/windlass.db")).unwrap();
    let column = |query: &str| -> Vec<String> {
        let mut select = connection.prepare(query).unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let logged = column("SELECT status FROM tool_call_log");
    let executed =
        column("SELECT CASE state WHEN 'success' THEN 'success' ELSE 'failed' END FROM executions");
    let answered =
        column("SELECT value ->> '$.status' FROM agent_executions, json_each(tool_calls)");
    let ended = column(
        "SELECT CASE WHEN payload -> '$.end.success' IS NULL THEN 'failed' ELSE 'success' END
         FROM events WHERE kind = 'call_ended'",
    );
    assert_eq!(logged, executed);
    assert_eq!(logged, answered);
    assert_eq!(logged, ended);
    (logged[0].clone(), logged.len())
}
