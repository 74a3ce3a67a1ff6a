//! How good a classifier is: labelled texts in, figures out. One JSON object a line: `{text, intent,
//! split}`. Texts of the split `train` are the examples, all others are scored, and the intent `oos`
//! means that a text belongs to no class. Examples may be out of scope too; without any, classes are
//! learned from their own examples alone.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::classifier::{Class, Classification, IntentClassifier, TrainError};

/// The intent of a text that belongs to no class.
pub const OUT_OF_SCOPE: &str = "oos";

/// The split whose texts are the examples.
const TRAIN: &str = "train";

/// Labelled texts: the examples by class, and the texts to be scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledTexts {
    /// The classes with their examples, in the order they are first named.
    pub classes: Vec<Class>,
    /// What is scored, in order.
    pub scored: Vec<LabelledText>,
    /// Examples of what is out of scope, if there are any.
    pub out_of_scope: Vec<String>,
}

/// A text and the class it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledText {
    /// The text.
    pub text: String,
    /// Its class; none if it is out of scope.
    pub intent: Option<String>,
}

/// Why labelled texts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// A line is no labelled text.
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
    #[error("there is nothing to score: every text has split `{TRAIN}`")]
    NothingToScore,
    /// The examples cannot be learned from.
    #[error("the texts with split `{TRAIN}` cannot be learned from: {0}")]
    Train(#[from] TrainError),
}

#[derive(Deserialize)]
struct Line {
    text: String,
    intent: String,
    split: String,
}

impl LabelledTexts {
    /// Reads labelled texts, one JSON object a line; empty lines are passed over.
    ///
    /// # Errors
    /// With the first line that is wrong.
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
                    classes.push(Class {
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
        let stranger = texts
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
        match stranger {
            Some(error) => Err(error),
            None if texts.scored.is_empty() => Err(EvaluateError::NothingToScore),
            None => Ok(texts),
        }
    }

    /// Learns from the examples.
    ///
    /// # Errors
    /// If they cannot be learned from.
    pub fn train(&self) -> Result<IntentClassifier, TrainError> {
        IntentClassifier::train_against(&self.classes, &self.out_of_scope)
    }

    /// Scores a classifier, which is any function from a text to a classification; whoever wants to
    /// know how long it takes measures there.
    pub fn evaluate<'a>(&self, mut classify: impl FnMut(&str) -> Classification<'a>) -> Report {
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
        Report {
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

/// Learns from the examples in `text` and scores the rest of it.
///
/// # Errors
/// If a line is wrong, or the examples cannot be learned from.
pub fn evaluate(text: &str) -> Result<Report, EvaluateError> {
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

/// The figures of an evaluation. A share of nothing is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
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
    /// How well the likelihood of being in scope parts the texts in scope from the others: how often
    /// one in scope has the higher one, if one of each kind is drawn.
    pub oos_auroc: Option<f64>,
    /// Of the texts in scope, the share taken for one.
    pub accepted: Option<f64>,
    /// Of the texts in scope, the share taken for one and given the right class.
    pub accepted_and_right: Option<f64>,
    /// Of the texts out of scope, the share taken for one.
    pub oos_refused: Option<f64>,
    /// How far stated confidence is from the share that is right, on average, by tenths of confidence.
    pub calibration_error: Option<f64>,
}

impl fmt::Display for Report {
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

/// The mean distance between stated and right, of texts whose stated confidence is in the same tenth.
fn calibration_error(stated: &[(f64, bool)]) -> Option<f64> {
    let mut tenths = [(0.0, 0.0); 10];
    for &(confidence, is_right) in stated {
        let tenth = &mut tenths[((confidence * 10.0) as usize).min(9)];
        tenth.0 += confidence;
        tenth.1 += f64::from(u8::from(is_right));
    }
    let distance: f64 = tenths
        .iter()
        .map(|(said, right)| (said - right).abs())
        .sum();
    (!stated.is_empty()).then(|| distance / stated.len() as f64)
}

/// The area under the curve, by ranks; equal scores share theirs. None unless both kinds occur.
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
    fn calibration_error_is_how_far_stated_is_from_right() {
        let stated = [(0.85, true), (0.85, false), (0.1, false), (1.0, true)];
        let error = calibration_error(&stated).unwrap();
        // Of four: 0.35 each for the first two, 0.1, and nothing.
        assert!((error - 0.2).abs() < 1e-9, "{error}");
        assert_eq!(calibration_error(&[]), None);
    }

    #[test]
    fn auroc_is_how_often_one_in_scope_wins() {
        let scores = vec![(0.9, true), (0.4, true), (0.4, false), (0.1, false)];
        // Of four pairs three are won and one is a tie.
        assert_eq!(auroc(scores), Some(3.5 / 4.0));
        assert_eq!(auroc(vec![(0.9, true)]), None);
        assert_eq!(auroc(vec![(0.0, true), (1.0, false)]), Some(0.0));
    }
}
