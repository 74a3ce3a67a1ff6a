//! Whole runs from the command line, with a scripted model and real tools.

use insta::assert_snapshot;

use super::program::{Place, example};

fn place() -> Place {
    Place::new()
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

/// What was told, with ids and times, which differ from run to run, taken out.
fn without_ids(told: &str) -> String {
    let words = told.split_inclusive([' ', '\n', '"', '(', ':']);
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

fn run_id(place: &Place) -> String {
    let told = place.run(&["trace", "list"]);
    told.lines()
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn a_run_prints_its_answer_on_standard_output_and_the_rest_on_standard_error() {
    assert_snapshot!(without_ids(&place().run(&RUN)));
}

#[test]
fn a_run_prints_its_response_as_json() {
    let told = place().run(&[&RUN[..], &["--json"]].concat());
    let line = told.lines().find(|line| line.starts_with('{')).unwrap();
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
    let told = place().run(&[&RUN[..], &["--jsonl"]].concat());
    let kinds: Vec<String> = told
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
fn a_trace_tells_how_a_run_came_about() {
    let place = place();
    place.run(&RUN);
    let id = run_id(&place);
    let shown = place.run(&["trace", "show", &id[..12]]);
    for part in [
        "1. The user wants a greeting for Ada.",
        "sayHello {\"name\":\"Ada\"} [success] allowed",
        "end: completed",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let exported = place.run(&["trace", "export", &id]);
    assert_eq!(
        exported
            .lines()
            .filter(|line| line.starts_with("{\"seq\""))
            .count(),
        6
    );
    assert!(place.run(&["trace", "purge"]).contains("0 runs purged"));
    assert!(
        place
            .run(&["trace", "purge", "--days", "0"])
            .contains("1 runs purged")
    );
}

#[test]
fn a_run_at_its_limit_still_answers_and_says_so() {
    let told = place().run(&[&RUN[..], &["--max-iterations", "1"]].concat());
    assert!(
        told.contains("ran out of turns") && told.ends_with("exit code 1\n"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_run_is_explained() {
    let place = place()
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
    let mut told = String::new();
    for arguments in [
        &["run", "hello.gram", "hi"][..],
        &[
            "run",
            "hello.gram",
            "hi",
            "--library",
            "hello",
            "--model",
            "OpenAI/gpt-4o",
        ],
        &["run", "notes.gram", "hi", "--library", "notes.toml"],
        &["run", "hello.gram", "", "--library", "hello"],
        &["run", "hello.gram", "hi", "--library", "helo"],
        &["run", "hello.gram", "hi", "--library", "none.toml"],
        &[
            "run",
            "hello.gram",
            "hi",
            "--library",
            "hello",
            "--agent",
            "hello",
        ],
        &[
            "run",
            "hello.gram",
            "hi",
            "--library",
            "hello",
            "--available-tools",
            "sayHelo",
        ],
        &[
            "run",
            "hello.gram",
            "hi",
            "--library",
            "hello",
            "--model",
            "scripted:none",
        ],
        &["run", "none.gram", "hi"],
        &["trace", "show", "zzz"],
    ] {
        told += &format!(
            "$ windlass {}\n{}\n",
            arguments.join(" "),
            place.run(arguments)
        );
    }
    assert_snapshot!(told);
}

#[test]
fn an_agent_runs_with_commands_and_no_rust() {
    let place = Place::new()
        .with("agent.gram", r#"[a:Agent {instruction: "Count.", model: "m"} |
            [count:Tool {description: "Counts the bytes of its arguments", risk: reversible} | (text::Text)==>(::Text)]]"#)
        .with("tools.toml", "name = \"tools\"\n[tools.count]\ndescription = \"Counts the bytes of its arguments\"\nsignature = \"(text: Text) --> IO Text\"\ncommand = [\"cat\"]\n")
        .with("answers.jsonl", "{\"calls\": [{\"tool\": \"count\", \"arguments\": {\"json\": {\"text\": \"abc\"}}}]}\n{\"text\": \"done\"}\n");
    let told = place.run(&[
        "run",
        "agent.gram",
        "count",
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ]);
    assert!(told.ends_with("exit code 0\n"), "{told}");
    assert!(told.contains("done"), "{told}");
}

#[test]
fn a_script_that_sub_agents_share_is_gone_on_with_where_all_of_them_were() {
    let place = Place::new()
        .with("agent.gram", r#"[clerk:Agent {instruction: "Do it.", model: "m"} |
            [helper:Agent {description: "Wires money", instruction: "Wire it.", model: "m"} |
                [wire:Tool {description: "Wires money abroad", risk: irreversible} | ()==>(::Text)]]]"#)
        .with("tools.toml", "name = \"tools\"\n[tools.wire]\ndescription = \"Wires money abroad\"\nsignature = \"() --> IO Text\"\ncommand = [\"echo\", \"wired\"]\n")
        .with("answers.jsonl", "{\"calls\": [{\"tool\": \"helper\", \"arguments\": {\"json\": {\"task\": \"Wire it.\"}}}]}\n{\"calls\": [{\"tool\": \"wire\", \"arguments\": {\"json\": {}}}]}\n{\"text\": \"It is wired.\"}\n{\"text\": \"All is done.\"}\n");
    let told = place.run(&[
        "run",
        "agent.gram",
        "wire",
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ]);
    assert!(told.ends_with("exit code 4\n"), "{told}");
    // The latest run is that of the sub-agent.
    let latest = run_id(&place);
    let (outermost, _) = latest.split_once('.').unwrap();
    place.run(&["approvals", "approve", &latest, "--yes"]);
    let told = place.run(&["runs", "resume", outermost]);
    assert!(told.contains("All is done."), "{told}");
    assert_eq!(told.matches("call 0: wired").count(), 1, "{told}");
}
