//! Holds the values of one text against the table of keys. What does not fit is told and marked as
//! bad, so that what depends on it is not complained about as well.

use serde_json::Value;
use windlass_spec::nearest;

use crate::form::Form;
use crate::keys::{Key, ROOT, Range, Shape};
use crate::mistake::{Mistake, did_you_mean, quoted};
use crate::tree::{Content, Node, Table, below, dotted};

/// Checks a whole text.
pub(crate) fn check(node: &mut Node, mistakes: &mut Vec<Mistake>) {
    Checker { mistakes }.node(node, ROOT, &[]);
}

struct Checker<'m> {
    mistakes: &'m mut Vec<Mistake>,
}

impl Checker<'_> {
    fn node(&mut self, node: &mut Node, shape: Shape, path: &[&str]) {
        if node.content == Content::Bad {
            return;
        }
        let refused = match (shape, &mut node.content) {
            (Shape::Boolean, Content::Scalar(Value::Bool(_))) => None,
            (Shape::Integer(range), Content::Scalar(value)) if value.is_i64() => {
                outside(range, value)
            }
            (Shape::Fraction, Content::Scalar(value)) if value.is_number() => {
                let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
                let refused = format!("{value} is not {}", shape.what());
                // 1 and 1.0 are the same value.
                *value = number.map_or(Value::Null, Value::from);
                number.is_none().then_some((refused, None))
            }
            (Shape::Text(form), Content::Scalar(Value::String(text))) => refused_by(form, text),
            (Shape::Words(words), Content::Scalar(Value::String(text))) => none_of(words, text),
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
            let mistake = Mistake::error(&node.origin, dotted(path), message);
            self.mistakes.push(mistake.help(help));
            node.content = Content::Bad;
        }
    }

    fn table(&mut self, table: &mut Table, shape: Shape, path: &[&str]) {
        let fixed = shape.fixed();
        let find = |name: &str| fixed.iter().find(|key| key.name == name);
        table.retain(|name, node| match (find(name), shape) {
            (Some(key), _) => {
                self.node(node, key.shape, &below(path, name));
                true
            }
            (None, Shape::Map(map)) => {
                if let Some((message, help)) = refused_by(map.names, name) {
                    let key = dotted(&below(path, name));
                    let mistake = Mistake::error(&node.origin, key, message);
                    self.mistakes.push(mistake.help(help));
                    return false;
                }
                self.node(node, map.each, &below(path, name));
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

fn outside(range: Range, value: &Value) -> Option<Refusal> {
    let number = value.as_i64()?;
    let fits = (range.min..=range.max).contains(&number);
    (!fits).then(|| (format!("{number} is not {}", range.what()), None))
}

fn refused_by(form: Form, text: &str) -> Option<Refusal> {
    form.check(text).err().map(|message| (message, None))
}

fn none_of(words: &'static [&'static str], text: &str) -> Option<Refusal> {
    if words.contains(&text) {
        return None;
    }
    let shown: String = text.chars().take(60).collect();
    let message = format!("`{shown}` is not one of {}", quoted(words.iter().copied()));
    // Of two words that are equally near, the later is the stricter.
    let meant = nearest(text, words.iter().rev().copied());
    Some((message, did_you_mean(meant)))
}

fn wrong_type(shape: Shape, content: &Content) -> Refusal {
    // What stands there may be a secret.
    let found = match (shape, content) {
        (Shape::Text(Form::Given), Content::Scalar(Value::Number(_))) => "a number".to_owned(),
        _ => found(content),
    };
    let message = format!("expected {}, found {found}", shape.what());
    let help = match (shape, content) {
        (Shape::Texts(_), Content::Scalar(value)) if value.is_string() => {
            Some(format!("a list of one is written [{value}]"))
        }
        (Shape::Integer(_) | Shape::Fraction, Content::Scalar(Value::String(text)))
            if text.trim().parse::<f64>().is_ok() =>
        {
            Some(format!("numbers have no quotes: {}", text.trim()))
        }
        (Shape::Boolean, Content::Scalar(Value::String(text)))
            if matches!(text.as_str(), "true" | "false") =>
        {
            Some(format!("write it without quotes: {text}"))
        }
        (Shape::Text(Form::Given), Content::Scalar(_)) => {
            Some("write it in quotes, as a text".to_owned())
        }
        _ => None,
    };
    (message, help)
}

/// What stands somewhere, for a sentence.
fn found(content: &Content) -> String {
    match content {
        Content::Scalar(Value::String(text)) => {
            let shown: String = text.chars().take(40).collect();
            format!("the text {}", Value::from(shown))
        }
        Content::Scalar(Value::Bool(value)) => value.to_string(),
        Content::Scalar(value) => format!("the number {value}"),
        Content::List(_) => "a list".to_owned(),
        Content::Table(_) => "a table".to_owned(),
        Content::Bad => "something else".to_owned(),
    }
}

/// More keys than this are not listed where a better hint is at hand.
const MAX_LISTED: usize = 8;

fn unknown_key(keys: &[Key], name: &str, node: &Node, path: &[&str]) -> Mistake {
    let known = keys.iter().map(|key| key.name);
    let listed = format!("nown here are {}", quoted(known.clone()));
    let help = match (nearest(name, known), elsewhere(name)) {
        (Some(meant), _) if keys.len() > MAX_LISTED => format!("did you mean `{meant}`?"),
        (Some(meant), _) => format!("did you mean `{meant}`? K{listed}"),
        (None, Some(place)) => format!("`{name}` belongs in {place}"),
        (None, None) => format!("k{listed}"),
    };
    let key = dotted(&below(path, name));
    Mistake::error(&node.origin, key, "there is no such key").help(help)
}

/// The table in which a key of that name would be known, if there is just one.
fn elsewhere(name: &str) -> Option<String> {
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
