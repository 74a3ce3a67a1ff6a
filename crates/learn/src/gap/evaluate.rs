//! How well gaps are found: labelled cases in, figures out. One JSON object a line: `{id, task, tools,
//! expected: {gap}}`.
//!
//! Figures come from cross-validation: weights and threshold are fitted without the cases they are then
//! held against. Cases that share their task or their right tool are never on both sides, or the
//! figures would tell how well something is remembered.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_reflex::{Reflex, ToolView};

use super::calibration::Calibration;
use super::detector;
use super::features::Features;

/// How many parts the cases are put into.
const FOLDS: usize = 10;

/// A labelled case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GapCase {
    /// What it is called.
    pub id: String,
    /// What is asked.
    pub task: String,
    /// The tools at hand.
    pub tools: Vec<CaseTool>,
    /// What is right.
    pub expected: ExpectedGap,
}

/// A tool of a case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CaseTool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
}

/// What is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ExpectedGap {
    /// Whether the tools at hand do not suffice.
    pub gap: bool,
}

/// Why cases cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GapCaseError {
    /// A line is no case.
    #[error("line {line}: {source}")]
    NotACase {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There are not enough cases, or only of one kind.
    #[error(
        "there must be at least two tasks with a gap and two without to be held against each other"
    )]
    TooFew,
}

/// Reads cases, one JSON object a line; empty lines are passed over.
///
/// # Errors
/// With the first line that is wrong.
pub fn read_cases(text: &str) -> Result<Vec<GapCase>, GapCaseError> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|source| GapCaseError::NotACase {
                line: index + 1,
                source,
            })
        })
        .collect()
}

/// How well gaps are found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapReport {
    /// How many cases there are.
    pub n: usize,
    /// The mean of the shares of gaps that are found and of others that are passed.
    pub balanced_accuracy: f64,
    /// How likely a gap is given a higher probability than something that is none.
    pub auroc: f64,
    /// Into how many parts the cases were put.
    pub folds: usize,
    /// The calibration that ships, as it is, on the same cases.
    pub shipped: ShippedReport,
    /// Those that were judged wrongly, worst first.
    #[serde(skip)]
    pub wrong: Vec<WrongCase>,
}

/// How well the calibration does that ships.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShippedReport {
    /// As above.
    pub balanced_accuracy: f64,
    /// As above.
    pub auroc: f64,
    /// From which probability on there is said to be a gap.
    pub threshold: f64,
    /// Stated probabilities by tenths, and how many of these cases are gaps.
    pub reliability: Vec<ReliabilityRow>,
}

/// How often there is a gap where one was said to be so likely.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReliabilityRow {
    /// The least probability of the row; the next row's is the most.
    pub from: f64,
    /// How many cases there are.
    pub count: usize,
    /// The share of gaps among them.
    pub gaps: f64,
}

/// A case that was judged wrongly.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongCase {
    /// What it is called.
    pub id: String,
    /// How likely it was said to be a gap.
    pub probability: f64,
    /// Whether it is one.
    pub gap: bool,
}

impl fmt::Display for GapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "cases               {}", self.n)?;
        writeln!(
            f,
            "balanced accuracy   {:.1} %",
            self.balanced_accuracy * 100.0
        )?;
        writeln!(f, "AUROC               {:.3}", self.auroc)?;
        writeln!(f, "\nwith the calibration that ships")?;
        writeln!(
            f,
            "balanced accuracy   {:.1} %",
            self.shipped.balanced_accuracy * 100.0
        )?;
        writeln!(f, "AUROC               {:.3}", self.shipped.auroc)?;
        writeln!(f, "\nstated probability  cases    gaps")?;
        for row in &self.shipped.reliability {
            let (to, gaps) = (row.from + 0.1, row.gaps * 100.0);
            writeln!(
                f,
                "{:.1} to {to:.1}          {:>5}   {gaps:>4.0} %",
                row.from, row.count
            )?;
        }
        Ok(())
    }
}

/// Scores gap detection on labelled cases.
///
/// # Errors
/// If there are too few to be held against each other.
pub fn evaluate(cases: &[GapCase]) -> Result<GapReport, GapCaseError> {
    let judged: Vec<Judged<'_>> = cases.iter().map(Judged::new).collect();
    let folds = folds(&judged);
    let labels = |gap: bool| {
        let tasks = cases.iter().filter(|case| case.expected.gap == gap);
        tasks
            .map(|case| case.task.as_str())
            .collect::<BTreeSet<_>>()
    };
    let parts = folds.iter().max().map_or(0, |last| last + 1);
    if parts < 2 || labels(true).len() < 2 || labels(false).len() < 2 {
        return Err(GapCaseError::TooFew);
    }
    let mut found = vec![(0.0, false); cases.len()];
    for part in 0..parts {
        let others = judged.iter().zip(&folds).filter(|(_, fold)| **fold != part);
        let calibration = fitted(others.map(|(case, _)| case));
        for (index, case) in judged.iter().enumerate() {
            if folds[index] == part {
                let probability = case.probability(&calibration);
                found[index] = (probability, probability >= calibration.threshold);
            }
        }
    }
    let shipped = Calibration::SHIPPED;
    let by_shipped: Vec<(f64, bool)> = judged
        .iter()
        .map(|case| case.probability(&shipped))
        .map(|probability| (probability, probability >= shipped.threshold))
        .collect();
    Ok(GapReport {
        n: cases.len(),
        balanced_accuracy: balanced_accuracy(cases, &found),
        auroc: auroc(cases, &found),
        folds: parts,
        shipped: ShippedReport {
            balanced_accuracy: balanced_accuracy(cases, &by_shipped),
            auroc: auroc(cases, &by_shipped),
            threshold: shipped.threshold,
            reliability: reliability(cases, &by_shipped),
        },
        wrong: wrong(cases, &found),
    })
}

/// The source text of the calibration that fits these cases best.
#[must_use]
pub fn fit(cases: &[GapCase], about: &str) -> String {
    let judged: Vec<Judged<'_>> = cases.iter().map(Judged::new).collect();
    fitted(judged.iter()).source(about)
}

fn fitted<'a>(cases: impl Iterator<Item = &'a Judged<'a>>) -> Calibration {
    let examples: Vec<(&[Features], bool)> = cases
        .map(|judged| (judged.whole.as_slice(), judged.case.expected.gap))
        .collect();
    Calibration::fit(&examples)
}

/// A case with the numbers of all its tools.
struct Judged<'a> {
    case: &'a GapCase,
    whole: Vec<Features>,
    parts: Vec<Vec<Features>>,
}

impl<'a> Judged<'a> {
    fn new(case: &'a GapCase) -> Self {
        let tools: Vec<ToolView<'_>> = case.tools.iter().map(CaseTool::view).collect();
        let reflex = Reflex::default();
        let numbers = detector::numbers(&case.task, &tools, &reflex);
        Self {
            case,
            whole: numbers.whole,
            parts: numbers.parts,
        }
    }

    fn probability(&self, calibration: &Calibration) -> f64 {
        detector::combined(calibration, &self.whole, &self.parts)
    }

    /// The tool that likely is the right one, for keeping its cases together.
    fn right_tool(&self, without: &HashMap<&str, BTreeSet<&str>>) -> Option<&'a str> {
        if self.case.expected.gap {
            return None;
        }
        let lacking = without.get(self.case.task.as_str());
        let names = self.case.tools.iter().map(|tool| tool.name.as_str());
        let candidates: Vec<(usize, &str)> = names
            .enumerate()
            .filter(|(_, name)| lacking.is_none_or(|lacking| !lacking.contains(name)))
            .collect();
        let nearest = candidates.into_iter().max_by(|one, other| {
            let likeness = |index: usize| self.whole.get(index).map_or(0.0, |tool| tool[0]);
            likeness(one.0).total_cmp(&likeness(other.0))
        });
        nearest.map(|(_, name)| name)
    }
}

impl CaseTool {
    fn view(&self) -> ToolView<'_> {
        ToolView {
            name: &self.name,
            description: &self.description,
            input_schema: &self.input_schema,
        }
    }
}

/// The part each case is put into. Cases of one task or one right tool go together; the largest groups
/// first, each to the smallest part, so that the order of the cases does not matter.
fn folds(cases: &[Judged<'_>]) -> Vec<usize> {
    // The tools that are at hand where the same task is a gap, are not the right one.
    let mut without: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for judged in cases.iter().filter(|judged| judged.case.expected.gap) {
        let tools = judged.case.tools.iter().map(|tool| tool.name.as_str());
        without.entry(&judged.case.task).or_default().extend(tools);
    }
    let mut group: Vec<usize> = (0..cases.len()).collect();
    let mut by_task: HashMap<&str, usize> = HashMap::new();
    let mut by_tool: HashMap<&str, usize> = HashMap::new();
    for (index, judged) in cases.iter().enumerate() {
        let task = *by_task.entry(judged.case.task.trim()).or_insert(index);
        join(&mut group, index, task);
        if let Some(tool) = judged.right_tool(&without) {
            let tool = *by_tool.entry(tool).or_insert(index);
            join(&mut group, index, tool);
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..cases.len() {
        groups.entry(root(&group, index)).or_default().push(index);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    let name = |group: &Vec<usize>| {
        group
            .iter()
            .map(|index| cases[*index].case.task.as_str())
            .min()
    };
    groups.sort_by(|one, other| {
        let by_size = other.len().cmp(&one.len());
        by_size.then_with(|| name(one).cmp(&name(other)))
    });
    let parts = FOLDS.min(groups.len());
    let mut sizes = vec![0; parts];
    let mut folds = vec![0; cases.len()];
    for group in groups {
        let smallest = (0..parts).min_by_key(|part| sizes[*part]).unwrap_or(0);
        sizes[smallest] += group.len();
        for index in group {
            folds[index] = smallest;
        }
    }
    folds
}

fn root(group: &[usize], mut index: usize) -> usize {
    while group[index] != index {
        index = group[index];
    }
    index
}

fn join(group: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(group, one), root(group, other));
    group[one.max(other)] = one.min(other);
}

fn balanced_accuracy(cases: &[GapCase], found: &[(f64, bool)]) -> f64 {
    let share = |gap: bool| {
        let kind = cases
            .iter()
            .zip(found)
            .filter(|(case, _)| case.expected.gap == gap);
        let (right, all) = kind.fold((0.0, 0.0), |(right, all), (_, (_, said))| {
            (right + f64::from(u8::from(*said == gap)), all + 1.0)
        });
        right / all
    };
    f64::midpoint(share(true), share(false))
}

fn auroc(cases: &[GapCase], found: &[(f64, bool)]) -> f64 {
    let of = |gap: bool| {
        let kind = cases
            .iter()
            .zip(found)
            .filter(move |(case, _)| case.expected.gap == gap);
        kind.map(|(_, (probability, _))| *probability)
    };
    let mut ahead = 0.0;
    let mut pairs = 0.0;
    for gap in of(true) {
        for other in of(false) {
            pairs += 1.0;
            ahead += match gap.total_cmp(&other) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    ahead / pairs
}

fn reliability(cases: &[GapCase], found: &[(f64, bool)]) -> Vec<ReliabilityRow> {
    let row = |tenth: usize| {
        let within = |probability: f64| ((probability * 10.0) as usize).min(9) == tenth;
        let cases: Vec<bool> = cases
            .iter()
            .zip(found)
            .filter(|(_, (probability, _))| within(*probability))
            .map(|(case, _)| case.expected.gap)
            .collect();
        let gaps = cases.iter().filter(|gap| **gap).count();
        (!cases.is_empty()).then(|| ReliabilityRow {
            from: tenth as f64 / 10.0,
            count: cases.len(),
            gaps: gaps as f64 / cases.len() as f64,
        })
    };
    (0..10).filter_map(row).collect()
}

fn wrong(cases: &[GapCase], found: &[(f64, bool)]) -> Vec<WrongCase> {
    let mut wrong: Vec<WrongCase> = cases
        .iter()
        .zip(found)
        .filter(|(case, (_, said))| case.expected.gap != *said)
        .map(|(case, (probability, _))| WrongCase {
            id: case.id.clone(),
            probability: *probability,
            gap: case.expected.gap,
        })
        .collect();
    let error = |case: &WrongCase| (f64::from(u8::from(case.gap)) - case.probability).abs();
    wrong.sort_by(|one, other| {
        error(other)
            .total_cmp(&error(one))
            .then_with(|| one.id.cmp(&other.id))
    });
    wrong
}

#[cfg(test)]
mod tests;
