//! The log as text, one entry a line, and what people changed in the file of strategies beside it.

use std::collections::HashSet;
use std::fmt;

use windlass_spec::{StrategyId, StrategyLines, Timestamp, ToolCallingStrategy};

use super::curate::Playbook;
use super::evidence::Evidence;
use super::words::id_of;

/// A line of a log that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogError {
    /// Which line; the first is 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// What a log holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadLog {
    /// The entries.
    pub entries: Vec<Evidence>,
    /// Lines that are none.
    pub errors: Vec<LogError>,
    /// Up to where the log is whole: whoever wrote what comes after it was stopped.
    pub whole: usize,
}

/// Reads a log. A last line that was only begun did not happen.
#[must_use]
pub fn read_log(text: &str) -> ReadLog {
    let mut read = ReadLog {
        whole: text.rfind('\n').map_or(0, |end| end + 1),
        ..ReadLog::default()
    };
    for (index, line) in text[..read.whole].lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(line) {
            Ok(entry) => read.entries.push(entry),
            Err(error) => read.errors.push(LogError {
                line: index + 1,
                reason: error.to_string(),
            }),
        }
    }
    read
}

/// What people changed in a file since a playbook was written to it: what they added, changed and took
/// out. A line that cannot be read changes nothing.
#[must_use]
pub fn hand_edits(written: &Playbook, file: &StrategyLines, at: Timestamp) -> Vec<Evidence> {
    let mut edits = Vec::new();
    let mut seen: HashSet<StrategyId> = HashSet::new();
    for line in &file.strategies {
        let mut strategy = line.strategy.clone();
        let id = id_of(&strategy);
        strategy.id = Some(id.clone());
        let mut all = written.strategies.iter();
        let known = all.find(|kept| *kept.id() == id);
        seen.insert(id);
        match known {
            Some(kept) if is_same(&kept.strategy, &strategy) => {}
            Some(_) => edits.push(Evidence::Edited {
                strategy: Box::new(strategy),
                at,
            }),
            None => edits.push(Evidence::Added {
                strategy: Box::new(strategy),
                at,
            }),
        }
    }
    seen.extend(file.errors.iter().filter_map(|error| error.id.clone()));
    for kept in &written.strategies {
        if !seen.contains(kept.id()) {
            edits.push(Evidence::Removed {
                strategy: kept.id().clone(),
                at,
            });
        }
    }
    edits
}

/// Whether a person left a line as it was, in what is theirs to change.
fn is_same(one: &ToolCallingStrategy, two: &ToolCallingStrategy) -> bool {
    one.content == two.content
        && one.section == two.section
        && one.tags == two.tags
        && one.tool_sequence() == two.tool_sequence()
        && one.example_task == two.example_task
        && one.pinned == two.pinned
        && one.disabled == two.disabled
        && one.other == two.other
}
