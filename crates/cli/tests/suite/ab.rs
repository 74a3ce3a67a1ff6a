//! A/B tests: the same tasks with two libraries, what they show, and what a split between variants shows.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{CallEnd, Event, Ran, Settings, Task, Variant};
use windlass_spec::{Effect, ErrorCategory, Failure, RunId, ToolName, Turn};
use windlass_store::{Durability, NewRun, RunFilter, Store};

use super::program::{Place, example};
use super::seeded::{agent, at, open};

fn place() -> Place {
    Place::new()
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

/// The object that `--json` printed.
fn object(told: &str) -> Value {
    let line = told.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{told}"))).unwrap()
}

fn runs(place: &Place) -> Vec<Value> {
    let listed = place.run(&["runs", "list", "--json", "--limit", "1000"]);
    let lines = listed.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_library_that_does_more_is_found_to_be_better() {
    let place = place();
    let told = place.run(&[&AB[..], &["--jobs", "2", "--json"]].concat());
    assert!(told.ends_with("exit code 0\n"), "{told}");
    let found = object(&told);
    let success = &found["metrics"][0];
    assert_eq!(success["metric"], "success", "{told}");
    assert_eq!(success["verdict"], "better", "{told}");
    assert_eq!(success["arm"], "b", "{told}");
    assert_eq!(success["pairs"], 12);
    assert_eq!(success["b"], 1.0, "{told}");
    assert_eq!(found["differs"][0]["tool"], "lookUpPrice");
    assert!(found["sample_ratio"]["p_value"].as_f64().unwrap() > 0.99);
    let errors = &found["guard_rails"][0];
    assert_eq!(errors["guard_rail"], "errors");
    assert!(errors["effect"].as_f64().unwrap() < 0.0, "{told}");
    // Every run says what it is part of.
    let run = runs(&place)[0]["run"].as_str().unwrap().to_owned();
    let store = open(&place);
    let metadata = store
        .fold(&RunId::new(&*run).unwrap())
        .unwrap()
        .task()
        .metadata
        .clone();
    assert_eq!(metadata["experiment"], found["experiment"]);
    assert!(["a", "b"].contains(&metadata["arm"].as_str().unwrap()));
    assert!(metadata["pair"].as_str().unwrap().ends_with("/1"));
    // The same again is refused, and goes on with nothing left to do if that is wanted.
    let again = place.run(&AB);
    assert!(again.contains("has 24 runs already"), "{again}");
    assert!(again.ends_with("exit code 1\n"), "{again}");
    let resumed = place.run(&[&AB[..], &["--resume", "--json"]].concat());
    assert_eq!(object(&resumed)["metrics"], found["metrics"]);
    assert_eq!(runs(&place).len(), 24);
}

#[test]
fn few_tasks_are_said_to_be_too_few_and_more_runs_are_judged_as_added() {
    let tasks = example("prices/tasks.jsonl");
    let few: Vec<&str> = tasks.lines().skip(3).take(2).collect();
    let place = place().with("tasks.jsonl", few.join("\n"));
    let told = place.run(&AB);
    assert!(told.contains("not enough data, about "), "{told}");
    assert!(told.contains(" more runs"), "{told}");
    assert!(told.ends_with("exit code 0\n"), "{told}");
    let told = place.run(&[&AB[..], &["--runs", "2", "--resume", "--json"]].concat());
    let found = object(&told);
    assert_eq!(found["pairs"]["complete"], 4, "{told}");
    assert_eq!(found["stopping"], "optional", "{told}");
    assert_eq!(found["is_extended"], true);
    assert_eq!(runs(&place).len(), 8);
}

#[test]
fn a_library_against_itself_is_an_a_a_test_and_has_no_winner() {
    let place = place();
    let told = place.run(&[&AB[..4], &["--b", "old.toml"], &AB[6..]].concat());
    assert!(told.contains("A and B are the same library"), "{told}");
    assert!(told.contains("no difference shown"), "{told}");
    assert!(!told.contains("is better"), "{told}");
    assert!(told.ends_with("exit code 0\n"), "{told}");
}

#[test]
fn failures_of_one_arm_do_not_stop_the_calls_of_the_other() {
    // A fails at everything, so often in a row with one job that a breaker would have tripped for both.
    let place = place().with(
        "old.toml",
        example("prices/old.toml").replace("*apple* | *pear* | *plum* | *cherr*", "*moon*"),
    );
    let told = place.run(&[&AB[..], &["--runs", "2", "--jobs", "8", "--json"]].concat());
    let found = object(&told);
    assert_eq!(found["metrics"][0]["a"], 0.0, "{told}");
    assert_eq!(found["metrics"][0]["b"], 1.0, "{told}");
    let denials = &found["guard_rails"][1];
    assert_eq!(denials["a"], 0.0, "{told}");
    let other = place.run(&[&AB[..4], &["--b", "old.toml", "--json"], &AB[6..]].concat());
    assert_eq!(object(&other)["guard_rails"][1]["a"], 0.0, "{other}");
}

#[test]
fn an_early_stop_leaves_the_rest_undone_and_says_so() {
    let place = place();
    let told = place.run(&[&AB[..], &["--runs", "4", "--early-stop", "--json"]].concat());
    let found = object(&told);
    assert_eq!(found["is_stopped_early"], true, "{told}");
    assert_eq!(found["metrics"][0]["arm"], "b", "{told}");
    assert!(found["metrics"][0]["evidence"].as_f64().unwrap() >= 20.0);
    assert!(found["pairs"]["not_done"].as_u64().unwrap() > 0);
    assert!(told.ends_with("exit code 0\n"), "{told}");
    let done = runs(&place).len();
    let again = place.run(
        &[
            &AB[..],
            &["--runs", "4", "--early-stop", "--resume", "--json"],
        ]
        .concat(),
    );
    assert_eq!(object(&again)["metrics"], found["metrics"]);
    assert_eq!(runs(&place).len(), done);
}

#[test]
fn mistakes_are_told_before_the_first_run_and_tasks_without_any_are_done() {
    let place = place()
        .with(
            "tasks.jsonl",
            "{\"task_id\": \"a\", \"description\": \"Look up the price of pears\"}\n\
             {\"task_id\": \"a\", \"description\": \"y\"}\n{\"description\": \"z\"}\n",
        )
        .with(
            "other.toml",
            example("prices/new.toml").replace("lookUpPrice", "lookUpPrices"),
        );
    let told = place.run(&AB);
    assert!(told.contains("tasks.jsonl:2: the task_id `a`"), "{told}");
    assert!(told.contains("tasks.jsonl:3:"), "{told}");
    assert!(
        told.contains("1 of 3 tasks in `tasks.jsonl` can be used"),
        "{told}"
    );
    assert!(told.contains("1 of 1 pairs count"), "{told}");
    assert!(told.ends_with("exit code 1\n"), "{told}");
    let place = place.with("tasks.jsonl", example("prices/tasks.jsonl"));
    let told = place.run(&[&AB[..4], &["--b", "other.toml"], &AB[6..]].concat());
    assert!(
        told.contains("arm B cannot work with `other.toml`"),
        "{told}"
    );
    assert!(told.contains("lookUpPrice"), "{told}");
    assert!(!told.contains("arm A"), "{told}");
    for wrong in [
        &["--runs", "0"][..],
        &["--alpha", "2"],
        &["--report", "report.pdf"],
    ] {
        let told = place.run(&[&AB[..], wrong].concat());
        assert!(told.ends_with("exit code 2\n"), "{told}");
    }
    let told = place.run(&[&AB[..], &["--metric", "succes"]].concat());
    assert!(told.contains("did you mean `success`"), "{told}");
    let told = place.run(&[&AB[..], &["--metric", "check:no-such-command-here"]].concat());
    assert!(told.contains("says neither good nor bad"), "{told}");
    let place = place.with("tasks.jsonl", "\n");
    assert!(place.run(&AB).contains("there are no tasks in"));
}

#[test]
fn a_report_is_one_file_that_loads_and_runs_nothing() {
    let tasks = example("prices/tasks.jsonl").replace(
        "\"task_id\": \"apples\"",
        "\"task_id\": \"<script>alert('apples')</script>\"",
    );
    let place = place().with("tasks.jsonl", tasks);
    let check = "check:grep -q EUR";
    let told = place.run(
        &[
            &AB[..],
            &[
                "--metric", check, "--metric", "latency", "--metric", "cost", "--report", "r.html",
            ],
        ]
        .concat(),
    );
    assert!(told.ends_with("exit code 0\n"), "{told}");
    assert!(told.contains("check:grep -q EUR"), "{told}");
    let more = [&AB[..], &["--resume", "--report", "r.svg"]].concat();
    assert!(place.run(&more).ends_with("exit code 0\n"));
    for name in ["r.html", "r.svg"] {
        let page = place.read(name);
        let body = page.trim_start_matches("<!doctype html>").trim();
        well_formed(body);
        for forbidden in ["<script", "src=", "href=", "url(", "@import", "onload"] {
            assert!(!page.contains(forbidden), "{forbidden} in {page}");
        }
        // The one address in it names the format.
        assert_eq!(page.matches("http").count(), 1, "{page}");
        assert!(page.contains("prefers-color-scheme:dark"));
        assert!(page.contains("&lt;script&gt;"));
    }
}

/// Whether every element that is opened is closed, in order.
fn well_formed(text: &str) {
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

fn begin(place: &Place, arguments: &[&str]) -> Child {
    let mut command = place.command(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

fn effects(place: &Place) -> usize {
    let effects = std::fs::read_to_string(place.path("effects")).unwrap_or_default();
    effects.lines().count()
}

#[test]
fn an_experiment_that_was_killed_goes_on_and_does_no_pair_twice() {
    // Each call leaves a line, and waits as long as there is a file `wait` once there are four.
    let slow = |name: &str| {
        example(&format!("prices/{name}.toml")).replace(
            "\"case",
            "\"echo x >> effects; while [ -e wait ] && [ $(wc -l < effects) -gt 4 ]; do sleep 0.05; done; case",
        )
    };
    let place = place()
        .with("old.toml", slow("new"))
        .with("new.toml", slow("new").replace("\"new\"", "\"newer\""))
        .with("wait", "");
    let mut child = begin(&place, &AB);
    let started = Instant::now();
    while effects(&place) < 5 {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(place.path("wait")).unwrap();
    let told = place.run(&[&AB[..], &["--resume", "--json"]].concat());
    let found = object(&told);
    assert_eq!(found["pairs"]["complete"], 12, "{told}");
    assert!(told.ends_with("exit code 0\n"), "{told}");
    let runs = open(&place).runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 24, "each of 12 tasks once in each arm");
    let mut ids: Vec<&str> = runs
        .iter()
        .filter_map(|run| run.task_id.as_deref())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 24);
    // The call under way when it was killed may be made again, because it can be; no other is.
    assert!((24..=25).contains(&effects(&place)), "{}", effects(&place));
}

#[test]
fn another_experiment_of_the_same_name_is_not_mixed_in() {
    let place = place();
    let named = [&AB[..], &["--name", "prices"]].concat();
    assert!(place.run(&named).ends_with("exit code 0\n"));
    let place = place.with(
        "old.toml",
        example("prices/old.toml").replace("plum", "prune"),
    );
    let told = place.run(&[&named[..], &["--resume"]].concat());
    assert!(told.contains("was begun with another agent"), "{told}");
    assert!(told.ends_with("exit code 1\n"), "{told}");
}

#[test]
fn a_split_gives_a_principal_the_same_variant_and_writes_it_down() {
    let place = place();
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
        assert!(place.run(&run).ends_with("exit code 0\n"));
    }
    let store = open(&place);
    let mut variants = Vec::new();
    for run in runs(&place) {
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
    let id = runs(&place)[0]["run"].as_str().unwrap().to_owned();
    let trace = place.run(&["trace", "show", &id]);
    let told = format!("(variant {} of vegetables)", variants[0].name);
    assert!(trace.contains(&told), "{trace}");
    let report = place.run(&["ab", "report", "lookUpPrice", "--json"]);
    let found = object(&report);
    assert_eq!(found["variants"][0]["calls"], 2, "{report}");
    assert_eq!(found["variants"][0]["principals"], 1, "{report}");
}

/// A run on behalf of somebody whose one call was done by a variant.
fn called(store: &Store, number: u32, variant: &str, is_success: bool) {
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
        ran: Some(Ran {
            tool: ToolName::new("search").unwrap(),
            started_at: at(second + 2),
            variant: Some(Variant {
                experiment: "ranking".to_owned(),
                name: variant.to_owned(),
                share_millionths: 500_000,
            }),
        }),
        tainted: false,
        at: at(second + 3),
    };
    journal.append(&ended, Durability::Synced).unwrap();
}

#[test]
fn a_split_is_read_out_by_principals_and_not_believed_if_it_is_not_as_meant() {
    let place = place();
    place.run(&["runs", "list"]);
    let store = open(&place);
    for number in 0..40 {
        let (variant, works) = match number % 2 {
            0 => ("old", number % 4 == 0),
            _ => ("new", true),
        };
        called(&store, number, variant, works);
    }
    let told = place.run(&["ab", "report", "--report", "split.html"]);
    assert!(told.contains("search: experiment ranking"), "{told}");
    assert!(told.ends_with("exit code 0\n"), "{told}");
    well_formed(
        place
            .read("split.html")
            .trim_start_matches("<!doctype html>")
            .trim(),
    );
    let told = place.run(&["ab", "report", "search", "--json"]);
    let found = object(&told);
    let new = &found["variants"][0];
    assert_eq!(new["variant"], "new", "{told}");
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
    // Nobody came to the other variant since.
    for number in 40..70 {
        called(&store, number, "new", true);
    }
    let told = place.run(&["ab", "report", "search"]);
    assert!(told.contains("split otherwise than was meant"), "{told}");
    assert!(told.contains("invalid"), "{told}");
    assert!(
        place
            .run(&["ab", "report", "pay"])
            .contains("no tool with variants")
    );
    let told = place.run(&["ab", "report", "--since", "1h", "--json"]);
    assert!(!told.contains("\"tool\""), "{told}");
    let told = place.run(&["ab", "report", "--since", "yesterday"]);
    assert!(told.contains("neither a moment nor a length"), "{told}");
}
