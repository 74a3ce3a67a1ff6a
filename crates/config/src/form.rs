//! The forms that texts in a configuration have. Each says whether a text has it, and describes
//! itself for people and for the JSON Schema.

use std::net::IpAddr;

use serde_json::{Value, json};
use windlass_spec::registry::{CategoryName, Environment, Permission};
use windlass_spec::{AgentName, Signature, ToolName, Type};

/// A form that a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Anything but blanks.
    Text,
    /// A path to a file or directory.
    Path,
    Environment,
    Category,
    Permission,
    Tool,
    Agent,
    /// The name of a principal, or `*` for everybody.
    Principal,
    /// The name of an intent.
    Intent,
    /// An address with http or https.
    Url,
    /// A host, or a `*.` and the end of one, or `*`.
    Host,
    /// The type of a record in the notation of signatures.
    Record,
}

impl Form {
    /// Checks a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(self, text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Err(format!("an empty text is not {}", self.what()));
        }
        match self {
            Self::Text => Ok(()),
            Self::Path if text.contains('\0') => Err("a path holds no NUL".to_owned()),
            Self::Path => Ok(()),
            Self::Environment => Environment::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Category => CategoryName::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Permission => Permission::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Tool => ToolName::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Agent | Self::Principal | Self::Intent => {
                AgentName::new(text).map(drop).map_err(|e| e.to_string())
            }
            Self::Url => check_url(text),
            Self::Host => check_host(text),
            Self::Record => record(text).map(drop),
        }
    }

    /// What it is, for a sentence.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Text => "a text that says something",
            Self::Path => "a path",
            Self::Environment => "the name of an environment",
            Self::Category => "the name of a category",
            Self::Permission => "a permission",
            Self::Tool => "the name of a tool",
            Self::Agent => "the name of an agent",
            Self::Principal => "the name of a principal",
            Self::Intent => "the name of an intent",
            Self::Url => "an address that begins with http:// or https://",
            Self::Host => "a host such as `example.org` or `*.example.org`",
            Self::Record => "a record type such as `{region: Text, page_size: Maybe Int}`",
        }
    }

    /// Its part of a JSON Schema.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Environment => json!({ "pattern": "^[a-z][a-z0-9_-]{0,31}$" }),
            Self::Category => json!({ "pattern": "^[a-z][a-z0-9_-]{0,63}$" }),
            Self::Permission => json!({ "pattern": "^[a-z][a-z0-9._-]*(:[a-z0-9._-]+)*$" }),
            Self::Url => json!({ "pattern": "^https?://[^/]" }),
            Self::Host => {
                json!({ "pattern": "^(\\*|(\\*\\.)?[^*/?#@\\s.][^*/?#@\\s]*)(:[0-9]+)?$" })
            }
            Self::Record => json!({ "pattern": "^\\s*\\{" }),
            Self::Tool | Self::Agent | Self::Principal | Self::Intent => {
                json!({ "minLength": 1, "maxLength": 128, "pattern": "\\S" })
            }
            Self::Text | Self::Path => json!({ "pattern": "\\S" }),
        }
    }
}

fn check_url(text: &str) -> Result<(), String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or_else(|| format!("`{text}` is not {}", Form::Url.what()))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("an address holds no blanks".to_owned());
    }
    if authority.contains('@') {
        return Err("an address in a configuration holds no user and password".to_owned());
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(format!("`{text}` names no host"));
    }
    Ok(())
}

fn check_host(text: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("`{text}` {why}"));
    if text.contains("://") {
        return refused("is an address; write the host alone, such as `example.org`");
    }
    if text.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return refused("has a port that is not 1 to 65535");
    }
    if host == "*" {
        return Ok(());
    }
    let name = host.strip_prefix("*.").unwrap_or(host);
    if name.contains('*') {
        return refused("has a `*` elsewhere than at its beginning; write `*.example.org`");
    }
    let bracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let is_address = bracketed.is_some_and(|name| name.parse::<IpAddr>().is_ok());
    let in_words = |part: &str| {
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        !part.is_empty() && part.chars().all(allowed)
    };
    if is_address || name.split('.').all(in_words) {
        Ok(())
    } else {
        refused(&format!("is not {}", Form::Host.what()))
    }
}

/// Reads the type of a record.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn record(text: &str) -> Result<Vec<windlass_spec::Field>, String> {
    let signature = Signature::parse(&format!("() --> {text}")).map_err(|found| {
        let messages: Vec<_> = found.into_iter().map(|one| one.message).collect();
        messages.join("; ")
    })?;
    match signature.into_parts() {
        (_, Type::Record(fields)) => Ok(fields),
        (_, other) => Err(format!("`{other}` is not {}", Form::Record.what())),
    }
}
