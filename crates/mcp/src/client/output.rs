//! Reading of tool results: size limit and check against the output schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use windlass_spec::{Effect, ErrorCategory, JsonSize};

use super::api::{CallError, ToolAnswer};
use super::lock;
use super::schema::Schema;

/// From this size in bytes, a value is checked on a blocking thread.
const LARGE: usize = 64 * 1024;

/// The compiled output schemas of tools.
#[derive(Debug, Default)]
pub(crate) struct OutputSchemas(Mutex<HashMap<String, (Value, CompiledSchema)>>);

/// A compiled schema, or why it cannot be used.
type CompiledSchema = Result<Arc<Schema>, String>;

impl OutputSchemas {
    fn schema(&self, tool: &str, output_schema: &Value) -> CompiledSchema {
        let mut known = lock(&self.0);
        if let Some((schema, compiled)) = known.get(tool)
            && schema == output_schema
        {
            return compiled.clone();
        }
        let compiled = Schema::new(output_schema).map(Arc::new);
        known.insert(tool.to_owned(), (output_schema.clone(), compiled.clone()));
        compiled
    }

    /// Compiles an output schema before the tool is called, so that a tool whose answer could not be
    /// checked is not called.
    pub(crate) fn prepare(&self, tool: &str, output_schema: &Value) -> Result<(), CallError> {
        let compiled = self.schema(tool, output_schema);
        compiled.map(drop).map_err(|reason| {
            let message = format!("the tool's output schema cannot be used: {reason}");
            CallError::new(ErrorCategory::InvalidOutput, Effect::None, message)
        })
    }

    /// The answer in a complete `CallToolResult`.
    pub(crate) async fn answer(
        &self,
        result: Value,
        tool: &str,
        output_schema: Option<&Value>,
        most: usize,
    ) -> Result<ToolAnswer, CallError> {
        let Value::Object(mut result) = result else {
            return Err(invalid_answer("the server's answer is not a result object"));
        };
        let is_error = result.get("isError") == Some(&Value::Bool(true));
        let structured = result
            .remove("structuredContent")
            .filter(|value| !value.is_null());
        let is_structured = structured.is_some();
        let value = match structured {
            Some(value) => value,
            None => blocks(&mut result)?,
        };
        let bytes = JsonSize::of(&value).bytes;
        if is_error {
            let value = match bytes > most {
                true => Value::String(beginning(&value, most)),
                false => value,
            };
            return Ok(ToolAnswer { is_error, value });
        }
        if bytes > most {
            let message = format!(
                "the tool's answer is too large: {bytes} bytes, at most {most} are allowed"
            );
            return Err(CallError::own(
                ErrorCategory::InvalidOutput,
                Effect::Applied,
                message,
            ));
        }
        let Some(output_schema) = output_schema else {
            return Ok(ToolAnswer { is_error, value });
        };
        if !is_structured {
            return Err(invalid_answer(
                "the tool has an output schema, but its answer has no structured content",
            ));
        }
        let schema = self.schema(tool, output_schema).map_err(|reason| {
            invalid_answer(&format!(
                "the tool's output schema cannot be used: {reason}"
            ))
        })?;
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
            .map_err(|_| invalid_answer("the tool's answer could not be checked"))?,
        };
        match checked {
            Ok(()) => Ok(ToolAnswer { is_error, value }),
            Err(reason) => Err(invalid_answer(&format!(
                "the tool's answer does not match its output schema: {reason}"
            ))),
        }
    }
}

/// The error for an unusable answer of a tool that ran.
fn invalid_answer(message: &str) -> CallError {
    CallError::new(ErrorCategory::InvalidOutput, Effect::Applied, message)
}

/// The content of an unstructured result: its text if it is a single text block, else its blocks.
fn blocks(result: &mut Map<String, Value>) -> Result<Value, CallError> {
    let mut blocks = match result.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(invalid_answer("the content of the answer is not an array")),
    };
    if let [block] = blocks.as_mut_slice()
        && block.get("type").and_then(Value::as_str) == Some("text")
        && let Some(text @ Value::String(_)) = block.get_mut("text")
    {
        return Ok(text.take());
    }
    Ok(Value::Array(blocks))
}

/// The first `most` bytes of a value, as text.
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

    async fn answer(result: Value, output_schema: Option<Value>) -> Result<ToolAnswer, CallError> {
        OutputSchemas::default()
            .answer(result, "tool", output_schema.as_ref(), 200)
            .await
    }

    #[tokio::test]
    async fn value_is_the_structured_content_or_the_text_or_the_blocks() {
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
    async fn answers_that_violate_the_output_schema_are_errors_with_an_effect() {
        let output_schema = json!({ "type": "object", "required": ["a"] });
        let valid = json!({ "structuredContent": { "a": 1 } });
        assert!(answer(valid, Some(output_schema.clone())).await.is_ok());
        for invalid in [
            json!({ "structuredContent": { "b": 1 } }),
            json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }] }),
            json!({ "structuredContent": null }),
        ] {
            let error = answer(invalid, Some(output_schema.clone()))
                .await
                .unwrap_err();
            assert_eq!(error.category, ErrorCategory::InvalidOutput);
            assert_eq!(error.effect, Effect::Applied);
        }
    }

    #[tokio::test]
    async fn error_results_need_no_structured_content() {
        let failed = json!({ "isError": true, "content": [{ "type": "text", "text": "no" }] });
        let answer = answer(failed, Some(json!({ "type": "object" })))
            .await
            .unwrap();
        assert_eq!((answer.is_error, answer.value), (true, json!("no")));
    }

    #[tokio::test]
    async fn large_answers_are_refused_and_large_errors_are_truncated() {
        let long = json!({ "content": [{ "type": "text", "text": "é".repeat(200) }] });
        assert_eq!(
            answer(long.clone(), None).await.unwrap_err().category,
            ErrorCategory::InvalidOutput
        );
        let mut failed = long;
        failed["isError"] = json!(true);
        let Value::String(text) = answer(failed, None).await.unwrap().value else {
            panic!("the value is not a text");
        };
        assert!(text.len() <= 200 && text.ends_with('…'));
    }

    #[tokio::test]
    async fn a_changed_output_schema_is_compiled_again() {
        let schemas = OutputSchemas::default();
        let result = || json!({ "structuredContent": { "a": 1 } });
        let object = json!({ "type": "object" });
        let text = json!({ "type": "string" });
        assert!(
            schemas
                .answer(result(), "t", Some(&object), 200)
                .await
                .is_ok()
        );
        assert!(
            schemas
                .answer(result(), "t", Some(&text), 200)
                .await
                .is_err()
        );
        assert!(
            schemas
                .answer(result(), "t", Some(&object), 200)
                .await
                .is_ok()
        );
    }
}
