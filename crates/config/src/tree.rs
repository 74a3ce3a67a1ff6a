//! The values of a configuration as a tree in which every value has its origin.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::origin::Origin;

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// A string, number or boolean.
    Scalar(Value),
    List(Vec<Node>),
    Table(Table),
    /// A value that was refused. It is kept so that the key is not reported as missing.
    Invalid,
}

/// The values of a table by key.
pub(crate) type Table = BTreeMap<String, Node>;

impl Node {
    pub(crate) fn new(content: Content, origin: Origin) -> Self {
        Self { content, origin }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.table()?.get(key)
    }

    /// The value at a path of keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.content {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The keys and values of the table at a path; none if there is no table.
    pub(crate) fn entries(&self, path: &[&str]) -> impl Iterator<Item = (&str, &Self)> {
        let table = self.at(path).and_then(Self::table);
        table
            .into_iter()
            .flatten()
            .map(|(key, node)| (key.as_str(), node))
    }

    /// The items of the list at a path; none if there is no list.
    pub(crate) fn items(&self, path: &[&str]) -> &[Self] {
        match self.at(path).map(|node| &node.content) {
            Some(Content::List(items)) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        match &self.content {
            Content::Scalar(value) => value.as_i64(),
            _ => None,
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match &self.content {
            Content::Scalar(value) => value.as_f64(),
            _ => None,
        }
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match &self.content {
            Content::Scalar(value) => value.as_bool(),
            _ => None,
        }
    }

    /// Whether it contains an invalid value.
    pub(crate) fn has_invalid(&self) -> bool {
        match &self.content {
            Content::Invalid => true,
            Content::Scalar(_) => false,
            Content::List(items) => items.iter().any(Self::has_invalid),
            Content::Table(table) => table.values().any(Self::has_invalid),
        }
    }

    /// The value as JSON, without origins.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Table(table) => Value::Object(object(table)),
            Content::Invalid => Value::Null,
        }
    }
}

/// A table as JSON.
pub(crate) fn object(table: &Table) -> Map<String, Value> {
    table
        .iter()
        .map(|(key, node)| (key.clone(), node.value()))
        .collect()
}

/// A path of keys with dots between them. Keys that are not bare are quoted.
pub(crate) fn dotted(path: &[&str]) -> String {
    let keys: Vec<String> = path.iter().map(|key| quote_key(key)).collect();
    keys.join(".")
}

fn quote_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(bare) {
        key.to_owned()
    } else {
        // The quoting of JSON is that of TOML's basic strings.
        Value::from(key).to_string()
    }
}

/// `path` with one more key.
pub(crate) fn child_path<'a>(path: &[&'a str], key: &'a str) -> Vec<&'a str> {
    let mut longer = path.to_vec();
    longer.push(key);
    longer
}
