//! Missing capabilities: detected before and during runs and at load, reported, counted, and turned into
//! specifications.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::program::{TestProject, example};

const CANNOT: &str = "none of my tools does";

fn project() -> TestProject {
    TestProject::new().with("hello.gram", example("hello.gram"))
}

fn output(command: &mut Command) -> (Output, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

fn run(project: &TestProject, arguments: &[&str]) -> (String, String) {
    let (_, out, err) = output(&mut project.command(arguments));
    (out, err)
}

fn task<'a>(task: &'a str, model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "run",
        "hello.gram",
        task,
        "--library",
        "hello",
        "--model",
        model,
    ];
    arguments.extend(more);
    arguments
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The script of a model that gives these answers.
fn script(answers: &[Value]) -> String {
    answers.iter().map(|answer| format!("{answer}\n")).collect()
}

fn finish(answer: &str) -> Value {
    json!({"calls": [{"tool": "finish", "arguments": {"json": {
        "answer": answer, "reasoning": "r", "confidence": 0.9,
    }}}]})
}

#[test]
fn reflex_reports_a_missing_tool_and_calls_none() {
    let project = project();
    let (out, err) = run(
        &project,
        &task("Translate this letter into French", "reflex", &[]),
    );
    assert!(
        out.contains("I cannot do this") && out.contains(CANNOT),
        "{out}"
    );
    assert!(
        err.contains("gap: no available tool seems to do this: Translate this letter into French"),
        "{err}"
    );
    assert!(
        !err.contains("sayHello `sayHello` fits"),
        "no tool was called: {err}"
    );
    let (out, err) = run(&project, &task("Greet Ada", "reflex", &[]));
    assert_eq!(out, "Hello, Ada! Nice to meet you.\n");
    assert!(!err.contains("gap:"), "{err}");
}

#[test]
fn reflex_answers_in_part_and_reports_the_rest() {
    let project = project();
    let asked = "Say hello to Ada, then translate the attached contract into French";
    let (out, _) = run(&project, &task(asked, "reflex", &[]));
    assert!(out.contains("Hello, Ada"), "{out}");
    assert!(
        out.contains("I could not do this") && out.contains("contract"),
        "{out}"
    );
}

#[test]
fn gap_report_is_in_the_json_output() {
    let project = project();
    let asked = "Translate this letter into French";
    let (out, _) = run(&project, &task(asked, "reflex", &["--json"]));
    let printed: Value = serde_json::from_str(&out).unwrap();
    let gap = &printed["gaps"][0];
    assert_eq!(gap["moment"], "before_run");
    assert_eq!(gap["missing_tools"], json!(["translate_letter"]));
    assert_eq!(gap["attempted_task"], asked);
    assert_eq!(gap["capabilities"][0]["request"], asked);
    assert_eq!(gap["existing_tools_checked"], json!(["sayHello"]));
    assert_eq!(
        gap["capabilities"][0]["nearest_tools"][0]["name"],
        "sayHello"
    );
    let (out, _) = run(&project, &task("Greet Ada", "reflex", &["--json"]));
    let printed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(printed.get("gaps"), None);
}

#[test]
fn offer_to_the_model_contains_the_gap() {
    let project = project().with(
        "model.jsonl",
        script(&[finish("I cannot translate: I have no tool for it.")]),
    );
    let asked = "Translate this letter into French";
    let (out, _) = run(&project, &task(asked, "scripted:model.jsonl", &["--jsonl"]));
    let offered = lines(&out)
        .into_iter()
        .find(|line| line["event"] == "offered")
        .unwrap();
    assert_eq!(offered["gap"]["missing_tools"], json!(["translate_letter"]));
    // Both reports of one run count as one capability.
    let (out, _) = run(&project, &["gaps", "list", "--json"]);
    let capabilities = lines(&out);
    assert_eq!(capabilities.len(), 1, "{out}");
    assert_eq!(
        (&capabilities[0]["count"], &capabilities[0]["tool"]),
        (&json!(1), &json!("translate_letter"))
    );
}

#[test]
fn call_of_an_unknown_tool_is_a_gap_of_the_run() {
    let call = json!({"calls": [{"tool": "waveHand", "arguments": {"json": {"speed": 3}}}]});
    let project = project().with("model.jsonl", script(&[call, finish("Hello!")]));
    let (_, err) = run(
        &project,
        &task("Say hello to Ada", "scripted:model.jsonl", &[]),
    );
    assert!(
        err.contains("gap: not done, because a tool is missing: waveHand"),
        "{err}"
    );
    let (out, _) = run(&project, &["gaps", "show", "waveHand", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["times"][0]["moment"], "during_run");
    assert_eq!(shown["times"][0]["task"], "Say hello to Ada");
    let (out, _) = run(&project, &["gaps", "propose", "waveHand"]);
    assert!(
        out.contains("[waveHand:Tool") && out.contains("(speed::Int)"),
        "{out}"
    );
}

#[test]
fn refusal_of_the_model_is_a_gap() {
    let answer = "I'm sorry, I don't have a tool to look into the calendar of Ada.";
    let project = project()
        .with("windlass.toml", "[gaps]\ncheck = false\n")
        .with("model.jsonl", script(&[finish(answer)]));
    let asked = "When is Ada free next week?";
    let (_, err) = run(&project, &task(asked, "scripted:model.jsonl", &[]));
    assert!(
        err.contains("gap: not done, because a tool is missing"),
        "{err}"
    );
    let (out, _) = run(&project, &["gaps", "list", "--json"]);
    assert_eq!(lines(&out)[0]["moments"], json!({"during_run": 1}));
}

#[test]
fn capabilities_named_by_the_model_are_checked() {
    let project = project()
        .with("windlass.toml", "[gaps]\nask_model = true\n")
        .with(
            "model.jsonl",
            script(&[
                json!({"text": "1. say hello to Ada by her name\n2. convert 20 euros into dollars"}),
                finish("Done."),
            ]),
        );
    let (out, _) = run(
        &project,
        &task("Do the usual for Ada", "scripted:model.jsonl", &["--json"]),
    );
    let printed: Value = serde_json::from_str(&out).unwrap();
    let gap = &printed["gaps"][0];
    assert_eq!(
        gap["missing_tools"],
        json!([gap["capabilities"][0]["wanted_tool"]]),
        "{out}"
    );
    assert_eq!(
        gap["capabilities"][0]["request"],
        "convert 20 euros into dollars"
    );
    assert_eq!(printed["response"]["answer"], "Done.");
}

#[test]
fn a_specification_without_implementation_is_a_gap_at_load() {
    let file = r#"[a:Agent {instruction: "Do.", model: "m"} |
      [send_sms:Tool {description: "Sends a text message to a phone", risk: reversible} | (number::Text)==>(::Text)]]"#;
    let project = project().with("sms.gram", file);
    let arguments = [
        "run",
        "sms.gram",
        "Send it",
        "--library",
        "hello",
        "--model",
        "reflex",
    ];
    let (output, _, err) = output(&mut project.command(&arguments));
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("missing from the library"), "{err}");
    let (out, _) = run(&project, &["gaps", "show", "send_sms", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["times"][0]["moment"], "at_load");
    assert_eq!(shown["times"][0]["run"], Value::Null);
    assert!(
        shown["proposed_tool"]
            .as_str()
            .unwrap()
            .contains("(number::Text)")
    );
}

#[test]
fn different_wordings_of_a_capability_are_grouped() {
    let project = project();
    for asked in [
        "Translate this letter into French",
        "Please translate my letter to German",
        "Book a flight from Berlin to Rome",
    ] {
        run(&project, &task(asked, "reflex", &[]));
    }
    let (out, _) = run(&project, &["gaps", "list", "--json"]);
    let capabilities = lines(&out);
    let printed: Vec<(&str, u64)> = capabilities
        .iter()
        .map(|capability| {
            (
                capability["tool"].as_str().unwrap(),
                capability["this_week"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(printed, [("translate_letter", 2), ("book_flight", 1)]);
    let (out, _) = run(&project, &["gaps", "show", "translate"]);
    assert!(out.contains("missing 2 times this week"), "{out}");
    let (out, _) = run(&project, &["gaps", "list"]);
    assert!(out.starts_with("TOOL"), "{out}");
    let (out, _) = run(&project, &["gaps", "list", "--agent", "nobody"]);
    assert_eq!(out, "");
}

#[test]
fn a_proposal_is_added_to_an_agent_file_once() {
    let project = project();
    run(
        &project,
        &task(
            "Book a flight from Berlin to Rome for 2 people",
            "reflex",
            &[],
        ),
    );
    let (out, err) = run(
        &project,
        &[
            "gaps",
            "propose",
            "book_flight_people",
            "--write",
            "hello.gram",
        ],
    );
    assert!(out.contains("[book_flight_people:Tool"), "{out}{err}");
    let file = project.read("hello.gram");
    assert!(file.contains("(from_location::Text"), "{file}");
    assert!(file.starts_with("// The smallest useful agent"), "{file}");
    let (checked, _, _) = output(&mut project.command(&["check", "hello.gram"]));
    assert_eq!(checked.status.code(), Some(0));
    let again = [
        "gaps",
        "propose",
        "book_flight_people",
        "--write",
        "hello.gram",
    ];
    let (refused, _, err) = output(&mut project.command(&again));
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err.contains("already declares `book_flight_people`; nothing was written"),
        "{err}"
    );
    assert_eq!(project.read("hello.gram"), file);
}

#[test]
fn a_task_can_be_checked_without_a_run() {
    let project = project();
    let check = |asked: &str| {
        let arguments = ["gaps", "check", asked, "--agent", "hello.gram", "--json"];
        let (output, out, _) = output(&mut project.command(&arguments));
        let printed: Value = serde_json::from_str(&out).unwrap();
        (output.status.code(), printed["gap"].as_bool().unwrap())
    };
    assert_eq!(
        check("Return a friendly greeting message for Ada"),
        (Some(0), false)
    );
    assert_eq!(check("Calculate the square root of 144"), (Some(1), true));
}

#[test]
fn check_reports_whether_a_run_would_report_the_gap() {
    let project = project();
    let asked = "Calculate the square root of 144";
    let check = |threshold: &str| {
        let set = format!("gaps.threshold={threshold}");
        let arguments = [
            "gaps",
            "check",
            asked,
            "--agent",
            "hello.gram",
            "--set",
            &set,
        ];
        let (out, _) = run(&project, &arguments);
        let (printed, _) = run(&project, &[&arguments[..], &["--json"]].concat());
        let printed: Value = serde_json::from_str(&printed).unwrap();
        (out, printed["told_before_run"].as_bool().unwrap())
    };
    let (out, is_reported) = check("0.5");
    assert!(
        is_reported && out.contains("a run would report it"),
        "{out}"
    );
    let (out, is_reported) = check("1.0");
    assert!(
        !is_reported && out.contains("a run would not report"),
        "{out}"
    );
    assert!(out.starts_with("gap: no available tool"), "{out}");
}

/// A project with built-in tools that are not configured.
fn researcher() -> TestProject {
    TestProject::new().with("researcher.gram", example("researcher.gram"))
}

const NOT_CONFIGURED: &str = "`web_search` is not configured: set `[search] endpoint`";

#[test]
fn gap_of_an_unconfigured_tool_names_the_setting() {
    let asked = "Search the web for the height of the Eiffel Tower";
    let arguments = ["run", "researcher.gram", asked, "--model", "reflex"];
    let (_, err) = run(&researcher(), &arguments);
    let line = err.lines().find(|line| line.starts_with("gap: ")).unwrap();
    assert!(
        line.contains(asked) && line.contains(NOT_CONFIGURED),
        "{err}"
    );
    // A tool that works or is configured is not a gap.
    let time = [
        "run",
        "researcher.gram",
        "What time is it in Tokyo?",
        "--model",
        "reflex",
    ];
    let (_, err) = run(&researcher(), &time);
    assert!(!err.contains("gap:"), "{err}");
    let endpoint = "search.endpoint=http://127.0.0.1:9/search";
    let (_, err) = run(
        &researcher(),
        &[&arguments[..], &["--set", endpoint]].concat(),
    );
    assert!(!err.contains("gap:"), "{err}");
}

#[test]
fn question_about_the_world_is_searched_where_a_search_tool_is_configured() {
    let asked = "What is the capital of France?";
    let arguments = ["run", "researcher.gram", asked, "--model", "reflex"];
    let endpoint = "search.endpoint=http://127.0.0.1:9/search";
    let (_, err) = run(
        &researcher(),
        &[&arguments[..], &["--set", endpoint]].concat(),
    );
    assert!(!err.contains("gap:"), "{err}");
    assert!(err.contains("1. web_search"), "{err}");
    // Without a server, the setting is named, and the tool is listed once.
    let project = researcher();
    let (_, err) = run(&project, &arguments);
    assert!(err.contains(NOT_CONFIGURED), "{err}");
    let (out, _) = run(&project, &["gaps", "list", "--json"]);
    let listed = lines(&out);
    assert_eq!(listed.len(), 1, "{out}");
    assert_eq!(listed[0]["tool"], "web_search", "{out}");
}

#[test]
fn each_missing_capability_has_a_short_name() {
    let asked = "Retrieve my stock portfolio performance for Q3 2024";
    let arguments = [
        "gaps",
        "check",
        asked,
        "--agent",
        "researcher.gram",
        "--json",
    ];
    let (out, _) = run(&researcher(), &arguments);
    let printed: Value = serde_json::from_str(&out).unwrap();
    let report = &printed["report"];
    assert_eq!(
        report["missing_tools"],
        json!(["stock_portfolio", "account_access"]),
        "{out}"
    );
    assert_eq!(report["attempted_task"], asked);
    let checked = report["existing_tools_checked"].as_array().unwrap();
    for tool in [
        "web_search",
        "read_file",
        "get_current_time",
        "memory_search",
    ] {
        assert!(checked.contains(&json!(tool)), "{out}");
    }
}

#[test]
fn tool_that_is_switched_off_is_named_and_is_no_gap() {
    let project = project();
    let off = [
        "--set",
        "categories.analysis_tools.tools.sayHello.enabled=false",
    ];
    let asked = "Return a friendly greeting message for Ada";
    let (_, err) = run(&project, &task(asked, "reflex", &off));
    assert!(!err.contains("gap:"), "{err}");
    assert!(
        err.contains("disabled: `sayHello` would do this") && err.contains(asked),
        "{err}"
    );
    let (out, _) = run(&project, &["gaps", "list", "--json"]);
    assert_eq!(out, "");
    let (out, _) = run(&project, &["trace", "show", "--last"]);
    assert!(out.contains("disabled: `sayHello`"), "{out}");
}

#[test]
fn call_of_an_unconfigured_tool_is_a_gap_of_the_run() {
    let call = json!({"calls": [{"tool": "web_search", "arguments": {"json": {"query": "Rust"}}}]});
    let answers = script(&[call, finish("I know nothing about it.")]);
    let project = researcher().with("model.jsonl", answers);
    let arguments = [
        "run",
        "researcher.gram",
        "What time is it in Tokyo?",
        "--model",
        "scripted:model.jsonl",
    ];
    let (_, err) = run(&project, &arguments);
    assert!(
        err.contains(&format!("gap: web_search: {NOT_CONFIGURED}")),
        "{err}"
    );
    let (out, _) = run(&project, &["gaps", "list", "--json"]);
    assert_eq!(lines(&out)[0]["tool"], "web_search");
    let (refused, _, err) = output(&mut project.command(&["gaps", "propose", "web_search"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains(NOT_CONFIGURED), "{err}");
}

#[test]
fn batch_reports_gaps_of_its_tasks() {
    let project = project().with(
        "tasks.jsonl",
        "{\"task_id\": \"one\", \"description\": \"Translate this letter into French\"}\n\
         {\"task_id\": \"two\", \"description\": \"Greet Ada\"}\n",
    );
    let arguments = [
        "run",
        "hello.gram",
        "--library",
        "hello",
        "--model",
        "reflex",
    ];
    let (_, err) = run(
        &project,
        &[&arguments[..], &["--tasks", "tasks.jsonl"]].concat(),
    );
    let printed: Vec<&str> = err.lines().filter(|line| line.contains("gap: ")).collect();
    assert_eq!(printed.len(), 1, "{err}");
    assert!(
        printed[0].starts_with("one: gap: no available tool seems to do this"),
        "{err}"
    );
}

#[test]
fn conversation_reports_gaps_of_its_runs() {
    let call = json!({"calls": [{"tool": "book_flight", "arguments": {"json": {"to": "Rome"}}}]});
    let project = project().with("model.jsonl", script(&[call, finish("I could not.")]));
    let arguments = [
        "chat",
        "hello.gram",
        "--library",
        "hello",
        "--model",
        "scripted:model.jsonl",
    ];
    let printed = project.run_with_input(&arguments, "Say hello to Ada\n");
    assert!(
        printed.contains("gap: not done, because a tool is missing: book_flight"),
        "{printed}"
    );
}

#[test]
fn failed_binding_in_a_program_records_a_gap() {
    let file = r#"[a:Agent {instruction: "Do.", model: "m"} |
      [send_sms:Tool {description: "Sends a text message to a phone", risk: reversible} | (number::Text)==>(::Text)]]"#;
    let directory = tempfile::tempdir().unwrap();
    let agent = windlass::Agent::from_text(file).unwrap();
    let library = windlass::builtin_library("hello").unwrap();
    let work = agent.run_with(&library, "Send it.");
    let work = work.model(windlass::ReflexModel::new());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let refused = runtime.block_on(async { work.kept_in(directory.path()).await });
    assert!(refused.is_err());
    let project = project();
    let data = directory.path().to_str().unwrap();
    let (out, _) = run(&project, &["gaps", "list", "--json", "--data", data]);
    let capability = &lines(&out)[0];
    assert_eq!(capability["tool"], "send_sms");
    assert_eq!(capability["moments"]["at_load"], 1);
}

#[test]
fn unknown_capability_is_not_shown() {
    let project = project();
    let (refused, _, err) = output(&mut project.command(&["gaps", "show", "fly"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("no missing tool is called `fly`"), "{err}");
    let (out, err) = run(&project, &["gaps", "list"]);
    assert_eq!(
        (out.as_str(), err.trim()),
        ("", "no missing capabilities are recorded")
    );
}

#[test]
fn gap_detection_is_evaluated() {
    let sample = include_str!("../../../learn/tests/data/gap.sample.jsonl");
    let project = project().with("cases.jsonl", sample).with("none.jsonl", "");
    let (out, _) = run(
        &project,
        &["eval", "gap", "--data", "cases.jsonl", "--json"],
    );
    let printed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(printed["n"], 80);
    assert!(
        printed["balanced_accuracy"].as_f64().unwrap() > 0.86,
        "{out}"
    );
    assert!(printed["auroc"].as_f64().unwrap() > 0.92, "{out}");
    assert!(
        printed["shipped"]["balanced_accuracy"].as_f64().unwrap() > 0.87,
        "{out}"
    );
    let (refused, _, err) = output(&mut project.command(&["eval", "gap", "--data", "none.jsonl"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("at least two tasks"), "{err}");
}
