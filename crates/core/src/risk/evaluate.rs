//! How well the words of names and descriptions tell the risk of tools: labelled tools in, a report
//! out.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::RiskLevel;

use super::{KnownTool, Source, ToolRisk};

/// A tool with the level that is right for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRow {
    /// What the row is called.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// What is said of the tool.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// What is right.
    pub expected: Expected,
}

/// What is right for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The level.
    pub risk: RiskLevel,
}

/// A tool that was judged wrongly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misjudged {
    /// Which row.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The level that is right.
    pub expected: RiskLevel,
    /// The level that was found.
    pub found: RiskLevel,
    /// Who decided.
    pub source: Source,
    /// What was seen.
    pub what: String,
}

/// How well a set of tools was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// How many tools.
    pub n: usize,
    /// The share that was judged rightly; 0 if there were none.
    pub accuracy: f64,
    /// How many of each level (row) were found to be of each level (column), in the order of
    /// [`RiskLevel::ALL`].
    pub confusion: [[usize; 3]; 3],
    /// Irreversible tools called reversible.
    pub dangerous: usize,
    /// Irreversible tools called reversible with delay.
    pub undercalled: usize,
    /// What was judged wrongly.
    pub errors: Vec<Misjudged>,
}

/// Judges every tool by its name, description and schema alone and compares.
#[must_use]
pub fn evaluate(rows: &[EvaluationRow]) -> EvaluationReport {
    let mut confusion = [[0; 3]; 3];
    let mut errors = Vec::new();
    for row in rows {
        let tool = ToolRisk::of(&KnownTool {
            name: &row.name,
            description: &row.description,
            schema: Some(&row.input_schema),
            ..KnownTool::default()
        });
        let found = tool.at_worst();
        let expected = row.expected.risk;
        confusion[expected as usize][found.level as usize] += 1;
        if found.level != expected {
            errors.push(Misjudged {
                id: row.id.clone(),
                name: row.name.clone(),
                expected,
                found: found.level,
                source: found.source,
                what: found
                    .evidence
                    .iter()
                    .map(|e| e.what.as_str())
                    .collect::<Vec<_>>()
                    .join("; "),
            });
        }
    }
    let n = rows.len();
    let right: usize = (0..3).map(|level| confusion[level][level]).sum();
    let irreversible = confusion[RiskLevel::Irreversible as usize];
    EvaluationReport {
        n,
        accuracy: right as f64 / n.max(1) as f64,
        confusion,
        dangerous: irreversible[RiskLevel::Reversible as usize],
        undercalled: irreversible[RiskLevel::ReversibleWithDelay as usize],
        errors,
    }
}

/// A line that is no row.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// It is not the JSON of a row.
    #[error("line {line}: {error}")]
    NotARow {
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// Another row has the same id.
    #[error("line {line}: the id `{id}` stands twice")]
    Twice {
        /// Which line, from 1.
        line: usize,
        /// The id.
        id: String,
    },
}

/// Reads rows from JSON Lines; empty lines are skipped.
///
/// # Errors
/// The first line that is no row or repeats an id.
pub fn read_rows(text: &str) -> Result<Vec<EvaluationRow>, RowError> {
    let mut ids = HashSet::new();
    let mut rows = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        if text.trim().is_empty() {
            continue;
        }
        let row: EvaluationRow =
            serde_json::from_str(text).map_err(|error| RowError::NotARow { line, error })?;
        if !ids.insert(row.id.clone()) {
            return Err(RowError::Twice { line, id: row.id });
        }
        rows.push(row);
    }
    Ok(rows)
}

impl fmt::Display for EvaluationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tools        {}", self.n)?;
        writeln!(f, "accuracy     {:.1} %", self.accuracy * 100.0)?;
        writeln!(f, "dangerous    {}", self.dangerous)?;
        writeln!(f, "undercalled  {}", self.undercalled)?;
        writeln!(f)?;
        writeln!(
            f,
            "{:24}{:>12}{:>12}{:>14}",
            "is \\ found", "reversible", "with delay", "irreversible"
        )?;
        for (level, found) in RiskLevel::ALL.into_iter().zip(self.confusion) {
            let [reversible, delay, irreversible] = found;
            writeln!(
                f,
                "{:24}{reversible:>12}{delay:>12}{irreversible:>14}",
                level.as_str()
            )?;
        }
        for error in &self.errors {
            let Misjudged {
                id,
                expected,
                found,
                what,
                ..
            } = error;
            writeln!(f, "{id}: is {expected}, found {found} ({what})")?;
        }
        Ok(())
    }
}
