//! A/B tests: experiments with two libraries, and reports on variants.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{CallEnd, Event, ExecutedTool, Settings, Task, Variant};
use windlass_spec::{Effect, ErrorCategory, Failure, RunId, ToolName, Turn};
use windlass_store::{Durability, NewRun, RunFilter, Store};

use super::program::{TestProject, example};
use super::seeded::{agent, at, open};

fn project() -> TestProject {
    TestProject::new()
        .with("agent.gram", example("prices/agent.gram"))
        .with("old.toml", example("prices/old.toml"))
        .with("new.toml", example("prices/new.toml"))
        .with("split.toml", example("prices/split.toml"))
        .with("tasks.jsonl", example("prices/tasks.jsonl"))
}

const AB: [&str; 10] = [
    "ab",
    "agent.gram",
    "--a",
    "old.toml",
    "--b",
    "new.toml",
    "--tasks",
    "tasks.jsonl",
    "--model",
    "reflex",
];

/// Parses the object that `--json` printed.
fn object(output: &str) -> Value {
    let line = output.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{output}"))).unwrap()
}

fn runs(project: &TestProject) -> Vec<Value> {
    let listed = project.run(&["runs", "list", "--json", "--limit", "1000"]);
    let lines = listed.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn better_library_wins_the_experiment() {
    let project = project();
    let output = project.run(&[&AB[..], &["--jobs", "2", "--json"]].concat());
    assert!(output.ends_with("exit code 0\n"), "{output}");
    let found = object(&output);
    let success = &found["metrics"][0];
    assert_eq!(success["metric"], "success", "{output}");
    assert_eq!(success["verdict"], "better", "{output}");
    assert_eq!(success["arm"], "b", "{output}");
    assert_eq!(success["pairs"], 12);
    assert_eq!(success["b"], 1.0, "{output}");
    assert_eq!(found["differs"][0]["tool"], "lookUpPrice");
    assert!(found["sample_ratio"]["p_value"].as_f64().unwrap() > 0.99);
    let errors = &found["guard_rails"][0];
    assert_eq!(errors["guard_rail"], "errors");
    assert!(errors["effect"].as_f64().unwrap() < 0.0, "{output}");
    // Every run records its experiment.
    let run = runs(&project)[0]["run"].as_str().unwrap().to_owned();
    let store = open(&project);
    let metadata = store
        .fold(&RunId::new(&*run).unwrap())
        .unwrap()
        .task()
        .metadata
        .clone();
    assert_eq!(metadata["experiment"], found["experiment"]);
    assert!(["a", "b"].contains(&metadata["arm"].as_str().unwrap()));
    assert!(metadata["pair"].as_str().unwrap().ends_with("/1"));
    // Repeating the command is refused. With `--resume` there is nothing left to do.
    let again = project.run(&AB);
    assert!(again.contains("has 24 runs already"), "{again}");
    assert!(again.ends_with("exit code 1\n"), "{again}");
    let resumed = project.run(&[&AB[..], &["--resume", "--json"]].concat());
    assert_eq!(object(&resumed)["metrics"], found["metrics"]);
    assert_eq!(runs(&project).len(), 24);
}

#[test]
fn too_few_tasks_are_reported_and_added_runs_use_optional_stopping() {
    let tasks = example("prices/tasks.jsonl");
    let few: Vec<&str> = tasks.lines().skip(3).take(2).collect();
    let project = project().with("tasks.jsonl", few.join("\n"));
    let output = project.run(&AB);
    assert!(output.contains("not enough data; about "), "{output}");
    assert!(output.contains(" more runs"), "{output}");
    assert!(output.ends_with("exit code 0\n"), "{output}");
    let output = project.run(&[&AB[..], &["--runs", "2", "--resume", "--json"]].concat());
    let found = object(&output);
    assert_eq!(found["pairs"]["complete"], 4, "{output}");
    assert_eq!(found["stopping"], "optional", "{output}");
    assert_eq!(found["is_extended"], true);
    assert_eq!(runs(&project).len(), 8);
}

#[test]
fn same_library_in_both_arms_has_no_winner() {
    let project = project();
    let output = project.run(&[&AB[..4], &["--b", "old.toml"], &AB[6..]].concat());
    assert!(output.contains("A and B are the same library"), "{output}");
    assert!(output.contains("no difference shown"), "{output}");
    assert!(!output.contains("is better"), "{output}");
    assert!(output.ends_with("exit code 0\n"), "{output}");
}

#[test]
fn failures_of_one_arm_do_not_trip_the_breaker_of_the_other() {
    // A fails at everything, so often in a row that a shared breaker would trip for both.
    let project = project().with(
        "old.toml",
        example("prices/old.toml").replace("*apple* | *pear* | *plum* | *cherr*", "*moon*"),
    );
    let output = project.run(&[&AB[..], &["--runs", "2", "--jobs", "8", "--json"]].concat());
    let found = object(&output);
    assert_eq!(found["metrics"][0]["a"], 0.0, "{output}");
    assert_eq!(found["metrics"][0]["b"], 1.0, "{output}");
    let denials = &found["guard_rails"][1];
    assert_eq!(denials["a"], 0.0, "{output}");
    let other = project.run(&[&AB[..4], &["--b", "old.toml", "--json"], &AB[6..]].concat());
    assert_eq!(object(&other)["guard_rails"][1]["a"], 0.0, "{other}");
}

#[test]
fn early_stop_skips_the_remaining_pairs_and_reports_it() {
    let project = project();
    let output = project.run(&[&AB[..], &["--runs", "4", "--early-stop", "--json"]].concat());
    let found = object(&output);
    assert_eq!(found["is_stopped_early"], true, "{output}");
    assert_eq!(found["metrics"][0]["arm"], "b", "{output}");
    assert!(found["metrics"][0]["evidence"].as_f64().unwrap() >= 20.0);
    assert!(found["pairs"]["not_done"].as_u64().unwrap() > 0);
    assert!(output.ends_with("exit code 0\n"), "{output}");
    let done = runs(&project).len();
    let again = project.run(
        &[
            &AB[..],
            &["--runs", "4", "--early-stop", "--resume", "--json"],
        ]
        .concat(),
    );
    assert_eq!(object(&again)["metrics"], found["metrics"]);
    assert_eq!(runs(&project).len(), done);
}

#[test]
fn invalid_tasks_are_reported_first_and_valid_ones_run() {
    let project = project()
        .with(
            "tasks.jsonl",
            "{\"task_id\": \"a\", \"description\": \"Look up the price of pears\"}\n\
             {\"task_id\": \"a\", \"description\": \"y\"}\n{\"description\": \"z\"}\n",
        )
        .with(
            "other.toml",
            example("prices/new.toml").replace("lookUpPrice", "lookUpPrices"),
        );
    let output = project.run(&AB);
    assert!(
        output.contains("tasks.jsonl:2: the task_id `a`"),
        "{output}"
    );
    assert!(output.contains("tasks.jsonl:3:"), "{output}");
    assert!(
        output.contains("1 of 3 tasks in `tasks.jsonl` are valid"),
        "{output}"
    );
    assert!(output.contains("1 of 1 pairs complete"), "{output}");
    assert!(output.ends_with("exit code 1\n"), "{output}");
    let project = project.with("tasks.jsonl", example("prices/tasks.jsonl"));
    let output = project.run(&[&AB[..4], &["--b", "other.toml"], &AB[6..]].concat());
    assert!(output.contains("arm B cannot use `other.toml`"), "{output}");
    assert!(output.contains("lookUpPrice"), "{output}");
    assert!(!output.contains("arm A"), "{output}");
    for wrong in [
        &["--runs", "0"][..],
        &["--alpha", "2"],
        &["--report", "report.pdf"],
    ] {
        let output = project.run(&[&AB[..], wrong].concat());
        assert!(output.ends_with("exit code 2\n"), "{output}");
    }
    let output = project.run(&[&AB[..], &["--metric", "succes"]].concat());
    assert!(output.contains("did you mean `success`"), "{output}");
    let output = project.run(&[&AB[..], &["--metric", "check:no-such-command-here"]].concat());
    assert!(output.contains("gives no result"), "{output}");
    let project = project.with("tasks.jsonl", "\n");
    assert!(project.run(&AB).contains("there are no tasks in"));
}

#[test]
fn report_is_self_contained_and_has_no_scripts() {
    let tasks = example("prices/tasks.jsonl").replace(
        "\"task_id\": \"apples\"",
        "\"task_id\": \"<script>alert('apples')</script>\"",
    );
    let project = project().with("tasks.jsonl", tasks);
    let check = "check:grep -q EUR";
    let output = project.run(
        &[
            &AB[..],
            &[
                "--metric", check, "--metric", "latency", "--metric", "cost", "--report", "r.html",
            ],
        ]
        .concat(),
    );
    assert!(output.ends_with("exit code 0\n"), "{output}");
    assert!(output.contains("check:grep -q EUR"), "{output}");
    let more = [&AB[..], &["--resume", "--report", "r.svg"]].concat();
    assert!(project.run(&more).ends_with("exit code 0\n"));
    for name in ["r.html", "r.svg"] {
        let page = project.read(name);
        let body = page.trim_start_matches("<!doctype html>").trim();
        assert_well_formed(body);
        for forbidden in ["<script", "src=", "href=", "url(", "@import", "onload"] {
            assert!(!page.contains(forbidden), "{forbidden} in {page}");
        }
        // The only URL is the SVG namespace.
        assert_eq!(page.matches("http").count(), 1, "{page}");
        assert!(page.contains("prefers-color-scheme:dark"));
        assert!(page.contains("&lt;script&gt;"));
    }
}

/// Checks that every element is closed, in order.
fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("{part}"));
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "{part}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn spawn_in_background(project: &TestProject, arguments: &[&str]) -> Child {
    let mut command = project.command(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn effects(project: &TestProject) -> usize {
    let effects = std::fs::read_to_string(project.path("effects")).unwrap_or_default();
    effects.lines().count()
}

#[test]
fn killed_experiment_resumes_and_repeats_no_pair() {
    // Each call appends a line. From the fifth on, it waits while the file `wait` exists.
    let slow = |name: &str| {
        example(&format!("prices/{name}.toml")).replace(
            "\"case",
            "\"echo x >> effects; while [ -e wait ] && [ $(wc -l < effects) -gt 4 ]; do sleep 0.05; done; case",
        )
    };
    let project = project()
        .with("old.toml", slow("new"))
        .with("new.toml", slow("new").replace("\"new\"", "\"newer\""))
        .with("wait", "");
    let mut child = spawn_in_background(&project, &AB);
    let started = Instant::now();
    while effects(&project) < 5 {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(project.path("wait")).unwrap();
    let output = project.run(&[&AB[..], &["--resume", "--json"]].concat());
    let found = object(&output);
    assert_eq!(found["pairs"]["complete"], 12, "{output}");
    assert!(output.ends_with("exit code 0\n"), "{output}");
    let runs = open(&project).runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 24, "each of 12 tasks once in each arm");
    let mut ids: Vec<&str> = runs
        .iter()
        .filter_map(|run| run.task_id.as_deref())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 24);
    // Only the call that was running at the kill may be repeated, because it is reversible.
    assert!(
        (24..=25).contains(&effects(&project)),
        "{}",
        effects(&project)
    );
}

#[test]
fn experiment_name_cannot_be_reused_for_another_experiment() {
    let project = project();
    let named = [&AB[..], &["--name", "prices"]].concat();
    assert!(project.run(&named).ends_with("exit code 0\n"));
    let project = project.with(
        "old.toml",
        example("prices/old.toml").replace("plum", "prune"),
    );
    let output = project.run(&[&named[..], &["--resume"]].concat());
    assert!(
        output.contains("was started with another agent"),
        "{output}"
    );
    assert!(output.ends_with("exit code 1\n"), "{output}");
}

#[test]
fn principal_always_gets_the_same_variant_and_it_is_recorded() {
    let project = project();
    let run = [
        "run",
        "agent.gram",
        "Look up the price of apples",
        "--library",
        "split.toml",
        "--model",
        "reflex",
    ];
    for _ in 0..2 {
        assert!(project.run(&run).ends_with("exit code 0\n"));
    }
    let store = open(&project);
    let mut variants = Vec::new();
    for run in runs(&project) {
        let run = RunId::new(run["run"].as_str().unwrap()).unwrap();
        for (_, event) in store.events(&run).unwrap() {
            match event {
                Event::CallStarted { variant, .. } => variants.push(variant.unwrap()),
                Event::CallEnded { ran, .. } => variants.push(ran.unwrap().variant.unwrap()),
                _ => {}
            }
        }
    }
    assert_eq!(variants.len(), 4);
    variants.dedup();
    assert_eq!(variants.len(), 1, "{variants:?}");
    assert_eq!(variants[0].experiment, "vegetables");
    assert_eq!(variants[0].share_millionths, 500_000);
    let id = runs(&project)[0]["run"].as_str().unwrap().to_owned();
    let trace = project.run(&["trace", "show", &id]);
    let expected = format!("(variant {} of vegetables)", variants[0].name);
    assert!(trace.contains(&expected), "{trace}");
    let report = project.run(&["ab", "report", "lookUpPrice", "--json"]);
    let found = object(&report);
    assert_eq!(found["variants"][0]["calls"], 2, "{report}");
    assert_eq!(found["variants"][0]["principals"], 1, "{report}");
}

/// Records a run of one principal with one call of a variant.
fn record_call(store: &Store, number: u32, variant: &str, is_success: bool) {
    let run = RunId::new(format!("run-{number}")).unwrap();
    let second = -100_000 + i64::from(number) * 10;
    let started = Event::Started {
        run: run.clone(),
        agent: Box::new(agent()),
        agents: Vec::new(),
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: Task {
            description: "Search.".to_owned(),
            ..Task::default()
        },
        settings: Settings::default(),
        at: at(second),
    };
    let new = NewRun {
        tenant: "local".to_owned(),
        principal: format!("user-{number}"),
        task_id: None,
    };
    let journal = store.start(new, &started, Durability::Relaxed).unwrap();
    let call = RequestedCall {
        tool: "search".to_owned(),
        arguments: RequestedArguments::Json(json!({"query": "bees"})),
        confidence: Some(0.9),
    };
    let answered = Event::ModelAnswered {
        turn: Turn::FIRST,
        answer: ModelAnswer {
            calls: vec![call],
            ..ModelAnswer::default()
        },
        at: at(second + 1),
    };
    journal.append(&answered, Durability::Relaxed).unwrap();
    let failure = Failure::new(ErrorCategory::ToolFailure, Effect::None, "nothing found");
    let ended = Event::CallEnded {
        call: format!("{run}:1:0").parse().unwrap(),
        end: match is_success {
            true => CallEnd::Success(json!("found")),
            false => CallEnd::Error(failure),
        },
        usage: Default::default(),
        calls: 0,
        ran: Some(ExecutedTool {
            tool: ToolName::new("search").unwrap(),
            started_at: at(second + 2),
            variant: Some(Variant {
                experiment: "ranking".to_owned(),
                name: variant.to_owned(),
                share_millionths: 500_000,
            }),
            notices: Vec::new(),
        }),
        tainted: false,
        at: at(second + 3),
    };
    journal.append(&ended, Durability::Synced).unwrap();
}

#[test]
fn variant_report_is_by_principal_and_invalid_on_sample_ratio_mismatch() {
    let project = project();
    project.run(&["runs", "list"]);
    let store = open(&project);
    for number in 0..40 {
        let (variant, works) = match number % 2 {
            0 => ("old", number % 4 == 0),
            _ => ("new", true),
        };
        record_call(&store, number, variant, works);
    }
    let output = project.run(&["ab", "report", "--report", "split.html"]);
    assert!(output.contains("search: experiment ranking"), "{output}");
    assert!(output.ends_with("exit code 0\n"), "{output}");
    assert_well_formed(
        project
            .read("split.html")
            .trim_start_matches("<!doctype html>")
            .trim(),
    );
    let output = project.run(&["ab", "report", "search", "--json"]);
    let found = object(&output);
    let new = &found["variants"][0];
    assert_eq!(new["variant"], "new", "{output}");
    assert_eq!(new["principals"], 20);
    assert_eq!(new["success"], 1.0);
    assert_eq!(found["variants"][1]["success"], 0.5);
    assert_eq!(found["variants"][1]["errors"], 10);
    assert!(found["sample_ratio"].as_f64().unwrap() > 0.9);
    let success = &found["compared"][0];
    assert_eq!(success["metric"], "success");
    assert_eq!(success["base"], "new");
    assert_eq!(success["variant"], "old");
    assert_eq!(success["a"], 1.0);
    // From here on, only one variant is used.
    for number in 40..70 {
        record_call(&store, number, "new", true);
    }
    let output = project.run(&["ab", "report", "search"]);
    assert!(output.contains("not split as planned"), "{output}");
    assert!(output.contains("invalid"), "{output}");
    assert!(
        project
            .run(&["ab", "report", "pay"])
            .contains("no tool with variants")
    );
    let output = project.run(&["ab", "report", "--since", "1h", "--json"]);
    assert!(!output.contains("\"tool\""), "{output}");
    let output = project.run(&["ab", "report", "--since", "yesterday"]);
    assert!(output.contains("neither a time nor an age"), "{output}");
}
