//! The log as text, one entry a line, and what people changed in the file of strategies beside it.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{
    DataVersion, STRATEGY_VERSION, StrategyError, StrategyId, StrategyLines, Timestamp,
    ToolCallingStrategy,
};

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
    /// The entries, one for each line.
    pub entries: Vec<Evidence>,
    /// Lines that are none; among the entries they are [`Evidence::Unreadable`].
    pub errors: Vec<LogError>,
    /// Up to which byte the log is whole: whoever wrote what comes after it was stopped.
    pub whole: usize,
}

/// Reads a log. A last line that was only begun did not happen.
#[must_use]
pub fn read_log(log: impl AsRef<[u8]>) -> ReadLog {
    let log = log.as_ref();
    let end = log.iter().rposition(|byte| *byte == b'\n');
    let mut read = ReadLog {
        whole: end.map_or(0, |end| end + 1),
        ..ReadLog::default()
    };
    let lines = log[..read.whole].split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        read.entries.push(entry(line).unwrap_or_else(|reason| {
            let line = index + 1;
            read.errors.push(LogError { line, reason });
            Evidence::Unreadable
        }));
    }
    read
}

/// What of a line says whether the rest can be understood. Old ones say nothing.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default)]
    data_model_version: Option<DataVersion>,
}

fn entry(line: &[u8]) -> Result<Evidence, String> {
    // What a newer program means by the same words is not known.
    if let Ok(Versioned {
        data_model_version: Some(version),
    }) = serde_json::from_slice(line)
        && version.major > STRATEGY_VERSION.major
    {
        return Err(StrategyError::NewerVersion(version).to_string());
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// An entry as a line of the log, with its end.
///
/// # Errors
/// If it is one that could not be read.
pub fn log_line(entry: &Evidence) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'e> {
        #[serde(flatten)]
        entry: &'e Evidence,
        data_model_version: DataVersion,
    }
    let line = Line {
        entry,
        data_model_version: STRATEGY_VERSION,
    };
    Ok(serde_json::to_string(&line)? + "\n")
}

/// What people changed in a file since a playbook was written to it: what they added, changed and took
/// out. A line that cannot be read changes nothing: the strategy whose id stands in it was not taken out, and
/// if no id can be made out, it may have been any, so none was.
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
    if file.errors.iter().any(|error| error.id.is_none()) {
        return edits;
    }
    for kept in written.in_file() {
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
