//! Scores gap detection on labelled cases, one JSON object per line: `{id, task, tools, expected: {gap}}`.
//!
//! The scores come from cross-validation: weights and threshold are fitted without the cases they are then
//! scored on. Cases that share their task or their right tool are in the same fold, so that the scores do not
//! measure memorisation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_reflex::{Reflex, ToolView};

use super::calibration::Calibration;
use super::detector;
use super::features::Features;

/// The number of folds.
const FOLDS: usize = 10;

/// A labelled case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GapCase {
    /// The id of the case.
    pub id: String,
    /// The task.
    pub task: String,
    /// The available tools.
    pub tools: Vec<GapCaseTool>,
    /// The label.
    pub expected: ExpectedGap,
}

/// A tool of a case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GapCaseTool {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
}

/// The label of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct ExpectedGap {
    /// Whether the available tools do not suffice.
    pub gap: bool,
}

/// Why cases cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GapCaseError {
    /// A line is not a case.
    #[error("line {line}: {source}")]
    NotACase {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There are not enough cases, or only of one kind.
    #[error("too few cases: cross-validation needs at least two tasks with a gap and two without")]
    TooFew,
}

/// Reads cases, one JSON object per line. Empty lines are skipped.
///
/// # Errors
/// The first line that is wrong.
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

/// The scores of gap detection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapReport {
    /// How many cases there are.
    pub n: usize,
    /// The mean of the true positive rate and the true negative rate.
    pub balanced_accuracy: f64,
    /// The probability that a case with a gap scores higher than a case without.
    pub auroc: f64,
    /// The number of folds.
    pub folds: usize,
    /// The scores of the built-in calibration on the same cases.
    pub shipped: ShippedReport,
    /// The misclassified cases, worst first.
    #[serde(skip)]
    pub wrong: Vec<WrongCase>,
}

/// The scores of the built-in calibration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShippedReport {
    /// See [`GapReport::balanced_accuracy`].
    pub balanced_accuracy: f64,
    /// See [`GapReport::auroc`].
    pub auroc: f64,
    /// The least probability that is reported as a gap.
    pub threshold: f64,
    /// The stated probabilities by tenths, with the share of gaps.
    pub reliability: Vec<GapReliability>,
}

/// The share of gaps among cases with a similar stated probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapReliability {
    /// The lower end of the row's probabilities; the row covers one tenth.
    pub from: f64,
    /// How many cases there are.
    pub count: usize,
    /// The share of gaps among them.
    pub gaps: f64,
}

/// A misclassified case.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongCase {
    /// The id of the case.
    pub id: String,
    /// The stated probability of a gap.
    pub probability: f64,
    /// Whether it is a gap.
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
        writeln!(f, "\nwith the built-in calibration")?;
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
/// If there are too few cases for cross-validation.
pub fn evaluate(cases: &[GapCase]) -> Result<GapReport, GapCaseError> {
    let judged: Vec<CaseFeatures<'_>> = cases.iter().map(CaseFeatures::new).collect();
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
        let calibration = fit_calibration(others.map(|(case, _)| case));
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

/// Fits a calibration to these cases and returns it as source text.
#[must_use]
pub fn fit(cases: &[GapCase], about: &str) -> String {
    let judged: Vec<CaseFeatures<'_>> = cases.iter().map(CaseFeatures::new).collect();
    fit_calibration(judged.iter()).source(about)
}

fn fit_calibration<'a>(cases: impl Iterator<Item = &'a CaseFeatures<'a>>) -> Calibration {
    let examples: Vec<(&[Features], bool)> = cases
        .map(|judged| (judged.whole.as_slice(), judged.case.expected.gap))
        .collect();
    Calibration::fit(&examples)
}

/// A case with the features of all its tools.
struct CaseFeatures<'a> {
    case: &'a GapCase,
    whole: Vec<Features>,
    parts: Vec<Vec<Features>>,
}

impl<'a> CaseFeatures<'a> {
    fn new(case: &'a GapCase) -> Self {
        let tools: Vec<ToolView<'_>> = case.tools.iter().map(GapCaseTool::view).collect();
        let reflex = Reflex::default();
        let features = detector::task_features(&case.task, &tools, &reflex);
        Self {
            case,
            whole: features.whole,
            parts: features.parts,
        }
    }

    fn probability(&self, calibration: &Calibration) -> f64 {
        detector::gap_probability(calibration, &self.whole, &self.parts)
    }

    /// The tool that is probably the right one; its cases stay in one fold.
    fn nearest_tool(&self, without: &HashMap<&str, BTreeSet<&str>>) -> Option<&'a str> {
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

impl GapCaseTool {
    fn view(&self) -> ToolView<'_> {
        ToolView {
            name: &self.name,
            description: &self.description,
            input_schema: &self.input_schema,
        }
    }
}

/// The fold of each case. Cases of one task or one right tool form a group. The largest groups are assigned first,
/// each to the smallest fold, so that the order of the cases does not matter.
fn folds(cases: &[CaseFeatures<'_>]) -> Vec<usize> {
    // A tool that is available in a case where the same task is a gap is not the right one.
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
        if let Some(tool) = judged.nearest_tool(&without) {
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
        let (right, all) = kind.fold((0.0, 0.0), |(right, all), (_, (_, predicted))| {
            (right + f64::from(u8::from(*predicted == gap)), all + 1.0)
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

fn reliability(cases: &[GapCase], found: &[(f64, bool)]) -> Vec<GapReliability> {
    let row = |tenth: usize| {
        let within = |probability: f64| ((probability * 10.0) as usize).min(9) == tenth;
        let cases: Vec<bool> = cases
            .iter()
            .zip(found)
            .filter(|(_, (probability, _))| within(*probability))
            .map(|(case, _)| case.expected.gap)
            .collect();
        let gaps = cases.iter().filter(|gap| **gap).count();
        (!cases.is_empty()).then(|| GapReliability {
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
        .filter(|(case, (_, predicted))| case.expected.gap != *predicted)
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
