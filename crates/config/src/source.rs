//! The texts of a configuration, and the conversion of their TOML to a tree.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_gram::LineIndex;

use crate::mistake::ConfigMistake;
use crate::origin::{Layer, Origin, SourceText};
use crate::tree::{Content, Node, Table, child_path, dotted};

/// The text of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// The layer that the file belongs to.
    pub layer: Layer,
    /// The name of the file in messages, usually its path.
    pub name: String,
    /// The directory of the file, which its relative paths start from.
    pub directory: PathBuf,
    /// The content of the file.
    pub text: String,
}

/// The most syntax errors that are reported for one text.
const MAX_SYNTAX_MISTAKES: usize = 20;

/// The result of reading one text.
pub(crate) struct Reading {
    pub(crate) tree: Node,
    pub(crate) mistakes: Vec<ConfigMistake>,
    /// The lines that could not be read, each with the lines that depend on it.
    pub(crate) unread: Vec<Range<usize>>,
}

/// Reads one text. Unreadable lines are skipped and reported.
pub(crate) fn read(source: &ConfigSource, number: usize) -> Reading {
    let text = SourceText {
        layer: source.layer,
        name: source.name.clone(),
        directory: source.directory.clone(),
        number,
    };
    let mut reader = Reader {
        index: LineIndex::new(&source.text),
        text: Arc::new(text),
        mistakes: Vec::new(),
    };
    let (document, broken) = DeTable::parse_recoverable(&source.text);
    let mut unread: Vec<Range<usize>> = Vec::new();
    for error in &broken {
        let origin = reader.origin(error.span().map_or(0, |span| span.start));
        let line = origin.line().unwrap_or_default();
        // The first error in a line usually causes the others.
        if unread.len() == MAX_SYNTAX_MISTAKES || unread.iter().any(|range| range.start == line) {
            continue;
        }
        unread.push(line..end_of_unreadable(&source.text, line));
        let message = error.message().trim().replace('\n', ", ");
        reader
            .mistakes
            .push(ConfigMistake::error(&origin, "", message));
    }
    let whole = reader.origin(0);
    let table = reader.table(document.get_ref(), &[]);
    Reading {
        tree: Node::new(Content::Table(table), whole),
        mistakes: reader.mistakes,
        unread,
    }
}

/// The line after the last line that depends on an unreadable line. For a table header it is the header
/// of the next table, otherwise the next line.
fn end_of_unreadable(text: &str, line: usize) -> usize {
    let begins_table = |text: &str| text.trim_start().starts_with('[');
    let mut lines = (1..).zip(text.lines()).skip(line.saturating_sub(1));
    match lines.next() {
        Some((_, broken)) if begins_table(broken) => lines
            .find(|(_, text)| begins_table(text))
            .map_or(usize::MAX, |(next, _)| next),
        _ => line + 1,
    }
}

struct Reader<'s> {
    index: LineIndex<'s>,
    text: Arc<SourceText>,
    mistakes: Vec<ConfigMistake>,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let position = self
            .index
            .position(u32::try_from(offset).unwrap_or(u32::MAX));
        Origin {
            text: Arc::clone(&self.text),
            position: Some((position.line, position.column)),
        }
    }

    fn table(&mut self, table: &DeTable<'_>, path: &[&str]) -> Table {
        let mut read = Table::new();
        for (key, value) in table {
            let origin = self.origin(key.span().start);
            let name = key.get_ref().as_ref();
            let node = self.value(value, origin, &child_path(path, name));
            read.insert(name.to_owned(), node);
        }
        read
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, origin: Origin, path: &[&str]) -> Node {
        let content = match value.get_ref() {
            DeValue::Table(table) => Content::Table(self.table(table, path)),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| {
                    let origin = self.origin(item.span().start);
                    self.value(item, origin, path)
                });
                Content::List(items.collect())
            }
            scalar => match self::scalar(scalar) {
                Ok(value) => Content::Scalar(value),
                Err(message) => {
                    let mistake = ConfigMistake::error(&origin, dotted(path), message);
                    self.mistakes.push(mistake);
                    Content::Invalid
                }
            },
        };
        Node::new(content, origin)
    }
}

/// A string, number or boolean as JSON.
fn scalar(value: &DeValue<'_>) -> Result<Value, &'static str> {
    match value {
        DeValue::String(text) => Ok(Value::from(text.as_ref())),
        DeValue::Boolean(value) => Ok(Value::from(*value)),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::from)
            .map_err(|_| "the number is too large"),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or("infinity and NaN are not allowed here"),
        _ => Err("a date is not allowed here; write it as a string, in quotes"),
    }
}

/// Reads a single value, such as the value of a flag.
pub(crate) fn read_value(text: &str, origin: &Origin) -> Option<Node> {
    let (value, broken) = DeValue::parse_recoverable(text);
    if broken.is_empty() {
        value_node(&value, origin)
    } else {
        None
    }
}

fn value_node(value: &Spanned<DeValue<'_>>, origin: &Origin) -> Option<Node> {
    let content = match value.get_ref() {
        DeValue::Table(table) => {
            let read = table
                .iter()
                .map(|(key, value)| Some((key.get_ref().to_string(), value_node(value, origin)?)));
            Content::Table(read.collect::<Option<_>>()?)
        }
        DeValue::Array(items) => {
            let read = items.iter().map(|item| value_node(item, origin));
            Content::List(read.collect::<Option<_>>()?)
        }
        scalar => Content::Scalar(self::scalar(scalar).ok()?),
    };
    Some(Node::new(content, origin.clone()))
}
