//! Evaluates tool-callers on tasks with their tools and accepted calls. A model is a function from a task and
//! its tools to a call, so any model can be scored.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ToolView;

/// A task with its tools and accepted calls.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// Its identifier.
    pub id: String,
    /// The text of the task.
    pub task: String,
    /// The tools that can be called.
    pub tools: Vec<CaseTool>,
    /// The accepted calls.
    pub expected: Expected,
}

/// A tool of a case.
#[derive(Debug, Clone, Deserialize)]
pub struct CaseTool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
}

/// The accepted calls of a case.
#[derive(Debug, Clone, Deserialize)]
pub struct Expected {
    /// The calls, of which the first is scored.
    pub calls: Vec<ExpectedCall>,
}

/// A call with the values accepted for each argument.
#[derive(Debug, Clone, Deserialize)]
pub struct ExpectedCall {
    /// The tool.
    pub name: String,
    /// For each argument, every accepted value; `""` means that it may be omitted.
    pub arguments: Map<String, Value>,
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeCall {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// The confidence that the model stated.
    pub confidence: Option<f64>,
}

/// A line that is not a valid case.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct CaseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub source: serde_json::Error,
}

/// Reads cases, one JSON object per line.
///
/// # Errors
/// The first line that is not a valid case.
pub fn read_cases(text: &str) -> Result<Vec<Case>, CaseError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|source| CaseError {
                line: index + 1,
                source,
            })
        })
        .collect()
}

/// Why a call is not correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureClass {
    /// No call was made.
    NoCall,
    /// The wrong tool was called.
    WrongTool,
    /// A required argument was omitted.
    Missing,
    /// An argument was given that the schema does not have.
    Unknown,
    /// An argument was given that should have been omitted.
    Unwanted,
    /// An argument has a value that is not accepted.
    WrongValue,
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCall => "no call",
            Self::WrongTool => "wrong tool",
            Self::Missing => "argument missing",
            Self::Unknown => "unknown argument",
            Self::Unwanted => "argument not asked for",
            Self::WrongValue => "wrong value",
        })
    }
}

/// A case that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFailure {
    /// The case.
    pub id: String,
    /// The kind of failure; of several, that of the first argument.
    pub class: FailureClass,
    /// A description of the failure.
    pub detail: String,
}

/// The calls whose stated confidence is in one interval of 0.1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReliabilityRow {
    /// The lower bound of the interval.
    pub from: f64,
    /// The number of calls.
    pub count: usize,
    /// Their mean stated confidence.
    pub stated: f64,
    /// The share of correct calls.
    pub right: f64,
}

/// The results of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluation {
    /// The number of cases.
    pub n: usize,
    /// The share of cases with the correct tool.
    pub tool_accuracy: f64,
    /// The share of cases with the correct tool and all arguments correct.
    pub call_accuracy: f64,
    /// Stated confidence compared with accuracy, by intervals of 0.1.
    pub reliability: Vec<ReliabilityRow>,
    /// The mean distance between stated confidence and accuracy, weighted by count.
    pub calibration_error: f64,
    /// The cases that failed.
    pub failures: Vec<CaseFailure>,
}

/// Scores a model on cases.
pub fn evaluate<F>(cases: &[Case], mut model: F) -> Evaluation
where
    F: FnMut(&str, &[ToolView<'_>]) -> Option<MadeCall>,
{
    let mut evaluation = Evaluation {
        n: cases.len(),
        ..Evaluation::default()
    };
    let (mut tools_right, mut calls_right) = (0_usize, 0_usize);
    let mut rows = [(0_usize, 0.0_f64, 0_usize); 10];
    for case in cases {
        let views: Vec<ToolView<'_>> = case.tools.iter().map(ToolView::from).collect();
        let made = model(&case.task, &views);
        let verdict = judge(case, made.as_ref());
        let is_right = verdict.is_ok();
        let confidence = made.as_ref().and_then(|made| made.confidence);
        if let Some(confidence) = confidence.filter(|confidence| confidence.is_finite()) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to 0..=9"
            )]
            let row = (confidence * 10.0).floor().clamp(0.0, 9.0) as usize;
            rows[row].0 += 1;
            rows[row].1 += confidence;
            rows[row].2 += usize::from(is_right);
        }
        match verdict {
            Ok(()) => {
                tools_right += 1;
                calls_right += 1;
            }
            Err((class, detail)) => {
                let tool_is_right =
                    !matches!(class, FailureClass::NoCall | FailureClass::WrongTool);
                tools_right += usize::from(tool_is_right);
                evaluation.failures.push(CaseFailure {
                    id: case.id.clone(),
                    class,
                    detail,
                });
            }
        }
    }
    evaluation.tool_accuracy = share(tools_right, cases.len());
    evaluation.call_accuracy = share(calls_right, cases.len());
    let stated: usize = rows.iter().map(|row| row.0).sum();
    for (tenth, (count, sum, right)) in rows.into_iter().enumerate().filter(|(_, row)| row.0 > 0) {
        let row = ReliabilityRow {
            from: tenth as f64 / 10.0,
            count,
            stated: sum / count as f64,
            right: share(right, count),
        };
        evaluation.calibration_error += (row.stated - row.right).abs() * share(count, stated);
        evaluation.reliability.push(row);
    }
    evaluation
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Checks whether a case accepts a call.
///
/// # Errors
/// The class and the description of the failure.
pub fn judge(case: &Case, made: Option<&MadeCall>) -> Result<(), (FailureClass, String)> {
    let Some(expected) = case.expected.calls.first() else {
        return match made {
            None => Ok(()),
            Some(made) => Err((
                FailureClass::WrongTool,
                format!("called {}, expected no call", made.name),
            )),
        };
    };
    let Some(made) = made else {
        return Err((FailureClass::NoCall, format!("expected {}", expected.name)));
    };
    if made.name != expected.name {
        return Err((
            FailureClass::WrongTool,
            format!("called {}, expected {}", made.name, expected.name),
        ));
    }
    let empty = Map::new();
    let arguments = made.arguments.as_object().unwrap_or(&empty);
    fields(arguments, &expected.arguments)
}

fn fields(
    given: &Map<String, Value>,
    expected: &Map<String, Value>,
) -> Result<(), (FailureClass, String)> {
    for (name, value) in given {
        let Some(accepted) = expected.get(name) else {
            return Err((
                FailureClass::Unknown,
                format!("{name} = {value} is not expected"),
            ));
        };
        let accepted = alternatives(accepted);
        if !accepted.iter().any(|accepted| equals(value, accepted)) {
            let only_absent = accepted.iter().all(is_absent);
            let class = if only_absent {
                FailureClass::Unwanted
            } else {
                FailureClass::WrongValue
            };
            return Err((
                class,
                format!(
                    "{name} = {value}, accepted {}",
                    Value::Array(accepted.to_vec())
                ),
            ));
        }
    }
    for (name, accepted) in expected {
        let may_be_absent = alternatives(accepted).iter().any(is_absent);
        if !given.contains_key(name) && !may_be_absent {
            return Err((
                FailureClass::Missing,
                format!("{name}, accepted {accepted}"),
            ));
        }
    }
    Ok(())
}

fn alternatives(accepted: &Value) -> &[Value] {
    match accepted {
        Value::Array(values) => values,
        single => std::slice::from_ref(single),
    }
}

fn is_absent(accepted: &Value) -> bool {
    accepted.as_str() == Some("")
}

/// Whether a value equals an accepted one. Numbers are compared as numbers, texts without case, spaces and some
/// punctuation, lists item by item, and records field by field.
fn equals(given: &Value, accepted: &Value) -> bool {
    match (given, accepted) {
        (Value::Number(given), Value::Number(accepted)) => {
            match (given.as_f64(), accepted.as_f64()) {
                (Some(given), Some(accepted)) => {
                    (given - accepted).abs() <= 1e-9 * accepted.abs().max(1e-9)
                }
                _ => false,
            }
        }
        (Value::String(given), Value::String(accepted)) => normalize(given) == normalize(accepted),
        (Value::Array(given), Value::Array(accepted)) => {
            given.len() == accepted.len()
                && given
                    .iter()
                    .zip(accepted)
                    .all(|(given, accepted)| equals(given, accepted))
        }
        // The fields of a nested record have lists of accepted values, too.
        (Value::Object(given), Value::Object(accepted)) => fields(given, accepted).is_ok(),
        (given, accepted) => given == accepted,
    }
}

fn normalize(text: &str) -> String {
    text.trim()
        .chars()
        .filter(|c| !matches!(c, ' ' | ',' | '.' | '/' | '-' | '_' | '*' | '^'))
        .flat_map(char::to_lowercase)
        .map(|c| if c == '\'' { '"' } else { c })
        .collect()
}

impl<'a> From<&'a CaseTool> for ToolView<'a> {
    fn from(tool: &'a CaseTool) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.input_schema,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn case(arguments: Value) -> Case {
        serde_json::from_value(json!({
            "id": "1", "task": "t",
            "tools": [{"name": "a", "description": "", "input_schema": {}}],
            "expected": {"calls": [{"name": "a", "arguments": arguments}]}
        }))
        .unwrap()
    }

    fn verdict(expected: Value, given: Value) -> Option<FailureClass> {
        let made = MadeCall {
            name: "a".to_owned(),
            arguments: given,
            confidence: None,
        };
        judge(&case(expected), Some(&made))
            .err()
            .map(|(class, _)| class)
    }

    #[test]
    fn texts_are_compared_by_letters_and_digits_only() {
        assert_eq!(
            verdict(json!({"p": ["New York, NY"]}), json!({"p": "new york ny"})),
            None
        );
        assert_eq!(
            verdict(json!({"p": ["New York"]}), json!({"p": "York"})),
            Some(FailureClass::WrongValue)
        );
    }

    #[test]
    fn numbers_are_not_equal_to_texts() {
        assert_eq!(verdict(json!({"p": [5.0]}), json!({"p": 5})), None);
        assert_eq!(
            verdict(json!({"p": [5]}), json!({"p": "5"})),
            Some(FailureClass::WrongValue)
        );
    }

    #[test]
    fn an_argument_may_be_omitted_only_if_that_is_accepted() {
        assert_eq!(verdict(json!({"p": [1, ""]}), json!({})), None);
        assert_eq!(
            verdict(json!({"p": [1]}), json!({})),
            Some(FailureClass::Missing)
        );
        assert_eq!(
            verdict(json!({"p": [""]}), json!({"p": 1})),
            Some(FailureClass::Unwanted)
        );
        assert_eq!(
            verdict(json!({}), json!({"q": 1})),
            Some(FailureClass::Unknown)
        );
    }

    #[test]
    fn lists_and_records_are_compared_by_their_parts() {
        assert_eq!(
            verdict(json!({"p": [["a", "b"]]}), json!({"p": ["A", "B"]})),
            None
        );
        assert_eq!(
            verdict(json!({"p": [["a", "b"]]}), json!({"p": ["b", "a"]})),
            Some(FailureClass::WrongValue)
        );
        assert_eq!(
            verdict(
                json!({"p": [{"x": [1], "y": ["", 2]}]}),
                json!({"p": {"x": 1}})
            ),
            None
        );
    }

    #[test]
    fn reliability_counts_correct_calls_by_stated_confidence() {
        let cases = vec![case(json!({"p": [1]})), case(json!({"p": [2]}))];
        let evaluation = evaluate(&cases, |_, _| {
            Some(MadeCall {
                name: "a".to_owned(),
                arguments: json!({"p": 1}),
                confidence: Some(0.85),
            })
        });
        assert_eq!(evaluation.call_accuracy, 0.5);
        assert_eq!(evaluation.tool_accuracy, 1.0);
        assert_eq!(evaluation.reliability[0].count, 2);
        assert_eq!(evaluation.reliability[0].right, 0.5);
    }
}
