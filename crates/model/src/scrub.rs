//! Keeps secrets out of stored and shown texts: a key type that cannot be printed, and a scrubber that
//! removes known secrets and texts that look like keys.

use std::fmt;

use serde_json::Value;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// The shortest secret that is removed. Shorter values are likely words, and removing them would garble texts.
const SHORTEST_SECRET: usize = 8;

/// A key from the environment. Its text is accessible only through [`Secret::expose`].
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Removes secrets from texts: the given values and everything that looks like an `sk-` key.
#[derive(Clone, Default)]
pub struct Scrubber {
    secrets: Vec<String>,
}

impl Scrubber {
    /// A scrubber for the values of the environment variables that end in `_KEY`, `_TOKEN`, `_SECRET` or
    /// `_PASSWORD`.
    #[must_use]
    pub fn from_environment() -> Self {
        // Variables that are not Unicode are not keys, and `vars` would panic on them.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::from_variables(variables)
    }

    /// A scrubber for those of these variables whose names end like those of secrets.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let holds_secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"]
                .iter()
                .any(|end| name.ends_with(end))
        };
        let secrets = variables
            .into_iter()
            .filter(|(name, _)| holds_secret(name))
            .map(|(_, value)| value);
        Self::new(secrets)
    }

    /// A scrubber for these values.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
            .collect();
        // Longer secrets first: otherwise the rest of a secret that contains another would stay.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The text without secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        without_keys(&text)
    }

    /// The JSON without secrets in its strings and keys.
    #[must_use]
    pub fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (self.text(&name), self.json(value)));
                Value::Object(fields.collect())
            }
            other => other,
        }
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubber({} secrets)", self.secrets.len())
    }
}

/// Replaces texts that look like a provider's key: `sk-` followed by enough key characters.
fn without_keys(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("sk-") {
        let (before, from) = rest.split_at(start);
        let is_key_character = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
        let end = from
            .find(|c: char| !is_key_character(c))
            .unwrap_or(from.len());
        // `task-list` and `disk-usage` contain `sk-` too.
        let starts_word = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        if starts_word && end >= 3 + SHORTEST_SECRET {
            out.push_str(REDACTED);
        } else {
            out.push_str(&from[..end]);
        }
        rest = &from[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_secret_variables_and_key_like_texts_are_removed() {
        let variables = [
            ("SEARCH_TOKEN", "abcdefgh12"),
            ("LONGER_SECRET", "abcdefgh12-and-more"),
            ("db_password", "correct horse"),
            ("SHORT_KEY", "yes"),
            ("HOME", "/home/someone"),
        ];
        let scrubber =
            Scrubber::from_variables(variables.map(|(n, v)| (n.to_owned(), v.to_owned())));
        let text = "abcdefgh12-and-more abcdefgh12 yes /home/someone sk-proj-12345678_x task-list-is-long correct horse";
        let clean =
            "[redacted] [redacted] yes /home/someone [redacted] task-list-is-long [redacted]";
        assert_eq!(scrubber.text(text), clean);
        assert_eq!(
            scrubber.json(json!({"abcdefgh12": ["sk-ant-1234567890", 1, null]})),
            json!({"[redacted]": ["[redacted]", 1, null]})
        );
    }

    #[test]
    fn debug_does_not_show_secrets() {
        let secret = Secret::new("very-secret-value".to_owned());
        let scrubber = Scrubber::new(["very-secret-value".to_owned()]);
        assert_eq!(
            format!("{secret:?} {scrubber:?}"),
            "[redacted] Scrubber(1 secrets)"
        );
    }
}
