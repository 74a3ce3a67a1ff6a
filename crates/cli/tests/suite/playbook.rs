//! What runs teach, through the program: recalled for the next task, counted, changed by hand, taken
//! back, and whole after a kill.

use std::process::Stdio;

use serde_json::{Value, json};

use super::program::{Place, example};

const FILE: &str = "data/playbooks/tool-calling/general/strategies.jsonl";
const NAMES: [&str; 6] = ["Ada", "Grace", "Joan", "Barbara", "Frances", "Radia"];
const LOG: &str = "data/playbooks/tool-calling/general/evidence.jsonl";

fn place() -> Place {
    Place::new().with("hello.gram", example("hello.gram"))
}

fn greet<'a>(task: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "hello.gram", task, "--library", "hello"];
    arguments.extend(["--model", "reflex"]);
    arguments.extend(more);
    arguments
}

fn json_of(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let output = place.command(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn listed(place: &Place) -> Vec<Value> {
    json_of(place, &["playbook", "list", "--all", "--json"])
}

fn count(place: &Place) -> Option<u64> {
    listed(place).first()?["helpful_count"].as_u64()
}

#[test]
fn the_second_task_of_a_kind_is_told_what_worked_for_the_first() {
    let place = place();
    let first = place.run(&greet("Greet Ada.", &[]));
    assert!(!first.contains("recalls"), "{first}");
    let known = &listed(&place)[0];
    assert_eq!(known["tool_sequence"], json!(["sayHello"]));
    assert_eq!(known["helpful_count"], json!(1));
    assert_eq!(known["data_model_version"], json!("1.0.0"));
    assert_eq!(known["example_task"], json!("Greet Ada."));
    let second = place.run(&greet("Please greet Grace.", &[]));
    assert!(second.contains("recalls s-"), "{second}");
    assert!(
        second.contains("Hello, Grace! Nice to meet you."),
        "{second}"
    );
    assert_eq!(count(&place), Some(2));
    let runs = json_of(&place, &["trace", "list", "--json"]);
    let run = runs[0]["run"].as_str().unwrap();
    let trace = &json_of(&place, &["trace", "show", run, "--json"])[0];
    assert_eq!(trace["strategies"][0]["id"], known["id"]);
    assert_eq!(trace["strategies"][0]["followed"], json!(true));
    let shown = place.run(&["playbook", "show", "s-"]);
    assert!(shown.contains(&format!("run {run}: helpful")), "{shown}");
}

#[test]
fn learning_is_off_with_a_flag_and_frozen_only_reads() {
    let place = place();
    place.run(&greet("Greet Ada.", &["--no-learning"]));
    assert_eq!(count(&place), None);
    place.run(&greet("Greet Ada.", &[]));
    let before = (place.read(FILE), place.read(LOG));
    let frozen = place.run(&greet("Greet Grace.", &["--frozen"]));
    assert!(frozen.contains("recalls s-"), "{frozen}");
    let off = place.run(&greet("Greet Grace.", &["--no-learning"]));
    assert!(!off.contains("recalls"), "{off}");
    let set = place.run(&greet(
        "Greet Grace.",
        &["--set", "learning.recall=0", "--frozen"],
    ));
    assert!(!set.contains("recalls"), "{set}");
    assert_eq!((place.read(FILE), place.read(LOG)), before);
}

#[test]
fn strategies_are_kept_by_domain_and_recalled_there_only() {
    let place = place();
    place.run(&greet("Greet Ada.", &["--domain", "guests/vip"]));
    let other = place.run(&greet("Greet Ada.", &["--domain", "staff"]));
    assert!(!other.contains("recalls"), "{other}");
    let same = place.run(&greet("Greet Ada.", &["--domain", "guests/vip"]));
    assert!(same.contains("recalls"), "{same}");
    let domains: Vec<Value> = listed(&place)
        .iter()
        .map(|line| line["domain"].clone())
        .collect();
    assert_eq!(domains, [json!("guests/vip"), json!("staff")]);
    let wrong = place.run(&["playbook", "list", "--domain", "stuff"]);
    assert!(wrong.contains("staff"), "{wrong}");
    let several = place.run(&["playbook", "revert", "0"]);
    assert!(several.contains("--domain"), "{several}");
}

#[test]
fn what_is_switched_off_is_not_advised() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let off = ["--set", "categories.greetings.tools.sayHello.enabled=false"];
    let told = place.run(&greet("Greet Ada.", &off));
    assert!(!told.contains("recalls"), "{told}");
    let on = place.run(&greet("Greet Ada.", &[]));
    assert!(on.contains("recalls"), "{on}");
}

#[test]
fn lines_that_cannot_be_used_are_named_kept_and_do_not_stop_the_rest() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let mut bad = listed(&place)[0].clone();
    bad["tool_success_rate"] = json!(1.2);
    let newer = json!({"content": "x", "section": "Strategies", "data_model_version": "2.0.0"});
    let text = format!("{}no json\n{newer}\n{bad}\n", place.read(FILE));
    std::fs::write(place.path(FILE), &text).unwrap();
    let told = place.run(&greet("Greet Grace.", &[]));
    for wanted in [
        "strategies.jsonl:2: column",
        "strategies.jsonl:3: it is of data model 2.0.0",
        "strategies.jsonl:4: tool_success_rate is between 0.0 and 1.0, not 1.2",
        "recalls s-",
        "Hello, Grace!",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let after = place.read(FILE);
    assert!(
        after.contains("no json\n") && after.contains("2.0.0"),
        "{after}"
    );
    assert_eq!(count(&place), Some(2));
}

#[test]
fn what_people_write_into_the_file_holds() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let mut line: Value = serde_json::from_str(place.read(FILE).trim()).unwrap();
    line["content"] = json!("To be kind to somebody by name: `sayHello`.");
    let bullet = json!({"content": "Greet people by their first name.", "section": "Observations"});
    std::fs::write(place.path(FILE), format!("{line}\n{bullet}\n")).unwrap();
    let told = place.run(&greet("Greet Grace by her name.", &[]));
    assert!(told.contains("To be kind to somebody by name"), "{told}");
    let known = listed(&place);
    assert_eq!(known.len(), 2);
    assert_eq!(known[0]["content"], line["content"]);
    assert_eq!(known[0]["helpful_count"], json!(2));
    assert_eq!(known[1]["section"], json!("Observations"));
    // Taken out by hand, it is gone.
    std::fs::write(place.path(FILE), format!("{bullet}\n")).unwrap();
    assert_eq!(listed(&place).len(), 1);
}

#[test]
fn a_playbook_can_be_pinned_disabled_compared_and_reverted() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let disabled = place.run(&["playbook", "disable", "s-"]);
    assert!(disabled.contains("switched off (revision 2)"), "{disabled}");
    let told = place.run(&greet("Greet Grace.", &[]));
    assert!(!told.contains("recalls"), "{told}");
    let back = place.run(&["playbook", "disable", "s-", "--undo"]);
    assert!(back.contains("in use (revision 4)"), "{back}");
    assert!(
        place
            .run(&["playbook", "pin", "s-"])
            .contains("in use, pinned")
    );
    let diff = place.run(&["playbook", "diff", "2"]);
    for wanted in [
        "helpful: 1 -> 2",
        "standing: switched off -> in use",
        "pinned: false -> true",
    ] {
        assert!(diff.contains(wanted), "{wanted}: {diff}");
    }
    let reverted = place.run(&["playbook", "revert", "1"]);
    assert!(
        reverted.contains("`windlass playbook revert 5` takes this back"),
        "{reverted}"
    );
    let known = listed(&place);
    assert_eq!(
        (known[0]["helpful_count"].clone(), known[0].get("pinned")),
        (json!(1), None)
    );
    place.run(&["playbook", "revert", "5"]);
    assert_eq!(listed(&place)[0]["pinned"], json!(true));
    let wrong = place.run(&["playbook", "revert", "77"]);
    assert!(wrong.contains("is at revision 7"), "{wrong}");
    let none = place.run(&["playbook", "show", "nothing"]);
    assert!(none.contains("there is no strategy `nothing`"), "{none}");
}

#[test]
fn strategies_are_exported_and_taken_in_elsewhere_once() {
    let one = place();
    one.run(&greet("Greet Ada.", &[]));
    one.run(&["playbook", "export", "--out", "book.jsonl"]);
    let mut unknown: Value = serde_json::from_str(one.read("book.jsonl").trim()).unwrap();
    unknown["tool_sequence"] = json!(["sayHallo"]);
    unknown["id"] = json!("other");
    let text = format!("{}{unknown}\nnothing\n", one.read("book.jsonl"));
    let two = place().with("book.jsonl", text);
    let import = ["playbook", "import", "book.jsonl", "--agent", "hello.gram"];
    for revision in [1, 2] {
        let told = two.run(&import);
        for wanted in [
            "book.jsonl:2: there is no tool `sayHallo`; did you mean `sayHello`?",
            "book.jsonl:3: column 2",
            &format!("1 strategies taken, 2 lines refused (revision {revision})"),
            "exit code 1",
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
        assert_eq!(count(&two), Some(1));
    }
    let told = two.run(&greet("Greet Grace.", &[]));
    assert!(told.contains("recalls s-"), "{told}");
    let stats = &json_of(&two, &["playbook", "stats", "--json"])[0];
    assert_eq!(stats["successes"]["followed"]["runs"], json!(1));
}

#[test]
fn strategies_that_are_taken_in_where_they_were_learned_count_once() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    for _ in 0..2 {
        place.run(&["playbook", "export", "--out", "book.jsonl"]);
        place.run(&["playbook", "import", "book.jsonl"]);
        assert_eq!(count(&place), Some(1));
    }
    place.run(&greet("Greet Grace.", &[]));
    place.run(&["playbook", "import", "book.jsonl"]);
    assert_eq!(count(&place), Some(2));
}

#[test]
fn what_can_hardly_be_meant_in_a_line_that_was_written_by_hand_is_told() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let line = json!({
        "content": "Greet people warmly: `sayHello`.", "section": "Strategies",
        "helpful_count": 3, "tool_success_rate": 0.3,
    });
    std::fs::write(place.path(FILE), format!("{}{line}\n", place.read(FILE))).unwrap();
    let wanted = "strategies.jsonl:2: helpful_count is 3, yet tool_success_rate is 0.3";
    let listed = place.run(&["playbook", "list"]);
    assert!(listed.contains(wanted), "{listed}");
    let told = place.run(&greet("Greet Grace.", &[]));
    assert!(told.contains(wanted), "{told}");
}

#[test]
fn a_domain_has_a_name_of_any_length_but_none() {
    let place = place();
    let long = "guests of the house ".repeat(12);
    let long = long.trim();
    place.run(&greet("Greet Ada.", &["--domain", long]));
    assert_eq!(listed(&place)[0]["domain"], json!(long));
    let told = place.run(&greet("Greet Grace.", &["--domain", long]));
    assert!(told.contains("recalls s-"), "{told}");
    for arguments in [
        greet("Greet Ada.", &["--domain", ""]),
        vec!["playbook", "list", "--domain", ""],
    ] {
        let told = place.run(&arguments);
        assert!(told.contains("exit code 2"), "{told}");
    }
    assert!(
        !place
            .path("data/playbooks/tool-calling/strategies.jsonl")
            .exists()
    );
}

#[test]
fn a_log_with_bytes_that_are_no_text_is_added_to_at_its_end() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let mut log = std::fs::read(place.path(LOG)).unwrap();
    log.extend(b"\xff\xfe\n");
    let whole = log.clone();
    log.extend(b"{\"evidence\": \"\xff");
    std::fs::write(place.path(LOG), log).unwrap();
    let told = place.run(&greet("Greet Grace.", &[]));
    assert!(told.contains("Hello, Grace!"), "{told}");
    let after = std::fs::read(place.path(LOG)).unwrap();
    assert!(after.starts_with(&whole));
    let added: Value = serde_json::from_slice(&after[whole.len()..]).unwrap();
    assert_eq!(added["task"], json!("Greet Grace."));
    assert_eq!(count(&place), Some(2));
}

#[test]
fn a_strategy_that_names_a_tool_nobody_has_is_named_by_file_and_line() {
    let place = place();
    place.run(&greet("Greet Ada.", &[]));
    let line = json!({
        "content": "Wave first.", "section": "Strategies", "tool_sequence": ["waveHello"],
    });
    std::fs::write(place.path(FILE), format!("{}{line}\n", place.read(FILE))).unwrap();
    let told = place.run(&["playbook", "list", "--agent", "hello.gram"]);
    assert!(
        told.contains("strategies.jsonl:2: there is no tool `waveHello`"),
        "{told}"
    );
    // A run says so as well, once: then it is known to be gone.
    let told = place.run(&greet("Greet Grace.", &[]));
    let named = "strategies.jsonl:2: there is no tool `waveHello`; did you mean `sayHello`?";
    assert!(told.contains(named), "{told}");
    let told = place.run(&greet("Greet Joan.", &["--frozen"]));
    assert!(!told.contains("waveHello"), "{told}");
    let known = listed(&place);
    assert_eq!(known[1]["standing"], json!("retired"));
    assert_eq!(known[1]["retired"], json!("the tool `waveHello` is gone"));
}

#[test]
fn a_checker_says_whether_a_run_succeeded() {
    let place = place().with(
        "windlass.toml",
        "[learning]\nchecker = [\"grep\", \"-q\", \"Grace\"]\n",
    );
    place.run(&greet("Greet Grace.", &[]));
    assert_eq!(listed(&place)[0]["section"], json!("Strategies"));
    place.run(&greet("Greet Ada.", &[]));
    let known = listed(&place);
    assert_eq!(known[1]["section"], json!("Pitfalls"));
    assert_eq!(known[0]["harmful_count"], json!(1));
    std::fs::write(
        place.path("windlass.toml"),
        "[learning]\nchecker = [\"no-such-program\"]\n",
    )
    .unwrap();
    let told = place.run(&greet("Greet Ada.", &[]));
    assert!(
        told.contains("warning: the checker could not be asked"),
        "{told}"
    );
}

#[test]
fn the_answer_that_a_task_expects_says_whether_it_was_done() {
    let task = |name: &str, expected: Value| {
        let description = format!("Greet {name}.");
        json!({"task_id": name, "description": description, "metadata": {"expected": expected}})
    };
    let right = task("Grace", json!("hello grace"));
    let wrong = task("Ada", json!(["Bonjour", "Salut"]));
    let place = place().with("tasks.jsonl", format!("{right}\n{wrong}\n"));
    place.run(&batch(&[]));
    let known = listed(&place);
    let sections: Vec<&Value> = known.iter().map(|line| &line["section"]).collect();
    assert_eq!(sections, [&json!("Strategies"), &json!("Pitfalls")]);
    assert_eq!(known[0]["helpful_count"], json!(1));
    let verdicts: Vec<Value> = place
        .read(LOG)
        .lines()
        .map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            entry["verdict"].clone()
        })
        .collect();
    assert_eq!(verdicts, [json!("succeeded"), json!("failed")]);
}

/// The tasks that are worked on in a batch.
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
fn a_seeded_batch_is_told_and_leaves_the_same_each_time() {
    let learned = || -> (Vec<(String, Value)>, Vec<Value>) {
        let place = place().with("tasks.jsonl", six_tasks());
        place.run(&batch(&["--jobs", "3", "--seed", "7"]));
        let mut recalled: Vec<(String, Value)> = Vec::new();
        for run in json_of(&place, &["trace", "list", "--json"]) {
            let trace = json_of(
                &place,
                &["trace", "show", run["run"].as_str().unwrap(), "--json"],
            );
            let answer = trace[0]["response"]["answer"].to_string();
            recalled.push((answer, trace[0]["strategies"].clone()));
        }
        recalled.sort_by(|one, two| one.0.cmp(&two.0));
        let file = place.read(FILE);
        let lines = file.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            // These differ from time to time, and nothing is decided by them.
            for field in ["created_at", "last_updated", "runs"] {
                line.as_object_mut().unwrap().remove(field);
            }
            line
        });
        (recalled, lines.collect())
    };
    let (recalled, file) = learned();
    assert_eq!(recalled.len(), 6);
    let told = |(_, strategies): &&(String, Value)| !strategies.as_array().unwrap().is_empty();
    assert_eq!(recalled.iter().filter(told).count(), 3, "{recalled:?}");
    assert_eq!(learned(), (recalled, file));
}

#[test]
fn a_batch_learns_in_the_order_of_its_tasks() {
    let tasks = six_tasks();
    let learned = |more: &[&str]| -> Vec<String> {
        let place = place().with("tasks.jsonl", &tasks);
        let mut arguments = batch(&["--jobs", "3"]);
        arguments.extend(more);
        place.run(&arguments);
        let log = place.read(LOG);
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

/// The process is killed at every point of writing; the playbook is readable, and the run counts once.
#[test]
fn a_kill_at_any_write_leaves_a_readable_playbook_and_counts_once() {
    for point in ["torn", "logged", "noted", "written"] {
        let place = place();
        place.run(&greet("Greet Ada.", &[]));
        let status = place
            .command(&greet("Greet Grace.", &[]))
            .env("WINDLASS_CRASH_AT", format!("playbook.{point}#1"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "it was to be killed at {point}");
        let told = place.run(&["playbook", "list"]);
        assert!(!told.contains("warning"), "{point}: {told}");
        let known = count(&place).unwrap();
        assert_eq!(known, if point == "torn" { 1 } else { 2 }, "{point}");
        // The run is not over yet; whoever goes on with it learns what was not learned.
        let runs = json_of(&place, &["trace", "list", "--json"]);
        place.run(&["runs", "resume", runs[0]["run"].as_str().unwrap()]);
        assert_eq!(count(&place), Some(2), "{point}");
        place.run(&greet("Greet Joan.", &[]));
        assert_eq!(count(&place), Some(3), "{point}");
    }
}

/// Runs the program until it is killed where something is written, and says whether it was.
fn killed(place: &Place, point: &str, arguments: &[&str]) {
    let status = place
        .command(arguments)
        .env("WINDLASS_CRASH_AT", format!("playbook.{point}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), None, "it was to be killed at {point}");
}

/// Every point of a write: the log, what is noted of the file, and the file, each in halves.
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
fn a_kill_at_the_very_first_write_leaves_a_readable_playbook() {
    for point in POINTS {
        let place = place();
        killed(&place, point, &greet("Greet Ada.", &[]));
        let told = place.run(&["playbook", "list"]);
        assert!(!told.contains("warning"), "{point}: {told}");
        let known = if point == "torn#1" { None } else { Some(1) };
        assert_eq!(count(&place), known, "{point}");
        let runs = json_of(&place, &["trace", "list", "--json"]);
        place.run(&["runs", "resume", runs[0]["run"].as_str().unwrap()]);
        assert_eq!(count(&place), Some(1), "{point}");
        let told = place.run(&greet("Greet Grace.", &[]));
        assert!(told.contains("recalls s-"), "{point}: {told}");
        assert_eq!(count(&place), Some(2), "{point}");
    }
}

/// What a person changes happened if it is in the log, and not at all otherwise.
#[test]
fn a_kill_while_a_person_changes_a_playbook_leaves_it_as_before_or_after() {
    for point in POINTS {
        let happened = point != "torn#1";
        let place = place();
        place.run(&greet("Greet Ada.", &[]));
        let known = |place: &Place| {
            let told = place.run(&["playbook", "list"]);
            assert!(!told.contains("warning"), "{point}: {told}");
            listed(place)[0].clone()
        };
        killed(&place, point, &["playbook", "pin", "s-"]);
        let pinned = known(&place).get("pinned").is_some();
        assert_eq!(pinned, happened, "{point}");
        place.run(&["playbook", "export", "--out", "book.jsonl"]);
        killed(&place, point, &["playbook", "import", "book.jsonl"]);
        assert_eq!(known(&place)["helpful_count"], json!(1), "{point}");
        killed(&place, point, &["playbook", "revert", "0"]);
        assert_eq!(listed(&place).is_empty(), happened, "{point}");
        place.run(&greet("Greet Grace.", &[]));
        let helpful = if happened { 1 } else { 2 };
        assert_eq!(known(&place)["helpful_count"], json!(helpful), "{point}");
    }
}

#[test]
fn processes_that_learn_at_once_lose_nothing() {
    let place = place();
    let children: Vec<_> = (0..6)
        .map(|number| {
            let task = format!("Greet {}.", NAMES[number]);
            let mut command = place.command(&greet(&task, &[]));
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
    assert_eq!(count(&place), Some(6));
    assert_eq!(place.read(LOG).lines().count(), 6);
}
