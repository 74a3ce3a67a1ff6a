//! What a tool's answer is worth: its value, no larger than allowed and as promised.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use windlass_spec::{Effect, ErrorCategory};

use super::api::{Answered, CallError};
use super::lock;
use super::schema::Schema;

/// A value from this size on is checked beside the threads that serve everybody.
const LARGE: usize = 64 * 1024;

/// The promises of tools, read once.
#[derive(Debug, Default)]
pub(crate) struct Checks(Mutex<HashMap<String, (Value, Promise)>>);

/// A promise, or why it is not checked against.
type Promise = Result<Arc<Schema>, String>;

impl Checks {
    fn schema(&self, tool: &str, promised: &Value) -> Promise {
        let mut known = lock(&self.0);
        if let Some((schema, read)) = known.get(tool)
            && schema == promised
        {
            return read.clone();
        }
        let read = Schema::new(promised).map(Arc::new);
        known.insert(tool.to_owned(), (promised.clone(), read.clone()));
        read
    }

    /// Reads a promise before the tool is called: what could not be used afterwards is not begun.
    pub(crate) fn prepare(&self, tool: &str, promised: &Value) -> Result<(), CallError> {
        let read = self.schema(tool, promised);
        read.map(drop).map_err(|why| {
            let message = format!("what the tool promises cannot be checked: {why}");
            CallError::new(ErrorCategory::InvalidOutput, Effect::None, message)
        })
    }

    /// The answer in a complete `CallToolResult`.
    pub(crate) async fn answer(
        &self,
        result: Value,
        tool: &str,
        promised: Option<&Value>,
        most: usize,
    ) -> Result<Answered, CallError> {
        let Value::Object(mut result) = result else {
            return Err(wrong(
                "the server answered with something that is no result",
            ));
        };
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        let structured = result
            .remove("structuredContent")
            .filter(|value| !value.is_null());
        let has_structure = structured.is_some();
        let value = match structured {
            Some(value) => value,
            None => blocks(&mut result)?,
        };
        let bytes = length(&value);
        if is_error {
            let value = match bytes > most {
                true => Value::String(beginning(&value, most)),
                false => value,
            };
            return Ok(Answered { is_error, value });
        }
        if bytes > most {
            let message = format!(
                "the answer of the tool is too large: {bytes} bytes where {most} are allowed"
            );
            return Err(CallError::own(
                ErrorCategory::InvalidOutput,
                Effect::Applied,
                message,
            ));
        }
        let Some(promised) = promised else {
            return Ok(Answered { is_error, value });
        };
        if !has_structure {
            return Err(wrong("the tool promised a structured answer and gave none"));
        }
        let schema = self
            .schema(tool, promised)
            .map_err(|why| wrong(&format!("what the tool promises cannot be checked: {why}")))?;
        let (value, checked) = match bytes < LARGE {
            true => {
                let checked = schema.check(&value);
                (value, checked)
            }
            false => tokio::task::spawn_blocking(move || {
                let checked = schema.check(&value);
                (value, checked)
            })
            .await
            .map_err(|_| wrong("the answer of the tool could not be checked"))?,
        };
        match checked {
            Ok(()) => Ok(Answered { is_error, value }),
            Err(why) => Err(wrong(&format!(
                "the answer of the tool is not as promised: {why}"
            ))),
        }
    }
}

/// An answer of a tool that ran: it cannot be used, but what it did is done.
fn wrong(message: &str) -> CallError {
    CallError::new(ErrorCategory::InvalidOutput, Effect::Applied, message)
}

/// The content of a result without structure: its text if it is one text, else its blocks.
fn blocks(result: &mut Map<String, Value>) -> Result<Value, CallError> {
    let mut blocks = match result.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(wrong("the content of the answer is none")),
    };
    if let [block] = blocks.as_mut_slice()
        && block.get("type").and_then(Value::as_str) == Some("text")
        && let Some(text @ Value::String(_)) = block.get_mut("text")
    {
        return Ok(text.take());
    }
    Ok(Value::Array(blocks))
}

/// How many bytes a value has as JSON, without writing it anywhere.
fn length(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// As much of a value as is allowed, as text.
fn beginning(value: &Value, most: usize) -> String {
    let mut text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut end = most.saturating_sub("…".len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn answer(result: Value, promised: Option<Value>) -> Result<Answered, CallError> {
        Checks::default()
            .answer(result, "tool", promised.as_ref(), 200)
            .await
    }

    #[tokio::test]
    async fn value_is_the_structure_or_the_text_or_the_blocks() {
        let both = json!({ "content": [{ "type": "text", "text": "{}" }], "structuredContent": { "a": 1 } });
        assert_eq!(answer(both, None).await.unwrap().value, json!({ "a": 1 }));
        let text = json!({ "content": [{ "type": "text", "text": "hello" }] });
        assert_eq!(answer(text, None).await.unwrap().value, json!("hello"));
        let blocks = json!([{ "type": "text", "text": "a" }, { "type": "image", "data": "" }]);
        let two = json!({ "content": blocks.clone() });
        assert_eq!(answer(two, None).await.unwrap().value, blocks);
        assert_eq!(answer(json!({}), None).await.unwrap().value, json!([]));
    }

    #[tokio::test]
    async fn broken_promises_are_errors_of_calls_that_ran() {
        let promised = json!({ "type": "object", "required": ["a"] });
        let kept = json!({ "structuredContent": { "a": 1 } });
        assert!(answer(kept, Some(promised.clone())).await.is_ok());
        for broken in [
            json!({ "structuredContent": { "b": 1 } }),
            json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }] }),
            json!({ "structuredContent": null }),
        ] {
            let error = answer(broken, Some(promised.clone())).await.unwrap_err();
            assert_eq!(error.category, ErrorCategory::InvalidOutput);
            assert_eq!(error.effect, Effect::Applied);
        }
    }

    #[tokio::test]
    async fn failure_needs_no_structure() {
        let failed = json!({ "isError": true, "content": [{ "type": "text", "text": "no" }] });
        let answer = answer(failed, Some(json!({ "type": "object" })))
            .await
            .unwrap();
        assert_eq!((answer.is_error, answer.value), (true, json!("no")));
    }

    #[tokio::test]
    async fn answers_that_are_too_large_are_refused_and_failures_cut() {
        let long = json!({ "content": [{ "type": "text", "text": "é".repeat(200) }] });
        assert_eq!(
            answer(long.clone(), None).await.unwrap_err().category,
            ErrorCategory::InvalidOutput
        );
        let mut failed = long;
        failed["isError"] = json!(true);
        let Value::String(text) = answer(failed, None).await.unwrap().value else {
            panic!("it is a text");
        };
        assert!(text.len() <= 200 && text.ends_with('…'));
    }

    #[tokio::test]
    async fn promise_that_changed_is_read_again() {
        let checks = Checks::default();
        let result = || json!({ "structuredContent": { "a": 1 } });
        let object = json!({ "type": "object" });
        let text = json!({ "type": "string" });
        assert!(
            checks
                .answer(result(), "t", Some(&object), 200)
                .await
                .is_ok()
        );
        assert!(
            checks
                .answer(result(), "t", Some(&text), 200)
                .await
                .is_err()
        );
        assert!(
            checks
                .answer(result(), "t", Some(&object), 200)
                .await
                .is_ok()
        );
    }
}
