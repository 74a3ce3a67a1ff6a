//! All keys of a configuration as data: the description, the allowed values and the default of each. The
//! table is in `keys/table.rs`. Checks, suggestions, built-in values, the JSON Schema and the test of the
//! documentation use it, so there is no second list.

mod categories;
mod learning;
mod money;
mod oidc;
mod servers;
mod table;
mod webhooks;

pub(crate) use table::ROOT;

use serde_json::{Value, json};

use crate::effect::KeyEffect;
use crate::form::Form;
use crate::origin::Origin;
use crate::tree::{Content, Node, Table};

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The description of the key, for the user who writes the file.
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: DefaultValue,
    /// What a value can do if the file that sets it is not trusted.
    pub(crate) effect: KeyEffect,
}

/// The built-in value of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    Nothing,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(&'static str),
    Texts(&'static [&'static str]),
}

/// The allowed values of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Boolean,
    Integer(Range),
    /// A number from 0 to 1.
    Fraction,
    /// An amount in US dollars.
    Dollars,
    Text(Form),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of strings of one form.
    Texts(Form),
    /// A table with these keys and no others.
    Table(&'static [Key]),
    /// A table whose keys are names, with some fixed keys.
    Map(&'static Map),
    /// A table with any content.
    Anything,
}

/// A table whose keys are names.
#[derive(Debug)]
pub(crate) struct Map {
    /// The form of the names.
    pub(crate) names: Form,
    /// The placeholder for a name in documentation, such as `TOOL`.
    pub(crate) placeholder: &'static str,
    /// The allowed values of each name.
    pub(crate) each: Shape,
    /// The fixed keys, which are not names.
    pub(crate) fixed: &'static [Key],
}

/// A range of integers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// The unit in messages, such as `seconds`.
    pub(crate) unit: &'static str,
}

impl Range {
    /// Describes the allowed values, for a message.
    pub(crate) fn describe(self) -> String {
        match self {
            Self { min: 1, max, .. } if max == i64::from(u32::MAX) => {
                "a positive integer".to_owned()
            }
            Self { min, max, unit: "" } => format!("{min} to {max}"),
            Self { min, max, unit } => format!("{min} to {max} {unit}"),
        }
    }
}

impl Shape {
    /// Describes the allowed values, for a message.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(range) => match range.describe() {
                what if what.starts_with('a') => what,
                what => format!("a whole number, {what}"),
            },
            Self::Fraction => "a number from 0 to 1".to_owned(),
            Self::Dollars => "an amount in US dollars such as 0.25".to_owned(),
            Self::Text(form) => form.describe().to_owned(),
            Self::Words(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" or ")
            }
            Self::Texts(_) => "a list of strings".to_owned(),
            Self::Table(_) | Self::Map(_) | Self::Anything => "a table".to_owned(),
        }
    }

    /// The fixed keys of a table.
    pub(crate) fn fixed(self) -> &'static [Key] {
        match self {
            Self::Table(keys) => keys,
            Self::Map(map) => map.fixed,
            _ => &[],
        }
    }

    /// The allowed values of a key of this table, with the key as the table spells it. Fixed keys match in any
    /// case, because the names of variables are often upper case.
    pub(crate) fn child(self, key: &str) -> Option<(String, Self)> {
        let fixed = self.fixed().iter();
        let found = fixed.clone().find(|known| known.name == key).or_else(|| {
            fixed
                .clone()
                .find(|known| known.name.eq_ignore_ascii_case(key))
        });
        match (found, self) {
            (Some(known), _) => Some((known.name.to_owned(), known.shape)),
            (None, Self::Map(map)) => Some((key.to_owned(), map.each)),
            (None, Self::Anything) => Some((key.to_owned(), Self::Anything)),
            _ => None,
        }
    }
}

impl DefaultValue {
    /// The value in JSON, if there is one.
    pub(crate) fn value(self) -> Option<Value> {
        Some(match self {
            Self::Nothing => return None,
            Self::Boolean(value) => json!(value),
            Self::Integer(value) => json!(value),
            Self::Number(value) => json!(value),
            Self::Text(value) => json!(value),
            Self::Texts(values) => json!(values),
        })
    }
}

/// The built-in layer: the defaults of all keys.
pub(crate) fn built_in() -> Node {
    let origin = Origin::built_in();
    Node::new(Content::Table(defaults(ROOT.fixed(), &origin)), origin)
}

fn defaults(keys: &'static [Key], origin: &Origin) -> Table {
    let mut table = Table::new();
    for key in keys {
        let content = match (key.shape.fixed(), key.default) {
            ([], DefaultValue::Nothing) => continue,
            ([], DefaultValue::Texts(texts)) => {
                let scalar = |text: &&str| Content::Scalar(json!(text));
                let items = texts
                    .iter()
                    .map(|text| Node::new(scalar(text), origin.clone()));
                Content::List(items.collect())
            }
            ([], default) => Content::Scalar(default.value().unwrap_or_default()),
            (below, _) => match defaults(below, origin) {
                table if table.is_empty() => continue,
                table => Content::Table(table),
            },
        };
        table.insert(key.name.to_owned(), Node::new(content, origin.clone()));
    }
    table
}

/// Every key of a configuration. Names that users choose are placeholders in capitals, as in
/// `categories.CATEGORY.enabled`.
#[must_use]
pub fn key_names() -> Vec<String> {
    let mut names = Vec::new();
    collect(ROOT, "", &mut names);
    names
}

fn collect(shape: Shape, above: &str, names: &mut Vec<String>) {
    let prefixed = |name: &str| match above {
        "" => name.to_owned(),
        above => format!("{above}.{name}"),
    };
    for key in shape.fixed() {
        let name = prefixed(key.name);
        names.push(name.clone());
        collect(key.shape, &name, names);
    }
    if let Shape::Map(map) = shape {
        let name = prefixed(map.placeholder);
        names.push(name.clone());
        collect(map.each, &name, names);
    }
}
