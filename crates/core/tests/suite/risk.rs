//! The accuracy of the risk assessment from names, descriptions and schemas. The figures are minimums: a
//! change of the lexicon may only raise them.

#![allow(clippy::unwrap_used)]

use windlass_core::risk::{EvaluationReport, evaluate, read_rows};
use windlass_spec::RiskLevel;

fn report(data: &str) -> EvaluationReport {
    evaluate(&read_rows(data).unwrap())
}

#[test]
fn everyday_tools_are_assessed_accurately() {
    let report = report(include_str!("../data/risk.own.jsonl"));
    assert_eq!(report.n, 298);
    assert!(report.accuracy >= 0.97, "{report}");
    assert_eq!(report.dangerous, 0, "{report}");
    assert!(report.undercalled <= 2, "{report}");
}

#[test]
fn tools_of_a_published_server_match_the_labels_of_its_authors() {
    let report = report(include_str!("../data/risk.github.jsonl"));
    assert_eq!(report.n, 92);
    assert!(report.accuracy >= 0.95, "{report}");
    assert_eq!(report.dangerous, 0, "{report}");
    assert_eq!(report.undercalled, 0, "{report}");
}

#[test]
fn report_counts_are_correct() {
    let row = |id: &str, name: &str, risk: &str| {
        format!(
            "{{\"id\": \"{id}\", \"name\": \"{name}\", \"expected\": {{\"risk\": \"{risk}\"}}}}\n"
        )
    };
    let data = [
        row("a", "get_x", "reversible"),
        row("b", "get_y", "irreversible"),
        row("c", "update_x", "irreversible"),
        row("d", "delete_x", "reversible"),
    ];
    let report = report(&data.concat());
    assert_eq!((report.n, report.dangerous, report.undercalled), (4, 1, 1));
    assert!((report.accuracy - 0.25).abs() < f64::EPSILON);
    assert_eq!(report.confusion, [[1, 0, 1], [0, 0, 0], [1, 1, 0]]);
    let errors: Vec<&str> = report
        .errors
        .iter()
        .map(|error| error.id.as_str())
        .collect();
    assert_eq!(errors, ["b", "c", "d"]);
    assert_eq!(report.errors[0].expected, RiskLevel::Irreversible);
    assert_eq!(report.errors[0].found, RiskLevel::Reversible);
    insta::assert_snapshot!(report, @r"
    tools        4
    accuracy     25.0 %
    dangerous    1
    undercalled  1

    is \ found                reversible  with delay  irreversible
    reversible                         1           0             1
    reversible_with_delay              0           0             0
    irreversible                       1           1             0
    b: is irreversible, found reversible (the name says `get`)
    c: is irreversible, found reversible_with_delay (the name says `update`)
    d: is reversible, found irreversible (the name says `delete`)
    ");
}

#[test]
fn empty_data_has_zero_accuracy() {
    let report = report("\n\n");
    assert_eq!((report.n, report.accuracy), (0, 0.0));
}

#[test]
fn invalid_row_is_an_error_with_its_line() {
    let row = r#"{"id": "a", "name": "x", "expected": {"risk": "reversible"}}"#;
    let broken = read_rows(&format!("{row}\n{{\"id\": 1}}")).unwrap_err();
    assert!(broken.to_string().starts_with("line 2: "), "{broken}");
    let twice = read_rows(&format!("{row}\n\n{row}")).unwrap_err();
    assert_eq!(twice.to_string(), "line 3: the id `a` occurs twice");
    let risk = read_rows(&row.replace("reversible", "harmless")).unwrap_err();
    assert!(risk.to_string().contains("harmless"), "{risk}");
}
