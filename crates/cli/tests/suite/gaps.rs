//! What agents lack, through the program: found before, during and at load, told plainly, counted, and
//! turned into specifications.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::program::{Place, example};

const CANNOT: &str = "none of my tools does";

fn place() -> Place {
    Place::new().with("hello.gram", example("hello.gram"))
}

fn output(command: &mut Command) -> (Output, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

fn run(place: &Place, arguments: &[&str]) -> (String, String) {
    let (_, out, err) = output(&mut place.command(arguments));
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

/// Answers of a model that is scripted to say these.
fn script(answers: &[Value]) -> String {
    answers.iter().map(|answer| format!("{answer}\n")).collect()
}

fn finish(answer: &str) -> Value {
    json!({"calls": [{"tool": "finish", "arguments": {"json": {
        "answer": answer, "reasoning": "r", "confidence": 0.9,
    }}}]})
}

#[test]
fn reflex_says_that_no_tool_fits_and_invents_nothing() {
    let place = place();
    let (out, err) = run(
        &place,
        &task("Translate this letter into French", "reflex", &[]),
    );
    assert!(
        out.contains("I cannot do this") && out.contains(CANNOT),
        "{out}"
    );
    assert!(
        err.contains("gap: no tool here seems to do this: Translate this letter into French"),
        "{err}"
    );
    assert!(
        !err.contains("sayHello `sayHello` fits"),
        "no tool was called: {err}"
    );
    let (out, err) = run(&place, &task("Greet Ada", "reflex", &[]));
    assert_eq!(out, "Hello, Ada! Nice to meet you.\n");
    assert!(!err.contains("gap:"), "{err}");
}

#[test]
fn reflex_does_what_it_can_and_says_what_it_could_not() {
    let place = place();
    let asked = "Say hello to Ada, then translate the attached contract into French";
    let (out, _) = run(&place, &task(asked, "reflex", &[]));
    assert!(out.contains("Hello, Ada"), "{out}");
    assert!(
        out.contains("I could not do this") && out.contains("contract"),
        "{out}"
    );
}

#[test]
fn the_report_is_part_of_what_programs_read() {
    let place = place();
    let asked = "Translate this letter into French";
    let (out, _) = run(&place, &task(asked, "reflex", &["--json"]));
    let told: Value = serde_json::from_str(&out).unwrap();
    let gap = &told["gaps"][0];
    assert_eq!(gap["moment"], "before_run");
    assert_eq!(gap["missing_tools"], json!([asked]));
    assert_eq!(gap["existing_tools_checked"], json!(["sayHello"]));
    assert_eq!(
        gap["capabilities"][0]["nearest_tools"][0]["name"],
        "sayHello"
    );
    let (out, _) = run(&place, &task("Greet Ada", "reflex", &["--json"]));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told.get("gaps"), None);
}

#[test]
fn a_model_is_told_what_no_tool_does() {
    let place = place().with(
        "model.jsonl",
        script(&[finish("I cannot translate: I have no tool for it.")]),
    );
    let asked = "Translate this letter into French";
    let (out, _) = run(&place, &task(asked, "scripted:model.jsonl", &["--jsonl"]));
    let offered = lines(&out)
        .into_iter()
        .find(|line| line["event"] == "offered")
        .unwrap();
    assert_eq!(offered["gap"]["missing_tools"], json!([asked]));
    // Both moments of one run are one wish, once.
    let (out, _) = run(&place, &["gaps", "list", "--json"]);
    let wishes = lines(&out);
    assert_eq!(wishes.len(), 1, "{out}");
    assert_eq!(
        (&wishes[0]["count"], &wishes[0]["tool"]),
        (&json!(1), &json!("translate_letter"))
    );
}

#[test]
fn a_tool_that_a_model_asked_for_is_a_gap_of_the_run() {
    let call = json!({"calls": [{"tool": "waveHand", "arguments": {"json": {"speed": 3}}}]});
    let place = place().with("model.jsonl", script(&[call, finish("Hello!")]));
    let (_, err) = run(
        &place,
        &task("Say hello to Ada", "scripted:model.jsonl", &[]),
    );
    assert!(
        err.contains("gap: for want of a tool this was not done: waveHand"),
        "{err}"
    );
    let (out, _) = run(&place, &["gaps", "show", "waveHand", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["times"][0]["moment"], "during_run");
    assert_eq!(shown["times"][0]["task"], "Say hello to Ada");
    let (out, _) = run(&place, &["gaps", "propose", "waveHand"]);
    assert!(
        out.contains("[waveHand:Tool") && out.contains("(speed::Int)"),
        "{out}"
    );
}

#[test]
fn what_a_model_says_it_could_not_do_is_a_gap() {
    let said = "I'm sorry, I don't have a tool to look into the calendar of Ada.";
    let place = place()
        .with("windlass.toml", "[gaps]\ncheck = false\n")
        .with("model.jsonl", script(&[finish(said)]));
    let asked = "When is Ada free next week?";
    let (_, err) = run(&place, &task(asked, "scripted:model.jsonl", &[]));
    assert!(
        err.contains("gap: for want of a tool this was not done"),
        "{err}"
    );
    let (out, _) = run(&place, &["gaps", "list", "--json"]);
    assert_eq!(lines(&out)[0]["moments"], json!({"during_run": 1}));
}

#[test]
fn a_model_names_what_it_needs_and_its_word_is_checked() {
    let place = place()
        .with("windlass.toml", "[gaps]\nask_model = true\n")
        .with(
            "model.jsonl",
            script(&[
                json!({"text": "1. say hello to Ada by her name\n2. convert 20 euros into dollars"}),
                finish("Done."),
            ]),
        );
    let (out, _) = run(
        &place,
        &task("Do the usual for Ada", "scripted:model.jsonl", &["--json"]),
    );
    let told: Value = serde_json::from_str(&out).unwrap();
    let gap = &told["gaps"][0];
    assert_eq!(
        gap["missing_tools"],
        json!(["convert 20 euros into dollars"]),
        "{out}"
    );
    assert_eq!(told["response"]["answer"], "Done.");
}

#[test]
fn a_specification_without_implementation_is_a_gap_at_load() {
    let file = r#"[a:Agent {instruction: "Do.", model: "m"} |
      [send_sms:Tool {description: "Sends a text message to a phone", risk: reversible} | (number::Text)==>(::Text)]]"#;
    let place = place().with("sms.gram", file);
    let arguments = [
        "run",
        "sms.gram",
        "Send it",
        "--library",
        "hello",
        "--model",
        "reflex",
    ];
    let (output, _, err) = output(&mut place.command(&arguments));
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("missing from the library"), "{err}");
    let (out, _) = run(&place, &["gaps", "show", "send_sms", "--json"]);
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
fn the_same_wish_in_other_words_is_counted_as_one() {
    let place = place();
    for asked in [
        "Translate this letter into French",
        "Please translate my letter to German",
        "Book a flight from Berlin to Rome",
    ] {
        run(&place, &task(asked, "reflex", &[]));
    }
    let (out, _) = run(&place, &["gaps", "list", "--json"]);
    let wishes = lines(&out);
    let told: Vec<(&str, u64)> = wishes
        .iter()
        .map(|wish| {
            (
                wish["tool"].as_str().unwrap(),
                wish["this_week"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("translate_letter", 2), ("book_flight", 1)]);
    let (out, _) = run(&place, &["gaps", "show", "translate"]);
    assert!(out.contains("asked for 2 times this week"), "{out}");
    let (out, _) = run(&place, &["gaps", "list"]);
    assert!(out.starts_with("TOOL"), "{out}");
    let (out, _) = run(&place, &["gaps", "list", "--agent", "nobody"]);
    assert_eq!(out, "");
}

#[test]
fn a_proposal_is_added_to_an_agent_file_once() {
    let place = place();
    run(
        &place,
        &task(
            "Book a flight from Berlin to Rome for 2 people",
            "reflex",
            &[],
        ),
    );
    let (out, err) = run(
        &place,
        &[
            "gaps",
            "propose",
            "book_flight_people",
            "--write",
            "hello.gram",
        ],
    );
    assert!(out.contains("[book_flight_people:Tool"), "{out}{err}");
    let file = place.read("hello.gram");
    assert!(file.contains("(from_location::Text"), "{file}");
    assert!(file.starts_with("// The smallest useful agent"), "{file}");
    let (checked, _, _) = output(&mut place.command(&["check", "hello.gram"]));
    assert_eq!(checked.status.code(), Some(0));
    let again = [
        "gaps",
        "propose",
        "book_flight_people",
        "--write",
        "hello.gram",
    ];
    let (refused, _, err) = output(&mut place.command(&again));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("already; nothing was written"), "{err}");
    assert_eq!(place.read("hello.gram"), file);
}

#[test]
fn a_task_can_be_checked_without_a_run() {
    let place = place();
    let check = |asked: &str| {
        let arguments = ["gaps", "check", asked, "--agent", "hello.gram", "--json"];
        let (output, out, _) = output(&mut place.command(&arguments));
        let told: Value = serde_json::from_str(&out).unwrap();
        (output.status.code(), told["gap"].as_bool().unwrap())
    };
    assert_eq!(
        check("Return a friendly greeting message for Ada"),
        (Some(0), false)
    );
    assert_eq!(check("Calculate the square root of 144"), (Some(1), true));
}

#[test]
fn a_check_says_whether_a_run_would_tell_of_it() {
    let place = place();
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
        let (out, _) = run(&place, &arguments);
        let (told, _) = run(&place, &[&arguments[..], &["--json"]].concat());
        let told: Value = serde_json::from_str(&told).unwrap();
        (out, told["told_before_run"].as_bool().unwrap())
    };
    let (out, is_told) = check("0.5");
    assert!(is_told && out.contains("a run would tell of it"), "{out}");
    let (out, is_told) = check("1.0");
    assert!(!is_told && out.contains("a run would not tell"), "{out}");
    assert!(out.starts_with("gap: no tool here"), "{out}");
}

/// An agent whose tools ship with the program, without the settings they need.
fn researcher() -> Place {
    Place::new().with("researcher.gram", example("researcher.gram"))
}

const NOT_CONFIGURED: &str = "`web_search` is not configured: set `[search] endpoint`";

#[test]
fn a_task_for_a_tool_that_is_not_configured_is_a_gap_that_says_what_to_set() {
    let asked = "Search the web for the height of the Eiffel Tower";
    let arguments = ["run", "researcher.gram", asked, "--model", "reflex"];
    let (_, err) = run(&researcher(), &arguments);
    let line = err.lines().find(|line| line.starts_with("gap: ")).unwrap();
    assert!(
        line.contains(asked) && line.contains(NOT_CONFIGURED),
        "{err}"
    );
    // What works is no gap, and what is configured is none either.
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
fn a_call_of_a_tool_that_is_not_configured_is_a_gap_of_the_run() {
    let call = json!({"calls": [{"tool": "web_search", "arguments": {"json": {"query": "Rust"}}}]});
    let answers = script(&[call, finish("I know nothing about it.")]);
    let place = researcher().with("model.jsonl", answers);
    let arguments = [
        "run",
        "researcher.gram",
        "What time is it in Tokyo?",
        "--model",
        "scripted:model.jsonl",
    ];
    let (_, err) = run(&place, &arguments);
    assert!(
        err.contains(&format!("gap: web_search: {NOT_CONFIGURED}")),
        "{err}"
    );
    let (out, _) = run(&place, &["gaps", "list", "--json"]);
    assert_eq!(lines(&out)[0]["tool"], "web_search");
    let (refused, _, err) = output(&mut place.command(&["gaps", "propose", "web_search"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains(NOT_CONFIGURED), "{err}");
}

#[test]
fn a_batch_tells_what_its_tasks_lacked() {
    let place = place().with(
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
        &place,
        &[&arguments[..], &["--tasks", "tasks.jsonl"]].concat(),
    );
    let told: Vec<&str> = err.lines().filter(|line| line.contains("gap: ")).collect();
    assert_eq!(told.len(), 1, "{err}");
    assert!(
        told[0].starts_with("one: gap: no tool here seems to do this"),
        "{err}"
    );
}

#[test]
fn a_conversation_tells_what_showed_while_it_was_answered() {
    let call = json!({"calls": [{"tool": "book_flight", "arguments": {"json": {"to": "Rome"}}}]});
    let place = place().with("model.jsonl", script(&[call, finish("I could not.")]));
    let arguments = [
        "chat",
        "hello.gram",
        "--library",
        "hello",
        "--model",
        "scripted:model.jsonl",
    ];
    let told = place.run_with_input(&arguments, "Say hello to Ada\n");
    assert!(
        told.contains("gap: for want of a tool this was not done: book_flight"),
        "{told}"
    );
}

#[test]
fn a_program_that_cannot_load_its_agent_keeps_what_is_missing() {
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
    let place = place();
    let data = directory.path().to_str().unwrap();
    let (out, _) = run(&place, &["gaps", "list", "--json", "--data", data]);
    let wish = &lines(&out)[0];
    assert_eq!(wish["tool"], "send_sms");
    assert_eq!(wish["moments"]["at_load"], 1);
}

#[test]
fn what_was_never_missing_is_not_shown() {
    let place = place();
    let (refused, _, err) = output(&mut place.command(&["gaps", "show", "fly"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("nothing called `fly` was missing"), "{err}");
    let (out, err) = run(&place, &["gaps", "list"]);
    assert_eq!((out.as_str(), err.trim()), ("", "nothing was missing"));
}

#[test]
fn gap_detection_is_scored() {
    let sample = include_str!("../../../learn/tests/data/gap.sample.jsonl");
    let place = place().with("cases.jsonl", sample).with("none.jsonl", "");
    let (out, _) = run(&place, &["eval", "gap", "--data", "cases.jsonl", "--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["n"], 80);
    assert!(told["balanced_accuracy"].as_f64().unwrap() > 0.86, "{out}");
    assert!(told["auroc"].as_f64().unwrap() > 0.92, "{out}");
    assert!(
        told["shipped"]["balanced_accuracy"].as_f64().unwrap() > 0.87,
        "{out}"
    );
    let (refused, _, err) = output(&mut place.command(&["eval", "gap", "--data", "none.jsonl"]));
    assert_eq!(refused.status.code(), Some(1));
    assert!(err.contains("at least two tasks"), "{err}");
}
