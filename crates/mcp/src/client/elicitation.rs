//! Which elicitations of servers are shown to the user. A form must not ask for secrets: the input passes
//! through this program, its journal and the server.

use serde_json::{Map, Value, json};
use windlass_spec::text::{TextUse, escape_line, is_clean, is_hidden, latin_words};

use super::api::{Elicitation, ElicitationReply, Limits};
use super::{shown, shown_lines};

/// The most schema nodes, levels and bytes of a form.
const MOST_NODES: usize = 500;
const MOST_LEVELS: usize = 8;
const MOST_BYTES: usize = 64 * 1024;

/// The longest URL that is shown, in bytes.
const MOST_URL_BYTES: usize = 2_000;

/// Words that mark a field as secret, whatever its type.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "pin",
    "cvv",
    "cvc",
    "cvv2",
    "otp",
    "totp",
    "credential",
    "credentials",
    "secret",
    "secrets",
    "mnemonic",
    "ssn",
];

/// Words that mark a text field as secret. In a number field they are harmless, such as a token limit.
const SECRET_TEXT_WORDS: &[&str] = &["token", "tokens", "apikey", "bearer", "jwt", "2fa", "mfa"];

/// Phrases that mark a field as secret anywhere in a text, also with spaces or punctuation between their
/// letters.
const SECRET_PHRASES: &[&str] = &[
    "password",
    "passphrase",
    "passwort",
    "kennwort",
    "motdepasse",
    "contraseña",
    "contrasena",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "apikey",
    "secretkey",
    "privatekey",
    "accesskey",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "bearertoken",
    "securitycode",
    "cardnumber",
    "creditcard",
    "seedphrase",
    "recoveryphrase",
    "recoverycode",
    "verificationcode",
    "onetimecode",
    "clientsecret",
    "pincode",
    "pinnumber",
];

/// Describes the first field of a form that seems to ask for a secret, if there is one.
///
/// Checks the names, titles, descriptions and formats of all fields and of the form itself, in all
/// branches of a field and in its references. Look-alike letters and hidden characters are resolved
/// first. Fields with fixed choices (booleans, enumerations) cannot contain secrets. A form that is too
/// large to check, or that uses unsupported keywords, counts as asking for secrets.
#[must_use]
pub fn asks_for_secret(schema: &Value) -> Option<String> {
    let mut check = FormCheck {
        form: schema,
        nodes: 0,
    };
    check.visit(schema, "the form", 0)
}

/// Schema keywords that are not checked. The protocol does not allow them in forms, and they could hide
/// any field.
const UNSUPPORTED_KEYWORDS: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "dependencies",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "prefixItems",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// A check of a form.
struct FormCheck<'f> {
    form: &'f Value,
    nodes: usize,
}

impl FormCheck<'_> {
    fn visit(&mut self, schema: &Value, name: &str, level: usize) -> Option<String> {
        self.nodes += 1;
        if self.nodes > MOST_NODES || level > MOST_LEVELS {
            return Some("the form is too large to check".to_owned());
        }
        // A schema that is not an object accepts anything.
        let empty = Map::new();
        let fields = schema.as_object().unwrap_or(&empty);
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        if text("format").is_some_and(|format| folded(format).contains("password"))
            || fields.get("writeOnly") == Some(&Value::Bool(true))
        {
            return Some(format!("`{}` is a field for a secret", shown(name, 60)));
        }
        if let Some(key) = UNSUPPORTED_KEYWORDS
            .iter()
            .find(|key| fields.contains_key(**key))
        {
            let name = shown(name, 60);
            return Some(format!("`{name}` uses the unsupported keyword `{key}`"));
        }
        if !is_only(schema, &is_choice) {
            let is_number = is_only(schema, &is_number);
            let texts = [Some(name), text("title"), text("description")];
            for text in texts.into_iter().flatten() {
                if let Some(word) = secret_word(text, is_number) {
                    return Some(format!(
                        "`{}` looks like a field for a secret (`{word}`)",
                        shown(name, 60)
                    ));
                }
            }
        }
        self.visit_parts(fields, name, level + 1)
    }

    /// Checks the parts of a field: properties, branches, items and references.
    fn visit_parts(
        &mut self,
        schema: &Map<String, Value>,
        name: &str,
        level: usize,
    ) -> Option<String> {
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            if let Some(reason) = self.visit(field, name, level) {
                return Some(reason);
            }
        }
        let branches = ["anyOf", "oneOf", "allOf"].into_iter();
        let branches = branches.filter_map(|key| schema.get(key)?.as_array());
        let single = ["items", "additionalProperties"].into_iter();
        let parts = branches
            .flatten()
            .chain(single.filter_map(|key| schema.get(key)));
        // A part that allows only null takes no input.
        let takes_input = |part: &&Value| part.is_object() && types(part) != ["null"];
        for part in parts.filter(takes_input) {
            if let Some(reason) = self.visit(part, name, level) {
                return Some(reason);
            }
        }
        let reference = schema.get("$ref")?;
        let within = reference.as_str().and_then(|text| text.strip_prefix('#'));
        match within.and_then(|pointer| self.form.pointer(pointer)) {
            Some(target) => self.visit(target, name, level),
            None => Some(format!(
                "`{}` has a reference that cannot be resolved",
                shown(name, 60)
            )),
        }
    }
}

/// Whether all branches of a field are of a kind. Null branches are ignored.
fn is_only(schema: &Value, is_of_kind: &impl Fn(&Value) -> bool) -> bool {
    if is_of_kind(schema) {
        return true;
    }
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    let Some(branches) = branches.and_then(Value::as_array) else {
        return false;
    };
    let is_null = |branch: &Value| types(branch) == ["null"];
    !branches.iter().all(is_null)
        && branches
            .iter()
            .all(|branch| is_null(branch) || is_only(branch, is_of_kind))
}

/// Whether the form fixes the possible values of a field.
fn is_choice(schema: &Value) -> bool {
    let values = schema.get("enum").and_then(Value::as_array);
    values.is_some_and(|values| !values.is_empty())
        || schema.get("const").is_some()
        || is_of(schema, &["boolean"])
        || is_of(schema, &["array"])
            && schema
                .get("items")
                .is_some_and(|items| is_only(items, &is_choice))
}

fn is_number(schema: &Value) -> bool {
    is_of(schema, &["integer", "number"])
}

fn is_of(schema: &Value, kinds: &[&str]) -> bool {
    let mut types = types(schema);
    types.retain(|kind| *kind != "null");
    !types.is_empty() && types.iter().all(|kind| kinds.contains(kind))
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(kind)) => vec![kind.as_str()],
        _ => Vec::new(),
    }
}

/// The first word or phrase about secrets in a text.
fn secret_word(text: &str, is_number: bool) -> Option<&'static str> {
    if let Some(phrase) = secret_phrase(text) {
        return Some(phrase);
    }
    let words = words(text);
    let finds = |list: &[&'static str]| {
        let mut list = list.iter();
        list.find(|word| words.iter().any(|found| found == *word))
            .copied()
    };
    finds(SECRET_WORDS).or_else(|| match is_number {
        true => None,
        false => finds(SECRET_TEXT_WORDS),
    })
}

/// The first phrase about secrets in a text, with or without spaces.
fn secret_phrase(text: &str) -> Option<&'static str> {
    let letters: String = folded(text)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect();
    let mut phrases = SECRET_PHRASES.iter();
    phrases.find(|phrase| letters.contains(**phrase)).copied()
}

/// The words of a text, split at punctuation and in camel case.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_lowercase = false;
    for c in text.chars().filter(|c| !is_hidden(*c)) {
        if was_lowercase && c.is_uppercase() {
            spaced.push(' ');
        }
        was_lowercase = c.is_lowercase() || c.is_numeric();
        spaced.push(c);
    }
    folded(&spaced)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A text in lower case, without hidden characters, with look-alike letters replaced by Latin ones.
fn folded(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    latin_words(&visible)
}

/// Reads the parameters of `elicitation/create`.
///
/// # Errors
/// Why it is not shown to the user.
pub(super) fn read(params: &Value, limits: &Limits) -> Result<Elicitation, String> {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let Some(original) = text("message") else {
        return Err("the elicitation has no message".to_owned());
    };
    let message = shown_lines(original, limits.text_characters);
    match text("mode") {
        Some("url") => {
            let url = text("url").unwrap_or_default();
            let is_valid = url.len() <= MOST_URL_BYTES
                && is_clean(url, TextUse::Name)
                && !url.contains(char::is_whitespace)
                && reqwest::Url::parse(url)
                    .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
            match is_valid {
                true => Ok(Elicitation::Url {
                    message,
                    url: url.to_owned(),
                }),
                false => Err("the URL is too long or not a plain http or https URL".to_owned()),
            }
        }
        None | Some("form") => {
            let Some(schema) = params
                .get("requestedSchema")
                .filter(|schema| schema.is_object())
            else {
                return Err("the form has no fields".to_owned());
            };
            if serde_json::to_vec(schema).map_or(usize::MAX, |json| json.len()) > MOST_BYTES {
                return Err("the form is too large".to_owned());
            }
            if let Some(name) = unreadable_name(schema) {
                let name = escape_line(name, TextUse::Exact);
                return Err(format!(
                    "the field name `{name}` contains line breaks or hidden characters"
                ));
            }
            if let Some(reason) = asks_for_secret(schema) {
                return Err(reason);
            }
            // The message may ask for a secret even if no field does.
            if let Some(phrase) = secret_phrase(original) {
                return Err(format!("the message asks for a secret (`{phrase}`)"));
            }
            Ok(Elicitation::Form {
                message,
                schema: schema.clone(),
            })
        }
        Some(_) => Err("the elicitation has an unknown mode".to_owned()),
    }
}

/// The first field name with line breaks, which could pass for several fields, or with hidden characters,
/// which could pass for another. It cannot be escaped, because it is the key of the reply.
fn unreadable_name(schema: &Value) -> Option<&str> {
    let fields = schema.get("properties")?.as_object()?;
    let mut names = fields.keys().map(String::as_str);
    names.find(|name| !is_clean(name, TextUse::Name))
}

/// The `ElicitResult`.
pub(super) fn result(reply: ElicitationReply) -> Value {
    match reply {
        ElicitationReply::Accept(fields) if fields.is_empty() => json!({ "action": "accept" }),
        ElicitationReply::Accept(fields) => json!({ "action": "accept", "content": fields }),
        ElicitationReply::Decline => json!({ "action": "decline" }),
        ElicitationReply::Cancel => json!({ "action": "cancel" }),
    }
}

/// The requests of an `input_required` result by their keys.
pub(super) fn requests(result: &mut Value) -> Option<Map<String, Value>> {
    match result.get_mut("inputRequests").map(Value::take) {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(requests)) => Some(requests),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
