//! Evaluates how well names and descriptions predict the risk of tools: labelled tools in, a report out.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::RiskLevel;

use super::{KnownTool, Source, ToolRisk};

/// A labelled tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationRow {
    /// The id of the row.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The tool's description.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The label.
    pub expected: Expected,
}

/// The label of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The risk level.
    pub risk: RiskLevel,
}

/// A tool that was assessed wrongly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misjudged {
    /// The id of the row.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The expected level.
    pub expected: RiskLevel,
    /// The level that was found.
    pub found: RiskLevel,
    /// The source that decided.
    pub source: Source,
    /// A description of the findings.
    pub what: String,
}

/// How well a set of tools was assessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// The number of tools.
    pub n: usize,
    /// The share that was assessed correctly; 0 if there were none.
    pub accuracy: f64,
    /// The number of tools of each expected level (row) and found level (column), in the order of
    /// [`RiskLevel::ALL`].
    pub confusion: [[usize; 3]; 3],
    /// Irreversible tools called reversible.
    pub dangerous: usize,
    /// Irreversible tools called reversible with delay.
    pub undercalled: usize,
    /// The tools that were assessed wrongly.
    pub errors: Vec<Misjudged>,
}

/// Assesses every tool by its name, description and schema only, and compares.
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
    let correct: usize = (0..3).map(|level| confusion[level][level]).sum();
    let irreversible = confusion[RiskLevel::Irreversible as usize];
    EvaluationReport {
        n,
        accuracy: correct as f64 / n.max(1) as f64,
        confusion,
        dangerous: irreversible[RiskLevel::Reversible as usize],
        undercalled: irreversible[RiskLevel::ReversibleWithDelay as usize],
        errors,
    }
}

/// A line that is not a valid row.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// It is not the JSON of a row.
    #[error("line {line}: {error}")]
    NotARow {
        /// The line, from 1.
        line: usize,
        /// The error.
        error: serde_json::Error,
    },
    /// Another row has the same id.
    #[error("line {line}: the id `{id}` occurs twice")]
    Twice {
        /// The line, from 1.
        line: usize,
        /// The id.
        id: String,
    },
}

/// Reads rows from JSON Lines; empty lines are skipped.
///
/// # Errors
/// The first line that is not a valid row or repeats an id.
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
