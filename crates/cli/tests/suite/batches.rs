//! Many tasks in one go, and going on with what was stopped or killed: nothing is done twice.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::Value;

use super::program::{Place, example};

const AGENT: &str = r#"
[clerk:Agent {description: "Writes notes down", instruction: "Note what you are told.", model: "m"} |
  [note:Tool {description: "Appends a line to the notes", risk: reversible_with_delay, undo_window_seconds: 0} | (text::Text)==>(::Text)]]
"#;

/// Appends what it is told to `effects`, then takes as long as there is a file `wait`.
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

fn say(text: &str) -> String {
    format!("{{\"text\": \"{text}\"}}\n")
}

fn place() -> Place {
    Place::new()
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
            ["a", "b", "c"].map(|text| note(text) + &say(text)).concat(),
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

fn outputs(told: &str) -> Vec<Value> {
    let lines = told.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn effects(place: &Place) -> usize {
    let effects = std::fs::read_to_string(place.path("effects")).unwrap_or_default();
    effects.lines().filter(|line| line.contains("text")).count()
}

fn begin(place: &Place, arguments: &[&str]) -> Child {
    place
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
fn a_batch_prints_one_output_a_line() {
    let place = place();
    let told = place.run(&BATCH);
    let outputs = outputs(&told);
    assert_eq!(outputs.len(), 3, "{told}");
    for (output, id) in outputs.iter().zip(["a", "b", "c"]) {
        assert_eq!(output["task_id"], id);
        assert_eq!(output["answer"], id);
        assert_eq!(output["total_iterations"], 2);
        assert_eq!(output["tools_used"], serde_json::json!(["note"]));
        assert_eq!(output["metadata"]["end"]["end"], "completed");
    }
    assert_eq!(outputs[1]["metadata"]["colour"], "red");
    assert!(told.contains("3 of 3 tasks completed"), "{told}");
    assert!(told.ends_with("exit code 0\n"), "{told}");
    assert_eq!(effects(&place), 3);
    // Done once is done: the same outputs, and no further effect.
    let again = place.run(&[&BATCH[..], &["--resume"]].concat());
    assert_eq!(self::outputs(&again), outputs);
    assert_eq!(effects(&place), 3);
}

#[test]
fn a_batch_works_on_several_tasks_at_the_same_time() {
    let place = place().with("script.jsonl", say("done").repeat(3));
    let told = place.run(&[&BATCH[..], &["--jobs", "3"]].concat());
    assert_eq!(outputs(&told).len(), 3, "{told}");
}

#[test]
fn a_batch_that_was_killed_goes_on_and_repeats_no_effect() {
    let place = place().with("wait", "");
    let mut child = begin(&place, &BATCH);
    wait_until("the first effect", || effects(&place) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(place.path("wait")).unwrap();
    // A person has to say what became of the call; the other tasks are done as usual.
    let script = [note("b"), say("b"), note("c"), say("c")].concat();
    let place = place.with("script.jsonl", script);
    let told = place.run(&[&BATCH[..], &["--resume"]].concat());
    assert_eq!(outputs(&told).len(), 2, "{told}");
    assert!(told.contains("1 wait for a person"), "{told}");
    assert!(told.ends_with("exit code 4\n"), "{told}");
    assert_eq!(effects(&place), 3, "{}", place.read("effects"));
    let listed = place.run(&["approvals", "list", "--json"]);
    let id = outputs(&listed)[0]["id"].as_str().unwrap().to_owned();
    place.run(&["approvals", "respond", &id, "It happened"]);
    let place = place.with("script.jsonl", say("it happened"));
    let told = place.run(&[&BATCH[..], &["--resume"]].concat());
    assert_eq!(outputs(&told)[0]["answer"], "it happened", "{told}");
    assert_eq!(effects(&place), 3, "{}", place.read("effects"));
}

#[test]
fn an_interrupted_run_is_gone_on_with_where_it_stopped() {
    let place = place().with("wait", "");
    let run = [
        "run",
        "agent.gram",
        "Note a",
        "--library",
        "notes.toml",
        "--model",
        "scripted:script.jsonl",
    ];
    let mut child = begin(&place, &run);
    wait_until("the effect", || effects(&place) == 1);
    signal(&child, "-INT");
    // The step under way is brought to its end first.
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    std::fs::remove_file(place.path("wait")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let listed = place.run(&["trace", "list", "--json"]);
    let run = outputs(&listed)[0]["run"].as_str().unwrap().to_owned();
    // The script goes on after the answer that was given before.
    let script = [note("a"), say("noted, as asked")].concat();
    let place = place.with("script.jsonl", script);
    let told = place.run(&["runs", "resume", &run]);
    assert!(told.contains("noted, as asked"), "{told}");
    assert!(told.ends_with("exit code 0\n"), "{told}");
    assert_eq!(effects(&place), 1);
    // What has ended is only told again.
    let again = place.run(&["runs", "resume", &run, "--json"]);
    assert!(again.contains("noted, as asked"), "{again}");
}

#[test]
fn two_processes_never_drive_one_run() {
    let place = place().with("wait", "");
    let run = [&BATCH[..4], &["Note a"], &BATCH[6..]].concat();
    let mut child = begin(&place, &run);
    wait_until("the effect", || effects(&place) == 1);
    let listed = place.run(&["trace", "list", "--json"]);
    let id = outputs(&listed)[0]["run"].as_str().unwrap().to_owned();
    let told = place.run(&["runs", "resume", &id]);
    assert!(told.ends_with("exit code 8\n"), "{told}");
    assert!(told.contains("at work elsewhere"), "{told}");
    std::fs::remove_file(place.path("wait")).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(effects(&place), 1);
}

#[test]
fn mistakes_in_tasks_are_told_by_file_and_line() {
    let place = place().with(
        "tasks.jsonl",
        "{\"task_id\": \"b\"\n\
         {\"description\": \"x\"}\n\
         {\"task_id\": \"c\", \"description\": \" \"}\n",
    );
    let mut told = place.run(&BATCH);
    let place = place.with(
        "tasks.jsonl",
        "{\"task_id\": \"a\", \"description\": \"x\", \"available_tools\": [\"nota\"]}\n",
    );
    told += &place.run(&BATCH);
    let place = place.with("tasks.jsonl", "\n");
    told += &place.run(&BATCH);
    told += &place.run(&[&BATCH[..4], &["--tasks", "none.jsonl"]].concat());
    assert_snapshot!(told);
}

#[test]
fn tasks_without_mistakes_are_done_beside_others() {
    let place = place();
    let all = place.read("tasks.jsonl");
    let first = all.lines().next().unwrap().to_owned();
    let place = place.with("tasks.jsonl", format!("{{\n{first}\n{first}\n"));
    let told = place.run(&BATCH);
    assert!(told.contains("tasks.jsonl:1:"), "{told}");
    assert!(told.contains("tasks.jsonl:3: the task_id"), "{told}");
    assert!(told.contains("1 of 1 tasks completed"), "{told}");
    assert!(told.ends_with("exit code 1\n"), "{told}");
    assert_eq!(effects(&place), 1);
}

#[test]
fn a_run_keeps_the_agent_it_began_with() {
    let library = LIBRARY.replace(
        "cat >> effects;",
        "echo broken > agent.gram; cat >> effects;",
    );
    let place = place().with("notes.toml", library);
    let told = place.run(&[&BATCH[..4], &["Note a"], &BATCH[6..]].concat());
    assert!(told.ends_with("exit code 0\n"), "{told}");
    assert_eq!(place.read("agent.gram"), "broken\n");
}

#[test]
fn a_full_disk_stops_the_run_before_its_effect_and_says_so() {
    let place = place();
    place.run(&["trace", "list"]);
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
        .current_dir(place.path(""))
        .env("WINDLASS_DATA", place.path("data"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the journal cannot be used"), "{told}");
    assert_eq!(effects(&place), 0, "{told}");
    assert!(place.run(&["trace", "list"]).ends_with("exit code 0\n"));
}

#[test]
fn a_task_of_five_million_characters_or_none_is_refused_with_advice() {
    let place = place();
    let run = [&BATCH[..4], &BATCH[6..]].concat();
    let told = place.run_with_input(&run, "a ".repeat(2_500_000));
    assert!(told.contains("the task has 5000000 bytes"), "{told}");
    assert!(told.ends_with("exit code 1\n"), "{told}");
    let told = place.run_with_input(&run, "");
    assert!(told.contains("the task is empty"), "{told}");
    let closed = format!(
        "exec {} {} <&-",
        env!("CARGO_BIN_EXE_windlass"),
        run.join(" ")
    );
    let output = place_command(&place, &closed);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the task is empty"));
}

fn place_command(place: &Place, script: &str) -> std::process::Output {
    std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(place.path(""))
        .env("WINDLASS_DATA", place.path("data"))
        .output()
        .unwrap()
}

#[test]
fn sub_agents_of_a_file_work_in_runs_of_their_own() {
    let place = Place::new()
        .with("newsroom.gram", example("newsroom.gram"))
        .with("newsroom.toml", example("newsroom.toml"))
        .with(
            "script.jsonl",
            "{\"calls\": [{\"tool\": \"writer\", \"arguments\": {\"json\": {\"task\": \"Write.\"}}}]}\n\
             {\"text\": \"An article.\"}\n{\"text\": \"It is written.\"}\n",
        );
    std::fs::create_dir(place.path("newsroom")).unwrap();
    let place = place.with("newsroom/headlines.json", "[]");
    let told = place.run(&[
        "run",
        "newsroom.gram",
        "Write about bees",
        "--library",
        "newsroom.toml",
        "--model",
        "scripted:script.jsonl",
    ]);
    assert!(told.contains("It is written."), "{told}");
    assert!(told.contains("An article."), "{told}");
    let listed = place.run(&["trace", "list", "--json"]);
    let agents: Vec<Value> = outputs(&listed)
        .iter()
        .map(|run| run["agent"].clone())
        .collect();
    assert_eq!(agents, ["writer", "editor"], "{listed}");
    assert!(Path::new(&place.path("data")).exists());
}
