//! Texts of a question that only the person who decides may read: screenshots, and the preview of stored
//! credentials. They are sealed before the question is stored, and opened to be shown.

use serde_json::{Map, Value};

use super::{Approval, CredentialUse, Intervene, Question};

/// The fields of a request that only the person who decides may read, wherever they are.
pub const SECRET_FIELDS: [&str; 3] = ["credential_preview", "vault_id", "screenshot"];

/// Replaces the values of the secret fields at any depth by what `seal` returns for their JSON.
pub(crate) fn seal_fields(fields: &mut Map<String, Value>, seal: &impl Fn(&str) -> String) {
    change_fields(fields, &|value| Value::String(seal(&value.to_string())));
}

fn open_fields(fields: &mut Map<String, Value>, open: &impl Fn(&str) -> String) {
    change_fields(fields, &|value| opened(value, open));
}

/// A sealed value as `open` returns it.
fn opened(value: &Value, open: &impl Fn(&str) -> String) -> Value {
    let Value::String(sealed) = value else {
        return value.clone();
    };
    let opened = open(sealed);
    serde_json::from_str(&opened).unwrap_or(Value::String(opened))
}

fn change_fields(fields: &mut Map<String, Value>, change: &impl Fn(&Value) -> Value) {
    for (name, value) in fields {
        match SECRET_FIELDS.contains(&name.as_str()) {
            true if value.is_null() => {}
            true => *value = change(value),
            false => change_in(value, change),
        }
    }
}

/// Changes the secret fields in a value. Its depth is bounded by the parser.
fn change_in(value: &mut Value, change: &impl Fn(&Value) -> Value) {
    match value {
        Value::Object(fields) => change_fields(fields, change),
        Value::Array(items) => items.iter_mut().for_each(|item| change_in(item, change)),
        _ => {}
    }
}

impl CredentialUse {
    /// Replaces the secret texts by what `seal` returns for them.
    pub(crate) fn seal(&mut self, seal: &impl Fn(&str) -> String) {
        if let Some(preview) = &mut self.credential_preview {
            *preview = Value::String(seal(&preview.to_string()));
        }
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = seal(screenshot);
        }
        if let Some(details) = &mut self.details {
            change_in(details, &|value| Value::String(seal(&value.to_string())));
        }
    }

    fn open(&mut self, open: &impl Fn(&str) -> String) {
        if let Some(preview) = &mut self.credential_preview {
            *preview = opened(preview, open);
        }
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = open(screenshot);
        }
        if let Some(details) = &mut self.details {
            change_in(details, &|value| opened(value, open));
        }
    }
}

impl Intervene {
    /// Replaces the secret texts by what `seal` returns for them.
    pub(crate) fn seal(&mut self, seal: &impl Fn(&str) -> String) {
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = seal(screenshot);
        }
        if let Some(details) = &mut self.details {
            change_in(details, &|value| Value::String(seal(&value.to_string())));
        }
    }

    fn open(&mut self, open: &impl Fn(&str) -> String) {
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = open(screenshot);
        }
        if let Some(details) = &mut self.details {
            change_in(details, &|value| opened(value, open));
        }
    }
}

impl Approval {
    /// The same question with its sealed texts as `open` returns them, to be shown to the person who
    /// decides. It keeps its digest.
    #[must_use]
    pub fn opened(&self, open: impl Fn(&str) -> String) -> Self {
        let mut opened = self.clone();
        match &mut opened.request.question {
            Question::Authorize(call) => {
                if let Some(credentials) = &mut call.credentials {
                    credentials.open(&open);
                }
            }
            Question::Intervene(work) => work.open(&open),
            Question::Ask(_) => {}
        }
        if let Some(named) = &mut opened.request.named_call {
            open_fields(&mut named.tool_args, &open);
        }
        open_fields(&mut opened.request.further, &open);
        opened
    }
}
