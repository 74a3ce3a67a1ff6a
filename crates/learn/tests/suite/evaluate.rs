//! Labelled texts and the figures of an evaluation.

use serde_json::{Value, json};
use windlass_learn::intent::{IntentClassifier, LabelledTexts, evaluate};

fn row(text: &str, intent: &str, split: &str) -> String {
    json!({ "text": text, "intent": intent, "split": split }).to_string()
}

/// The kitchen's examples, six texts to score in scope and four out of it.
fn rows() -> Vec<String> {
    let mut rows: Vec<String> = super::classify::kitchen()
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

fn refusal(rows: &[String]) -> String {
    evaluate(&rows.join("\n")).unwrap_err().to_string()
}

#[test]
fn a_report_has_accuracy_and_auroc() {
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
fn without_texts_out_of_scope_there_is_no_auroc() {
    let rows: Vec<String> = rows()
        .into_iter()
        .filter(|row| !row.contains("oos"))
        .collect();
    let report = evaluate(&rows.join("\n\n")).unwrap();
    assert_eq!(report.oos_auroc, None);
    assert!(report.to_string().contains("oos_auroc           -"));
}

#[test]
fn examples_out_of_scope_are_no_class_and_make_their_like_less_likely() {
    let texts = LabelledTexts::read(&rows().join("\n")).unwrap();
    assert_eq!(texts.out_of_scope, ["where is my passport"]);
    assert!(texts.classes.iter().all(|class| class.name != "oos"));
    let likely =
        |classifier: IntentClassifier| classifier.classify("where is my umbrella").in_scope;
    let alone = IntentClassifier::train(&texts.classes).unwrap();
    assert!(likely(texts.train().unwrap()) < likely(alone));
}

#[test]
fn a_mistake_is_named_by_its_line() {
    let with = |line: &str| {
        let mut rows = rows();
        rows.insert(1, line.to_owned());
        refusal(&rows)
    };
    assert!(with("nonsense").starts_with("line 2: "));
    let said = with(r#"{"text": "a", "split": "train"}"#);
    assert!(said.starts_with("line 2: missing field `intent`"), "{said}");
    assert_eq!(with(&row(" ", "timer", "train")), "line 2: `text` is empty");
    assert_eq!(with(&row("a", "timer", "")), "line 2: `split` is empty");
    assert_eq!(
        with(&row("a", "garden", "test")),
        "line 2: the intent `garden` has no examples; give it some with split `train`"
    );
}

#[test]
fn without_examples_or_scored_texts_there_is_nothing_to_evaluate() {
    assert_eq!(
        refusal(&[]),
        "there is nothing to score: every text has split `train`"
    );
    assert_eq!(
        refusal(&rows()[..18]),
        "there is nothing to score: every text has split `train`"
    );
    assert_eq!(
        refusal(&[row("a", "oos", "test")]),
        "the texts with split `train` cannot be learned from: there are no classes to learn"
    );
}
