//! Which variable stands for a secret that is not copied, and what placeholders of other programs mean.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_spec::server::{Given, ServerName, looks_secret};

use super::Names;
use crate::text::{clipped, visible};

/// What VS Code asks for when a server is started, by name: its description.
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

/// The variables that secrets are put into, by name: what each stands for, so that two secrets do not
/// share one.
pub(super) struct Variables<'f> {
    inputs: &'f BTreeMap<String, String>,
    meant: BTreeMap<String, String>,
}

impl<'f> Variables<'f> {
    pub(super) fn new(inputs: &'f BTreeMap<String, String>) -> Self {
        Self {
            inputs,
            meant: BTreeMap::new(),
        }
    }

    /// How a value is written here.
    pub(super) fn written(
        &mut self,
        server: &ServerName,
        key: &str,
        text: &str,
        names: Names,
        notes: &mut Vec<String>,
    ) -> String {
        if let Some(placeholder) = placeholder(text) {
            return self.replaced(server, key, text, placeholder, names, notes);
        }
        // What would be read as the name of a variable, or as nothing, is not what it says.
        let is_plain = Given::new(text).is_ok_and(|given| given.variable().is_none())
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
            "what looks like a secret in `{key}` is not copied: put it into the variable `{variable}`{what}"
        ));
        format!("{scheme}env:{variable}")
    }

    /// A value with a placeholder in it.
    fn replaced(
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
        // What stands before it may be a secret as well, and may not be read as another variable.
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
            let meaning = format!("${{{name}}}");
            self.meant.entry(name.to_owned()).or_insert(meaning);
            return format!("{fixed}env:{name}");
        }
        if let (Some(fixed), Some(("input", id))) = (fixed, inside.split_once(':')) {
            let wanted = variable_of(id);
            let variable = self.free(server, &wanted, placeholder);
            let about = self.inputs.get(id).map(String::as_str).unwrap_or_default();
            let about = match about {
                "" => String::new(),
                about => format!(" ({about})"),
            };
            notes.push(format!(
                "`{key}` was asked for when the server was started{about}: put it into the variable `{variable}`"
            ));
            return format!("{fixed}env:{variable}");
        }
        let variable = self.variable(server, key, text, names);
        let shown = visible(clipped(placeholder, 60)).into_owned();
        notes.push(format!(
            "`{key}` is put together with `{shown}`: put the whole of it into the variable `{variable}`"
        ));
        format!("env:{variable}")
    }

    /// The variable for a value: by the name of the variable it was, or by server and header.
    fn variable(&mut self, server: &ServerName, key: &str, text: &str, names: Names) -> String {
        match names {
            Names::Variables => self.free(server, key, text),
            Names::Headers => {
                let wanted = format!("{}_{}", variable_of(server.as_str()), variable_of(key));
                self.free(server, &wanted, text)
            }
        }
    }

    /// The variable of that name, or another if that stands for something else already.
    fn free(&mut self, server: &ServerName, wanted: &str, meaning: &str) -> String {
        let own = format!("{}_{wanted}", variable_of(server.as_str()));
        let mut candidates = vec![wanted.to_owned(), own.clone()];
        candidates.extend((2..100).map(|number| format!("{own}_{number}")));
        let free = candidates.iter().find(|candidate| {
            let meant = self.meant.get(*candidate);
            meant.is_none_or(|meant| meant == meaning)
        });
        let free = free.unwrap_or(&own).clone();
        self.meant.insert(free.clone(), meaning.to_owned());
        free
    }
}

/// `Bearer ` and the like at the beginning of a header, which is no secret.
fn scheme(text: &str, names: Names) -> &'static str {
    let schemes = ["Bearer ", "Basic ", "Token ", "token "];
    let found = schemes.into_iter().find(|scheme| text.starts_with(scheme));
    found
        .filter(|_| names == Names::Headers)
        .unwrap_or_default()
}

/// A name in the letters of variables.
fn variable_of(name: &str) -> String {
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
