//! Logs: off by default, with the spans of a run, without secrets, and without content above the level
//! `trace`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use windlass_spec::text::{TextUse, is_clean};

use super::acting::{OfficeProject, call};
use super::program::TestProject;
use super::seeded::{CommandOutput, run_as};

const SECRET: &str = "sk-live-0123456789";

/// A text that is only in the arguments of the call.
const ARGUMENT: &str = "journal-of-the-argument";

/// An office project whose model lists the files and then deletes one.
fn office_project() -> OfficeProject {
    let turns = [
        call("listFiles", json!({})),
        call(
            "deleteFile",
            json!({"file": format!("{ARGUMENT}-{SECRET}\u{202e}")}),
        ),
    ];
    OfficeProject::new(&turns)
}

fn run(
    office_project: &OfficeProject,
    options: &[&str],
    variables: &[(&str, &str)],
) -> CommandOutput {
    let task = format!("Keep order with {SECRET}.");
    let arguments = [
        "run",
        "agent.gram",
        &task,
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ];
    let mut command = office_project.command(&[&arguments[..], options].concat());
    command
        .env("X_API_KEY", SECRET)
        .env_remove("WINDLASS_LOG")
        .env_remove("WINDLASS_LOG_FORMAT")
        .envs(variables.iter().copied());
    CommandOutput::of(&mut command)
}

fn has_log(output: &CommandOutput) -> bool {
    output.err.contains("windlass_runtime")
}

#[test]
fn nothing_is_logged_unless_asked_for() {
    let output = run(&office_project(), &[], &[]);
    assert!(!has_log(&output), "{output:?}");
    let output = run(
        &office_project(),
        &["--log", "off"],
        &[("WINDLASS_LOG", "debug")],
    );
    assert!(!has_log(&output), "the option decides: {output:?}");
}

#[test]
fn the_spans_of_a_run_are_logged_with_their_ids() {
    let output = run(&office_project(), &["--log", "windlass=debug"], &[]);
    assert_eq!(output.code, 4, "{output:?}");
    let log = &output.err;
    for (span, field) in [
        ("run", "run.id="),
        ("turn", "turn=2"),
        ("model_request", "gen_ai.request.model=\"scripted\""),
        ("gate_decision", "verdict=ask"),
        ("gate_decision", "risk=irreversible"),
        ("tool_call", "gen_ai.tool.name=listFiles"),
        ("tool_call", ":1:0"),
        ("tool_call", "status=\"success\""),
    ] {
        let is_there = log.lines().any(|line| {
            let span = format!("{span}{{");
            line.contains(&span) && line.contains(field) && line.contains("close time.busy=")
        });
        assert!(is_there, "{span} with {field}:\n{log}");
    }
    assert!(log.contains("windlass_runtime::driver"), "{log}");
    assert!(!log.contains('\u{1b}'), "no colours off a terminal: {log}");
}

#[test]
fn content_is_logged_only_at_trace() {
    // This includes other crates.
    let output = run(&office_project(), &["--log", "debug"], &[]);
    let log: Vec<&str> = output
        .err
        .lines()
        .filter(|line| line.starts_with("20"))
        .collect();
    assert!(!log.is_empty());
    for line in log {
        assert!(!line.contains(ARGUMENT), "{line}");
        assert!(!line.contains("Keep order"), "{line}");
    }
}

#[test]
fn trace_logs_are_redacted_and_escaped() {
    for format in ["text", "json"] {
        let options = ["--log", "trace", "--log-format", format];
        let output = run(&office_project(), &options, &[]);
        assert!(output.err.contains(ARGUMENT), "{output:?}");
        assert!(
            output.err.contains("Keep order with [redacted]"),
            "{output:?}"
        );
        assert!(!output.err.contains(SECRET), "{output:?}");
        assert!(is_clean(&output.err, TextUse::Display), "{output:?}");
    }
}

#[test]
fn json_logs_are_one_object_per_line() {
    let variables = [
        ("WINDLASS_LOG", "windlass=debug"),
        ("WINDLASS_LOG_FORMAT", "json"),
    ];
    let output = run(&office_project(), &["--json"], &variables);
    let lines: Vec<Value> = output
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let of = |span: &str| {
        lines
            .iter()
            .find(|line| line["span"]["name"] == span && line["fields"]["message"] == "close")
            .unwrap_or_else(|| panic!("{span}: {output:?}"))
    };
    for span in ["run", "turn", "model_request", "gate_decision", "tool_call"] {
        let line = of(span);
        assert!(line["fields"]["time.busy"].is_string(), "{line}");
    }
    assert_eq!(of("tool_call")["span"]["gen_ai.tool.name"], "listFiles");
    assert_eq!(
        output
            .err
            .lines()
            .filter(|line| line.contains("\"target\""))
            .count(),
        lines.len(),
        "{output:?}"
    );
}

/// A tool name from a model that would look like a log line if it were printed unescaped.
const FORGED: &str = "2026-01-01T00:00:00Z ERROR run: forged";

#[test]
fn tool_name_from_a_model_cannot_forge_a_log_line() {
    let tool = format!("listFiles\n{FORGED}\n");
    let office_project =
        || OfficeProject::new(&[call(&tool, json!({})), call("listFiles", json!({}))]);
    for options in [&[][..], &["--log", "trace"]] {
        let output = run(&office_project(), options, &[]);
        assert!(output.err.contains("forged"), "{output:?}");
        let forged = output.err.lines().find(|line| line.starts_with(FORGED));
        assert_eq!(forged, None, "{output:?}");
    }
}

#[test]
fn with_json_every_line_of_standard_error_is_an_object() {
    let tool = format!("listFiles\n{FORGED}\n");
    let office_project =
        OfficeProject::new(&[call(&tool, json!({})), call("deleteFile", json!({}))]);
    let output = run(
        &office_project,
        &["--log", "info", "--log-format", "json"],
        &[],
    );
    let lines = output.err.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    for line in &lines {
        for field in ["timestamp", "level", "fields", "target"] {
            assert!(line.get(field).is_some(), "{field}: {line}");
        }
    }
    // Progress lines are left out. The other messages are JSON, too.
    assert!(!output.err.contains("1. listFiles"), "{output:?}");
    assert!(
        lines.iter().any(|line| line["target"] == "windlass"),
        "{output:?}"
    );
}

#[test]
fn filter_selects_a_level_per_target() {
    let output = run(&office_project(), &["--log", "windlass_mcp=trace"], &[]);
    assert!(!has_log(&output), "{output:?}");
}

#[test]
fn a_wrong_filter_is_a_usage_error() {
    let output = run(&office_project(), &["--log", "windlass=loud"], &[]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.err.contains("`windlass=loud` is not a level"),
        "{output:?}"
    );
    let output = run(&office_project(), &[], &[("WINDLASS_LOG", "loud")]);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.err.starts_with("error: WINDLASS_LOG: `loud`"),
        "{output:?}"
    );
    let output = run(&office_project(), &[], &[("WINDLASS_LOG_FORMAT", "xml")]);
    assert_eq!(output.code, 2, "{output:?}");
}

#[test]
fn requests_over_http_are_logged_with_host_and_status_and_without_path() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let answers = std::thread::spawn(move || {
        let (mut client, _) = server.accept().unwrap();
        let mut request = [0; 4096];
        let _ = client.read(&mut request).unwrap();
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
        client.write_all(answer.as_bytes()).unwrap();
    });
    let library = format!(
        "name = \"web\"\n[tools.look]\ndescription = \"Looks something up\"\nsignature = \"(word: Text) --> IO Text\"\n\
         http = {{ method = \"GET\", url = \"http://{address}/look/{{word}}\", allowed_hosts = [\"127.0.0.1\"] }}\n"
    );
    let project = TestProject::new().with("tools.toml", library);
    let output = run_as(
        &project,
        "ann",
        &[
            "tools",
            "call",
            "look",
            "--library",
            "tools.toml",
            "--yes",
            "--log",
            "windlass=debug",
            "word=private",
        ],
    );
    assert_eq!(
        (output.code, output.out.as_str()),
        (0, "ok\n"),
        "{output:?}"
    );
    answers.join().unwrap();
    let line = output
        .err
        .lines()
        .find(|line| line.contains("http_request{"));
    let line = line.unwrap_or_else(|| panic!("{output:?}"));
    assert!(line.contains("server.address=\"127.0.0.1\""), "{line}");
    assert!(line.contains("http.response.status_code=200"), "{line}");
    let log = output.err.lines().filter(|line| line.starts_with("20"));
    assert!(log.clone().count() > 2, "{output:?}");
    assert!(
        !log.into_iter().any(|line| line.contains("private")),
        "{output:?}"
    );
}
