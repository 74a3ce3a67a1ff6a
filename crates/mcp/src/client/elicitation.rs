//! Questions of servers to people: what is put before a person at all. A form must not ask for
//! secrets: whatever is filled in passes through this program, its journal and the server.

use serde_json::{Map, Value, json};
use windlass_spec::text::{TextUse, escape_line, is_clean, is_hidden, latin_words};

use super::api::{Elicitation, Limits, Reply};
use super::shown;

/// A form has no more than so many fields and levels, and is no larger than so many bytes.
const MOST_NODES: usize = 500;
const MOST_LEVELS: usize = 8;
const MOST_BYTES: usize = 64 * 1024;

/// Longer than this no address is shown to anybody.
const MOST_OF_ADDRESS: usize = 2_000;

/// Words that make a field one for a secret, whatever its type.
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

/// Words that do so in a field for text: numbers of tokens are asked for honestly.
const SECRET_WORDS_OF_TEXT: &[&str] = &["token", "tokens", "apikey", "bearer", "jwt", "2fa", "mfa"];

/// What does so wherever it stands, also if spaces or other signs are put between its letters.
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

/// Says which field of a form looks as if it asked for a secret, if one does, and by what.
///
/// Looked at are the names, titles and descriptions of all fields and of the form itself, and formats,
/// in all branches of a field and in what it refers to. Letters that only look like others, and what
/// cannot be seen, do not help. Fields that let one only choose (booleans, lists of values) hold no
/// secrets. A form that is too large to look through, or is put together in ways forms are not, counts
/// as one that asks for secrets.
#[must_use]
pub fn asks_for_secret(schema: &Value) -> Option<String> {
    let mut look = Look {
        form: schema,
        nodes: 0,
    };
    look.at(schema, "the form", 0)
}

/// What a field can be made of besides what is looked at. The protocol has none of it in forms, and
/// anything could be asked in it.
const UNHEARD_OF: &[&str] = &[
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

/// A look through a form.
struct Look<'f> {
    form: &'f Value,
    nodes: usize,
}

impl Look<'_> {
    fn at(&mut self, schema: &Value, name: &str, level: usize) -> Option<String> {
        self.nodes += 1;
        if self.nodes > MOST_NODES || level > MOST_LEVELS {
            return Some("the form is too large to look through".to_owned());
        }
        // What is no object says nothing, and takes anything under its name.
        let nothing = Map::new();
        let fields = schema.as_object().unwrap_or(&nothing);
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        if text("format").is_some_and(|format| folded(format).contains("password"))
            || fields.get("writeOnly") == Some(&Value::Bool(true))
        {
            return Some(format!("`{}` is a field for a secret", shown(name, 60)));
        }
        if let Some(key) = UNHEARD_OF.iter().find(|key| fields.contains_key(**key)) {
            let name = shown(name, 60);
            return Some(format!("`{name}` cannot be looked through (`{key}`)"));
        }
        if !is_only(schema, &is_choice) {
            let is_number = is_only(schema, &is_number);
            let said = [Some(name), text("title"), text("description")];
            for said in said.into_iter().flatten() {
                if let Some(word) = secret_word(said, is_number) {
                    return Some(format!(
                        "`{}` looks like a field for a secret (`{word}`)",
                        shown(name, 60)
                    ));
                }
            }
        }
        self.within(fields, name, level + 1)
    }

    /// Looks at everything a field is made of.
    fn within(&mut self, schema: &Map<String, Value>, name: &str, level: usize) -> Option<String> {
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten() {
            if let Some(why) = self.at(field, name, level) {
                return Some(why);
            }
        }
        let branches = ["anyOf", "oneOf", "allOf"].into_iter();
        let branches = branches.filter_map(|key| schema.get(key)?.as_array());
        let single = ["items", "additionalProperties"].into_iter();
        let parts = branches
            .flatten()
            .chain(single.filter_map(|key| schema.get(key)));
        // Nothing can be filled in where there is to be nothing.
        let holds_something = |part: &&Value| part.is_object() && types(part) != ["null"];
        for part in parts.filter(holds_something) {
            if let Some(why) = self.at(part, name, level) {
                return Some(why);
            }
        }
        let reference = schema.get("$ref")?;
        let within = reference.as_str().and_then(|text| text.strip_prefix('#'));
        match within.and_then(|pointer| self.form.pointer(pointer)) {
            Some(target) => self.at(target, name, level),
            None => Some(format!("`{}` refers to nothing here", shown(name, 60))),
        }
    }
}

/// Whether a field is of a kind whichever of its branches is taken; that it may also be null changes
/// nothing.
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

/// Whether nothing can be filled in that the form does not say.
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

/// The word in a text that speaks of secrets.
fn secret_word(text: &str, is_number: bool) -> Option<&'static str> {
    if let Some(phrase) = secret_phrase(text) {
        return Some(phrase);
    }
    let words = words(text);
    let finds = |list: &[&'static str]| {
        let mut list = list.iter();
        list.find(|word| words.iter().any(|said| said == *word))
            .copied()
    };
    finds(SECRET_WORDS).or_else(|| match is_number {
        true => None,
        false => finds(SECRET_WORDS_OF_TEXT),
    })
}

/// The phrase about secrets in a text, spaced or not.
fn secret_phrase(text: &str) -> Option<&'static str> {
    let run: String = folded(text)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect();
    let mut phrases = SECRET_PHRASES.iter();
    phrases.find(|phrase| run.contains(**phrase)).copied()
}

/// The words of a text: between other signs, and where a small letter meets a capital one.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_small = false;
    for c in text.chars().filter(|c| !is_hidden(*c)) {
        if was_small && c.is_uppercase() {
            spaced.push(' ');
        }
        was_small = c.is_lowercase() || c.is_numeric();
        spaced.push(c);
    }
    folded(&spaced)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A text in small letters, without what cannot be seen, with letters that look like Latin ones as
/// those.
fn folded(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    latin_words(&visible)
}

/// Reads the parameters of `elicitation/create`.
///
/// # Errors
/// Why no person is to see it.
pub(super) fn read(params: &Value, limits: &Limits) -> Result<Elicitation, String> {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let Some(said) = text("message") else {
        return Err("the question says nothing".to_owned());
    };
    let message = shown(said, limits.text_characters);
    match text("mode") {
        Some("url") => {
            let url = text("url").unwrap_or_default();
            let is_address = url.len() <= MOST_OF_ADDRESS
                && is_clean(url, TextUse::Name)
                && !url.contains(char::is_whitespace)
                && reqwest::Url::parse(url)
                    .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
            match is_address {
                true => Ok(Elicitation::Url {
                    message,
                    url: url.to_owned(),
                }),
                false => Err("the address to visit is none that is visited".to_owned()),
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
                return Err(format!("nobody can read the name of the field `{name}`"));
            }
            if let Some(why) = asks_for_secret(schema) {
                return Err(why);
            }
            // What the fields do not say the sentence above them may.
            if let Some(phrase) = secret_phrase(said) {
                return Err(format!("the question speaks of a secret (`{phrase}`)"));
            }
            Ok(Elicitation::Form {
                message,
                schema: schema.clone(),
            })
        }
        Some(_) => Err("the question is of an unknown kind".to_owned()),
    }
}

/// The name of a field that no person could read as it is: with line breaks it passes for several, and
/// with what cannot be seen for another. It cannot be shown otherwise, since it is answered by it.
fn unreadable_name(schema: &Value) -> Option<&str> {
    let fields = schema.get("properties")?.as_object()?;
    let mut names = fields.keys().map(String::as_str);
    names.find(|name| !is_clean(name, TextUse::Name))
}

/// The `ElicitResult`.
pub(super) fn result(reply: Reply) -> Value {
    match reply {
        Reply::Accept(fields) if fields.is_empty() => json!({ "action": "accept" }),
        Reply::Accept(fields) => json!({ "action": "accept", "content": fields }),
        Reply::Decline => json!({ "action": "decline" }),
        Reply::Cancel => json!({ "action": "cancel" }),
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
