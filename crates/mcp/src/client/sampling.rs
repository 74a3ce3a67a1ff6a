//! Conversion of sampling requests and answers from and to the protocol.

use serde_json::{Value, json};

use super::api::{SampleAnswer, SampleMessage, SampleRequest};

/// The most messages and bytes of a sampling request.
const MOST_MESSAGES: usize = 100;
const MOST_BYTES: usize = 256 * 1024;

/// The longest answer in tokens if the server does not say.
const DEFAULT_TOKENS: u32 = 1_000;

/// Reads the parameters of `sampling/createMessage`. Only text content is supported.
pub(super) fn request(params: &Value) -> Result<SampleRequest, String> {
    let messages = params.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or("the request has no messages")?;
    if messages.len() > MOST_MESSAGES {
        return Err(format!(
            "the request has more than {MOST_MESSAGES} messages"
        ));
    }
    let mut bytes = 0;
    let mut read = Vec::new();
    for message in messages {
        let is_from_model = match message.get("role").and_then(Value::as_str) {
            Some("assistant") => true,
            Some("user") => false,
            _ => return Err("the role of a message is neither `user` nor `assistant`".to_owned()),
        };
        let content = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.as_slice(),
            Some(block) => std::slice::from_ref(block),
            None => &[],
        };
        let mut texts = Vec::new();
        for block in content {
            match block.get("text").and_then(Value::as_str) {
                Some(text) => texts.push(text),
                None => return Err("only text content is supported".to_owned()),
            }
        }
        let text = texts.join("\n");
        bytes += text.len();
        read.push(SampleMessage {
            is_from_model,
            text,
        });
    }
    let system_prompt = params.get("systemPrompt").and_then(Value::as_str);
    bytes += system_prompt.map_or(0, str::len);
    if bytes > MOST_BYTES {
        return Err(format!("the request has more than {MOST_BYTES} bytes"));
    }
    let max_tokens = params.get("maxTokens").and_then(Value::as_u64);
    Ok(SampleRequest {
        messages: read,
        system_prompt: system_prompt.map(str::to_owned),
        max_tokens: max_tokens.map_or(DEFAULT_TOKENS, |most| most.try_into().unwrap_or(u32::MAX)),
    })
}

/// The `CreateMessageResult`.
pub(super) fn result(answer: SampleAnswer) -> Value {
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": answer.text },
        "model": answer.model,
        "stopReason": "endTurn",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_and_other_content_is_refused() {
        let params = json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "hello" } },
                { "role": "assistant", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            ],
            "systemPrompt": "be brief",
            "maxTokens": 7,
        });
        let request = request(&params).unwrap();
        assert_eq!(request.messages[0].text, "hello");
        assert_eq!(request.messages[1].text, "a\nb");
        assert!(request.messages[1].is_from_model);
        assert_eq!(request.system_prompt.as_deref(), Some("be brief"));
        assert_eq!(request.max_tokens, 7);

        let image =
            json!({ "messages": [{ "role": "user", "content": { "type": "image", "data": "" } }] });
        assert_eq!(
            super::request(&image),
            Err("only text content is supported".to_owned())
        );
    }

    #[test]
    fn large_requests_are_refused() {
        let message =
            json!({ "role": "user", "content": { "type": "text", "text": "x".repeat(300_000) } });
        assert!(request(&json!({ "messages": [message] })).is_err());
        let small = json!({ "role": "user", "content": { "type": "text", "text": "x" } });
        assert!(request(&json!({ "messages": vec![small; 101] })).is_err());
    }
}
