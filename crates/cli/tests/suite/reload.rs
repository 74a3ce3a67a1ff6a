//! The configuration changes while an agent works: what is under way ends as it began, what comes
//! next is judged anew, and what cannot be used changes nothing.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::Place;

const AGENT: &str = r#"
[clerk:Agent {description: "Writes notes down", instruction: "Note what you are told.", model: "m"} |
  [wait:Tool {description: "Waits until it may go on", risk: reversible, category: "system_tools"} | (file::Text)==>(::Text)],
  [note:Tool {description: "Looks at the notes again", risk: reversible, category: "analysis_tools"} | (text::Text)==>(::Text)]]
"#;

/// Waits until a file is there, and says on the way that it waits.
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

/// A run under way, whose events are read as they come.
struct Working {
    child: Child,
    events: Arc<Mutex<Vec<Value>>>,
}

impl Working {
    fn start(place: &Place) -> Self {
        let mut child = place
            .command(&[
                "run",
                "agent.gram",
                "Note it",
                "--jsonl",
                "--model",
                "scripted:script.jsonl",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let events: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (told, lines) = (
            Arc::clone(&events),
            BufReader::new(child.stdout.take().unwrap()),
        );
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if let Ok(event) = serde_json::from_str(&line) {
                    told.lock().unwrap().push(event);
                }
            }
        });
        Self { child, events }
    }

    /// Waits until so many events of a kind have come, and gives the last.
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

fn waits(place: &Place, file: &str) {
    let started = Instant::now();
    while !place.path(&format!("{file}.waits")).exists() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "nobody waits for {file}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn place(script: &[String]) -> Place {
    Place::new()
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
fn a_tool_that_is_switched_off_while_an_agent_works_is_gone_for_it() {
    let place = place(&[
        call("wait", "file", "go"),
        call("note", "text", "one"),
        call("wait", "file", "on"),
        call("note", "text", "two"),
    ]);
    let working = Working::start(&place);
    waits(&place, "go");
    std::fs::write(place.path("windlass.toml"), OFF).unwrap();
    working.until("configuration_changed", 1);
    std::fs::write(place.path("go"), "").unwrap();
    waits(&place, "on");
    std::fs::write(place.path("windlass.toml"), ON).unwrap();
    working.until("configuration_changed", 2);
    std::fs::write(place.path("on"), "").unwrap();
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
    // The model is no longer shown it, and then again.
    let offered: Vec<String> = of_kind(&events, "offered")
        .iter()
        .map(|event| event["tools"].to_string())
        .collect();
    assert_eq!(offered, ["[\"wait\"]", "[\"wait\",\"note\"]"]);
    assert_eq!(place.read("effects"), "{\"text\":\"two\"}");
    // Each decision says under which configuration it was made.
    let under: Vec<Value> = of_kind(&events, "decided")
        .iter()
        .map(|event| event["decision"]["configuration"].clone())
        .collect();
    assert_eq!(under[0], under[3]);
    assert_ne!(under[0], under[1]);
}

#[test]
fn what_cannot_be_used_keeps_what_held_and_says_why() {
    let place = place(&[call("wait", "file", "go"), call("note", "text", "one")]);
    let working = Working::start(&place);
    waits(&place, "go");
    let file = place.path("windlass.toml");
    let mut refused = 0;
    let mut refuse = |expected: &str| {
        refused += 1;
        let event = working.until("configuration_refused", refused);
        let why = event["why"].as_str().unwrap().to_owned();
        assert!(why.contains(expected), "{expected}: {why}");
    };
    // Wrong, half written, emptied, gone, a link to nothing, a directory, not a text, without policies
    // or libraries.
    std::fs::write(&file, "[categories.analysis_tools]\nenabled = 1\n").unwrap();
    refuse("expected true or false");
    std::fs::write(&file, "[categories.analysis_too").unwrap();
    refuse("windlass.toml:1");
    std::fs::write(&file, "").unwrap();
    refuse("it is empty now");
    std::fs::remove_file(&file).unwrap();
    refuse("cannot be read");
    std::os::unix::fs::symlink(place.path("nothing"), &file).unwrap();
    refuse("cannot be read");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refuse("it is no file");
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
    std::fs::write(place.path("go"), "").unwrap();
    let events = working.end();
    let decided: Vec<&Value> = of_kind(&events, "decided");
    assert_eq!(decided.len(), 2);
    let under = |event: &Value| event["decision"]["configuration"].clone();
    assert_eq!(under(decided[0]), under(decided[1]));
    assert_eq!(decided[1]["decision"]["verdict"], "allow");
}

#[test]
fn policies_that_change_hold_for_what_comes_next() {
    let place = place(&[call("wait", "file", "go"), call("note", "text", "one")]);
    let place = place
        .with(
            "windlass.toml",
            format!("policies = \"policy.cedar\"\n{ON}"),
        )
        .with(
            "policy.cedar",
            "@id(\"all\") permit (principal, action, resource);\n",
        );
    let working = Working::start(&place);
    waits(&place, "go");
    std::fs::write(
        place.path("policy.cedar"),
        "@id(\"all\") permit (principal, action, resource);\n\
         @id(\"no-notes\") @reason(\"no notes today\") forbid (principal, action == Action::\"note\", resource);\n",
    )
    .unwrap();
    working.until("configuration_changed", 1);
    std::fs::write(place.path("go"), "").unwrap();
    let events = working.end();
    let decided = of_kind(&events, "decided");
    assert_eq!(decided[1]["decision"]["reason"], "no notes today");
}

#[test]
fn a_file_rewritten_a_thousand_times_under_load_leads_to_no_wrong_decision() {
    let script: Vec<String> = (0..40)
        .map(|number| call("note", "text", &format!("number {number}")))
        .collect();
    let place = place(&script);
    let over = AtomicBool::new(false);
    let (mut allowed, mut denied) = (0, 0);
    let mut meant: BTreeMap<String, String> = BTreeMap::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..1000 {
                // Each is told apart by its digest, and some are written in two halves or are wrong.
                let text = match number % 2 {
                    0 => format!("{ON}[breaker]\nfailures = {}\n", number + 1),
                    _ => format!("{OFF}[breaker]\nfailures = {}\n", number + 1),
                };
                let file = place.path("windlass.toml");
                match number % 10 {
                    3 => {
                        let (first, second) = text.split_at(text.len() / 2);
                        std::fs::write(&file, first).unwrap();
                        std::fs::write(&file, format!("{first}{second}")).unwrap();
                    }
                    7 => std::fs::write(&file, "not a configuration").unwrap(),
                    _ => {
                        let other = place.path("windlass.toml.new");
                        std::fs::write(&other, text).unwrap();
                        std::fs::rename(&other, &file).unwrap();
                    }
                }
                std::thread::sleep(Duration::from_millis(8));
            }
            over.store(true, Ordering::SeqCst);
        });
        while !over.load(Ordering::SeqCst) {
            let mut run = place.command(&[
                "run",
                "agent.gram",
                "Note it",
                "--jsonl",
                "--model",
                "scripted:script.jsonl",
                "--max-iterations",
                "41",
            ]);
            let output = run.stdin(Stdio::null()).output().unwrap();
            // A file that cannot be used when a run begins keeps it from beginning.
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let events: Vec<Value> = printed
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            for event in of_kind(&events, "decided") {
                let decision = &event["decision"];
                let under = decision["configuration"].as_str().unwrap().to_owned();
                let verdict = decision["verdict"].as_str().unwrap().to_owned();
                // Whoever is told to have decided under a configuration decided as it says.
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
