//! The variables that replace secrets, and the placeholders of other programs.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_spec::server::{EnvTemplate, ServerName, looks_secret};

use super::Names;
use crate::text::{clipped, visible};

/// The inputs that VS Code asks for when a server is started: descriptions by id.
pub(super) fn inputs(file: &Value) -> BTreeMap<String, String> {
    let places = [file.get("inputs"), file.pointer("/mcp/inputs")];
    let inputs = places
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten();
    inputs
        .filter_map(|input| {
            let text = |key: &str| input.get(key).and_then(Value::as_str);
            let about = text("description").unwrap_or_default();
            Some((
                text("id")?.to_owned(),
                visible(clipped(about, 200)).into_owned(),
            ))
        })
        .collect()
}

pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The first `${...}` in a text.
pub(super) fn placeholder(text: &str) -> Option<&str> {
    let start = text.find("${")?;
    let rest = text.get(start..)?;
    let end = rest.find('}')?;
    rest.get(..=end)
}

/// The variables that replace secrets. Two different secrets never share one.
pub(super) struct Variables<'f> {
    inputs: &'f BTreeMap<String, String>,
    /// The original value of each variable.
    values: BTreeMap<String, String>,
}

impl<'f> Variables<'f> {
    pub(super) fn new(inputs: &'f BTreeMap<String, String>) -> Self {
        Self {
            inputs,
            values: BTreeMap::new(),
        }
    }

    /// The imported form of a value.
    pub(super) fn convert(
        &mut self,
        server: &ServerName,
        key: &str,
        text: &str,
        names: Names,
        notes: &mut Vec<String>,
    ) -> String {
        if let Some(placeholder) = placeholder(text) {
            return self.convert_placeholder(server, key, text, placeholder, names, notes);
        }
        // A value that would be read as a variable reference, or is not valid, is not copied.
        let is_plain = EnvTemplate::new(text).is_ok_and(|given| given.variable().is_none())
            && !text.chars().any(|c| c.is_control() && c != '\t');
        if is_plain && !looks_secret(key, text) {
            return text.to_owned();
        }
        let scheme = scheme(text, names);
        let variable = self.variable(server, key, text, names);
        let what = match scheme {
            "" => String::new(),
            scheme => format!(", without `{}`", scheme.trim()),
        };
        notes.push(format!(
            "`{key}` looks like a secret and is not copied; put it into the variable `{variable}`{what}"
        ));
        format!("{scheme}env:{variable}")
    }

    /// The imported form of a value with a placeholder.
    fn convert_placeholder(
        &mut self,
        server: &ServerName,
        key: &str,
        text: &str,
        placeholder: &str,
        names: Names,
        notes: &mut Vec<String>,
    ) -> String {
        let inside = placeholder.trim_start_matches("${").trim_end_matches('}');
        let fixed = text.strip_suffix(placeholder);
        let fixed = fixed.filter(|fixed| fixed.is_empty() || fixed.ends_with(' '));
        // The text before it may be a secret too, and must not be read as another variable.
        let fixed = fixed.filter(|fixed| {
            let is_scheme = fixed.split_whitespace().count() <= 1 && !fixed.contains("env:");
            is_scheme
                && (fixed.trim().is_empty()
                    || !looks_secret(key, fixed)
                    || *fixed == scheme(fixed, names))
        });
        let named = match inside.split_once(':') {
            Some(("env", name)) => Some(name),
            Some(_) => None,
            None => Some(inside),
        };
        if let (Some(fixed), Some(name)) = (fixed, named.filter(|name| is_variable(name))) {
            let value = format!("${{{name}}}");
            self.values.entry(name.to_owned()).or_insert(value);
            return format!("{fixed}env:{name}");
        }
        if let (Some(fixed), Some(("input", id))) = (fixed, inside.split_once(':')) {
            let wanted = to_variable_name(id);
            let variable = self.free_variable(server, &wanted, placeholder);
            let about = self.inputs.get(id).map(String::as_str).unwrap_or_default();
            let about = match about {
                "" => String::new(),
                about => format!(" ({about})"),
            };
            notes.push(format!(
                "`{key}` was prompted for at the start of the server{about}; put it into the variable `{variable}`"
            ));
            return format!("{fixed}env:{variable}");
        }
        let variable = self.variable(server, key, text, names);
        let shown = visible(clipped(placeholder, 60)).into_owned();
        notes.push(format!(
            "`{key}` contains `{shown}`; put the whole value into the variable `{variable}`"
        ));
        format!("env:{variable}")
    }

    /// The variable for a value: named like the original variable, or after server and header.
    fn variable(&mut self, server: &ServerName, key: &str, text: &str, names: Names) -> String {
        match names {
            Names::Variables => self.free_variable(server, key, text),
            Names::Headers => {
                let wanted = format!(
                    "{}_{}",
                    to_variable_name(server.as_str()),
                    to_variable_name(key)
                );
                self.free_variable(server, &wanted, text)
            }
        }
    }

    /// The variable `wanted`, or another if that already has another value.
    fn free_variable(&mut self, server: &ServerName, wanted: &str, value: &str) -> String {
        let own = format!("{}_{wanted}", to_variable_name(server.as_str()));
        let mut candidates = vec![wanted.to_owned(), own.clone()];
        candidates.extend((2..100).map(|number| format!("{own}_{number}")));
        let free = candidates.iter().find(|candidate| {
            let used = self.values.get(*candidate);
            used.is_none_or(|used| used == value)
        });
        let free = free.unwrap_or(&own).clone();
        self.values.insert(free.clone(), value.to_owned());
        free
    }
}

/// The authentication scheme at the beginning of a header, such as `Bearer `, which is not secret.
fn scheme(text: &str, names: Names) -> &'static str {
    let schemes = ["Bearer ", "Basic ", "Token ", "token "];
    let found = schemes.into_iter().find(|scheme| text.starts_with(scheme));
    found
        .filter(|_| names == Names::Headers)
        .unwrap_or_default()
}

/// A name in the characters of environment variables.
fn to_variable_name(name: &str) -> String {
    let letters = name.chars().map(|c| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    });
    let name: String = letters.take(60).collect();
    match name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        true => format!("_{name}"),
        false => name,
    }
}
