//! Configuration changes during a run: running calls are not affected, the next call uses the new configuration,
//! and an invalid configuration changes nothing.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::TestProject;

const AGENT: &str = r#"
[clerk:Agent {description: "Writes notes down", instruction: "Note what you are told.", model: "m"} |
  [wait:Tool {description: "Waits until it may go on", risk: reversible, category: "system_tools"} | (file::Text)==>(::Text)],
  [note:Tool {description: "Looks at the notes again", risk: reversible, category: "analysis_tools"} | (text::Text)==>(::Text)]]
"#;

/// Waits until a file exists, and creates another file while it waits.
const LIBRARY: &str = r#"
name = "notes"
[tools.wait]
description = "Waits until it may go on"
signature = "(file: Text) --> IO Text"
command = ["sh", "-c", "file=$(sed 's/.*\"file\":\"//; s/\".*//'); touch \"$file.waits\"; until [ -e \"$file\" ]; do sleep 0.02; done; echo went on"]
[tools.note]
description = "Looks at the notes again"
signature = "(text: Text) --> IO Text"
command = ["sh", "-c", "cat >> effects; echo noted"]
"#;

fn call(tool: &str, name: &str, value: &str) -> String {
    format!(
        "{{\"calls\": [{{\"tool\": \"{tool}\", \"arguments\": {{\"json\": {{\"{name}\": \"{value}\"}}}}, \"confidence\": 0.9}}]}}\n"
    )
}

const OFF: &str = "libraries = [\"notes.toml\"]\n[categories.analysis_tools]\nenabled = false\n";
const ON: &str = "libraries = [\"notes.toml\"]\n";

const RUN: [&str; 6] = [
    "run",
    "agent.gram",
    "Note it",
    "--jsonl",
    "--model",
    "scripted:script.jsonl",
];

/// A running agent whose events are collected.
struct RunningAgent {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
}

impl RunningAgent {
    fn start(project: &TestProject) -> Self {
        let mut child = project
            .command(&RUN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let events: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (sink, lines) = (
            Arc::clone(&events),
            BufReader::new(child.stdout.take().unwrap()),
        );
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if let Ok(event) = serde_json::from_str(&line) {
                    sink.lock().unwrap().push(event);
                }
            }
        });
        Self { child, events }
    }

    /// Waits for this many events of a kind, and returns the last.
    fn until(&self, kind: &str, count: usize) -> Value {
        let started = Instant::now();
        loop {
            let events = self.events.lock().unwrap().clone();
            let of_kind: Vec<&Value> = events.iter().filter(|one| one["event"] == kind).collect();
            if of_kind.len() >= count {
                return (*of_kind.last().unwrap()).clone();
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "no {kind}: {events:#?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(mut self) -> Vec<Value> {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status:?}");
        std::thread::sleep(Duration::from_millis(100));
        self.events.lock().unwrap().clone()
    }
}

fn wait_for_tool(project: &TestProject, file: &str) {
    let started = Instant::now();
    while !project.path(&format!("{file}.waits")).exists() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "no tool waits for {file}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn project(script: &[String]) -> TestProject {
    TestProject::new()
        .with("agent.gram", AGENT)
        .with("notes.toml", LIBRARY)
        .with("windlass.toml", ON)
        .with("script.jsonl", script.concat() + "{\"text\": \"done\"}\n")
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events
        .iter()
        .filter(|event| event["event"] == kind)
        .collect()
}

#[test]
fn tool_disabled_during_a_run_is_denied_and_no_longer_offered() {
    let project = project(&[
        call("wait", "file", "go"),
        call("note", "text", "one"),
        call("wait", "file", "on"),
        call("note", "text", "two"),
    ]);
    let working = RunningAgent::start(&project);
    wait_for_tool(&project, "go");
    std::fs::write(project.path("windlass.toml"), OFF).unwrap();
    working.until("configuration_changed", 1);
    std::fs::write(project.path("go"), "").unwrap();
    wait_for_tool(&project, "on");
    std::fs::write(project.path("windlass.toml"), ON).unwrap();
    working.until("configuration_changed", 2);
    std::fs::write(project.path("on"), "").unwrap();
    let events = working.end();
    let decided: Vec<&str> = of_kind(&events, "decided")
        .iter()
        .map(|event| event["decision"]["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(decided, ["allow", "deny", "allow", "allow"]);
    let denied = of_kind(&events, "decided")[1]["decision"].clone();
    let why = denied["reason"].as_str().unwrap();
    assert!(why.contains("switched off"), "{why}");
    assert!(why.contains("windlass.toml:3"), "{why}");
    // The tool is no longer offered to the model, and later it is again.
    let offered: Vec<String> = of_kind(&events, "offered")
        .iter()
        .map(|event| event["tools"].to_string())
        .collect();
    assert_eq!(offered, ["[\"wait\"]", "[\"wait\",\"note\"]"]);
    assert_eq!(project.read("effects"), "{\"text\":\"two\"}");
    // Each decision records its configuration.
    let under: Vec<Value> = of_kind(&events, "decided")
        .iter()
        .map(|event| event["decision"]["configuration"].clone())
        .collect();
    assert_eq!(under[0], under[3]);
    assert_ne!(under[0], under[1]);
}

#[test]
fn invalid_configuration_keeps_the_previous_one_and_reports_the_reason() {
    let project = project(&[call("wait", "file", "go"), call("note", "text", "one")]);
    let working = RunningAgent::start(&project);
    wait_for_tool(&project, "go");
    let file = project.path("windlass.toml");
    let mut refused = 0;
    let mut refuse = |expected: &str| {
        refused += 1;
        let event = working.until("configuration_refused", refused);
        let why = event["why"].as_str().unwrap().to_owned();
        assert!(why.contains(expected), "{expected}: {why}");
    };
    // Invalid, incomplete, empty, missing, a dangling link, a directory, not a text, without its policies or
    // libraries.
    std::fs::write(&file, "[categories.analysis_tools]\nenabled = 1\n").unwrap();
    refuse("expected true or false");
    std::fs::write(&file, "[categories.analysis_too").unwrap();
    refuse("windlass.toml:1");
    std::fs::write(&file, "").unwrap();
    refuse("it has become empty");
    std::fs::remove_file(&file).unwrap();
    refuse("cannot be read");
    std::os::unix::fs::symlink(project.path("nothing"), &file).unwrap();
    refuse("cannot be read");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refuse("it is not a regular file");
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    refuse("cannot be read");
    std::fs::write(
        &file,
        "libraries = [\"notes.toml\"]\npolicies = \"none.cedar\"\n",
    )
    .unwrap();
    refuse("none.cedar");
    std::fs::write(&file, "libraries = [\"other.toml\"]\n").unwrap();
    refuse("other.toml");
    std::fs::write(project.path("go"), "").unwrap();
    let events = working.end();
    let decided: Vec<&Value> = of_kind(&events, "decided");
    assert_eq!(decided.len(), 2);
    let under = |event: &Value| event["decision"]["configuration"].clone();
    assert_eq!(under(decided[0]), under(decided[1]));
    assert_eq!(decided[1]["decision"]["verdict"], "allow");
}

#[test]
fn changed_policies_apply_to_the_next_call() {
    let project = project(&[call("wait", "file", "go"), call("note", "text", "one")]);
    let project = project
        .with(
            "windlass.toml",
            format!("policies = \"policy.cedar\"\n{ON}"),
        )
        .with(
            "policy.cedar",
            "@id(\"all\") permit (principal, action, resource);\n",
        );
    let working = RunningAgent::start(&project);
    wait_for_tool(&project, "go");
    std::fs::write(
        project.path("policy.cedar"),
        "@id(\"all\") permit (principal, action, resource);\n\
         @id(\"no-notes\") @reason(\"no notes today\") forbid (principal, action == Action::\"note\", resource);\n",
    )
    .unwrap();
    working.until("configuration_changed", 1);
    std::fs::write(project.path("go"), "").unwrap();
    let events = working.end();
    let decided = of_kind(&events, "decided");
    assert_eq!(decided[1]["decision"]["reason"], "no notes today");
}

#[test]
fn frequent_rewrites_of_the_configuration_cause_no_wrong_decision() {
    let script: Vec<String> = (0..40)
        .map(|number| call("note", "text", &format!("number {number}")))
        .collect();
    let project = project(&script);
    let over = AtomicBool::new(false);
    let (mut allowed, mut denied) = (0, 0);
    let mut meant: BTreeMap<String, String> = BTreeMap::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..1000 {
                // Each version has its own digest. Some are written in two steps or are invalid.
                let text = match number % 2 {
                    0 => format!("{ON}[breaker]\nfailures = {}\n", number + 1),
                    _ => format!("{OFF}[breaker]\nfailures = {}\n", number + 1),
                };
                let file = project.path("windlass.toml");
                match number % 10 {
                    3 => {
                        let (first, second) = text.split_at(text.len() / 2);
                        std::fs::write(&file, first).unwrap();
                        std::fs::write(&file, format!("{first}{second}")).unwrap();
                    }
                    7 => std::fs::write(&file, "not a configuration").unwrap(),
                    _ => {
                        let other = project.path("windlass.toml.new");
                        std::fs::write(&other, text).unwrap();
                        std::fs::rename(&other, &file).unwrap();
                    }
                }
                std::thread::sleep(Duration::from_millis(8));
            }
            over.store(true, Ordering::SeqCst);
        });
        while !over.load(Ordering::SeqCst) {
            let mut run = project.command(&RUN);
            run.args(["--max-iterations", "41"]);
            let output = run.stdin(Stdio::null()).output().unwrap();
            // An invalid file at the start prevents the run.
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let events: Vec<Value> = printed
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            for event in of_kind(&events, "decided") {
                let decision = &event["decision"];
                let under = decision["configuration"].as_str().unwrap().to_owned();
                let verdict = decision["verdict"].as_str().unwrap().to_owned();
                // All decisions under one configuration are the same.
                let known = meant.entry(under).or_insert_with(|| verdict.clone());
                assert_eq!(*known, verdict, "{decision}");
                match verdict.as_str() {
                    "allow" => allowed += 1,
                    "deny" => {
                        assert_eq!(decision["stage"], "enabled", "{decision}");
                        denied += 1;
                    }
                    other => panic!("{other}: {decision}"),
                }
            }
        }
    });
    assert!(
        allowed > 0 && denied > 0,
        "{allowed} allowed, {denied} denied"
    );
}
