//! Strategies from a text with one in each line (JSON Lines), as people may have changed it. A line that
//! cannot be used is named and kept as it is; the others are used.

use std::fmt;

use serde_json::Value;

use super::{StrategyId, ToolCallingStrategy};

/// A line that is a strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyLine {
    /// Which line; the first is 1.
    pub line: usize,
    /// The strategy.
    pub strategy: ToolCallingStrategy,
}

/// A line that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyLineError {
    /// Which line; the first is 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
    /// The line.
    pub text: String,
    /// The id that stands in it, if one can be made out: whoever wrote it meant that strategy.
    pub id: Option<StrategyId>,
    /// Whether it is the last line and only begun: whoever wrote it was stopped.
    pub is_torn: bool,
}

impl fmt::Display for StrategyLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// What a text of strategies holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StrategyLines {
    /// The strategies.
    pub strategies: Vec<StrategyLine>,
    /// The other lines.
    pub errors: Vec<StrategyLineError>,
}

/// Reads one strategy from each line that is not blank.
#[must_use]
pub fn read_strategies(text: &str) -> StrategyLines {
    let mut read = StrategyLines::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_whole = text.ends_with('\n');
    let count = text.lines().count();
    for (index, content) in text.lines().enumerate() {
        if content.trim().is_empty() {
            continue;
        }
        let line = index + 1;
        match serde_json::from_str::<ToolCallingStrategy>(content) {
            // An array of the values in order would be read as well, and nobody means one.
            Ok(strategy) if content.trim_start().starts_with('{') => {
                read.strategies.push(StrategyLine { line, strategy });
            }
            Ok(_) => read.errors.push(StrategyLineError {
                line,
                reason: "a strategy is a JSON object, which starts with {".to_owned(),
                text: content.to_owned(),
                id: None,
                is_torn: false,
            }),
            Err(error) => {
                let value: Option<Value> = serde_json::from_str(content).ok();
                let id = match &value {
                    Some(value) => value["id"].as_str(),
                    None => id_in(content),
                };
                read.errors.push(StrategyLineError {
                    line,
                    reason: reason(&error, value.is_some()),
                    text: content.to_owned(),
                    id: id.and_then(|id| StrategyId::new(id).ok()),
                    is_torn: error.is_eof() && !is_whole && line == count,
                });
            }
        }
    }
    read
}

/// The id that stands in a line that is no JSON. Quotation marks inside texts are written with a backslash before them,
/// so only a field is called like this.
fn id_in(line: &str) -> Option<&str> {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\"id\"") {
        rest = after;
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let id = value.and_then(|value| value.strip_prefix('"')?.split_once('"'));
        if let (Some((id, _)), false) = (id, before.ends_with('\\')) {
            return Some(id);
        }
    }
    None
}

/// Where in the line it is only helps if it is no JSON; the line in the message is always the first.
fn reason(error: &serde_json::Error, is_json: bool) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let bare = message.strip_suffix(&place).unwrap_or(&message);
    match is_json {
        true => bare.to_owned(),
        false => format!("column {}: {bare}", error.column().max(1)),
    }
}
