//! Detection of missing tools, and the reports about them.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_learn::gap::{
    GapCaseError, ToolGapDetector, evaluate, fit, proposed_specification, read_cases,
};
use windlass_reflex::ToolView;
use windlass_spec::{ToolName, read, write_tool};

const SAMPLE: &str = include_str!("../data/gap.sample.jsonl");

struct TestTools(Vec<(&'static str, &'static str, Value)>);

impl TestTools {
    fn detector(&self) -> ToolGapDetector<'_> {
        ToolGapDetector::new(self.0.iter().map(|(name, description, schema)| ToolView {
            name,
            description,
            input_schema: schema,
        }))
    }
}

fn parameters(names: &[(&str, &str, &str)]) -> Value {
    let properties: serde_json::Map<String, Value> = names
        .iter()
        .map(|(name, ty, about)| {
            let property = json!({"type": ty, "description": about});
            ((*name).to_owned(), property)
        })
        .collect();
    let required: Vec<&str> = names.iter().map(|(name, _, _)| *name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn weather() -> (&'static str, &'static str, Value) {
    let city = parameters(&[("city", "string", "The city to look at")]);
    ("get_weather", "Get the current weather of a city", city)
}

fn mail() -> (&'static str, &'static str, Value) {
    let fields = parameters(&[
        ("recipient", "string", "The e-mail address to send to"),
        ("text", "string", "What to write"),
    ]);
    (
        "send_email",
        "Send an e-mail message to a recipient",
        fields,
    )
}

#[test]
fn task_that_one_tool_fits_has_no_gap() {
    let tools = TestTools(vec![weather(), mail()]);
    let detector = tools.detector();
    for task in [
        "What is the weather in Paris?",
        "Get the current weather of Oslo",
        "Send an e-mail to ann@example.org saying 'see you at noon'",
    ] {
        assert_eq!(detector.detect_missing_tools(task), None, "{task}");
    }
}

#[test]
fn task_that_no_tool_fits_is_a_gap() {
    let tools = TestTools(vec![weather(), mail()]);
    let detector = tools.detector();
    for task in [
        "Translate this letter into French",
        "Calculate the square root of 144",
        "Book a table for 4 people at an Italian restaurant",
    ] {
        let report = detector.detect_missing_tools(task).expect(task);
        assert_eq!(report.missing_tools().len(), 1);
        let name = report.missing_tools()[0].as_str();
        assert!(ToolName::new(name).is_ok() && name.len() < 30, "{name}");
        assert_eq!(report.requests().next().unwrap().as_str(), task);
        assert_eq!(report.attempted_task(), task);
        assert_eq!(report.existing_tools_checked().len(), 2);
        let confidence = report.confidence().expect("a confidence").get();
        assert!(confidence >= detector.threshold(), "{task}: {confidence}");
        let missing = &report.capabilities()[0];
        assert!(!missing.nearest_tools.is_empty());
        let proposed = missing.proposed_tool.as_ref().expect("a proposal");
        assert!(read(proposed.as_str()).file.is_some(), "{proposed}");
    }
}

#[test]
fn task_whose_parts_fit_two_tools_has_no_gap() {
    let task = "Get the current weather of Paris, then send an e-mail to ann@example.org saying 'take a coat'";
    let both = TestTools(vec![weather(), mail()]);
    assert_eq!(both.detector().detect_missing_tools(task), None);
    let one = TestTools(vec![weather()]);
    let report = one
        .detector()
        .detect_missing_tools(task)
        .expect("half is missing");
    let missing: Vec<&str> = report
        .requests()
        .map(windlass_spec::NonEmptyText::as_str)
        .collect();
    assert_eq!(
        missing,
        ["send an e-mail to ann@example.org saying 'take a coat'"]
    );
}

#[test]
fn text_without_a_request_has_no_gap() {
    let tools = TestTools(vec![weather()]);
    let detector = tools.detector();
    for task in ["", "   ", "?", "123", "🦀"] {
        assert_eq!(detector.detect_missing_tools(task), None, "{task:?}");
        assert_eq!(detector.assess(task).probability, 0.0);
    }
    let without = TestTools(Vec::new());
    assert!(
        without
            .detector()
            .detect_missing_tools("Greet Ada")
            .is_some()
    );
}

#[test]
fn very_long_and_unusual_tasks_do_not_panic() {
    let tools = TestTools(vec![weather(), mail()]);
    let detector = tools.detector();
    for task in [
        "weather ".repeat(200_000),
        "é".repeat(100_000),
        "a. ".repeat(100_000),
        "((((\u{0}".to_owned(),
    ] {
        let _ = detector.assess(&task);
    }
}

#[test]
fn capabilities_named_by_a_model_are_checked() {
    let tools = TestTools(vec![weather(), mail()]);
    let detector = tools.detector();
    let named = [
        "get the weather of Paris",
        "convert currency of 20 euros into dollars",
    ];
    let report = detector.check_capabilities("Tell me about Paris", &named, 0.6);
    let report = report.expect("one of them is missing");
    assert_eq!(report.missing_tools().len(), 1);
    assert_eq!(report.requests().next().unwrap().as_str(), named[1]);
    assert_eq!(
        detector.check_capabilities("Tell me", &named[..1], 0.6),
        None
    );
    assert_eq!(
        detector.check_capabilities::<&str>("Tell me", &[], 0.6),
        None
    );
}

#[test]
fn unknown_tool_is_proposed_with_the_arguments_of_its_call() {
    let tools = TestTools(vec![weather()]);
    let arguments = json!({"city": "Paris", "days": 3, "metric": true});
    let missing = tools
        .detector()
        .missing_for_call("weatherForecast", &arguments)
        .expect("it is missing");
    assert_eq!(missing.nearest_tools[0].name.as_str(), "get_weather");
    let proposed = missing.proposed_tool.expect("a proposal");
    let file = read(proposed.as_str()).file.expect("it reads");
    let tool = file.tool("weatherForecast").expect("by its name");
    assert_eq!(tool.schema()["properties"]["days"]["type"], "integer");
    assert_eq!(tool.schema()["properties"]["metric"]["type"], "boolean");
}

#[test]
fn proposals_parse_and_have_the_canonical_layout() {
    let cases = read_cases(SAMPLE).expect("the sample reads");
    let odd = [
        "say \"hi\" to `x`",
        "{[(",
        "compute 3 km, 4 km and 5 km",
        "Übersetze \\ das",
    ];
    let tasks = cases.iter().map(|case| case.task.as_str()).chain(odd);
    let mut proposed = 0;
    for task in tasks {
        let Some(tool) = proposed_specification(task) else {
            continue;
        };
        let text = write_tool(&Arc::new(tool.clone())).expect("it can be written");
        let reading = read(&text);
        let file = reading
            .file
            .unwrap_or_else(|| panic!("{task}: {text}: {:?}", reading.diagnostics));
        assert_eq!(*file.tools()[0], tool, "{task}");
        let again = rewrite(&text);
        assert_eq!(again, text, "{task}");
        proposed += 1;
    }
    assert!(proposed >= cases.len(), "{proposed}");
}

fn rewrite(text: &str) -> String {
    let file = read(text).file.expect("it reads");
    write_tool(&file.tools()[0]).expect("it can be written")
}

#[test]
fn parameters_are_guessed_from_the_values_in_a_task() {
    let task = "Book a flight from Berlin to Rome on 12 May for 2 people";
    let tool = proposed_specification(task).expect("a proposal");
    assert_eq!(tool.name().as_str(), "book_flight_people");
    let named: Vec<&str> = tool
        .signature()
        .parameters()
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(named, ["from_location", "to_location", "date", "people"]);
    assert_eq!(tool.schema()["properties"]["people"]["type"], "integer");
    assert!(
        !tool.description().contains("Berlin"),
        "{}",
        tool.description()
    );
}

#[test]
fn gaps_are_detected_among_a_hundred_tools() {
    const VERBS: [&str; 10] = [
        "create", "delete", "print", "archive", "sign", "copy", "approve", "export", "count",
        "rename",
    ];
    const THINGS: [&str; 10] = [
        "invoice",
        "contract",
        "photo",
        "playlist",
        "recipe",
        "spreadsheet",
        "badge",
        "poll",
        "reservation",
        "parcel",
    ];
    let mut tools = Vec::new();
    for verb in VERBS {
        for thing in THINGS {
            let schema = parameters(&[("id", "string", "Which one, by its number")]);
            let description = format!("{verb} the {thing} of that number");
            tools.push((format!("{verb}_{thing}"), description, schema));
        }
    }
    assert_eq!(tools.len(), 100);
    let views = tools.iter().map(|(name, description, schema)| ToolView {
        name,
        description,
        input_schema: schema,
    });
    let detector = ToolGapDetector::new(views);
    for verb in VERBS {
        for thing in THINGS {
            let task = format!("Please {verb} the {thing} 4711");
            let assessment = detector.assess(&task);
            let (nearest, _) = assessment.capabilities[0].nearest[0];
            assert_eq!(tools[nearest].0, format!("{verb}_{thing}"), "{task}");
            assert!(detector.detect_missing_tools(&task).is_none(), "{task}");
        }
    }
    for task in [
        "Translate this letter into French",
        "What is the weather in Paris?",
        "Calculate the square root of 144",
        "Turn on the lights in the kitchen",
        "Send an e-mail to Ann about the meeting",
    ] {
        let report = detector.detect_missing_tools(task);
        let report = report.unwrap_or_else(|| panic!("{task}"));
        assert_eq!(report.existing_tools_checked().len(), 100);
    }
}

#[test]
fn scores_on_the_sample_do_not_regress() {
    let cases = read_cases(SAMPLE).expect("the sample reads");
    let report = evaluate(&cases).expect("there are enough");
    assert_eq!(report.n, 80);
    // The evaluation is deterministic, so these bounds are exact.
    assert!(report.balanced_accuracy >= 0.862, "{report}");
    assert!(report.auroc >= 0.929, "{report}");
    assert!(report.shipped.balanced_accuracy >= 0.874, "{report}");
    assert_eq!(
        report,
        evaluate(&cases).expect("again"),
        "evaluation is deterministic"
    );
    let wrong = (1.0 - report.balanced_accuracy) * 80.0;
    assert!((report.wrong.len() as f64 - wrong).abs() < 1e-6);
}

#[test]
fn scores_do_not_depend_on_the_order_of_cases() {
    let mut cases = read_cases(SAMPLE).expect("the sample reads");
    let report = evaluate(&cases).expect("there are enough");
    cases.reverse();
    let other = evaluate(&cases).expect("there are enough");
    assert_eq!(report.balanced_accuracy, other.balanced_accuracy);
    assert!((report.auroc - other.auroc).abs() < 1e-9);
}

#[test]
fn fit_writes_the_source_of_a_calibration() {
    let cases = read_cases(SAMPLE).expect("the sample reads");
    let source = fit(&cases, "fitted to a sample");
    assert!(source.starts_with("//! The built-in calibration: fitted to a sample."));
    assert_eq!(
        source.lines().filter(|line| line.contains(", // ")).count(),
        10
    );
    assert_eq!(source, fit(&cases, "fitted to a sample"));
}

#[test]
fn invalid_cases_are_rejected_with_the_line() {
    let error = read_cases("\n{\"id\": 1}\n").expect_err("no case");
    assert!(error.to_string().starts_with("line 2: "), "{error}");
    let one = SAMPLE.lines().next().expect("a line");
    let cases = read_cases(one).expect("it reads");
    assert!(matches!(evaluate(&cases), Err(GapCaseError::TooFew)));
}
