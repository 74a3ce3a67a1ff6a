//! Runs with a scripted model and real tools.

use insta::assert_snapshot;

use super::program::{TestProject, example};

fn project() -> TestProject {
    TestProject::new()
        .with("hello.gram", example("hello.gram"))
        .with("answers.jsonl", example("hello.answers.jsonl"))
}

const RUN: [&str; 7] = [
    "run",
    "hello.gram",
    "Say hello to Ada",
    "--library",
    "hello",
    "--model",
    "scripted:answers.jsonl",
];

/// Replaces run ids, which differ between runs.
fn without_ids(output: &str) -> String {
    let words = output.split_inclusive([' ', '\n', '"', '(', ':']);
    words
        .map(|word| {
            let bare = word.trim_end_matches([' ', '\n', '"', '(', ':']);
            let is_id = bare.len() == 32 && bare.chars().all(|c| c.is_ascii_hexdigit());
            if is_id {
                word.replace(bare, "RUN")
            } else {
                word.to_owned()
            }
        })
        .collect()
}

fn run_id(project: &TestProject) -> String {
    let output = project.run(&["trace", "list"]);
    output
        .lines()
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn a_run_prints_its_answer_on_standard_output_and_the_rest_on_standard_error() {
    assert_snapshot!(without_ids(&project().run(&RUN)));
}

#[test]
fn a_run_prints_its_response_as_json() {
    let output = project().run(&[&RUN[..], &["--json"]].concat());
    let line = output.lines().find(|line| line.starts_with('{')).unwrap();
    let printed: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(printed["end"]["end"], "completed");
    assert_eq!(
        printed["response"]["answer"],
        "Hello, Ada! Nice to meet you."
    );
    assert_eq!(
        printed["response"]["tool_calls"][0]["tool_name"],
        "sayHello"
    );
    assert_eq!(printed["response"]["tool_calls"][0]["status"], "success");
}

#[test]
fn a_run_prints_every_event_as_a_line() {
    let output = project().run(&[&RUN[..], &["--jsonl"]].concat());
    let kinds: Vec<String> = output
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|event| Some(event["event"].as_str()?.to_owned()))
        .collect();
    assert_eq!(
        kinds,
        [
            "started",
            "model_answered",
            "decided",
            "call_started",
            "call_ended",
            "model_answered"
        ]
    );
}

#[test]
fn trace_shows_the_steps_of_a_run() {
    let project = project();
    project.run(&RUN);
    let id = run_id(&project);
    let shown = project.run(&["trace", "show", &id[..12]]);
    for part in [
        "1. The user wants a greeting for Ada.",
        "sayHello {\"name\":\"Ada\"} [success] allowed",
        "end: completed",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let exported = project.run(&["trace", "export", &id]);
    assert_eq!(
        exported
            .lines()
            .filter(|line| line.starts_with("{\"seq\""))
            .count(),
        6
    );
    assert!(project.run(&["trace", "purge"]).contains("0 runs purged"));
    assert!(
        project
            .run(&["trace", "purge", "--days", "0"])
            .contains("1 run purged")
    );
}

#[test]
fn run_at_its_turn_limit_still_answers_and_reports_it() {
    let output = project().run(&[&RUN[..], &["--max-iterations", "1"]].concat());
    assert!(
        output.contains("reached its limit of turns") && output.ends_with("exit code 1\n"),
        "{output}"
    );
}

#[test]
fn errors_before_a_run_are_reported() {
    let project = project()
        .with(
            "notes.gram",
            "[a:Agent {instruction: \"Note.\", model: \"OpenAI/gpt-4o\"} |\n\
             [erase:Tool {description: \"Erases all notes for good\"} | ()==>(::Text)]]",
        )
        .with(
            "notes.toml",
            "name = \"notes\"\n[tools.erase]\ndescription = \"Erases all notes for good\"\n\
             signature = \"() --> IO Text\"\ncommand = [\"true\"]\n",
        );
    let mut output = String::new();
    for line in [
        "run hello.gram hi",
        "run hello.gram hi --library hello --model OpenAI/gpt-4o",
        "run notes.gram hi --library notes.toml",
        // An empty task.
        "run hello.gram  --library hello",
        "run hello.gram hi --library helo",
        "run hello.gram hi --library none.toml",
        "run hello.gram hi --library hello --agent hello",
        "run hello.gram hi --library hello --available-tools sayHelo",
        "run hello.gram hi --library hello --model scripted:none",
        "run none.gram hi",
        "trace show zzz",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        output += &format!("$ windlass {line}\n{}\n", project.run(&arguments));
    }
    assert_snapshot!(output);
}

/// Runs the agent of a project with its library and the answers of its script.
fn run_scripted(project: &TestProject, task: &str) -> String {
    let files = [
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ];
    project.run(&[&["run", "agent.gram", task], &files[..]].concat())
}

#[test]
fn agent_runs_with_command_tools_only() {
    let project = TestProject::new()
        .with("agent.gram", r#"[a:Agent {instruction: "Count.", model: "m"} |
            [count:Tool {description: "Counts the bytes of its arguments", risk: reversible} | (text::Text)==>(::Text)]]"#)
        .with("tools.toml", "name = \"tools\"\n[tools.count]\ndescription = \"Counts the bytes of its arguments\"\nsignature = \"(text: Text) --> IO Text\"\ncommand = [\"cat\"]\n")
        .with("answers.jsonl", "{\"calls\": [{\"tool\": \"count\", \"arguments\": {\"json\": {\"text\": \"abc\"}}}]}\n{\"text\": \"done\"}\n");
    let output = run_scripted(&project, "count");
    assert!(output.ends_with("exit code 0\n"), "{output}");
    assert!(output.contains("done"), "{output}");
}

#[test]
fn resumed_script_continues_after_the_answers_of_all_sub_agents() {
    let project = TestProject::new()
        .with_approvers(&["operator"])
        .with("agent.gram", r#"[clerk:Agent {instruction: "Do it.", model: "m"} |
            [helper:Agent {description: "Wires money", instruction: "Wire it.", model: "m"} |
                [wire:Tool {description: "Wires money abroad", risk: irreversible} | ()==>(::Text)]]]"#)
        .with("tools.toml", "name = \"tools\"\n[tools.wire]\ndescription = \"Wires money abroad\"\nsignature = \"() --> IO Text\"\ncommand = [\"echo\", \"wired\"]\n")
        .with("answers.jsonl", "{\"calls\": [{\"tool\": \"helper\", \"arguments\": {\"json\": {\"task\": \"Wire it.\"}}}]}\n{\"calls\": [{\"tool\": \"wire\", \"arguments\": {\"json\": {}}}]}\n{\"text\": \"It is wired.\"}\n{\"text\": \"All is done.\"}\n");
    let output = run_scripted(&project, "wire");
    assert!(output.ends_with("exit code 4\n"), "{output}");
    // The latest run is that of the sub-agent.
    let latest = run_id(&project);
    let (outermost, _) = latest.split_once('.').unwrap();
    project.run(&["approvals", "approve", &latest, "--yes"]);
    let output = project.run(&["runs", "resume", outermost]);
    assert!(output.contains("All is done."), "{output}");
    assert_eq!(output.matches("call 0 │ wired").count(), 1, "{output}");
}
