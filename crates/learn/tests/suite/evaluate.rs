//! Labelled texts and the scores of an evaluation.

use serde_json::{Value, json};
use windlass_learn::intent::{IntentClassifier, LabelledTexts, evaluate};

fn row(text: &str, intent: &str, split: &str) -> String {
    json!({ "text": text, "intent": intent, "split": split }).to_string()
}

/// The kitchen examples, with six texts to score in scope and four out of scope.
fn rows() -> Vec<String> {
    let mut rows: Vec<String> = super::classify::kitchen_classes()
        .iter()
        .flat_map(|class| {
            class
                .examples
                .iter()
                .map(|text| row(text, &class.name, "train"))
        })
        .collect();
    rows.push(row("where is my passport", "oos", "train"));
    for (text, intent) in [
        ("set a timer for an hour", "timer"),
        ("countdown of two minutes", "timer"),
        ("recipe for pea soup", "recipe"),
        ("what can I cook with pasta", "recipe"),
        ("put cheese on the list", "shopping"),
        ("add apples to the groceries", "shopping"),
        ("the speed of light in vacuum", "oos"),
        ("book a flight to Madrid", "oos"),
        ("who painted the Mona Lisa", "oos"),
        ("is my insurance paid", "oos"),
    ] {
        rows.push(row(text, intent, "test"));
    }
    rows
}

fn evaluation_error(rows: &[String]) -> String {
    evaluate(&rows.join("\n")).unwrap_err().to_string()
}

#[test]
fn report_has_accuracy_and_auroc() {
    let report = evaluate(&rows().join("\n")).unwrap();
    assert_eq!((report.n, report.in_scope, report.out_of_scope), (10, 6, 4));
    assert_eq!((report.classes, report.examples), (3, 18));
    assert!(report.accuracy.unwrap() >= 5.0 / 6.0, "{report}");
    assert!(report.oos_auroc.unwrap() >= 0.9, "{report}");
    let written: Value = serde_json::to_value(&report).unwrap();
    for key in ["n", "accuracy", "oos_auroc"] {
        assert!(written[key].is_number(), "{key}");
    }
    let shown = report.to_string();
    assert!(shown.starts_with("n                   10\n"), "{shown}");
    assert!(shown.contains("oos_auroc"), "{shown}");
}

#[test]
fn auroc_is_missing_without_out_of_scope_texts() {
    let rows: Vec<String> = rows()
        .into_iter()
        .filter(|row| !row.contains("oos"))
        .collect();
    let report = evaluate(&rows.join("\n\n")).unwrap();
    assert_eq!(report.oos_auroc, None);
    assert!(report.to_string().contains("oos_auroc           -"));
}

#[test]
fn out_of_scope_examples_are_no_class_and_lower_the_score_of_similar_texts() {
    let texts = LabelledTexts::read(&rows().join("\n")).unwrap();
    assert_eq!(texts.out_of_scope, ["where is my passport"]);
    assert!(texts.classes.iter().all(|class| class.name != "oos"));
    let likely =
        |classifier: IntentClassifier| classifier.classify("where is my umbrella").in_scope;
    let alone = IntentClassifier::train(&texts.classes).unwrap();
    assert!(likely(texts.train().unwrap()) < likely(alone));
}

#[test]
fn errors_name_the_line() {
    let with = |line: &str| {
        let mut rows = rows();
        rows.insert(1, line.to_owned());
        evaluation_error(&rows)
    };
    assert!(with("nonsense").starts_with("line 2: "));
    let message = with(r#"{"text": "a", "split": "train"}"#);
    assert!(
        message.starts_with("line 2: missing field `intent`"),
        "{message}"
    );
    assert_eq!(with(&row(" ", "timer", "train")), "line 2: `text` is empty");
    assert_eq!(with(&row("a", "timer", "")), "line 2: `split` is empty");
    assert_eq!(
        with(&row("a", "garden", "test")),
        "line 2: the intent `garden` has no examples; give it some with split `train`"
    );
}

#[test]
fn evaluation_needs_examples_and_scored_texts() {
    assert_eq!(
        evaluation_error(&[]),
        "nothing to score: every text has split `train`"
    );
    assert_eq!(
        evaluation_error(&rows()[..18]),
        "nothing to score: every text has split `train`"
    );
    assert_eq!(
        evaluation_error(&[row("a", "oos", "test")]),
        "cannot learn from the texts with split `train`: no classes to learn; define at least one"
    );
}
