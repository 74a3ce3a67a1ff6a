//! Plans from the command line: checked, carried out, drawn, marked, changed, and killed in the middle.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::program::Place;

const AGENT: &str = r#"
[clerk:Agent {instruction: "Do the work.", model: "m"} |
  [note:Tool {description: "Notes a word", risk: reversible, idempotent: true} | (word::Text)==>(::Text)],
  [pay:Tool {description: "Pays somebody", risk: irreversible} | (word::Text)==>(::Text)]]
"#;

/// Writes down what it was called with. Takes its time for words that say so.
const TOOL: &str = r#"
arguments=$(cat)
case "$arguments" in *slow*) sleep 0.3 ;; esac
case "$arguments" in *bad*) echo "it went wrong" >&2; exit 1 ;; esac
echo "$arguments" >> effects
echo "$arguments"
"#;

fn place(plan: &Value) -> Place {
    let mut library = "name = \"desk\"\n".to_owned();
    for (tool, description) in [("note", "Notes a word"), ("pay", "Pays somebody")] {
        let _ = write!(
            library,
            "[tools.{tool}]\ndescription = \"{description}\"\n\
             signature = \"(word: Text) --> IO Text\"\ncommand = [\"sh\", \"tool.sh\"]\n"
        );
    }
    Place::new()
        .with("agent.gram", AGENT)
        .with("desk.toml", library)
        .with("tool.sh", TOOL)
        .with("effects", "")
        .with("plan.json", plan.to_string())
}

const RUN: [&str; 8] = [
    "plan",
    "run",
    "agent.gram",
    "plan.json",
    "--library",
    "desk.toml",
    "--model",
    "reflex",
];

fn note(id: &str, word: &str, depends_on: &[&str]) -> Value {
    json!({"id": id, "tool": "note", "arguments": {"word": word}, "depends_on": depends_on})
}

/// What was told, without what differs from run to run.
fn same(told: &str) -> String {
    let mut same = String::new();
    for word in told.split_inclusive([' ', '\n', ':', '.', '"']) {
        let bare = word.trim_end_matches([' ', '\n', ':', '.', '"']);
        match bare.len() == 32 && bare.chars().all(|c| c.is_ascii_hexdigit()) {
            true => same.push_str(&word.replace(bare, "RUN")),
            false => same.push_str(word),
        }
    }
    // How long tasks took, and tasks that run at the same time say so in any order.
    let mut lines: Vec<String> = same
        .lines()
        .map(|line| match line.find(" ms ") {
            Some(end) => {
                let digits = line[..end].trim_end_matches(|c: char| c.is_ascii_digit());
                format!("{} N{}", digits.trim_end(), &line[end..])
            }
            None => line.to_owned(),
        })
        .collect();
    if let Some(progress) = lines.iter().position(|line| line == "--- stderr") {
        lines[progress + 1..].sort();
    }
    lines.join("\n")
}

fn run_of(place: &Place) -> String {
    let listed = place.run(&["plan", "list", "--json"]);
    let line = listed.lines().find(|line| line.starts_with('{')).unwrap();
    let plan: Value = serde_json::from_str(line).unwrap();
    plan["run"].as_str().unwrap().to_owned()
}

fn shown(place: &Place, plan: &str) -> Value {
    let told = place.run(&["plan", "show", plan, "--json"]);
    let line = told.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{told}"))).unwrap()
}

#[test]
fn a_plan_is_carried_out_and_drawn() {
    let place = place(&json!({"goal": "Two words and a third", "tasks": [
        note("first", "one", &[]),
        note("second", "two", &[]),
        {"id": "third", "tool": "note", "arguments": {"word": {"$from": "first"}},
         "depends_on": ["first", "second"]},
        {"id": "fails", "tool": "note", "arguments": {"word": "bad"}, "on_failure": "skip_dependents"},
        note("never", "no", &["fails"]),
    ]}));
    assert_snapshot!(same(&place.run(&RUN)));
    let run = run_of(&place);
    assert_snapshot!(same(
        &place.run(&["plan", "show", &run, "--graph", "mermaid"])
    ));
    assert_snapshot!(same(&place.run(&["plan", "show", &run, "--graph", "dot"])));
    assert_eq!(place.read("effects").lines().count(), 3);
    let plan = shown(&place, &run);
    assert_eq!(plan["status"], "error");
    assert_eq!(plan["tasks"][4]["status"], "skipped");
    assert!(plan["tasks"][0]["ended_at"].is_string());
}

#[test]
fn what_is_wrong_with_a_plan_is_said_at_once() {
    let place = place(&json!({"tasks": [
        {"id": "a", "tool": "noted", "arguments": {"word": "x"}},
        {"id": "b", "tool": "note", "arguments": {"words": "x"}},
        {"id": "c", "agent": "clark", "description": "Help"},
    ]}))
    .with(
        "circle.json",
        json!({"tasks": [note("a", "x", &["b"]), note("b", "x", &["a"])]}).to_string(),
    )
    .with("none.json", "{\"tasks\": []}")
    .with("text.json", "do something")
    .with(
        "other.json",
        "{\"tasks\": [{\"id\": \"a\", \"tol\": \"note\"}]}",
    );
    let huge: Vec<Value> = (0..10_000)
        .map(|n| note(&format!("t{n}"), "x", &[]))
        .collect();
    let place = place.with("huge.json", json!({"tasks": huge}).to_string());
    let mut told = String::new();
    for file in ["plan", "circle", "none", "text", "other", "huge", "missing"] {
        let file = format!("{file}.json");
        let mut arguments = RUN.to_vec();
        arguments[3] = &file;
        let _ = writeln!(told, "{file}\n{}", place.run(&arguments));
        arguments[1] = "check";
        assert!(place.run(&arguments).contains("exit code 1"), "{file}");
    }
    assert_snapshot!(told);
    assert_eq!(place.read("effects"), "");
}

#[test]
fn a_plan_waits_for_a_person_and_is_marked_changed_and_gone_on_with() {
    let by_hand = json!({"id": "sign", "description": "Sign it", "depends_on": ["draft"]});
    let place = place(&json!({"tasks": [
        note("draft", "draft", &[]), by_hand, note("old", "old", &["sign"]),
    ]}));
    let told = place.run(&RUN);
    assert!(told.contains("exit code 4"), "{told}");
    assert!(told.contains("windlass plan mark"), "{told}");
    let run = run_of(&place);
    let too_early = place.run(&["plan", "mark", &run, "old", "success"]);
    assert!(too_early.contains("exit code 8"), "{too_early}");
    let unknown = place.run(&["plan", "mark", &run, "sing", "success", "--json"]);
    assert!(
        unknown.contains("exit code 7") && unknown.contains("no_such_task"),
        "{unknown}"
    );
    let changed =
        json!({"tasks": [note("draft", "draft", &[]), by_hand, note("new", "new", &["sign"])]});
    let place = place.with("changed.json", changed.to_string());
    let told = place.run(&["plan", "edit", &run, "changed.json"]);
    assert!(told.contains("exit code 0"), "{told}");
    let spoilt = json!({"tasks": [note("draft", "other", &[])]});
    let place = place.with("spoilt.json", spoilt.to_string());
    let told = place.run(&["plan", "edit", &run, "spoilt.json"]);
    assert!(
        told.contains("exit code 8") && told.contains("`draft`"),
        "{told}"
    );
    let told = place.run(&[
        "plan", "mark", &run, "sign", "success", "--result", "\"Bob\"",
    ]);
    assert!(
        told.contains(&format!("windlass runs resume {run}")),
        "{told}"
    );
    let told = place.run(&["runs", "resume", &run]);
    assert!(told.contains("exit code 0"), "{told}");
    let plan = shown(&place, &run);
    assert_eq!(plan["status"], "success");
    assert_eq!(plan["tasks"][1]["result"], "Bob");
    assert_eq!(plan["tasks"][2]["id"], "new");
    assert_eq!(place.read("effects").lines().count(), 2);
    let late = place.run(&["plan", "mark", &run, "new", "skipped"]);
    assert!(late.contains("exit code 8"), "{late}");
}

#[test]
fn a_model_makes_a_plan_only_if_it_may() {
    let tasks = json!({"tasks": [note("a", "one", &[]), note("b", "two", &["a"])]});
    let script = [
        json!({"calls": [{"tool": "create_execution_plan", "arguments": {"json": tasks}}]}),
        json!({"text": "Both are noted."}),
    ];
    let script: String = script.iter().map(|line| format!("{line}\n")).collect();
    let place = place(&json!({})).with("script.jsonl", script);
    let run = [
        "run",
        "agent.gram",
        "Note two words",
        "--library",
        "desk.toml",
        "--model",
        "scripted:script.jsonl",
    ];
    let told = place.run(&run);
    assert!(told.contains("create_execution_plan"), "{told}");
    assert_eq!(place.read("effects"), "");
    let told = place.run(&[&run[..], &["--plans"]].concat());
    assert!(told.contains("Both are noted."), "{told}");
    assert_eq!(place.read("effects").lines().count(), 2);
}

#[test]
fn a_busy_plan_takes_a_mark_and_the_command_says_so() {
    let tasks: Vec<Value> = (0..6)
        .map(|number| note(&format!("t{number}"), &format!("slow{number}"), &[]))
        .collect();
    let place = place(&json!({"execution_mode": "sequential", "tasks": tasks}));
    let mut child = place
        .command(&RUN)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while place.read("effects").is_empty() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(5));
    }
    let told = place.run(&["plan", "mark", &run_of(&place), "t5", "skipped"]);
    assert!(told.contains("`t5` is marked skipped"), "{told}");
    child.wait().unwrap();
    let effects = place.read("effects");
    assert!(
        effects.contains("slow4") && !effects.contains("slow5"),
        "{effects}"
    );
}

/// Eight slow notes that wait for some of those before them, and a payment in their midst; always the same
/// for a number.
fn random_tasks(number: u64) -> Vec<Value> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let names = |before: u64, next: &mut dyn FnMut(u64) -> u64| -> Vec<String> {
        let chosen = (0..before).filter(|_| next(3) == 0);
        chosen.map(|before| format!("t{before}")).collect()
    };
    let mut tasks: Vec<Value> = (0..8)
        .map(|task| {
            let before = names(task, &mut next);
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            note(&format!("t{task}"), &format!("slow{task}"), &before)
        })
        .collect();
    let before = names(4, &mut next);
    tasks.push(json!({
        "id": "pay", "tool": "pay", "arguments": {"word": "payday"}, "depends_on": before,
    }));
    tasks
}

/// Tasks, with the places in a journal at which something happened to them.
type Places = Vec<(String, usize)>;

/// What happened to the tasks of a plan, from the journal of its run: where they began and where they ended.
fn course(place: &Place, run: &str) -> (Places, Places) {
    let exported = place.run(&["trace", "export", run]);
    let events: Vec<Value> = exported
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        let events = events.iter().enumerate();
        let found = events.filter(|(_, line)| line["event"]["event"] == kind);
        found
            .map(|(place, line)| (line["event"]["task"].as_str().unwrap().to_owned(), place))
            .collect()
    };
    (of("task_started"), of("task_ended"))
}

#[test]
fn a_plan_whose_process_is_killed_is_done_in_order_and_once() {
    for number in 1..=2 {
        kill_again_and_again(number);
    }
}

fn kill_again_and_again(number: u64) {
    // A random moment each time; what cannot be undone is never done twice.
    let tasks = random_tasks(number);
    let place = place(&json!({ "tasks": tasks }));
    let mut run: Option<String> = None;
    for life in 0..40u64 {
        let arguments: Vec<String> = match &run {
            None => RUN.iter().map(|word| (*word).to_owned()).collect(),
            Some(run) => ["runs", "resume", run].map(str::to_owned).to_vec(),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = place
            .command(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // In the end it is left alone, however slow the machine is.
        let patience = match life {
            0..30 => Duration::from_millis(150 + life * 40),
            _ => Duration::from_secs(60),
        };
        let begun = std::time::Instant::now();
        let mut ended = None;
        while begun.elapsed() < patience && ended.is_none() {
            ended = child.try_wait().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        if ended.is_none() {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        if let Some(status) = ended {
            if status.code() == Some(0) {
                break;
            }
            // It waits for a person now.
            assert_eq!(status.code(), Some(4));
            let listed = place.run(&["approvals", "list", "--json"]);
            let asked = listed.lines().find(|line| line.starts_with('{')).unwrap();
            let asked: Value = serde_json::from_str(asked).unwrap();
            let call = asked["call"].as_str().unwrap_or_else(|| panic!("{asked}"));
            let told = place.run(&["approvals", "approve", call, "--yes"]);
            assert!(told.contains("exit code 0"), "{told}");
        }
        if run.is_none() {
            let listed = place.run(&["plan", "list", "--json"]);
            run = listed.contains("\"run\"").then(|| run_of(&place));
            // Killed before the plan was made: nothing happened, and it is begun again.
            if run.is_none() {
                assert_eq!(place.read("effects"), "");
            }
        }
    }
    let run = run.unwrap();
    let plan = shown(&place, &run);
    assert_eq!(plan["status"], "success", "{plan}");
    let (started, ended) = course(&place, &run);
    let places = |of: &[(String, usize)], task: &str| -> Vec<usize> {
        let found = of.iter().filter(|(name, _)| name == task);
        found.map(|(_, place)| *place).collect()
    };
    for task in &tasks {
        let id = task["id"].as_str().unwrap();
        assert_eq!(places(&started, id).len(), 1, "{number}: {id} begins once");
        assert_eq!(
            places(&ended, id).len(),
            1,
            "{number}: {id} is settled once"
        );
        for before in task["depends_on"].as_array().unwrap() {
            let before = places(&ended, before.as_str().unwrap())[0];
            assert!(before < places(&started, id)[0], "{number}: {id} waits");
        }
    }
    let effects = place.read("effects");
    assert_eq!(effects.matches("payday").count(), 1, "{effects}");
    for number in 0..8 {
        assert!(
            effects.contains(&format!("slow{number}")),
            "{number}: {effects}"
        );
    }
}
