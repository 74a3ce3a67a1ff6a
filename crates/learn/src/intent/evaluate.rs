//! Scores a classifier on labelled texts, one JSON object per line: `{text, intent, split}`. Texts of the split
//! `train` are the examples, all others are scored. The intent `oos` means that a text belongs to no class.
//! Out-of-scope examples are optional.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::classifier::{Classification, IntentClass, IntentClassifier, TrainError};

/// The intent of a text that belongs to no class.
pub const OUT_OF_SCOPE: &str = "oos";

/// The split whose texts are the examples.
const TRAIN: &str = "train";

/// Labelled texts: the examples by class, and the texts to be scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledTexts {
    /// The classes with their examples, in the order of first occurrence.
    pub classes: Vec<IntentClass>,
    /// The texts to be scored, in order.
    pub scored: Vec<LabelledText>,
    /// The out-of-scope examples.
    pub out_of_scope: Vec<String>,
}

/// A text and the class it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledText {
    /// The text.
    pub text: String,
    /// Its class; `None` if it is out of scope.
    pub intent: Option<String>,
}

/// Why labelled texts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// A line is not a labelled text.
    #[error("line {line}: {source}")]
    NotALabelledText {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A line has an empty field.
    #[error("line {line}: `{field}` is empty")]
    Empty {
        /// The line, counted from 1.
        line: usize,
        /// The field.
        field: &'static str,
    },
    /// A line is scored on a class without examples.
    #[error(
        "line {line}: the intent `{intent}` has no examples; give it some with split `{TRAIN}`"
    )]
    Unknown {
        /// The line, counted from 1.
        line: usize,
        /// The class.
        intent: String,
    },
    /// There is nothing to score.
    #[error("nothing to score: every text has split `{TRAIN}`")]
    NothingToScore,
    /// The examples cannot be learned from.
    #[error("cannot learn from the texts with split `{TRAIN}`: {0}")]
    Train(#[from] TrainError),
}

#[derive(Deserialize)]
struct Line {
    text: String,
    intent: String,
    split: String,
}

impl LabelledTexts {
    /// Reads labelled texts, one JSON object per line. Empty lines are skipped.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn read(text: &str) -> Result<Self, EvaluateError> {
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut texts = Self {
            classes: Vec::new(),
            scored: Vec::new(),
            out_of_scope: Vec::new(),
        };
        let mut scored_lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let row = read_line(index + 1, line)?;
            let in_scope = row.intent != OUT_OF_SCOPE;
            if row.split != TRAIN {
                scored_lines.push(index + 1);
                texts.scored.push(LabelledText {
                    text: row.text,
                    intent: in_scope.then_some(row.intent),
                });
            } else if in_scope {
                let classes = &mut texts.classes;
                let class = *known.entry(row.intent).or_insert_with_key(|name| {
                    classes.push(IntentClass {
                        name: name.clone(),
                        examples: Vec::new(),
                    });
                    classes.len() - 1
                });
                texts.classes[class].examples.push(row.text);
            } else {
                texts.out_of_scope.push(row.text);
            }
        }
        let unknown_class = texts
            .scored
            .iter()
            .zip(scored_lines)
            .find_map(|(text, line)| {
                let intent = text.intent.as_ref()?;
                (!known.contains_key(intent)).then(|| EvaluateError::Unknown {
                    line,
                    intent: intent.clone(),
                })
            });
        match unknown_class {
            Some(error) => Err(error),
            None if texts.scored.is_empty() => Err(EvaluateError::NothingToScore),
            None => Ok(texts),
        }
    }

    /// Trains a classifier on the examples.
    ///
    /// # Errors
    /// If they cannot be learned from.
    pub fn train(&self) -> Result<IntentClassifier, TrainError> {
        IntentClassifier::train_against(&self.classes, &self.out_of_scope)
    }

    /// Scores a classifier, which is any function from a text to a classification. A caller can measure its time
    /// in that function.
    pub fn evaluate<'a>(
        &self,
        mut classify: impl FnMut(&str) -> Classification<'a>,
    ) -> IntentReport {
        let (mut right, mut accepted_right, mut accepted, mut refused) = (0, 0, 0, 0);
        let mut scores = Vec::with_capacity(self.scored.len());
        let mut stated = Vec::with_capacity(self.scored.len());
        for scored in &self.scored {
            let found = classify(&scored.text);
            let first = found.ranking.first().map(|first| first.name);
            let is_right = first.is_some() && first == scored.intent.as_deref();
            scores.push((found.in_scope.get(), scored.intent.is_some()));
            stated.push((found.confidence.get(), is_right));
            match scored.intent.as_deref() {
                Some(intent) => {
                    right += usize::from(is_right);
                    accepted += usize::from(found.intent.is_some());
                    accepted_right += usize::from(found.intent == Some(intent));
                }
                None => refused += usize::from(found.intent.is_none()),
            }
        }
        let in_scope = scores.iter().filter(|(_, inside)| *inside).count();
        let out_of_scope = scores.len() - in_scope;
        IntentReport {
            n: scores.len(),
            in_scope,
            out_of_scope,
            classes: self.classes.len(),
            examples: self.classes.iter().map(|class| class.examples.len()).sum(),
            accuracy: share(right, in_scope),
            oos_auroc: auroc(scores),
            accepted: share(accepted, in_scope),
            accepted_and_right: share(accepted_right, in_scope),
            oos_refused: share(refused, out_of_scope),
            calibration_error: calibration_error(&stated),
        }
    }
}

/// Trains on the examples in `text` and scores the rest.
///
/// # Errors
/// If a line is wrong, or the examples cannot be learned from.
pub fn evaluate(text: &str) -> Result<IntentReport, EvaluateError> {
    let texts = LabelledTexts::read(text)?;
    let classifier = texts.train()?;
    Ok(texts.evaluate(|text| classifier.classify(text)))
}

fn read_line(number: usize, line: &str) -> Result<Line, EvaluateError> {
    let row: Line =
        serde_json::from_str(line).map_err(|source| EvaluateError::NotALabelledText {
            line: number,
            source,
        })?;
    for (field, value) in [
        ("text", &row.text),
        ("intent", &row.intent),
        ("split", &row.split),
    ] {
        if value.trim().is_empty() {
            return Err(EvaluateError::Empty {
                line: number,
                field,
            });
        }
    }
    Ok(row)
}

/// The scores of an evaluation. A share of no texts is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IntentReport {
    /// How many texts were scored.
    pub n: usize,
    /// How many of them belong to a class.
    pub in_scope: usize,
    /// How many belong to none.
    pub out_of_scope: usize,
    /// How many classes there are.
    pub classes: usize,
    /// How many examples they have.
    pub examples: usize,
    /// Of the texts in scope, the share whose class is ranked first.
    pub accuracy: Option<f64>,
    /// The area under the ROC curve of the in-scope probability: how often a random text in scope scores higher than
    /// a random text out of scope.
    pub oos_auroc: Option<f64>,
    /// Of the texts in scope, the share classified as in scope.
    pub accepted: Option<f64>,
    /// Of the texts in scope, the share classified as in scope and given the right class.
    pub accepted_and_right: Option<f64>,
    /// Of the texts out of scope, the share classified as out of scope.
    pub oos_refused: Option<f64>,
    /// The expected calibration error, by tenths of confidence.
    pub calibration_error: Option<f64>,
}

impl fmt::Display for IntentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "n                   {}", self.n)?;
        writeln!(f, "in_scope            {}", self.in_scope)?;
        writeln!(f, "out_of_scope        {}", self.out_of_scope)?;
        writeln!(f, "classes             {}", self.classes)?;
        write!(f, "examples            {}", self.examples)?;
        for (name, figure) in [
            ("accuracy", self.accuracy),
            ("oos_auroc", self.oos_auroc),
            ("accepted", self.accepted),
            ("accepted_and_right", self.accepted_and_right),
            ("oos_refused", self.oos_refused),
            ("calibration_error", self.calibration_error),
        ] {
            match figure {
                Some(figure) => write!(f, "\n{name:19} {figure:.4}")?,
                None => write!(f, "\n{name:19} -")?,
            }
        }
        Ok(())
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The mean distance between the stated confidence and the share of right classes, by tenths of confidence.
fn calibration_error(stated: &[(f64, bool)]) -> Option<f64> {
    let mut tenths = [(0.0, 0.0); 10];
    for &(confidence, is_right) in stated {
        let tenth = &mut tenths[((confidence * 10.0) as usize).min(9)];
        tenth.0 += confidence;
        tenth.1 += f64::from(u8::from(is_right));
    }
    let distance: f64 = tenths
        .iter()
        .map(|(stated, right)| (stated - right).abs())
        .sum();
    (!stated.is_empty()).then(|| distance / stated.len() as f64)
}

/// The area under the ROC curve, by ranks; ties share their rank. `None` unless both kinds occur.
fn auroc(mut scores: Vec<(f64, bool)>) -> Option<f64> {
    scores.sort_by(|left, right| left.0.total_cmp(&right.0));
    let inside = scores.iter().filter(|(_, inside)| *inside).count();
    let outside = scores.len() - inside;
    let mut ranks = 0.0;
    let mut before = 0;
    for equal in scores.chunk_by(|left, right| left.0 == right.0) {
        let rank = before as f64 + (equal.len() + 1) as f64 / 2.0;
        ranks += rank * equal.iter().filter(|(_, inside)| *inside).count() as f64;
        before += equal.len();
    }
    let (inside, outside) = (inside as f64, outside as f64);
    let wins = ranks - inside * (inside + 1.0) / 2.0;
    (inside > 0.0 && outside > 0.0).then(|| wins / (inside * outside))
}

#[cfg(test)]
mod tests {
    use super::{auroc, calibration_error};

    #[test]
    fn calibration_error_is_the_distance_of_confidence_and_accuracy() {
        let stated = [(0.85, true), (0.85, false), (0.1, false), (1.0, true)];
        let error = calibration_error(&stated).unwrap();
        // Of four: 0.35 each for the first two, 0.1, and 0.
        assert!((error - 0.2).abs() < 1e-9, "{error}");
        assert_eq!(calibration_error(&[]), None);
    }

    #[test]
    fn auroc_is_the_share_of_pairs_in_which_the_text_in_scope_scores_higher() {
        let scores = vec![(0.9, true), (0.4, true), (0.4, false), (0.1, false)];
        // Of four pairs, three are won and one is a tie.
        assert_eq!(auroc(scores), Some(3.5 / 4.0));
        assert_eq!(auroc(vec![(0.9, true)]), None);
        assert_eq!(auroc(vec![(0.0, true), (1.0, false)]), Some(0.0));
    }
}
