//! Tests that cross-validation never learns from the cases it scores.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

use serde_json::json;

use super::*;

fn case(id: &str, task: &str, tools: &[&str], gap: bool) -> GapCase {
    let tools: Vec<Value> = tools
        .iter()
        .map(
            |name| json!({"name": name, "description": format!("Does {name}"), "input_schema": {}}),
        )
        .collect();
    let case = json!({"id": id, "task": task, "tools": tools, "expected": {"gap": gap}});
    serde_json::from_value(case).unwrap()
}

fn paired_cases() -> Vec<GapCase> {
    let mut cases = Vec::new();
    for index in 0..40 {
        let (task, tool) = (format!("do thing{index}"), format!("thing{}", index / 2));
        // The same task with and without its tool. Every tool is the right one of two tasks.
        cases.push(case(
            &format!("{index}/whole"),
            &task,
            &[&tool, "other"],
            false,
        ));
        cases.push(case(&format!("{index}/withheld"), &task, &["other"], true));
    }
    cases
}

#[test]
fn cases_with_the_same_task_or_right_tool_are_in_one_fold() {
    let cases = paired_cases();
    let judged: Vec<CaseFeatures<'_>> = cases.iter().map(CaseFeatures::new).collect();
    let folds = folds(&judged);
    for (one, fold) in cases.iter().zip(&folds) {
        for (other, other_fold) in cases.iter().zip(&folds) {
            let same_task = one.task == other.task;
            let right = |case: &GapCase| (!case.expected.gap).then(|| case.tools[0].name.clone());
            let same_tool = right(one).is_some() && right(one) == right(other);
            if same_task || same_tool {
                assert_eq!(fold, other_fold, "{} and {}", one.id, other.id);
            }
        }
    }
    let parts: BTreeSet<usize> = folds.iter().copied().collect();
    assert_eq!(
        parts.len(),
        FOLDS,
        "a tool that is in all cases does not join their folds"
    );
}

#[test]
fn folds_have_equal_sizes() {
    let cases = paired_cases();
    let judged: Vec<CaseFeatures<'_>> = cases.iter().map(CaseFeatures::new).collect();
    let folds = folds(&judged);
    for part in 0..FOLDS {
        assert_eq!(folds.iter().filter(|fold| **fold == part).count(), 8);
    }
}

#[test]
fn scores_match_hand_computed_values() {
    let cases = [
        case("a", "a", &[], true),
        case("b", "b", &[], true),
        case("c", "c", &[], false),
        case("d", "d", &[], false),
    ];
    let found = [(0.9, true), (0.4, false), (0.5, true), (0.1, false)];
    assert_eq!(balanced_accuracy(&cases, &found), 0.5);
    assert_eq!(auroc(&cases, &found), 0.75);
    let wrong = wrong(&cases, &found);
    assert_eq!(
        wrong
            .iter()
            .map(|case| case.id.as_str())
            .collect::<Vec<_>>(),
        ["b", "c"]
    );
    let rows = reliability(&cases, &found);
    assert_eq!(rows.iter().map(|row| row.count).sum::<usize>(), 4);
}
