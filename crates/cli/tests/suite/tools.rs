//! Tools: list, describe and call them.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::program::{TestProject, example};
use super::session::{Session, without_ids};

const LIBRARY: &str = r#"
name = "tools"

[tools.echo]
description = "Gives back what it is given"
signature = "(text: Text \"What to give back\", times: Int = 1, loud: Maybe Bool, tags: [Text] = [], home: Maybe {zip: Int}) --> IO Object"
command = ["cat"]

[tools.fail]
description = "Never does what it should"
signature = "() --> IO Text"
command = ["sh", "-c", "echo it broke >&2; exit 3"]

[tools.wait]
description = "Waits until it is stopped"
signature = "(file: Text) --> IO Text"
command = ["sh", "-c", "touch started; exec sleep 100"]
"#;

const AGENT: &str = r#"[a:Agent {instruction: "Echo.", model: "m"} |
  [fail:Tool {description: "Never does what it should", risk: reversible, timeout_seconds: 5} | ()==>(::Text)]]
[other:Tool {description: "Is implemented nowhere"} | ()==>(::Text)]"#;

fn project() -> TestProject {
    TestProject::new()
        .with("tools.toml", LIBRARY)
        .with("agent.gram", AGENT)
        .with("newsroom.gram", example("newsroom.gram"))
        .with("newsroom.toml", example("newsroom.toml"))
}

/// Runs commands one after another and returns their output.
fn run_all(project: &TestProject, commands: &[&[&str]]) -> String {
    let output = commands.iter().map(|arguments| {
        let printed = project.run(arguments);
        format!("$ windlass {}\n{printed}\n", arguments.join(" "))
    });
    without_ids(&output.collect::<String>())
}

#[test]
fn tools_are_listed_with_their_signatures() {
    assert_snapshot!(run_all(
        &project(),
        &[
            &["tools", "list"],
            &["tools", "list", "--json"],
            &["tools", "list", "--library", "tools.toml"],
            &[
                "tools",
                "list",
                "--agent-file",
                "agent.gram",
                "--library",
                "tools.toml"
            ],
            &["tools", "list", "--agent-file", "newsroom.gram"],
            &["tools", "list", "--library", "helo"],
            &["tools", "list", "--agent-file", "none.gram"],
        ]
    ));
}

#[test]
fn a_tool_is_described() {
    assert_snapshot!(run_all(
        &project(),
        &[
            &["tools", "describe", "echo", "--library", "tools.toml"],
            &[
                "tools",
                "describe",
                "fail",
                "--library",
                "tools.toml",
                "--agent-file",
                "agent.gram",
                "--json"
            ],
            &[
                "tools",
                "describe",
                "publishArticle",
                "--library",
                "newsroom.toml",
                "--agent-file",
                "newsroom.gram"
            ],
        ]
    ));
}

#[test]
fn unknown_tool_is_reported() {
    let describe = |tool, library| {
        let agent = ["--agent-file", "agent.gram"];
        [
            &["tools", "describe", tool, "--library", library],
            &agent[..],
        ]
        .concat()
    };
    assert_snapshot!(run_all(
        &project(),
        &[
            &["tools", "describe", "ecoh", "--library", "tools.toml"],
            &describe("other", "tools.toml"),
            &describe("echo", "tools.toml"),
            &describe("searchArchive", "newsroom.toml"),
            &["tools", "call", "sayHelo", "--library", "hello"],
        ]
    ));
}

#[test]
fn a_call_prints_its_result() {
    let project = project().with("text.txt", "from a file\n");
    let call = ["tools", "call", "echo", "--library", "tools.toml"];
    let typed = [
        "text=@text.txt",
        "times=2",
        "loud=true",
        "tags=a",
        "tags=b",
        "home={\"zip\": 1}",
    ];
    assert_snapshot!(run_all(
        &project,
        &[
            &[
                "tools",
                "call",
                "sayHello",
                "--library",
                "hello",
                "name=Ada"
            ],
            &[&call[..], &typed].concat(),
            &[
                &call[..],
                &["--args", "{\"text\": \"a\", \"tags\": [\"x\"]}", "--json"]
            ]
            .concat(),
        ]
    ));
}

#[test]
fn invalid_arguments_are_refused_as_for_a_model() {
    let call = ["tools", "call", "echo", "--library", "tools.toml"];
    assert_snapshot!(run_all(
        &project(),
        &[
            &[&call[..], &["times=x", "loud=maybe", "txt=a"]].concat(),
            &[&call[..], &["--args", "{\"text\": 1, \"home\": {}}"]].concat(),
            &[&call[..], &["--args", "{\"text\": "]].concat(),
            &[&call[..], &["--args", "[]", "--json"]].concat(),
            &[&call[..], &["text=@none.txt"]].concat(),
            &[&call[..], &["text"]].concat(),
            &[&call[..], &["text=a", "--args", "{}"]].concat(),
        ]
    ));
}

#[test]
fn failed_call_reports_its_reason() {
    let call = ["tools", "call", "fail", "--library", "tools.toml"];
    assert_snapshot!(run_all(
        &project(),
        &[
            // The risk is unknown, so without `--yes` the call would need approval.
            &[&call[..], &["--yes"]].concat(),
            &[&call[..], &["--agent-file", "agent.gram", "--json"]].concat(),
        ]
    ));
}

#[test]
fn direct_call_passes_the_gate_and_is_in_the_journal() {
    let project = project();
    project.run(&[
        "tools",
        "call",
        "sayHello",
        "--library",
        "hello",
        "name=Ada",
    ]);
    let listed = project.run(&["trace", "list", "--json"]);
    let line = listed.lines().find(|line| line.starts_with('{')).unwrap();
    let run: Value = serde_json::from_str(line).unwrap();
    let exported = project.run(&["trace", "export", run["run"].as_str().unwrap()]);
    let events: Vec<Value> = exported
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|line: Value| line.get("event").cloned())
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    let expected = [
        "started",
        "model_answered",
        "decided",
        "call_started",
        "call_ended",
        "model_answered",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[2]["decision"]["verdict"], "allow");
    assert_eq!(
        events[4]["end"]["success"],
        json!("Hello, Ada! Nice to meet you.")
    );
}

#[test]
fn an_interrupt_cancels_a_call() {
    let project = project();
    let call = ["tools", "call", "wait", "--library", "tools.toml", "file=x"];
    let mut session = Session::start(project.command(&call));
    session.wait_until(|| project.path("started").exists());
    session.interrupt();
    assert_eq!(session.end(), 130);
    let listed = project.run(&["trace", "list"]);
    assert!(listed.contains("cancelled"), "{listed}");
}
