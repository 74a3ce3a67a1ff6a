//! Logs of the real program: off unless asked for, with the spans of a run, without secrets, and without
//! content above the level `trace`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use windlass_spec::text::{TextUse, is_clean};

use super::acting::{Office, call};
use super::program::Place;
use super::seeded::{Told, run_as};

const SECRET: &str = "sk-live-0123456789";

/// What stands in the arguments of the call and nowhere else.
const ARGUMENT: &str = "journal-of-the-argument";

/// An office whose model asks for the list of files and then to delete one.
fn office() -> Office {
    let turns = [
        call("listFiles", json!({})),
        call(
            "deleteFile",
            json!({"file": format!("{ARGUMENT}-{SECRET}\u{202e}")}),
        ),
    ];
    Office::new(&turns)
}

fn run(office: &Office, options: &[&str], variables: &[(&str, &str)]) -> Told {
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
    let mut command = office.command(&[&arguments[..], options].concat());
    command
        .env("X_API_KEY", SECRET)
        .env_remove("WINDLASS_LOG")
        .env_remove("WINDLASS_LOG_FORMAT")
        .envs(variables.iter().copied());
    Told::of(&mut command)
}

fn has_log(told: &Told) -> bool {
    told.err.contains("windlass_runtime")
}

#[test]
fn nothing_is_logged_unless_asked_for() {
    let told = run(&office(), &[], &[]);
    assert!(!has_log(&told), "{told:?}");
    let told = run(&office(), &["--log", "off"], &[("WINDLASS_LOG", "debug")]);
    assert!(!has_log(&told), "the option decides: {told:?}");
}

#[test]
fn the_spans_of_a_run_are_logged_with_their_ids() {
    let told = run(&office(), &["--log", "windlass=debug"], &[]);
    assert_eq!(told.code, 4, "{told:?}");
    let log = &told.err;
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
fn no_content_is_logged_above_trace() {
    // Also not by other crates.
    let told = run(&office(), &["--log", "debug"], &[]);
    let log: Vec<&str> = told
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
fn content_at_trace_holds_no_secret_and_nothing_hidden() {
    for format in ["text", "json"] {
        let options = ["--log", "trace", "--log-format", format];
        let told = run(&office(), &options, &[]);
        assert!(told.err.contains(ARGUMENT), "{told:?}");
        assert!(told.err.contains("Keep order with [redacted]"), "{told:?}");
        assert!(!told.err.contains(SECRET), "{told:?}");
        assert!(is_clean(&told.err, TextUse::Display), "{told:?}");
    }
}

#[test]
fn json_is_an_object_a_line() {
    let variables = [
        ("WINDLASS_LOG", "windlass=debug"),
        ("WINDLASS_LOG_FORMAT", "json"),
    ];
    let told = run(&office(), &["--json"], &variables);
    let lines: Vec<Value> = told
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let of = |span: &str| {
        lines
            .iter()
            .find(|line| line["span"]["name"] == span && line["fields"]["message"] == "close")
            .unwrap_or_else(|| panic!("{span}: {told:?}"))
    };
    for span in ["run", "turn", "model_request", "gate_decision", "tool_call"] {
        let line = of(span);
        assert!(line["fields"]["time.busy"].is_string(), "{line}");
    }
    assert_eq!(of("tool_call")["span"]["gen_ai.tool.name"], "listFiles");
    assert_eq!(
        told.err
            .lines()
            .filter(|line| line.contains("\"target\""))
            .count(),
        lines.len(),
        "{told:?}"
    );
}

/// A name that a model gives a tool, and that would be a line of the log if it were printed as it is.
const FORGED: &str = "2026-01-01T00:00:00Z ERROR run: forged";

#[test]
fn a_name_that_a_model_gives_is_no_line_of_its_own() {
    let tool = format!("listFiles\n{FORGED}\n");
    let office = || Office::new(&[call(&tool, json!({})), call("listFiles", json!({}))]);
    for options in [&[][..], &["--log", "trace"]] {
        let told = run(&office(), options, &[]);
        assert!(told.err.contains("forged"), "{told:?}");
        let forged = told.err.lines().find(|line| line.starts_with(FORGED));
        assert_eq!(forged, None, "{told:?}");
    }
}

#[test]
fn with_json_every_line_of_standard_error_is_an_object() {
    let tool = format!("listFiles\n{FORGED}\n");
    let office = Office::new(&[call(&tool, json!({})), call("deleteFile", json!({}))]);
    let told = run(&office, &["--log", "info", "--log-format", "json"], &[]);
    let lines = told.err.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    for line in &lines {
        for field in ["timestamp", "level", "fields", "target"] {
            assert!(line.get(field).is_some(), "{field}: {line}");
        }
    }
    // Progress has content; what the user is told besides it is there, in the same form.
    assert!(!told.err.contains("1. listFiles"), "{told:?}");
    assert!(
        lines.iter().any(|line| line["target"] == "windlass"),
        "{told:?}"
    );
}

#[test]
fn a_target_has_a_level_of_its_own() {
    let told = run(&office(), &["--log", "windlass_mcp=trace"], &[]);
    assert!(!has_log(&told), "{told:?}");
}

#[test]
fn a_wrong_filter_is_a_usage_error() {
    let told = run(&office(), &["--log", "windlass=loud"], &[]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.err.contains("`windlass=loud` is not a level"),
        "{told:?}"
    );
    let told = run(&office(), &[], &[("WINDLASS_LOG", "loud")]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.err.starts_with("error: WINDLASS_LOG: `loud`"),
        "{told:?}"
    );
    let told = run(&office(), &[], &[("WINDLASS_LOG_FORMAT", "xml")]);
    assert_eq!(told.code, 2, "{told:?}");
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
    let place = Place::new().with("tools.toml", library);
    let told = run_as(
        &place,
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
    assert_eq!((told.code, told.out.as_str()), (0, "ok\n"), "{told:?}");
    answers.join().unwrap();
    let line = told.err.lines().find(|line| line.contains("http_request{"));
    let line = line.unwrap_or_else(|| panic!("{told:?}"));
    assert!(line.contains("server.address=\"127.0.0.1\""), "{line}");
    assert!(line.contains("http.response.status_code=200"), "{line}");
    let log = told.err.lines().filter(|line| line.starts_with("20"));
    assert!(log.clone().count() > 2, "{told:?}");
    assert!(
        !log.into_iter().any(|line| line.contains("private")),
        "{told:?}"
    );
}
