//! URL templates: a URL in which `{name}` is a placeholder for an argument. An argument becomes part of
//! one path segment or of one query value, whatever characters it has. Scheme,
//! host, port and the number of path segments are those of the template.

use std::fmt;

use reqwest::Url;
use serde_json::{Map, Value};
use windlass_spec::ErrorCategory;

use super::HttpProblem;
use crate::error::ToolError;

/// A URL with placeholders for arguments in its path and its query.
#[derive(Debug, Clone)]
pub(super) struct UrlTemplate {
    /// The template with a harmless value for every placeholder.
    example: Url,
    /// Scheme, host and port, as written.
    origin: String,
    path: Vec<TemplatePart>,
    query: Vec<Vec<TemplatePart>>,
}

#[derive(Debug, Clone)]
enum TemplatePart {
    Literal(String),
    Argument(String),
}

impl TemplatePart {
    fn argument(&self) -> Option<&str> {
        match self {
            Self::Argument(name) => Some(name),
            Self::Literal(_) => None,
        }
    }
}

/// The template as written.
impl fmt::Display for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = |f: &mut fmt::Formatter<'_>, parts: &[TemplatePart]| {
            parts.iter().try_for_each(|part| match part {
                TemplatePart::Literal(text) => f.write_str(text),
                TemplatePart::Argument(name) => write!(f, "{{{name}}}"),
            })
        };
        f.write_str(&self.origin)?;
        write(f, &self.path)?;
        for (place, pair) in self.query.iter().enumerate() {
            f.write_str(if place == 0 { "?" } else { "&" })?;
            write(f, pair)?;
        }
        Ok(())
    }
}

impl UrlTemplate {
    pub(super) fn parse(text: &str) -> Result<Self, HttpProblem> {
        let not_a_url = |why: &str| HttpProblem::NotAUrl {
            url: text.to_owned(),
            why: why.to_owned(),
        };
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(not_a_url(
                "it has a space, a control character or a backslash in it",
            ));
        }
        if text.contains('#') {
            return Err(not_a_url("it has a fragment, which is never sent"));
        }
        let rest = ["https://", "http://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| not_a_url("it does not begin with https:// or http://"))?;
        let authority_length = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(authority_length);
        if authority.contains(['{', '}']) {
            return Err(HttpProblem::HostNotLiteral {
                host: authority.to_owned(),
            });
        }
        // A lenient parser would take the first path segment as the host.
        if authority.is_empty() {
            return Err(not_a_url("it has no host"));
        }
        if authority.contains('@') {
            return Err(not_a_url(
                "it has a user name in it; send credentials in a header",
            ));
        }
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, query.split('&').collect()),
            None => (rest, Vec::new()),
        };
        let path = parts(path).ok_or_else(|| not_a_url("its braces are not balanced"))?;
        let query: Option<Vec<Vec<TemplatePart>>> = query.into_iter().map(parts).collect();
        let query = query.ok_or_else(|| not_a_url("its braces are not balanced"))?;
        let origin = text
            .get(..text.len() - rest.len())
            .unwrap_or_default()
            .to_owned();
        let example = format!(
            "{origin}{}",
            expanded(&path, |_| Some("x".to_owned())).unwrap_or_default()
        );
        let example = Url::parse(&example).map_err(|error| not_a_url(&error.to_string()))?;
        Ok(Self {
            example,
            origin,
            path,
            query,
        })
    }

    /// The URL with a harmless value for every placeholder in its path.
    pub(super) fn example(&self) -> &Url {
        &self.example
    }

    /// The arguments it has placeholders for: those in the path, then those in the query.
    pub(super) fn arguments(&self) -> (Vec<&str>, Vec<&str>) {
        let path = self
            .path
            .iter()
            .filter_map(TemplatePart::argument)
            .collect();
        (
            path,
            self.query
                .iter()
                .flatten()
                .filter_map(TemplatePart::argument)
                .collect(),
        )
    }

    /// The URL with the arguments inserted. They are removed from `arguments`.
    pub(super) fn expand(&self, arguments: &mut Map<String, Value>) -> Result<Url, ToolError> {
        for name in self.arguments().0 {
            check_path_value(name, arguments.get(name).and_then(plain_text))?;
        }
        let value = |name: &str| Some(encoded(&plain_text(arguments.get(name)?)?));
        let path = expanded(&self.path, value).unwrap_or_default();
        let mut url = Url::parse(&format!("{}{path}", self.origin))
            .map_err(|error| invalid_argument("the URL", &error.to_string()))?;
        // The encoding above guarantees this. It is checked again, so that a bug above cannot send a request
        // to another server.
        if url.origin() != self.example.origin() || segments(&url) != segments(&self.example) {
            return Err(invalid_argument(
                "the URL",
                "the arguments would change the target of the request",
            ));
        }
        // A query pair without its argument is omitted.
        let pairs: Vec<String> = self
            .query
            .iter()
            .filter_map(|pair| expanded(pair, value))
            .collect();
        if !pairs.is_empty() {
            url.set_query(Some(&pairs.join("&")));
        }
        let (in_path, in_query) = self.arguments();
        for name in in_path.into_iter().chain(in_query) {
            arguments.shift_remove(name);
        }
        Ok(url)
    }
}

/// Adds `arguments` to the query of `url`; lists as one pair for each item.
pub(super) fn add_to_query(url: &mut Url, arguments: &Map<String, Value>) {
    let mut pairs = Vec::new();
    for (name, value) in arguments {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        let values = values.iter().filter_map(plain_text);
        pairs.extend(values.map(|value| format!("{}={}", encoded(name), encoded(&value))));
    }
    if !pairs.is_empty() {
        let before = url.query().into_iter().map(str::to_owned);
        let query: Vec<String> = before.chain(pairs).collect();
        url.set_query(Some(&query.join("&")));
    }
}

/// Refuses values that would change the path: empty ones, and `.` and `..` segments. Servers differ
/// in when they decode a slash, so segments after encoded slashes are checked too.
fn check_path_value(name: &str, value: Option<String>) -> Result<(), ToolError> {
    match value.as_deref() {
        None | Some("") => Err(invalid_argument(
            name,
            "must not be empty: it is part of a path",
        )),
        Some(value)
            if value
                .split(['/', '\\'])
                .any(|step| matches!(step, "." | "..")) =>
        {
            Err(invalid_argument(
                name,
                "must not have `.` or `..` as a segment: it is part of a path",
            ))
        }
        Some(_) => Ok(()),
    }
}

fn invalid_argument(what: &str, why: &str) -> ToolError {
    let message = format!("invalid arguments: `{what}`: {why}");
    ToolError::of(ErrorCategory::InvalidArguments, message).without_effect()
}

/// A value as it is written in a URL; `None` if it is null.
fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn segments(url: &Url) -> usize {
    url.path().split('/').count()
}

fn parts(text: &str) -> Option<Vec<TemplatePart>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        if literal.contains('}') || name.is_empty() || name.contains('{') {
            return None;
        }
        parts.push(TemplatePart::Literal(literal.to_owned()));
        parts.push(TemplatePart::Argument(name.to_owned()));
        rest = after;
    }
    parts.push(TemplatePart::Literal(rest.to_owned()));
    (!rest.contains('}')).then_some(parts)
}

fn expanded(parts: &[TemplatePart], value: impl Fn(&str) -> Option<String>) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            TemplatePart::Literal(text) => Some(text.clone()),
            TemplatePart::Argument(name) => value(name),
        })
        .collect()
}

/// `text` with all but letters, digits and `-._~` percent-encoded.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::UrlTemplate;

    fn expand(template: &str, arguments: Value) -> Result<String, String> {
        let Value::Object(mut arguments) = arguments else {
            return Err("no object".to_owned());
        };
        let template = UrlTemplate::parse(template).map_err(|problem| problem.to_string())?;
        let url = template
            .expand(&mut arguments)
            .map_err(|error| error.to_string())?;
        assert!(arguments.is_empty());
        Ok(url.to_string())
    }

    #[test]
    fn arguments_are_encoded_in_path_and_query() {
        assert_eq!(
            expand(
                "https://a.org/v1/{kind}/x-{id}?q={q}&n={n}&fixed=1",
                json!({"kind": "AC/DC", "id": 7, "q": "a&b=c#d é", "n": null})
            ),
            Ok("https://a.org/v1/AC%2FDC/x-7?q=a%26b%3Dc%23d%20%C3%A9&fixed=1".to_owned())
        );
    }

    #[test]
    fn no_argument_changes_the_host_or_the_path_segments() {
        for hostile in [
            "//evil.org",
            "@evil.org",
            "evil.org/",
            "x?y",
            "x#y",
            "%2e%2e",
            "...",
            "a;b",
            "\r\nHost: x",
            "\u{0}",
        ] {
            let url = expand("https://a.org/v1/{x}/end", json!({"x": hostile})).unwrap();
            let inner = url
                .strip_prefix("https://a.org/v1/")
                .unwrap()
                .strip_suffix("/end")
                .unwrap();
            assert!(
                !inner.contains(['/', '?', '#', '@', '\r', '\n', '\\']),
                "{url}"
            );
        }
        for hostile in ["..", ".", "../../admin", "a/../b", "..\\x", ""] {
            assert!(
                expand("https://a.org/v1/{x}/end", json!({"x": hostile})).is_err(),
                "{hostile}"
            );
        }
        // Two placeholders in one segment cannot form `..` together.
        assert!(expand("https://a.org/v1/.{x}", json!({"x": "."})).is_err());
        assert!(expand("https://a.org/v1/.{x}{y}/z", json!({"x": "%2e", "y": "a"})).is_ok());
    }

    #[test]
    fn a_template_must_be_a_url_with_a_fixed_host() {
        for bad in [
            "https://{host}/x",
            "https://a.{x}.org/x",
            "https://user@a.org/x",
            "ftp://a.org/x",
            "//a.org/x",
            "https://a.org/{x",
            "https://a.org/x}",
            "https://a.org/{}",
            "https://a.org/#x",
            "https:// a.org/",
            "https:///x",
            "https://a.org:99999/",
        ] {
            assert!(UrlTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
