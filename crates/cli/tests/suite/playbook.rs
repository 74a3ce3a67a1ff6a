//! Playbooks: strategies are learned, used, counted, edited, reverted, and consistent after a kill.

use std::process::Stdio;

use serde_json::{Value, json};

use super::program::{TestProject, example};

const FILE: &str = "data/playbooks/tool-calling/general/strategies.jsonl";
const NAMES: [&str; 6] = ["Ada", "Grace", "Joan", "Barbara", "Frances", "Radia"];
const LOG: &str = "data/playbooks/tool-calling/general/evidence.jsonl";

fn project() -> TestProject {
    TestProject::new().with("hello.gram", example("hello.gram"))
}

fn greet<'a>(task: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "hello.gram", task, "--library", "hello"];
    arguments.extend(["--model", "reflex"]);
    arguments.extend(more);
    arguments
}

fn json_of(project: &TestProject, arguments: &[&str]) -> Vec<Value> {
    let output = project.command(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn listed(project: &TestProject) -> Vec<Value> {
    json_of(project, &["playbook", "list", "--all", "--json"])
}

fn count(project: &TestProject) -> Option<u64> {
    listed(project).first()?["helpful_count"].as_u64()
}

#[test]
fn second_similar_task_uses_the_strategy_of_the_first() {
    let project = project();
    let first = project.run(&greet("Greet Ada.", &[]));
    assert!(!first.contains("uses strategy"), "{first}");
    let known = &listed(&project)[0];
    assert_eq!(known["tool_sequence"], json!(["sayHello"]));
    assert_eq!(known["helpful_count"], json!(1));
    assert_eq!(known["data_model_version"], json!("1.0.0"));
    assert_eq!(known["example_task"], json!("Greet Ada."));
    let second = project.run(&greet("Please greet Grace.", &[]));
    assert!(second.contains("uses strategy s-"), "{second}");
    assert!(
        second.contains("Hello, Grace! Nice to meet you."),
        "{second}"
    );
    assert_eq!(count(&project), Some(2));
    let runs = json_of(&project, &["trace", "list", "--json"]);
    let run = runs[0]["run"].as_str().unwrap();
    let trace = &json_of(&project, &["trace", "show", run, "--json"])[0];
    assert_eq!(trace["strategies"][0]["id"], known["id"]);
    assert_eq!(trace["strategies"][0]["followed"], json!(true));
    let shown = project.run(&["playbook", "show", "s-"]);
    assert!(shown.contains(&format!("run {run}: helpful")), "{shown}");
}

#[test]
fn no_learning_and_frozen_do_not_change_the_playbook() {
    let project = project();
    project.run(&greet("Greet Ada.", &["--no-learning"]));
    assert_eq!(count(&project), None);
    project.run(&greet("Greet Ada.", &[]));
    let before = (project.read(FILE), project.read(LOG));
    let frozen = project.run(&greet("Greet Grace.", &["--frozen"]));
    assert!(frozen.contains("uses strategy s-"), "{frozen}");
    let off = project.run(&greet("Greet Grace.", &["--no-learning"]));
    assert!(!off.contains("uses strategy"), "{off}");
    let set = project.run(&greet(
        "Greet Grace.",
        &["--set", "learning.recall=0", "--frozen"],
    ));
    assert!(!set.contains("uses strategy"), "{set}");
    assert_eq!((project.read(FILE), project.read(LOG)), before);
}

#[test]
fn strategies_are_used_only_in_their_domain() {
    let project = project();
    project.run(&greet("Greet Ada.", &["--domain", "guests/vip"]));
    let other = project.run(&greet("Greet Ada.", &["--domain", "staff"]));
    assert!(!other.contains("uses strategy"), "{other}");
    let same = project.run(&greet("Greet Ada.", &["--domain", "guests/vip"]));
    assert!(same.contains("uses strategy"), "{same}");
    let domains: Vec<Value> = listed(&project)
        .iter()
        .map(|line| line["domain"].clone())
        .collect();
    assert_eq!(domains, [json!("guests/vip"), json!("staff")]);
    let wrong = project.run(&["playbook", "list", "--domain", "stuff"]);
    assert!(wrong.contains("staff"), "{wrong}");
    let several = project.run(&["playbook", "revert", "0"]);
    assert!(several.contains("--domain"), "{several}");
}

#[test]
fn strategies_of_disabled_tools_are_not_used() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let off = [
        "--set",
        "categories.analysis_tools.tools.sayHello.enabled=false",
    ];
    let output = project.run(&greet("Greet Ada.", &off));
    assert!(!output.contains("uses strategy"), "{output}");
    let on = project.run(&greet("Greet Ada.", &[]));
    assert!(on.contains("uses strategy"), "{on}");
}

#[test]
fn invalid_lines_are_reported_and_kept() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let mut bad = listed(&project)[0].clone();
    bad["tool_success_rate"] = json!(1.2);
    let newer = json!({"content": "x", "section": "Strategies", "data_model_version": "2.0.0"});
    let text = format!("{}no json\n{newer}\n{bad}\n", project.read(FILE));
    std::fs::write(project.path(FILE), &text).unwrap();
    let output = project.run(&greet("Greet Grace.", &[]));
    for wanted in [
        "strategies.jsonl:2: column",
        "strategies.jsonl:3: the data model 2.0.0 is newer",
        "strategies.jsonl:4: tool_success_rate must be between 0.0 and 1.0, not 1.2",
        "uses strategy s-",
        "Hello, Grace!",
    ] {
        assert!(output.contains(wanted), "{wanted}: {output}");
    }
    let after = project.read(FILE);
    assert!(
        after.contains("no json\n") && after.contains("2.0.0"),
        "{after}"
    );
    assert_eq!(count(&project), Some(2));
}

#[test]
fn manual_edits_of_the_file_are_used() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let mut line: Value = serde_json::from_str(project.read(FILE).trim()).unwrap();
    line["content"] = json!("To be kind to a person by name: `sayHello`.");
    let bullet = json!({"content": "Greet people by their first name.", "section": "Observations"});
    std::fs::write(project.path(FILE), format!("{line}\n{bullet}\n")).unwrap();
    let output = project.run(&greet("Greet Grace by her name.", &[]));
    assert!(
        output.contains("To be kind to a person by name"),
        "{output}"
    );
    let known = listed(&project);
    assert_eq!(known.len(), 2);
    assert_eq!(known[0]["content"], line["content"]);
    assert_eq!(known[0]["helpful_count"], json!(2));
    assert_eq!(known[1]["section"], json!("Observations"));
    // A line removed from the file is removed from the playbook.
    std::fs::write(project.path(FILE), format!("{bullet}\n")).unwrap();
    assert_eq!(listed(&project).len(), 1);
}

#[test]
fn strategies_can_be_pinned_disabled_compared_and_reverted() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let disabled = project.run(&["playbook", "disable", "s-"]);
    assert!(disabled.contains("disabled (revision 2)"), "{disabled}");
    let output = project.run(&greet("Greet Grace.", &[]));
    assert!(!output.contains("uses strategy"), "{output}");
    let back = project.run(&["playbook", "disable", "s-", "--undo"]);
    assert!(back.contains("in use (revision 4)"), "{back}");
    assert!(
        project
            .run(&["playbook", "pin", "s-"])
            .contains("in use, pinned")
    );
    let diff = project.run(&["playbook", "diff", "2"]);
    for wanted in [
        "helpful: 1 -> 2",
        "status: disabled -> in use",
        "pinned: false -> true",
    ] {
        assert!(diff.contains(wanted), "{wanted}: {diff}");
    }
    let reverted = project.run(&["playbook", "revert", "1"]);
    assert!(
        reverted.contains("undo with: windlass playbook revert 5"),
        "{reverted}"
    );
    let known = listed(&project);
    assert_eq!(
        (known[0]["helpful_count"].clone(), known[0].get("pinned")),
        (json!(1), None)
    );
    project.run(&["playbook", "revert", "5"]);
    assert_eq!(listed(&project)[0]["pinned"], json!(true));
    let wrong = project.run(&["playbook", "revert", "77"]);
    assert!(
        wrong.contains("there is no revision 77; the playbook of "),
        "{wrong}"
    );
    let none = project.run(&["playbook", "show", "nothing"]);
    assert!(none.contains("there is no strategy `nothing`"), "{none}");
}

#[test]
fn repeated_import_counts_strategies_once() {
    let one = project();
    one.run(&greet("Greet Ada.", &[]));
    one.run(&["playbook", "export", "--out", "book.jsonl"]);
    let mut unknown: Value = serde_json::from_str(one.read("book.jsonl").trim()).unwrap();
    unknown["tool_sequence"] = json!(["sayHallo"]);
    unknown["id"] = json!("other");
    let text = format!("{}{unknown}\nnothing\n", one.read("book.jsonl"));
    let two = project().with("book.jsonl", text);
    let import = ["playbook", "import", "book.jsonl", "--agent", "hello.gram"];
    for revision in [1, 2] {
        let output = two.run(&import);
        for wanted in [
            "book.jsonl:2: there is no tool `sayHallo`; did you mean `sayHello`?",
            "book.jsonl:3: column 2",
            &format!("1 strategy imported, 2 lines refused (revision {revision})"),
            "exit code 1",
        ] {
            assert!(output.contains(wanted), "{wanted}: {output}");
        }
        assert_eq!(count(&two), Some(1));
    }
    let output = two.run(&greet("Greet Grace.", &[]));
    assert!(output.contains("uses strategy s-"), "{output}");
    let stats = &json_of(&two, &["playbook", "stats", "--json"])[0];
    assert_eq!(stats["successes"]["followed"]["runs"], json!(1));
}

#[test]
fn import_into_the_source_playbook_counts_strategies_once() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    for _ in 0..2 {
        project.run(&["playbook", "export", "--out", "book.jsonl"]);
        project.run(&["playbook", "import", "book.jsonl"]);
        assert_eq!(count(&project), Some(1));
    }
    project.run(&greet("Greet Grace.", &[]));
    project.run(&["playbook", "import", "book.jsonl"]);
    assert_eq!(count(&project), Some(2));
}

#[test]
fn contradictory_manual_line_is_reported() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let line = json!({
        "content": "Greet people warmly: `sayHello`.", "section": "Strategies",
        "helpful_count": 3, "tool_success_rate": 0.3,
    });
    std::fs::write(
        project.path(FILE),
        format!("{}{line}\n", project.read(FILE)),
    )
    .unwrap();
    let wanted = "strategies.jsonl:2: helpful_count is 3, but tool_success_rate is only 0.3";
    let listed = project.run(&["playbook", "list"]);
    assert!(listed.contains(wanted), "{listed}");
    let output = project.run(&greet("Greet Grace.", &[]));
    assert!(output.contains(wanted), "{output}");
}

#[test]
fn domain_name_can_be_long_but_not_empty() {
    let project = project();
    let long = "visitors of the office ".repeat(12);
    let long = long.trim();
    project.run(&greet("Greet Ada.", &["--domain", long]));
    assert_eq!(listed(&project)[0]["domain"], json!(long));
    let output = project.run(&greet("Greet Grace.", &["--domain", long]));
    assert!(output.contains("uses strategy s-"), "{output}");
    for arguments in [
        greet("Greet Ada.", &["--domain", ""]),
        vec!["playbook", "list", "--domain", ""],
    ] {
        let output = project.run(&arguments);
        assert!(output.contains("exit code 2"), "{output}");
    }
    assert!(
        !project
            .path("data/playbooks/tool-calling/strategies.jsonl")
            .exists()
    );
}

#[test]
fn log_with_invalid_bytes_is_appended_to() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let mut log = std::fs::read(project.path(LOG)).unwrap();
    log.extend(b"\xff\xfe\n");
    let whole = log.clone();
    log.extend(b"{\"evidence\": \"\xff");
    std::fs::write(project.path(LOG), log).unwrap();
    let output = project.run(&greet("Greet Grace.", &[]));
    assert!(output.contains("Hello, Grace!"), "{output}");
    let after = std::fs::read(project.path(LOG)).unwrap();
    assert!(after.starts_with(&whole));
    let added: Value = serde_json::from_slice(&after[whole.len()..]).unwrap();
    assert_eq!(added["task"], json!("Greet Grace."));
    assert_eq!(count(&project), Some(2));
}

#[test]
fn strategy_with_an_unknown_tool_is_reported_by_file_and_line() {
    let project = project();
    project.run(&greet("Greet Ada.", &[]));
    let line = json!({
        "content": "Wave first.", "section": "Strategies", "tool_sequence": ["waveHello"],
    });
    std::fs::write(
        project.path(FILE),
        format!("{}{line}\n", project.read(FILE)),
    )
    .unwrap();
    let output = project.run(&["playbook", "list", "--agent", "hello.gram"]);
    assert!(
        output.contains("strategies.jsonl:2: there is no tool `waveHello`"),
        "{output}"
    );
    // A run reports it once, and then the strategy is retired.
    let output = project.run(&greet("Greet Grace.", &[]));
    let named = "strategies.jsonl:2: there is no tool `waveHello`; did you mean `sayHello`?";
    assert!(output.contains(named), "{output}");
    let output = project.run(&greet("Greet Joan.", &["--frozen"]));
    assert!(!output.contains("waveHello"), "{output}");
    let known = listed(&project);
    assert_eq!(known[1]["standing"], json!("retired"));
    assert_eq!(known[1]["retired"], json!("the tool `waveHello` is gone"));
}

#[test]
fn checker_decides_whether_a_run_succeeded() {
    let project = project().with(
        "windlass.toml",
        "[learning]\nchecker = [\"grep\", \"-q\", \"Grace\"]\n",
    );
    project.run(&greet("Greet Grace.", &[]));
    assert_eq!(listed(&project)[0]["section"], json!("Strategies"));
    project.run(&greet("Greet Ada.", &[]));
    let known = listed(&project);
    assert_eq!(known[1]["section"], json!("Pitfalls"));
    assert_eq!(known[0]["harmful_count"], json!(1));
    std::fs::write(
        project.path("windlass.toml"),
        "[learning]\nchecker = [\"no-such-program\"]\n",
    )
    .unwrap();
    let output = project.run(&greet("Greet Ada.", &[]));
    assert!(
        output.contains("warning: the checker could not run"),
        "{output}"
    );
}

#[test]
fn expected_answer_decides_whether_a_task_succeeded() {
    let task = |name: &str, expected: Value| {
        let description = format!("Greet {name}.");
        json!({"task_id": name, "description": description, "metadata": {"expected": expected}})
    };
    let right = task("Grace", json!("hello grace"));
    let wrong = task("Ada", json!(["Bonjour", "Salut"]));
    let project = project().with("tasks.jsonl", format!("{right}\n{wrong}\n"));
    project.run(&batch(&[]));
    let known = listed(&project);
    let sections: Vec<&Value> = known.iter().map(|line| &line["section"]).collect();
    assert_eq!(sections, [&json!("Strategies"), &json!("Pitfalls")]);
    assert_eq!(known[0]["helpful_count"], json!(1));
    let verdicts: Vec<Value> = project
        .read(LOG)
        .lines()
        .map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            entry["verdict"].clone()
        })
        .collect();
    assert_eq!(verdicts, [json!("succeeded"), json!("failed")]);
}

/// The arguments of a batch.
fn batch<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "hello.gram", "--tasks", "tasks.jsonl"];
    arguments.extend(["--library", "hello", "--model", "reflex"]);
    arguments.extend(more);
    arguments
}

fn six_tasks() -> String {
    let tasks = NAMES.iter().enumerate().map(|(number, name)| {
        let description = format!("Greet {name}.");
        json!({"task_id": format!("t{number}"), "description": description})
    });
    tasks.map(|task| format!("{task}\n")).collect()
}

#[test]
fn seeded_batch_is_reproducible() {
    let learned = || -> (Vec<(String, Value)>, Vec<Value>) {
        let project = project().with("tasks.jsonl", six_tasks());
        project.run(&batch(&["--jobs", "3", "--seed", "7"]));
        let mut recalled: Vec<(String, Value)> = Vec::new();
        for run in json_of(&project, &["trace", "list", "--json"]) {
            let trace = json_of(
                &project,
                &["trace", "show", run["run"].as_str().unwrap(), "--json"],
            );
            let answer = trace[0]["response"]["answer"].to_string();
            recalled.push((answer, trace[0]["strategies"].clone()));
        }
        recalled.sort_by(|one, two| one.0.cmp(&two.0));
        let file = project.read(FILE);
        let lines = file.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            // These fields differ between runs.
            for field in ["created_at", "last_updated", "runs"] {
                line.as_object_mut().unwrap().remove(field);
            }
            line
        });
        (recalled, lines.collect())
    };
    let (recalled, file) = learned();
    assert_eq!(recalled.len(), 6);
    let has_strategies =
        |(_, strategies): &&(String, Value)| !strategies.as_array().unwrap().is_empty();
    assert_eq!(
        recalled.iter().filter(has_strategies).count(),
        3,
        "{recalled:?}"
    );
    assert_eq!(learned(), (recalled, file));
}

#[test]
fn batch_learns_in_task_order() {
    let tasks = six_tasks();
    let learned = |more: &[&str]| -> Vec<String> {
        let project = project().with("tasks.jsonl", &tasks);
        let mut arguments = batch(&["--jobs", "3"]);
        arguments.extend(more);
        project.run(&arguments);
        let log = project.read(LOG);
        let tasks = log.lines().map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            entry["task"].as_str().unwrap().to_owned()
        });
        tasks.collect()
    };
    let in_order: Vec<String> = (0..6)
        .map(|task| format!("Greet {}.", NAMES[task]))
        .collect();
    assert_eq!(learned(&[]), in_order);
    let drawn = learned(&["--seed", "7"]);
    assert_ne!(drawn, in_order);
    assert_eq!(learned(&["--seed", "7"]), drawn);
}

/// After a kill at any point of a write, the playbook is readable and the run counts once.
#[test]
fn kill_at_any_write_leaves_a_readable_playbook_and_counts_once() {
    for point in ["torn", "logged", "noted", "written"] {
        let project = project();
        project.run(&greet("Greet Ada.", &[]));
        let status = project
            .command(&greet("Greet Grace.", &[]))
            .env("WINDLASS_CRASH_AT", format!("playbook.{point}#1"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "it was to be killed at {point}");
        let output = project.run(&["playbook", "list"]);
        assert!(!output.contains("warning"), "{point}: {output}");
        let known = count(&project).unwrap();
        assert_eq!(known, if point == "torn" { 1 } else { 2 }, "{point}");
        // Resuming the run completes its learning.
        let runs = json_of(&project, &["trace", "list", "--json"]);
        project.run(&["runs", "resume", runs[0]["run"].as_str().unwrap()]);
        assert_eq!(count(&project), Some(2), "{point}");
        project.run(&greet("Greet Joan.", &[]));
        assert_eq!(count(&project), Some(3), "{point}");
    }
}

/// Runs the program until it is killed at a crash point.
fn run_until_killed(project: &TestProject, point: &str, arguments: &[&str]) {
    let status = project
        .command(arguments)
        .env("WINDLASS_CRASH_AT", format!("playbook.{point}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), None, "it was to be killed at {point}");
}

/// Every crash point of a write: the log, the digest of the file, and the file.
const POINTS: [&str; 8] = [
    "torn#1",
    "logged#1",
    "half#1",
    "replacing#1",
    "noted#1",
    "half#2",
    "replacing#2",
    "written#1",
];

#[test]
fn kill_at_the_first_write_leaves_a_readable_playbook() {
    for point in POINTS {
        let project = project();
        run_until_killed(&project, point, &greet("Greet Ada.", &[]));
        let output = project.run(&["playbook", "list"]);
        assert!(!output.contains("warning"), "{point}: {output}");
        let known = if point == "torn#1" { None } else { Some(1) };
        assert_eq!(count(&project), known, "{point}");
        let runs = json_of(&project, &["trace", "list", "--json"]);
        project.run(&["runs", "resume", runs[0]["run"].as_str().unwrap()]);
        assert_eq!(count(&project), Some(1), "{point}");
        let output = project.run(&greet("Greet Grace.", &[]));
        assert!(output.contains("uses strategy s-"), "{point}: {output}");
        assert_eq!(count(&project), Some(2), "{point}");
    }
}

/// A manual change is complete if it is in the log, and absent otherwise.
#[test]
fn kill_during_a_manual_change_leaves_the_old_or_the_new_playbook() {
    for point in POINTS {
        let happened = point != "torn#1";
        let project = project();
        project.run(&greet("Greet Ada.", &[]));
        let known = |project: &TestProject| {
            let output = project.run(&["playbook", "list"]);
            assert!(!output.contains("warning"), "{point}: {output}");
            listed(project)[0].clone()
        };
        run_until_killed(&project, point, &["playbook", "pin", "s-"]);
        let pinned = known(&project).get("pinned").is_some();
        assert_eq!(pinned, happened, "{point}");
        project.run(&["playbook", "export", "--out", "book.jsonl"]);
        run_until_killed(&project, point, &["playbook", "import", "book.jsonl"]);
        assert_eq!(known(&project)["helpful_count"], json!(1), "{point}");
        run_until_killed(&project, point, &["playbook", "revert", "0"]);
        assert_eq!(listed(&project).is_empty(), happened, "{point}");
        project.run(&greet("Greet Grace.", &[]));
        let helpful = if happened { 1 } else { 2 };
        assert_eq!(known(&project)["helpful_count"], json!(helpful), "{point}");
    }
}

#[test]
fn concurrent_learning_loses_nothing() {
    let project = project();
    let children: Vec<_> = (0..6)
        .map(|number| {
            let task = format!("Greet {}.", NAMES[number]);
            let mut command = project.command(&greet(&task, &[]));
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(count(&project), Some(6));
    assert_eq!(project.read(LOG).lines().count(), 6);
}
