//! Reads strategies from JSON Lines, which people may have edited. An invalid line is reported and kept
//! unchanged; the other lines are used.

use std::fmt;

use serde_json::Value;

use super::{StrategyId, ToolCallingStrategy};

/// A line that is a strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyLine {
    /// The number of the line; the first is 1.
    pub line: usize,
    /// The strategy.
    pub strategy: ToolCallingStrategy,
}

/// A line that is not a strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyLineError {
    /// The number of the line; the first is 1.
    pub line: usize,
    /// Why it is not one.
    pub reason: String,
    /// The line.
    pub text: String,
    /// The id in the line, if one can be found: the line is meant as that strategy.
    pub id: Option<StrategyId>,
    /// Whether it is an incomplete last line, because its writer was interrupted.
    pub is_torn: bool,
}

impl fmt::Display for StrategyLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// The lines of a text of strategies.
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
            // Serde would also accept an array of the values in order, which is not intended.
            Ok(strategy) if content.trim_start().starts_with('{') => {
                read.strategies.push(StrategyLine { line, strategy });
            }
            Ok(_) => read.errors.push(StrategyLineError {
                line,
                reason: "a strategy must be a JSON object, which starts with {".to_owned(),
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

/// The id in a line that is not valid JSON. Quotation marks inside texts are escaped, so `"id"` without a
/// backslash is always a field name.
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

/// The reason of an error. The column helps only if the line is not JSON; serde's line number is always 1.
fn reason(error: &serde_json::Error, is_json: bool) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let without_place = message.strip_suffix(&place).unwrap_or(&message);
    match is_json {
        true => without_place.to_owned(),
        false => format!("column {}: {without_place}", error.column().max(1)),
    }
}
