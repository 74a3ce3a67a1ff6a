//! The forms of strings in a configuration. Each form checks strings, and describes itself for messages
//! and for the JSON Schema.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_spec::registry::{CategoryName, Environment, Permission};
use windlass_spec::server::{EnvTemplate, ServerName};
use windlass_spec::text::{TextUse, is_clean, is_hidden};
use windlass_spec::{AgentName, Signature, ToolName, Type};

use crate::settings::WebhookEvent;

/// The form of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Any string that is not blank.
    Text,
    /// A path to a file or directory.
    Path,
    Environment,
    Category,
    Permission,
    Tool,
    Agent,
    /// The name of a principal, or `*` for every principal.
    Principal,
    /// The name of a group of approvers.
    Group,
    /// The name of an approver.
    Approver,
    /// The name of an intent.
    Intent,
    /// A URL with http or https.
    Url,
    /// A host, or `*.` and the suffix of a host, or `*`.
    Host,
    /// A record type in the notation of signatures.
    Record,
    /// The name of a server.
    Server,
    /// An argument of a program; any string.
    Argument,
    /// The name of an environment variable.
    Variable,
    /// The name of a request header.
    Header,
    /// A string that may end with a reference to an environment variable.
    Given,
    /// A scope of callers of the server.
    Scope,
    /// The name of a webhook.
    Webhook,
    /// An event that a webhook is sent for.
    WebhookEvent,
    /// A period of time, or `never`.
    Period,
}

/// What callers of the server may be allowed.
const SCOPES: [&str; 6] = ["read", "run", "approve", "operate", "audit", "admin"];

impl Form {
    /// Checks a string.
    ///
    /// # Errors
    /// A message that says what is wrong with it.
    pub(crate) fn check(self, text: &str) -> Result<(), String> {
        let may_be_empty = matches!(self, Self::Argument | Self::Given);
        if is_blank(text) && !may_be_empty {
            return Err(format!("an empty string is not {}", self.describe()));
        }
        match self {
            Self::Text => Ok(()),
            Self::Path if text.contains('\0') => {
                Err("a path must not contain a NUL character".to_owned())
            }
            Self::Path => Ok(()),
            Self::Environment => Environment::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Category => CategoryName::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Permission => Permission::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Tool => ToolName::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Group | Self::Webhook if is_group(text) => Ok(()),
            Self::WebhookEvent => match text.parse::<WebhookEvent>() {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            Self::Group | Self::Webhook => Err(format!("`{text}` is not {}", self.describe())),
            Self::Agent | Self::Principal | Self::Approver | Self::Intent => {
                AgentName::new(text).map(drop).map_err(|e| e.to_string())
            }
            Self::Url => check_url(text),
            Self::Host => check_host(text),
            Self::Record => record(text).map(drop),
            Self::Server => ServerName::new(text).map(drop).map_err(|e| e.to_string()),
            Self::Argument if text.contains('\0') => {
                Err("an argument must not contain a NUL character".to_owned())
            }
            Self::Argument => Ok(()),
            Self::Variable if is_variable(text) => Ok(()),
            Self::Variable => Err(format!("`{text}` is not {}", self.describe())),
            Self::Header => check_header(text),
            Self::Given => check_given(text),
            Self::Period => period(text).map(drop),
            Self::Scope if SCOPES.contains(&text) => Ok(()),
            Self::Scope => Err(format!("`{text}` is not {}", self.describe())),
        }
    }

    /// Describes the form, for a message.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Text => "a non-empty string",
            Self::Path => "a path",
            Self::Environment => "the name of an environment",
            Self::Category => "the name of a category",
            Self::Permission => "a permission",
            Self::Tool => "the name of a tool",
            Self::Agent => "the name of an agent",
            Self::Principal => "the name of a principal",
            Self::Group => "the name of a group: a letter, then letters, digits, `_` and `-`",
            Self::Approver => "the name of an approver",
            Self::Intent => "the name of an intent",
            Self::Url => "a URL that starts with http:// or https://",
            Self::Host => "a host such as `example.org` or `*.example.org`",
            Self::Record => "a record type such as `{region: Text, page_size: Maybe Int}`",
            Self::Server => "the name of a server",
            Self::Argument => "an argument",
            Self::Variable => "the name of an environment variable",
            Self::Header => "the name of a header",
            Self::Given => "a string",
            Self::Scope => "a scope: read, run, approve, operate, audit or admin",
            Self::Webhook => "the name of a webhook: a letter, then letters, digits, `_` and `-`",
            Self::WebhookEvent => "an event, such as `approval.asked`",
            Self::Period => "a period such as `12h`, `7d` or `4w`, or `never`",
        }
    }

    /// The JSON Schema keywords of the form.
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
            Self::Group | Self::Webhook => json!({ "pattern": "^[a-z][a-z0-9_-]{0,63}$" }),
            Self::WebhookEvent => json!({ "enum": WebhookEvent::ALL.map(WebhookEvent::as_str) }),
            Self::Tool | Self::Agent | Self::Principal | Self::Approver | Self::Intent => {
                json!({ "minLength": 1, "maxLength": 128, "pattern": "\\S" })
            }
            Self::Server => json!({
                "maxLength": 32,
                "pattern": "^[a-z][a-z0-9-]*(_[a-z0-9-]+)*$",
            }),
            Self::Argument => json!({}),
            Self::Scope => json!({ "enum": SCOPES }),
            Self::Variable => json!({ "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
            Self::Header => json!({ "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }),
            Self::Given => {
                json!({ "pattern": "^([^\\r\\n]* )?env:[A-Za-z_][A-Za-z0-9_]*$|^(?!(.* )?env:)" })
            }
            Self::Period => json!({ "pattern": "^([0-9]{1,5}[hdw]|never)$" }),
            Self::Text | Self::Path => json!({ "pattern": "\\S" }),
        }
    }
}

/// Whether a text has only white space and hidden characters, such as the byte order mark, which the pattern
/// `\S` of a schema takes for white space.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

/// A period of hours, days or weeks; `None` for `never`.
pub(crate) fn period(text: &str) -> Result<Option<Duration>, String> {
    if text == "never" {
        return Ok(None);
    }
    let refused = || format!("`{text}` is not {}", Form::Period.describe());
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(refused)?;
    let hours = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 7 * 24,
        _ => return Err(refused()),
    };
    let is_number = (1..=5).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = match is_number {
        true => number.parse().map_err(|_| refused())?,
        false => return Err(refused()),
    };
    Ok(Some(Duration::from_secs(number * hours * 60 * 60)))
}

fn is_variable(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Headers that the protocol itself sets.
const OWN_HEADERS: [&str; 8] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "transfer-encoding",
    "upgrade",
];

fn check_header(text: &str) -> Result<(), String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let lower = text.to_ascii_lowercase();
    if !text.chars().all(is_part) {
        return Err(format!("`{text}` is not {}", Form::Header.describe()));
    }
    if OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("mcp-") {
        return Err(format!("the header `{text}` is reserved by the protocol"));
    }
    Ok(())
}

/// Checks a string with a variable reference. Its messages do not contain the string, which may be a secret.
fn check_given(text: &str) -> Result<(), String> {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err("the string contains control characters".to_owned());
    }
    EnvTemplate::new(text)
        .map(drop)
        .map_err(|_| "`env:` must be followed by the name of an environment variable".to_owned())
}

/// Whether a text is a name that an annotation of a policy can have.
fn is_group(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    let mut bytes = text.bytes();
    text.len() <= 64
        && bytes.next().is_some_and(is_letter)
        && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}

fn check_url(text: &str) -> Result<(), String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or_else(|| format!("`{text}` is not {}", Form::Url.describe()))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if text.contains(char::is_whitespace) || !is_clean(text, TextUse::Name) {
        return Err("a URL must not contain spaces".to_owned());
    }
    if authority.contains('@') {
        return Err("a URL in a configuration must not contain a user or password".to_owned());
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err(format!("`{text}` has no host"));
    }
    Ok(())
}

fn check_host(text: &str) -> Result<(), String> {
    let refused = |why: &str| Err(format!("`{text}` {why}"));
    if text.contains("://") {
        return refused("is a URL; write only the host, such as `example.org`");
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
        return refused("has a `*` that is not at the start; write `*.example.org`");
    }
    let bracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let is_address = bracketed.is_some_and(|name| name.parse::<IpAddr>().is_ok());
    let is_label = |part: &str| {
        let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        !part.is_empty() && part.chars().all(allowed)
    };
    if is_address || name.split('.').all(is_label) {
        Ok(())
    } else {
        refused(&format!("is not {}", Form::Host.describe()))
    }
}

/// Parses a record type.
///
/// # Errors
/// A message that says what is wrong with the text.
pub(crate) fn record(text: &str) -> Result<Vec<windlass_spec::Field>, String> {
    let signature = Signature::parse(&format!("() --> {text}")).map_err(|found| {
        let messages: Vec<_> = found.into_iter().map(|one| one.message).collect();
        messages.join("; ")
    })?;
    match signature.into_parts() {
        (_, Type::Record(fields)) => Ok(fields),
        (_, other) => Err(format!("`{other}` is not {}", Form::Record.describe())),
    }
}
