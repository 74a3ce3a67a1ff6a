//! What was approved is what runs, and what was interrupted is not repeated: with the real program, real tools
//! and a database that was changed behind its back.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::acting::{call, finish, word_after};
use super::program::TestProject;
use super::seeded::CommandOutput;
use super::session::Session;

const AGENT: &str = r#"
[clerk:Agent {instruction: "Do the office's work.", model: "m"} |
  [look:Tool {description: "Looks something up", risk: reversible, timeout_seconds: 2} | ()==>(::Text)],
  [pay:Tool {description: "Pays an amount", risk: irreversible, timeout_seconds: 60} | (amount::Int)==>(::Text)]]
"#;

const LIBRARY: &str = r#"
name = "office"
[tools.look]
description = "Looks something up"
signature = "() --> IO Text"
command = ["sh", "tool.sh", "look"]
[tools.pay]
description = "Pays an amount"
signature = "(amount: Int) --> IO Text"
command = ["sh", "tool.sh", "pay"]
"#;

/// Records its call. Then it waits for the file `go`, if the file `slow` exists.
const TOOL: &str = r#"
arguments=$(cat)
echo "$1 $arguments" >> effects
echo "the order is at the bank" >&2
touch started
if [ -e slow ]; then while [ ! -e go ]; do sleep 0.05; done; fi
echo done
"#;

pub(super) const RUN: [&str; 7] = [
    "run",
    "agent.gram",
    "Pay it",
    "--library",
    "office.toml",
    "--model",
    "scripted:script.jsonl",
];

pub(super) fn office(turns: &[Value]) -> TestProject {
    let script: String = turns.iter().map(|turn| format!("{turn}\n")).collect();
    TestProject::new()
        .with("agent.gram", AGENT)
        .with("office.toml", LIBRARY)
        .with("tool.sh", TOOL)
        .with("script.jsonl", script)
        .with("effects", "")
        .with_approvers(&["operator"])
}

pub(super) fn pay(amount: i64) -> Value {
    call("pay", json!({"amount": amount}))
}

pub(super) fn run(project: &TestProject, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(&mut project.command(arguments))
}

/// Starts a run that waits for the approval of its payment, and returns its id. The payment is approved.
pub(super) fn approved_payment(project: &TestProject) -> String {
    let output = run(project, &RUN);
    assert_eq!(output.code, 4, "{output:?}");
    let id = word_after(&output.err, "windlass runs resume ").to_owned();
    let call = word_after(&output.err, "windlass approvals show ").to_owned();
    let approved = run(project, &["approvals", "approve", &call, "--yes"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    id
}

fn spawn(project: &TestProject, arguments: &[&str]) -> Child {
    let mut command = project.command(arguments);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let status = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(status.success());
}

fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "{path:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_approved_payment_does_not_run_with_arguments_that_were_changed_in_the_journal() {
    let project = office(&[pay(1), finish("Done.")]);
    let id = approved_payment(&project);
    let connection = Connection::open(project.path("data/windlass.db")).unwrap();
    let changed = connection
        .execute(
            r#"UPDATE events SET payload = replace(payload, '"amount":1', '"amount":777')
               WHERE kind = 'model_answered'"#,
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(connection);
    let output = run(&project, &["runs", "resume", &id]);
    assert_eq!(project.read("effects"), "", "{output:?}");
    assert_ne!(output.code, 0, "{output:?}");
    let refusal = format!("event 2 of the run `{id}` was changed outside Windlass");
    assert!(output.err.contains(&refusal), "{output:?}");
    // What was not recorded is not shown.
    let trace = run(&project, &["trace", "show", &id]);
    assert!(trace.err.contains(&refusal), "{trace:?}");
    let verified = run(&project, &["runs", "verify", &id]);
    assert_eq!(verified.code, 1, "{verified:?}");
    assert!(verified.out.contains("event 2 of the run"), "{verified:?}");
}

#[test]
fn a_payment_that_is_cancelled_while_it_runs_is_reported_as_unknown() {
    for by_command in [false, true] {
        let project = office(&[pay(1), finish("Done.")]).with("slow", "");
        let id = approved_payment(&project);
        let mut session = Session::start(project.command(&["runs", "resume", &id]));
        let started = project.path("started");
        session.wait_until(|| started.exists());
        if by_command {
            let cancelled = run(&project, &["runs", "cancel", &id]);
            assert_eq!(cancelled.code, 0, "{cancelled:?}");
        } else {
            session.interrupt();
            session.expect("interrupt again to stop at once");
            session.interrupt();
        }
        session.expect(&format!(
            "it is unknown whether `pay` ({id}:1:0) took effect"
        ));
        assert_eq!(session.end(), 130);
        let trace = run(&project, &["trace", "show", &id, "--json"]);
        assert!(trace.out.contains("unknown"), "{trace:?}");
        let connection = Connection::open(project.path("data/windlass.db")).unwrap();
        let error: String = connection
            .query_row("SELECT error FROM executions", [], |row| row.get(0))
            .unwrap();
        assert!(error.contains("the order is at the bank"), "{error}");
        assert_eq!(project.read("effects").lines().count(), 1);
    }
}

#[test]
fn the_time_in_which_the_process_is_stopped_does_not_count_towards_a_time_limit() {
    let project = office(&[call("look", json!({})), finish("Found.")]).with("slow", "");
    let child = spawn(&project, &RUN);
    wait_for(&project.path("started"));
    signal(&child, "-STOP");
    // Longer than the time limit of the tool, which is 2 seconds.
    std::thread::sleep(Duration::from_secs(4));
    signal(&child, "-CONT");
    std::fs::write(project.path("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(!printed.contains("took longer"), "{printed}");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answer.contains("Found."), "{answer}");
}

const APPROVED: i64 = 12_345;

#[test]
fn a_damaged_database_leads_to_no_other_payment_and_to_no_second_one() {
    let project = office(&[pay(APPROVED), finish("Done.")]);
    let id = approved_payment(&project);
    assert!(!project.path("data/windlass.db-wal").exists());
    let bytes = std::fs::read(project.path("data/windlass.db")).unwrap();
    let needle = APPROVED.to_string();
    let amounts = bytes
        .windows(needle.len())
        .enumerate()
        .filter(|(_, window)| *window == needle.as_bytes())
        .map(|(place, _)| place);
    // A digit of each stored amount, and bytes all over the file.
    let mut flips: Vec<usize> = amounts.collect();
    assert!(
        flips.len() >= 3,
        "the answer, the question and the approval"
    );
    flips.extend((0..12).map(|part| bytes.len() * part / 12 + 97 * part));
    let lengths = (1..6).map(|part| bytes.len() * part / 6);
    let flips = flips.into_iter().map(|place| (place, None));
    let cases = flips.chain(lengths.map(|length| (0, Some(length))));
    let mut paid = 0;
    for (place, length) in cases {
        let mut damaged = bytes.clone();
        match length {
            Some(length) => damaged.truncate(length),
            None => damaged[place] ^= 8,
        }
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("windlass.db"), damaged).unwrap();
        let position = "windlass.db-position";
        std::fs::copy(
            project.path("data").join(position),
            data.path().join(position),
        )
        .unwrap();
        std::fs::write(project.path("effects"), "").unwrap();
        for _ in 0..2 {
            let mut command = project.command(&["runs", "resume", &id]);
            let output = CommandOutput::of(command.env("WINDLASS_DATA", data.path()));
            let effects = project.read("effects");
            let expected = ["", "pay {\"amount\":12345}\n"];
            assert!(
                expected.contains(&effects.as_str()),
                "{place} {length:?}: {effects} {output:?}"
            );
        }
        paid += project.read("effects").lines().count();
    }
    assert!(paid > 0, "most of the file does not matter for the payment");
}
