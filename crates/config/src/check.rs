//! Checks the values of one text against the table of keys. A value that does not fit is reported and
//! marked as invalid, so that no follow-up errors are reported for it.

use serde_json::Value;
use windlass_spec::nearest;

use crate::form::Form;
use crate::keys::{Key, ROOT, Range, Shape};
use crate::mistake::{ConfigMistake, did_you_mean, quoted};
use crate::prices::read_dollars;
use crate::tree::{Content, Node, Table, child_path, dotted};

/// Checks a whole text.
pub(crate) fn check(node: &mut Node, mistakes: &mut Vec<ConfigMistake>) {
    Checker { mistakes }.node(node, ROOT, &[]);
}

struct Checker<'m> {
    mistakes: &'m mut Vec<ConfigMistake>,
}

impl Checker<'_> {
    fn node(&mut self, node: &mut Node, shape: Shape, path: &[&str]) {
        if node.content == Content::Invalid {
            return;
        }
        let refused = match (shape, &mut node.content) {
            (Shape::Boolean, Content::Scalar(Value::Bool(_))) => None,
            (Shape::Integer(range), Content::Scalar(value)) if value.is_i64() => {
                check_range(range, value)
            }
            (Shape::Fraction, Content::Scalar(value)) if value.is_number() => {
                let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
                let refused = format!("{value} is not {}", shape.describe());
                // 1 and 1.0 are the same value.
                *value = number.map_or(Value::Null, Value::from);
                number.is_none().then_some((refused, None))
            }
            (Shape::Dollars, Content::Scalar(value)) if value.is_number() || value.is_string() => {
                check_dollars(value)
            }
            (Shape::Text(form), Content::Scalar(Value::String(text))) => check_form(form, text),
            (Shape::Words(words), Content::Scalar(Value::String(text))) => check_word(words, text),
            (Shape::Texts(form), Content::List(items)) => {
                self.texts(items, form, path);
                None
            }
            (Shape::Anything, Content::Table(_)) => None,
            (Shape::Table(_) | Shape::Map(_), Content::Table(table)) => {
                self.table(table, shape, path);
                None
            }
            (_, content) => Some(wrong_type(shape, content)),
        };
        if let Some((message, help)) = refused {
            let mistake = ConfigMistake::error(&node.origin, dotted(path), message);
            self.mistakes.push(mistake.help(help));
            node.content = Content::Invalid;
        }
    }

    fn table(&mut self, table: &mut Table, shape: Shape, path: &[&str]) {
        let fixed = shape.fixed();
        let find = |name: &str| fixed.iter().find(|key| key.name == name);
        table.retain(|name, node| match (find(name), shape) {
            (Some(key), _) => {
                self.node(node, key.shape, &child_path(path, name));
                true
            }
            (None, Shape::Map(map)) => {
                if let Some((message, help)) = check_form(map.names, name) {
                    let key = dotted(&child_path(path, name));
                    let mistake = ConfigMistake::error(&node.origin, key, message);
                    self.mistakes.push(mistake.help(help));
                    return false;
                }
                self.node(node, map.each, &child_path(path, name));
                true
            }
            (None, _) => {
                self.mistakes.push(unknown_key(fixed, name, node, path));
                false
            }
        });
    }

    fn texts(&mut self, items: &mut [Node], form: Form, path: &[&str]) {
        for (index, item) in items.iter_mut().enumerate() {
            let index = format!("[{index}]");
            let before = self.mistakes.len();
            self.node(item, Shape::Text(form), &[]);
            for mistake in self.mistakes.iter_mut().skip(before) {
                mistake.key = format!("{}{index}", dotted(path));
            }
        }
    }
}

type Refusal = (String, Option<String>);

fn check_range(range: Range, value: &Value) -> Option<Refusal> {
    let number = value.as_i64()?;
    let fits = (range.min..=range.max).contains(&number);
    (!fits).then(|| (format!("{number} is not {}", range.describe()), None))
}

fn check_dollars(value: &Value) -> Option<Refusal> {
    read_dollars(value)
        .err()
        .map(|error| (error.to_string(), None))
}

fn check_form(form: Form, text: &str) -> Option<Refusal> {
    form.check(text).err().map(|message| (message, None))
}

fn check_word(words: &'static [&'static str], text: &str) -> Option<Refusal> {
    if words.contains(&text) {
        return None;
    }
    let shown: String = text.chars().take(60).collect();
    let message = format!("`{shown}` is not one of {}", quoted(words.iter().copied()));
    // The words are ordered from lenient to strict: of two equally near words, suggest the stricter.
    let meant = nearest(text, words.iter().rev().copied());
    Some((message, did_you_mean(meant)))
}

fn wrong_type(shape: Shape, content: &Content) -> Refusal {
    // The value may be a secret.
    let found = match (shape, content) {
        (Shape::Text(Form::Given), Content::Scalar(Value::Number(_))) => "a number".to_owned(),
        _ => describe_content(content),
    };
    let message = format!("expected {}, found {found}", shape.describe());
    let help = match (shape, content) {
        (Shape::Texts(_), Content::Scalar(value)) if value.is_string() => {
            Some(format!("write a list: [{value}]"))
        }
        (Shape::Integer(_) | Shape::Fraction, Content::Scalar(Value::String(text)))
            if text.trim().parse::<f64>().is_ok() =>
        {
            Some(format!("write the number without quotes: {}", text.trim()))
        }
        (Shape::Boolean, Content::Scalar(Value::String(text)))
            if matches!(text.as_str(), "true" | "false") =>
        {
            Some(format!("write it without quotes: {text}"))
        }
        (Shape::Text(Form::Given), Content::Scalar(_)) => {
            Some("write it in quotes, as a string".to_owned())
        }
        _ => None,
    };
    (message, help)
}

/// Describes a value, for a message.
fn describe_content(content: &Content) -> String {
    match content {
        Content::Scalar(Value::String(text)) => {
            let shown: String = text.chars().take(40).collect();
            format!("the string {}", Value::from(shown))
        }
        Content::Scalar(Value::Bool(value)) => value.to_string(),
        Content::Scalar(value) => format!("the number {value}"),
        Content::List(_) => "a list".to_owned(),
        Content::Table(_) => "a table".to_owned(),
        Content::Invalid => "something else".to_owned(),
    }
}

/// If a table has more keys than this, a suggestion replaces the list of keys.
const MAX_LISTED: usize = 8;

fn unknown_key(keys: &[Key], name: &str, node: &Node, path: &[&str]) -> ConfigMistake {
    let known = keys.iter().map(|key| key.name);
    let listed = quoted(known.clone());
    let help = match (nearest(name, known), table_with_key(name)) {
        (Some(meant), _) if keys.len() > MAX_LISTED => format!("did you mean `{meant}`?"),
        (Some(meant), _) => format!("did you mean `{meant}`? Known keys: {listed}"),
        (None, Some(table)) => format!("`{name}` belongs in {table}"),
        (None, None) => format!("known keys: {listed}"),
    };
    let key = dotted(&child_path(path, name));
    ConfigMistake::error(&node.origin, key, "there is no such key").help(help)
}

/// The table that has a key of this name, if there is exactly one.
fn table_with_key(name: &str) -> Option<String> {
    let names = crate::keys::key_names();
    let mut tables = names
        .iter()
        .filter_map(|known| match known.rsplit_once('.') {
            Some((table, key)) if key == name => Some(format!("[{table}]")),
            None if known == name => Some("the file itself, before the first [table]".to_owned()),
            _ => None,
        });
    match (tables.next(), tables.next()) {
        (Some(table), None) => Some(table),
        _ => None,
    }
}
