//! The values of a configuration as a tree in which every value knows where it comes from.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::origin::Origin;

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// A text, number or boolean.
    Scalar(Value),
    List(Vec<Node>),
    Table(Table),
    /// Something stands here, but it was refused. It is kept so that nobody complains that nothing
    /// stands here.
    Bad,
}

/// What stands under the keys of a table.
pub(crate) type Table = BTreeMap<String, Node>;

impl Node {
    pub(crate) fn new(content: Content, origin: Origin) -> Self {
        Self { content, origin }
    }

    /// What stands under a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.table()?.get(key)
    }

    /// What stands at the end of a path of keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.content {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The keys under a path with what stands there; none if nothing does.
    pub(crate) fn entries(&self, path: &[&str]) -> impl Iterator<Item = (&str, &Self)> {
        let table = self.at(path).and_then(Self::table);
        table
            .into_iter()
            .flatten()
            .map(|(key, node)| (key.as_str(), node))
    }

    /// The items of a list under a path; none if there is no list.
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

    /// Whether something here was refused.
    pub(crate) fn has_bad(&self) -> bool {
        match &self.content {
            Content::Bad => true,
            Content::Scalar(_) => false,
            Content::List(items) => items.iter().any(Self::has_bad),
            Content::Table(table) => table.values().any(Self::has_bad),
        }
    }

    /// The value without where it comes from.
    pub(crate) fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::value).collect(),
            Content::Table(table) => Value::Object(object(table)),
            Content::Bad => Value::Null,
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

/// Keys as they are written with dots between them; what is no bare key stands in quotes.
pub(crate) fn dotted(path: &[&str]) -> String {
    let keys: Vec<String> = path.iter().map(|key| written(key)).collect();
    keys.join(".")
}

fn written(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(bare) {
        key.to_owned()
    } else {
        // The quoting of JSON is that of TOML's basic strings.
        Value::from(key).to_string()
    }
}

/// `path` with one more key.
pub(crate) fn below<'a>(path: &[&'a str], key: &'a str) -> Vec<&'a str> {
    let mut longer = path.to_vec();
    longer.push(key);
    longer
}
