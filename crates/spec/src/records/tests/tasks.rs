//! Tasks, alone and in batches.

use serde_json::{Value, json};

use super::{read_error, text, with};
use crate::records::{TaskInput, TaskLineProblem, TaskLines, read_tasks};

fn full() -> Value {
    json!({
        "task_id": "t1",
        "description": "Find Q3 sales data for enterprise customers",
        "playbook_bullets": ["apply a temporal filter first"],
        "domain": "sales",
        "metadata": { "asked_by": "ada" },
        "available_tools": ["search_database", "rank_results"],
        "max_iterations": 7
    })
}

fn lines(rows: &[Value]) -> String {
    let rows: Vec<_> = rows.iter().map(Value::to_string).collect();
    rows.join("\n")
}

#[test]
fn a_task_keeps_all_its_fields() {
    let task: TaskInput = serde_json::from_value(full()).unwrap();
    assert_eq!(task.domain(), "sales");
    assert_eq!(task.max_iterations.unwrap().get(), 7);
    assert_eq!(serde_json::to_value(task).unwrap(), full());
}

#[test]
fn a_task_needs_only_an_id_and_a_description() {
    let task: TaskInput =
        serde_json::from_value(json!({ "task_id": "t1", "description": "why?" })).unwrap();
    assert_eq!(task, TaskInput::new(text("t1"), text("why?")));
    assert_eq!(task.domain(), "general");
    assert_eq!((task.available_tools, task.max_iterations), (None, None));
    let nulls = json!({
        "task_id": "t1", "description": "why?", "available_tools": null, "max_iterations": null,
    });
    assert!(serde_json::from_value::<TaskInput>(nulls).is_ok());
}

#[test]
fn description_cannot_be_empty() {
    assert_eq!(
        read_error::<TaskInput>(with(full(), "description", json!("  "))),
        "description: it is empty"
    );
    read_error::<TaskInput>(with(full(), "task_id", json!("")));
    read_error::<TaskInput>(with(full(), "domain", json!("")));
}

#[test]
fn max_iterations_is_positive() {
    for number in [0, -5, 4_294_967_296_i64] {
        let read_error = read_error::<TaskInput>(with(full(), "max_iterations", json!(number)));
        assert!(
            read_error.starts_with("max_iterations must be 1"),
            "{read_error}"
        );
    }
}

#[test]
fn unknown_keys_of_a_task_are_rejected() {
    let read_error = read_error::<TaskInput>(with(full(), "max_iteration", json!(3)));
    assert!(
        read_error.starts_with("unknown field `max_iteration`"),
        "{read_error}"
    );
}

#[test]
fn available_tools_must_be_registered() {
    let task: TaskInput = serde_json::from_value(full()).unwrap();
    let all = ["search_database", "rank_results", "format"];
    assert_eq!(task.check_tools(all), Ok(()));
    let missing = task.check_tools(["searchDatabase", "format"]).unwrap_err();
    let messages: Vec<_> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "there is no tool `search_database`; did you mean `searchDatabase`?",
            "there is no tool `rank_results`"
        ]
    );
    let any = TaskInput::new(text("t1"), text("why?"));
    assert_eq!(any.check_tools([]), Ok(()));
}

#[test]
fn a_batch_has_one_task_per_line() {
    let rows = lines(&[full(), with(full(), "task_id", json!("t2"))]);
    let text = format!("\u{feff}{}\r\n\n   \n", rows.replace('\n', "\r\n"));
    let read = read_tasks(&text);
    let ids = read.tasks.iter().map(|(_, task)| task.task_id.as_str());
    assert_eq!(ids.collect::<Vec<_>>(), ["t1", "t2"]);
    assert_eq!(read.errors, []);
    assert_eq!(read_tasks(""), TaskLines::default());
}

#[test]
fn every_bad_line_of_a_batch_is_reported() {
    let batch = [
        full().to_string(),
        "{\"task_id\": \"t2\", \"description\": ".to_owned(),
        json!({ "task_id": "t3" }).to_string(),
        String::new(),
        json!({ "task_id": "t4", "description": "" }).to_string(),
        json!({ "task_id": "t5", "description": "x", "max_iterations": 0 }).to_string(),
        json!({ "task_id": "t6", "description": "x", "tools": [] }).to_string(),
        "[]".to_owned(),
        full().to_string(),
        json!({ "task_id": "t8", "description": "x", "available_tools": [""] }).to_string(),
    ];
    let read = read_tasks(&batch.join("\n"));
    let messages: Vec<_> = read.errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(messages.join("\n"));
    let used: Vec<usize> = read.tasks.iter().map(|(line, _)| *line).collect();
    assert_eq!(used, [1], "valid lines are used");
}

#[test]
fn a_duplicate_task_id_is_reported_with_both_lines() {
    let bad = with(full(), "description", json!(""));
    let errors = read_tasks(&lines(&[full(), bad, full()])).errors;
    let duplicates: Vec<_> = errors
        .iter()
        .filter_map(|error| match &error.problem {
            TaskLineProblem::Duplicate {
                task_id,
                first_line,
            } => Some((error.line, task_id.as_str(), *first_line)),
            _ => None,
        })
        .collect();
    assert_eq!(duplicates, [(2, "t1", 1), (3, "t1", 1)]);
    assert_eq!(errors.len(), 3, "the empty description is reported as well");
    let unusable = with(full(), "description", json!(""));
    let read = read_tasks(&lines(&[unusable, full()]));
    let used: Vec<usize> = read.tasks.iter().map(|(line, _)| *line).collect();
    assert_eq!(used, [2], "an invalid task does not reserve its id");
}
