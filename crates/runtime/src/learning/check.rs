//! Checks whether an answer is right, by the answer that the task expects or by a command of the operator.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::run::Run;
use windlass_spawn::Isolation;

use crate::operator_command::OperatorCommand;

/// The timeout of a checker command.
const CHECKER_TIMEOUT: Duration = Duration::from_secs(60);

/// A command that checks whether the answer of a run is right. It reads one JSON object with the run, the
/// task and the response. Its exit status is 0 for right, 1 for wrong, and anything else for unknown.
pub type Checker = OperatorCommand;

/// Whether the answer of a run is right, if known, and why the operator's command could not run.
pub(super) async fn checked(
    checker: Option<&Checker>,
    run: &Run,
    isolation: &Isolation,
) -> (Option<bool>, Option<String>) {
    let expected = run.task().metadata.get("expected");
    let expected = expected.filter(|expected| !expected.is_null());
    if let Some(expected) = expected
        && !answer_matches(expected, run.response().answer().as_str())
    {
        return (Some(false), None);
    }
    let verdict = match checker {
        Some(checker) => verdict(checker, run, isolation).await,
        None => Ok(None),
    };
    let (verdict, warning) = match verdict {
        Ok(verdict) => (verdict, None),
        Err(error) => (None, Some(format!("the checker could not run: {error}"))),
    };
    (verdict.or(expected.map(|_| true)), warning)
}

/// Whether an answer contains the expected words in sequence, in any case. For a list, one match is enough;
/// null matches everything.
#[must_use]
pub fn answer_matches(expected: &Value, answer: &str) -> bool {
    match expected {
        Value::Null => true,
        Value::Array(any) => any.iter().any(|one| answer_matches(one, answer)),
        Value::String(text) => contains_words(answer, text),
        other => contains_words(answer, &other.to_string()),
    }
}

fn contains_words(answer: &str, expected: &str) -> bool {
    let (expected, answer) = (words(expected), words(answer));
    expected.is_empty() || answer.windows(expected.len()).any(|part| part == expected)
}

/// The words of a text, and its numbers with their sign and fraction.
fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let is_digit = |place: Option<usize>| {
        let c = place.and_then(|place| chars.get(place));
        c.is_some_and(char::is_ascii_digit)
    };
    let is_of_word = |place: usize| match chars[place] {
        '.' => is_digit(place.checked_sub(1)) && is_digit(Some(place + 1)),
        '-' => {
            let before = place.checked_sub(1).map(|before| chars[before]);
            is_digit(Some(place + 1)) && !before.is_some_and(char::is_alphanumeric)
        }
        c => c.is_alphanumeric(),
    };
    let kept = (0..chars.len()).map(|place| if is_of_word(place) { chars[place] } else { ' ' });
    let kept: String = kept.collect();
    kept.split_whitespace().map(str::to_lowercase).collect()
}

/// Whether the answer of a run is right, according to the command.
async fn verdict(checker: &Checker, run: &Run, isolation: &Isolation) -> io::Result<Option<bool>> {
    let input = json!({
        "run": run.id(),
        "task": run.task().description,
        "metadata": run.task().metadata,
        "end": run.end(),
        "response": run.response(),
    });
    let input = input.to_string();
    let status = checker
        .run(input.as_bytes(), &[], CHECKER_TIMEOUT, isolation)
        .await?;
    Ok(match status.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_matches_if_it_contains_the_expected_words() {
        let is = |expected: Value, answer: &str| answer_matches(&expected, answer);
        assert!(is(json!("Forty  two"), "It is forty-two."));
        assert!(!is(json!("Forty two"), "Two and forty"));
        assert!(!is(json!("art"), "The start"));
        assert!(is(json!(42), "The answer is 42."));
        assert!(!is(json!(42), "The answer is -42."));
        assert!(!is(json!(4.5), "4 or 5"));
        assert!(is(json!(-4.5), "(-4.5)"));
        assert!(is(json!(["a", "b"]), "B"));
        assert!(!is(json!([]), "B"));
        assert!(is(Value::Null, "anything"));
    }
}
