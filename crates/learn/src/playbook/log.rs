//! Reads and writes the log (one entry per line), and finds what people changed in the strategies file.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{
    DataVersion, STRATEGY_VERSION, StrategyError, StrategyId, StrategyLines, Timestamp,
    ToolCallingStrategy,
};

use super::curate::Playbook;
use super::evidence::PlaybookEntry;
use super::words::id_of;

/// A line of a log that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogError {
    /// The line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// A parsed log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadLog {
    /// The entries, one for each line.
    pub entries: Vec<PlaybookEntry>,
    /// Lines that cannot be read; among the entries they are [`PlaybookEntry::Unreadable`].
    pub errors: Vec<LogError>,
    /// The length in bytes of the complete lines. What follows is an interrupted write.
    pub complete_bytes: usize,
}

/// Parses a log. An incomplete last line is ignored.
#[must_use]
pub fn read_log(log: impl AsRef<[u8]>) -> ReadLog {
    let log = log.as_ref();
    let end = log.iter().rposition(|byte| *byte == b'\n');
    let mut read = ReadLog {
        complete_bytes: end.map_or(0, |end| end + 1),
        ..ReadLog::default()
    };
    let lines = log[..read.complete_bytes].split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        read.entries
            .push(parse_entry(line).unwrap_or_else(|reason| {
                let line = index + 1;
                read.errors.push(LogError { line, reason });
                PlaybookEntry::Unreadable
            }));
    }
    read
}

/// The version of a line. Old lines have none.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default)]
    data_model_version: Option<DataVersion>,
}

fn parse_entry(line: &[u8]) -> Result<PlaybookEntry, String> {
    // A newer major version may give the same keys another meaning.
    if let Ok(Versioned {
        data_model_version: Some(version),
    }) = serde_json::from_slice(line)
        && version.major > STRATEGY_VERSION.major
    {
        return Err(StrategyError::NewerVersion(version).to_string());
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// An entry as a line of the log, with its line end.
///
/// # Errors
/// If the entry is [`PlaybookEntry::Unreadable`].
pub fn log_line(entry: &PlaybookEntry) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'e> {
        #[serde(flatten)]
        entry: &'e PlaybookEntry,
        data_model_version: DataVersion,
    }
    let line = Line {
        entry,
        data_model_version: STRATEGY_VERSION,
    };
    Ok(serde_json::to_string(&line)? + "\n")
}

/// The changes people made to a strategies file since a playbook was written to it: additions, edits and
/// removals. An unreadable line is no change: the strategy whose id it contains is not removed. If an
/// unreadable line has no id, it may be any strategy, so nothing is removed.
#[must_use]
pub fn hand_edits(written: &Playbook, file: &StrategyLines, at: Timestamp) -> Vec<PlaybookEntry> {
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
            Some(kept) if is_unedited(&kept.strategy, &strategy) => {}
            Some(_) => edits.push(PlaybookEntry::Edited {
                strategy: Box::new(strategy),
                at,
            }),
            None => edits.push(PlaybookEntry::Added {
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
            edits.push(PlaybookEntry::Removed {
                strategy: kept.id().clone(),
                at,
            });
        }
    }
    edits
}

/// Whether two strategies agree in all fields that a person can edit.
fn is_unedited(one: &ToolCallingStrategy, two: &ToolCallingStrategy) -> bool {
    one.content == two.content
        && one.section == two.section
        && one.tags == two.tags
        && one.tool_sequence() == two.tool_sequence()
        && one.example_task == two.example_task
        && one.pinned == two.pinned
        && one.disabled == two.disabled
        && one.other == two.other
}
