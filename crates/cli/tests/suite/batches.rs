//! Batches of tasks, and resuming after an interrupt or a kill without repeating effects.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::Value;

use super::program::{TestProject, example};

const AGENT: &str = r#"
[clerk:Agent {description: "Writes notes down", instruction: "Note what you are told.", model: "m"} |
  [note:Tool {description: "Appends a line to the notes", risk: reversible_with_delay, undo_window_seconds: 0} | (text::Text)==>(::Text)]]
"#;

/// Appends its arguments to `effects`, then waits while the file `wait` exists.
const LIBRARY: &str = r#"
name = "notes"
[tools.note]
description = "Appends a line to the notes"
signature = "(text: Text) --> IO Text"
command = ["sh", "-c", "cat >> effects; echo >> effects; while [ -e wait ]; do sleep 0.05; done; echo noted"]
"#;

fn note(text: &str) -> String {
    format!(
        "{{\"calls\": [{{\"tool\": \"note\", \"arguments\": {{\"json\": {{\"text\": \"{text}\"}}}}}}]}}\n"
    )
}

fn text_answer(text: &str) -> String {
    format!("{{\"text\": \"{text}\"}}\n")
}

fn project() -> TestProject {
    TestProject::new()
        .with("agent.gram", AGENT)
        .with("notes.toml", LIBRARY)
        .with(
            "tasks.jsonl",
            "{\"task_id\": \"a\", \"description\": \"Note a\"}\n\
             {\"task_id\": \"b\", \"description\": \"Note b\", \"metadata\": {\"colour\": \"red\"}}\n\
             {\"task_id\": \"c\", \"description\": \"Note c\"}\n",
        )
        .with(
            "script.jsonl",
            ["a", "b", "c"].map(|text| note(text) + &text_answer(text)).concat(),
        )
}

const BATCH: [&str; 8] = [
    "run",
    "agent.gram",
    "--library",
    "notes.toml",
    "--tasks",
    "tasks.jsonl",
    "--model",
    "scripted:script.jsonl",
];

fn outputs(printed: &str) -> Vec<Value> {
    let lines = printed.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn effects(project: &TestProject) -> usize {
    let effects = std::fs::read_to_string(project.path("effects")).unwrap_or_default();
    effects.lines().filter(|line| line.contains("text")).count()
}

fn spawn_in_background(project: &TestProject, arguments: &[&str]) -> Child {
    project
        .command(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "waited for {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn batch_prints_one_output_per_line() {
    let project = project();
    let printed = project.run(&BATCH);
    let outputs = outputs(&printed);
    assert_eq!(outputs.len(), 3, "{printed}");
    for (output, id) in outputs.iter().zip(["a", "b", "c"]) {
        assert_eq!(output["task_id"], id);
        assert_eq!(output["answer"], id);
        assert_eq!(output["total_iterations"], 2);
        assert_eq!(output["tools_used"], serde_json::json!(["note"]));
        assert_eq!(output["metadata"]["end"]["end"], "completed");
    }
    assert_eq!(outputs[1]["metadata"]["colour"], "red");
    assert!(printed.contains("3 of 3 tasks completed"), "{printed}");
    assert!(printed.ends_with("exit code 0\n"), "{printed}");
    assert_eq!(effects(&project), 3);
    // Resuming a finished batch prints the same outputs and has no further effect.
    let again = project.run(&[&BATCH[..], &["--resume"]].concat());
    assert_eq!(self::outputs(&again), outputs);
    assert_eq!(effects(&project), 3);
}

#[test]
fn batch_runs_tasks_in_parallel() {
    let project = project().with("script.jsonl", text_answer("done").repeat(3));
    let printed = project.run(&[&BATCH[..], &["--jobs", "3"]].concat());
    assert_eq!(outputs(&printed).len(), 3, "{printed}");
}

#[test]
fn killed_batch_resumes_without_repeating_effects() {
    let project = project().with("wait", "");
    let mut child = spawn_in_background(&project, &BATCH);
    wait_until("the first effect", || effects(&project) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(project.path("wait")).unwrap();
    // An operator has to report the result of the lost call. The other tasks run as usual.
    let script = [note("b"), text_answer("b"), note("c"), text_answer("c")].concat();
    let project = project.with("script.jsonl", script);
    let printed = project.run(&[&BATCH[..], &["--resume"]].concat());
    assert_eq!(outputs(&printed).len(), 2, "{printed}");
    assert!(
        printed.contains("1 wait for an approval or answer"),
        "{printed}"
    );
    assert!(printed.ends_with("exit code 4\n"), "{printed}");
    assert_eq!(effects(&project), 3, "{}", project.read("effects"));
    let listed = project.run(&["approvals", "list", "--json"]);
    let id = outputs(&listed)[0]["id"].as_str().unwrap().to_owned();
    project.run(&["approvals", "respond", &id, "It happened"]);
    let project = project.with("script.jsonl", text_answer("it happened"));
    let printed = project.run(&[&BATCH[..], &["--resume"]].concat());
    assert_eq!(outputs(&printed)[0]["answer"], "it happened", "{printed}");
    assert_eq!(effects(&project), 3, "{}", project.read("effects"));
}

#[test]
fn interrupted_run_resumes_where_it_stopped() {
    let project = project().with("wait", "");
    let run = [
        "run",
        "agent.gram",
        "Note a",
        "--library",
        "notes.toml",
        "--model",
        "scripted:script.jsonl",
    ];
    let mut child = spawn_in_background(&project, &run);
    wait_until("the effect", || effects(&project) == 1);
    signal(&child, "-INT");
    // The current step ends first.
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    std::fs::remove_file(project.path("wait")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let listed = project.run(&["trace", "list", "--json"]);
    let run = outputs(&listed)[0]["run"].as_str().unwrap().to_owned();
    // The script continues after the answer that was already used.
    let script = [note("a"), text_answer("noted, as asked")].concat();
    let project = project.with("script.jsonl", script);
    let printed = project.run(&["runs", "resume", &run]);
    assert!(printed.contains("noted, as asked"), "{printed}");
    assert!(printed.ends_with("exit code 0\n"), "{printed}");
    assert_eq!(effects(&project), 1);
    // Resuming an ended run prints its result again.
    let again = project.run(&["runs", "resume", &run, "--json"]);
    assert!(again.contains("noted, as asked"), "{again}");
}

#[test]
fn two_processes_never_drive_one_run() {
    let project = project().with("wait", "");
    let run = [&BATCH[..4], &["Note a"], &BATCH[6..]].concat();
    let mut child = spawn_in_background(&project, &run);
    wait_until("the effect", || effects(&project) == 1);
    let listed = project.run(&["trace", "list", "--json"]);
    let id = outputs(&listed)[0]["run"].as_str().unwrap().to_owned();
    let printed = project.run(&["runs", "resume", &id]);
    assert!(printed.ends_with("exit code 8\n"), "{printed}");
    assert!(
        printed.contains("another process drives the run"),
        "{printed}"
    );
    std::fs::remove_file(project.path("wait")).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(effects(&project), 1);
}

#[test]
fn invalid_tasks_are_reported_by_file_and_line() {
    let project = project().with(
        "tasks.jsonl",
        "{\"task_id\": \"b\"\n\
         {\"description\": \"x\"}\n\
         {\"task_id\": \"c\", \"description\": \" \"}\n",
    );
    let mut printed = project.run(&BATCH);
    let project = project.with(
        "tasks.jsonl",
        "{\"task_id\": \"a\", \"description\": \"x\", \"available_tools\": [\"nota\"]}\n",
    );
    printed += &project.run(&BATCH);
    let project = project.with("tasks.jsonl", "\n");
    printed += &project.run(&BATCH);
    printed += &project.run(&[&BATCH[..4], &["--tasks", "none.jsonl"]].concat());
    assert_snapshot!(printed);
}

#[test]
fn valid_tasks_run_despite_invalid_ones() {
    let project = project();
    let all = project.read("tasks.jsonl");
    let first = all.lines().next().unwrap().to_owned();
    let project = project.with("tasks.jsonl", format!("{{\n{first}\n{first}\n"));
    let printed = project.run(&BATCH);
    assert!(printed.contains("tasks.jsonl:1:"), "{printed}");
    assert!(printed.contains("tasks.jsonl:3: the task_id"), "{printed}");
    assert!(printed.contains("1 of 1 tasks completed"), "{printed}");
    assert!(printed.ends_with("exit code 1\n"), "{printed}");
    assert_eq!(effects(&project), 1);
}

#[test]
fn run_keeps_the_agent_it_started_with() {
    let library = LIBRARY.replace(
        "cat >> effects;",
        "echo broken > agent.gram; cat >> effects;",
    );
    let project = project().with("notes.toml", library);
    let printed = project.run(&[&BATCH[..4], &["Note a"], &BATCH[6..]].concat());
    assert!(printed.ends_with("exit code 0\n"), "{printed}");
    assert_eq!(project.read("agent.gram"), "broken\n");
}

#[test]
fn full_disk_stops_the_run_before_its_effect() {
    let project = project();
    project.run(&["trace", "list"]);
    // Less than the task takes, in kilobytes.
    let room = 100;
    let windlass = env!("CARGO_BIN_EXE_windlass");
    // Writing past the limit fails as on a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f {room}; exec {windlass} run agent.gram \"$0\" --library notes.toml \
         --model scripted:script.jsonl"
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script, &"Note a. ".repeat(15_500)])
        .current_dir(project.path(""))
        .env("WINDLASS_DATA", project.path("data"))
        .env("XDG_STATE_HOME", project.path("state"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("the journal cannot be used"), "{printed}");
    assert_eq!(effects(&project), 0, "{printed}");
    assert!(project.run(&["trace", "list"]).ends_with("exit code 0\n"));
}

#[test]
fn too_long_and_empty_tasks_are_refused() {
    let project = project();
    let run = [&BATCH[..4], &BATCH[6..]].concat();
    let printed = project.run_with_input(&run, "a ".repeat(2_500_000));
    assert!(printed.contains("the task has 5000000 bytes"), "{printed}");
    assert!(printed.ends_with("exit code 1\n"), "{printed}");
    let printed = project.run_with_input(&run, "");
    assert!(printed.contains("the task is empty"), "{printed}");
    let closed = format!(
        "exec {} {} <&-",
        env!("CARGO_BIN_EXE_windlass"),
        run.join(" ")
    );
    let output = place_command(&project, &closed);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the task is empty"));
}

fn place_command(project: &TestProject, script: &str) -> std::process::Output {
    std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(project.path(""))
        .env("WINDLASS_DATA", project.path("data"))
        .output()
        .unwrap()
}

#[test]
fn sub_agents_have_their_own_runs() {
    let project = TestProject::new()
        .with("newsroom.gram", example("newsroom.gram"))
        .with("newsroom.toml", example("newsroom.toml"))
        .with(
            "script.jsonl",
            "{\"calls\": [{\"tool\": \"writer\", \"arguments\": {\"json\": {\"task\": \"Write.\"}}}]}\n\
             {\"text\": \"An article.\"}\n{\"text\": \"It is written.\"}\n",
        );
    std::fs::create_dir(project.path("newsroom")).unwrap();
    let project = project.with("newsroom/headlines.json", "[]");
    let printed = project.run(&[
        "run",
        "newsroom.gram",
        "Write about bees",
        "--library",
        "newsroom.toml",
        "--model",
        "scripted:script.jsonl",
    ]);
    assert!(printed.contains("It is written."), "{printed}");
    assert!(printed.contains("An article."), "{printed}");
    let listed = project.run(&["trace", "list", "--json"]);
    let agents: Vec<Value> = outputs(&listed)
        .iter()
        .map(|run| run["agent"].clone())
        .collect();
    assert_eq!(agents, ["writer", "editor"], "{listed}");
    assert!(Path::new(&project.path("data")).exists());
}
