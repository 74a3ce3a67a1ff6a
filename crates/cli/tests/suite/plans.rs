//! Plans: check, run, show, mark, edit, and resume after a kill.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::program::TestProject;

const AGENT: &str = r#"
[clerk:Agent {instruction: "Do the work.", model: "m"} |
  [note:Tool {description: "Notes a word", risk: reversible, idempotent: true} | (word::Text)==>(::Text)],
  [pay:Tool {description: "Pays a person", risk: irreversible} | (word::Text)==>(::Text)]]
"#;

/// Records its arguments. Is slow or fails for certain words.
const TOOL: &str = r#"
arguments=$(cat)
case "$arguments" in *slow*) sleep 0.3 ;; esac
case "$arguments" in *bad*) echo "it went wrong" >&2; exit 1 ;; esac
echo "$arguments" >> effects
echo "$arguments"
"#;

fn project(plan: &Value) -> TestProject {
    let mut library = "name = \"desk\"\n".to_owned();
    for (tool, description) in [("note", "Notes a word"), ("pay", "Pays a person")] {
        let _ = write!(
            library,
            "[tools.{tool}]\ndescription = \"{description}\"\n\
             signature = \"(word: Text) --> IO Text\"\ncommand = [\"sh\", \"tool.sh\"]\n"
        );
    }
    TestProject::new()
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

/// Replaces ids and times, which differ between runs.
fn normalized(output: &str) -> String {
    let mut normalized = String::new();
    for word in output.split_inclusive([' ', '\n', ':', '.', '"']) {
        let bare = word.trim_end_matches([' ', '\n', ':', '.', '"']);
        match bare.len() == 32 && bare.chars().all(|c| c.is_ascii_hexdigit()) {
            true => normalized.push_str(&word.replace(bare, "RUN")),
            false => normalized.push_str(word),
        }
    }
    // Replaces durations, and sorts the lines of parallel tasks.
    let mut lines: Vec<String> = normalized
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

fn run_of(project: &TestProject) -> String {
    let listed = project.run(&["plan", "list", "--json"]);
    let line = listed.lines().find(|line| line.starts_with('{')).unwrap();
    let plan: Value = serde_json::from_str(line).unwrap();
    plan["run"].as_str().unwrap().to_owned()
}

fn shown(project: &TestProject, plan: &str) -> Value {
    let output = project.run(&["plan", "show", plan, "--json"]);
    let line = output.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{output}"))).unwrap()
}

#[test]
fn plan_runs_and_is_drawn() {
    let project = project(&json!({"goal": "Two words and a third", "tasks": [
        note("first", "one", &[]),
        note("second", "two", &[]),
        {"id": "third", "tool": "note", "arguments": {"word": {"$from": "first"}},
         "depends_on": ["first", "second"]},
        {"id": "fails", "tool": "note", "arguments": {"word": "bad"}, "on_failure": "skip_dependents"},
        note("never", "no", &["fails"]),
    ]}));
    assert_snapshot!(normalized(&project.run(&RUN)));
    let run = run_of(&project);
    assert_snapshot!(normalized(
        &project.run(&["plan", "show", &run, "--graph", "mermaid"])
    ));
    assert_snapshot!(normalized(
        &project.run(&["plan", "show", &run, "--graph", "dot"])
    ));
    assert_eq!(project.read("effects").lines().count(), 3);
    let plan = shown(&project, &run);
    assert_eq!(plan["status"], "error");
    assert_eq!(plan["tasks"][4]["status"], "skipped");
    assert!(plan["tasks"][0]["ended_at"].is_string());
}

#[test]
fn every_error_of_a_plan_is_reported() {
    let project = project(&json!({"tasks": [
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
    let project = project.with("huge.json", json!({"tasks": huge}).to_string());
    let mut output = String::new();
    for file in ["plan", "circle", "none", "text", "other", "huge", "missing"] {
        let file = format!("{file}.json");
        let mut arguments = RUN.to_vec();
        arguments[3] = &file;
        let _ = writeln!(output, "{file}\n{}", project.run(&arguments));
        arguments[1] = "check";
        assert!(project.run(&arguments).contains("exit code 1"), "{file}");
    }
    assert_snapshot!(output);
    assert_eq!(project.read("effects"), "");
}

#[test]
fn plan_with_manual_task_is_marked_edited_and_resumed() {
    let by_hand = json!({"id": "sign", "description": "Sign it", "depends_on": ["draft"]});
    let project = project(&json!({"tasks": [
        note("draft", "draft", &[]), by_hand, note("old", "old", &["sign"]),
    ]}));
    let output = project.run(&RUN);
    assert!(output.contains("exit code 4"), "{output}");
    assert!(output.contains("windlass plan mark"), "{output}");
    let run = run_of(&project);
    let too_early = project.run(&["plan", "mark", &run, "old", "success"]);
    assert!(too_early.contains("exit code 8"), "{too_early}");
    let unknown = project.run(&["plan", "mark", &run, "sing", "success", "--json"]);
    assert!(
        unknown.contains("exit code 7") && unknown.contains("no_such_task"),
        "{unknown}"
    );
    let changed =
        json!({"tasks": [note("draft", "draft", &[]), by_hand, note("new", "new", &["sign"])]});
    let project = project.with("changed.json", changed.to_string());
    let output = project.run(&["plan", "edit", &run, "changed.json"]);
    assert!(output.contains("exit code 0"), "{output}");
    let spoilt = json!({"tasks": [note("draft", "other", &[])]});
    let project = project.with("spoilt.json", spoilt.to_string());
    let output = project.run(&["plan", "edit", &run, "spoilt.json"]);
    assert!(
        output.contains("exit code 8") && output.contains("`draft`"),
        "{output}"
    );
    let output = project.run(&[
        "plan", "mark", &run, "sign", "success", "--result", "\"Bob\"",
    ]);
    assert!(
        output.contains(&format!("windlass runs resume {run}")),
        "{output}"
    );
    let output = project.run(&["runs", "resume", &run]);
    assert!(output.contains("exit code 0"), "{output}");
    let plan = shown(&project, &run);
    assert_eq!(plan["status"], "success");
    assert_eq!(plan["tasks"][1]["result"], "Bob");
    assert_eq!(plan["tasks"][2]["id"], "new");
    assert_eq!(project.read("effects").lines().count(), 2);
    let late = project.run(&["plan", "mark", &run, "new", "skipped"]);
    assert!(late.contains("exit code 8"), "{late}");
}

#[test]
fn model_makes_plans_only_with_the_plans_option() {
    let tasks = json!({"tasks": [note("a", "one", &[]), note("b", "two", &["a"])]});
    let script = [
        json!({"calls": [{"tool": "create_execution_plan", "arguments": {"json": tasks}}]}),
        json!({"text": "Both are noted."}),
    ];
    let script: String = script.iter().map(|line| format!("{line}\n")).collect();
    let project = project(&json!({})).with("script.jsonl", script);
    let run = [
        "run",
        "agent.gram",
        "Note two words",
        "--library",
        "desk.toml",
        "--model",
        "scripted:script.jsonl",
    ];
    let output = project.run(&run);
    assert!(output.contains("create_execution_plan"), "{output}");
    assert_eq!(project.read("effects"), "");
    let output = project.run(&[&run[..], &["--plans"]].concat());
    assert!(output.contains("Both are noted."), "{output}");
    assert_eq!(project.read("effects").lines().count(), 2);
}

#[test]
fn running_plan_accepts_a_mark() {
    let tasks: Vec<Value> = (0..6)
        .map(|number| note(&format!("t{number}"), &format!("slow{number}"), &[]))
        .collect();
    let project = project(&json!({"execution_mode": "sequential", "tasks": tasks}));
    let mut child = project
        .command(&RUN)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while project.read("effects").is_empty() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = project.run(&["plan", "mark", &run_of(&project), "t5", "skipped"]);
    assert!(output.contains("`t5` marked skipped"), "{output}");
    child.wait().unwrap();
    let effects = project.read("effects");
    assert!(
        effects.contains("slow4") && !effects.contains("slow5"),
        "{effects}"
    );
}

/// Eight slow notes with random dependencies, and a payment. The number is the seed.
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

/// Tasks with positions in the journal.
type TaskPositions = Vec<(String, usize)>;

/// The positions in the journal at which tasks started and ended.
fn task_positions(project: &TestProject, run: &str) -> (TaskPositions, TaskPositions) {
    let exported = project.run(&["trace", "export", run]);
    let events: Vec<Value> = exported
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        let events = events.iter().enumerate();
        let found = events.filter(|(_, line)| line["event"]["event"] == kind);
        found
            .map(|(position, line)| (line["event"]["task"].as_str().unwrap().to_owned(), position))
            .collect()
    };
    (of("task_started"), of("task_ended"))
}

#[test]
fn killed_plan_resumes_in_order_and_runs_each_task_once() {
    for number in 1..=2 {
        kill_again_and_again(number);
    }
}

fn kill_again_and_again(number: u64) {
    // Kills at increasing times. An irreversible call never runs twice.
    let tasks = random_tasks(number);
    let project = project(&json!({ "tasks": tasks })).with_approvers(&["operator"]);
    let mut run: Option<String> = None;
    for life in 0..40u64 {
        let arguments: Vec<String> = match &run {
            None => RUN.iter().map(|word| (*word).to_owned()).collect(),
            Some(run) => ["runs", "resume", run].map(str::to_owned).to_vec(),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = project
            .command(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The last processes are not killed, even on a slow machine.
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
            // The run waits for an approval.
            assert_eq!(status.code(), Some(4));
            let listed = project.run(&["approvals", "list", "--json"]);
            let asked = listed.lines().find(|line| line.starts_with('{')).unwrap();
            let asked: Value = serde_json::from_str(asked).unwrap();
            let call = asked["call"].as_str().unwrap_or_else(|| panic!("{asked}"));
            let output = project.run(&["approvals", "approve", call, "--yes"]);
            assert!(output.contains("exit code 0"), "{output}");
        }
        if run.is_none() {
            let listed = project.run(&["plan", "list", "--json"]);
            run = listed.contains("\"run\"").then(|| run_of(&project));
            // Killed before the plan was stored: nothing happened, and the command runs again.
            if run.is_none() {
                assert_eq!(project.read("effects"), "");
            }
        }
    }
    let run = run.unwrap();
    let plan = shown(&project, &run);
    assert_eq!(plan["status"], "success", "{plan}");
    let (started, ended) = task_positions(&project, &run);
    let places = |of: &[(String, usize)], task: &str| -> Vec<usize> {
        let found = of.iter().filter(|(name, _)| name == task);
        found.map(|(_, position)| *position).collect()
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
    let effects = project.read("effects");
    assert_eq!(effects.matches("payday").count(), 1, "{effects}");
    for number in 0..8 {
        assert!(
            effects.contains(&format!("slow{number}")),
            "{number}: {effects}"
        );
    }
}

#[test]
fn check_reports_all_errors_of_a_plan_at_once() {
    let plan = json!({
        "execution_mode": "sideways",
        "tasks": [
            {"id": "a", "tool": "fly", "arguments": {}},
            {"id": "b", "tool": "note", "arguments": {"word": 7}, "depends_on": ["zz"]},
            {"id": "c", "agent": "nobody", "description": "x", "depends_on": ["d"]},
            {"id": "d", "description": "y", "depends_on": ["c"]},
            {"id": "e", "tool": "note", "arguments": {"word": "x"}, "retries": "many"},
        ],
    });
    let printed = project(&plan).run(&[
        "plan",
        "check",
        "agent.gram",
        "plan.json",
        "--library",
        "desk.toml",
        "--model",
        "reflex",
    ]);
    for error in [
        "`execution_mode` must be",
        "`fly`",
        "depends on `zz`",
        "the arguments of `note` do not fit",
        "`nobody`",
        "in a cycle: c -> d -> c",
        "invalid type: string \"many\"",
    ] {
        assert_eq!(printed.matches(error).count(), 1, "{error}: {printed}");
    }
    assert!(printed.ends_with("--- exit code 1\n"), "{printed}");
}
