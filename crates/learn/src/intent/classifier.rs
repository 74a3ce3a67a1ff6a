//! The classifier: which of the classes a text belongs to, if any. Classes are defined only by examples.
//! Examples that belong to no class are optional.

use std::collections::HashSet;
use std::ops::Range;

use windlass_embed::{Embedder as _, StaticEmbedder};
use windlass_spec::Confidence;

use super::dense::{Means, Rows};
use super::features::{Feature, features};
use super::linear::{Linear, Schedule, Sparse, Vocabulary, softmax};
use super::scope::{Scale, Signals};

/// The most examples. If there are more, each class is sampled evenly.
const MAX_EXAMPLES: usize = 30_000;

/// The most examples on which the scales of the signals are measured.
const MAX_MEASURED: usize = 2_000;

/// The most examples of a class that a text is compared with. More take longer and add little.
const MAX_COMPARED: usize = 400;

/// How many classes a ranking has.
const RANKED: usize = 5;

/// The most classes.
const MAX_CLASSES: usize = 10_000;

/// From this probability on, a text counts as in scope.
const IN_SCOPE_THRESHOLD: f32 = 0.5;

/// A class, defined by its examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentClass {
    /// Its name.
    pub name: String,
    /// Texts that belong to it.
    pub examples: Vec<String>,
}

/// Why classes cannot be learned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// There is no class.
    #[error("no classes to learn; define at least one")]
    NoClasses,
    /// There are too many classes.
    #[error("{0} classes are too many; define at most {MAX_CLASSES}")]
    TooManyClasses(usize),
    /// A class has no name.
    #[error("class {0} has no name")]
    NoName(usize),
    /// Two classes have the same name.
    #[error("the class `{0}` is defined twice")]
    TwiceDefined(String),
    /// A class has no example with a letter or digit.
    #[error("the class `{0}` has no example with a letter or digit")]
    NoExamples(String),
}

/// The result of a classification.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification<'a> {
    /// The class of the text; `None` if it is out of scope.
    pub intent: Option<&'a str>,
    /// The probability that the first class of the ranking is right.
    pub confidence: Confidence,
    /// The probability that the text belongs to any class.
    pub in_scope: Confidence,
    /// The classes that fit best, best first.
    pub ranking: Vec<RankedClass<'a>>,
}

/// A class in a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedClass<'a> {
    /// The class.
    pub name: &'a str,
    /// Its share among all classes, from 0 to 1, if the text belongs to one of them.
    pub share: f32,
}

/// Classifies texts by intent.
#[derive(Debug, Clone)]
pub struct IntentClassifier {
    names: Vec<String>,
    vocabulary: Vocabulary,
    words: Linear,
    means: Means,
    /// One divided by the average number of examples of a class.
    scarcity: f32,
    /// The embeddings of the examples, by class.
    examples: Rows,
    /// The first example of each class, and the end of the last class.
    bounds: Vec<usize>,
    scales: Scales,
}

#[derive(Debug, Clone, Copy)]
struct Scales {
    mean: Scale,
    nearest: Scale,
    known: Scale,
}

/// An example with its class.
struct Example<'a> {
    text: &'a str,
    label: usize,
}

impl IntentClassifier {
    /// Learns classes from their examples. Examples without a letter or digit are skipped.
    ///
    /// # Errors
    /// If there is no class, a class has no name or a name is used twice, or a class has no example.
    pub fn train(classes: &[IntentClass]) -> Result<Self, TrainError> {
        Self::train_against(classes, &[])
    }

    /// Learns classes from their examples and from texts that belong to none of them. Such texts are
    /// optional; they help to reject similar ones.
    ///
    /// # Errors
    /// As [`train`](Self::train).
    pub fn train_against(
        classes: &[IntentClass],
        out_of_scope: &[String],
    ) -> Result<Self, TrainError> {
        let examples = examples(classes, out_of_scope)?;
        let labels: Vec<usize> = examples.iter().map(|example| example.label).collect();

        let featured: Vec<Vec<Feature>> = examples
            .iter()
            .map(|example| features(example.text))
            .collect();
        // Out of scope is learned as one more class, after the others.
        let learned = labels.last().map_or(0, |last| last + 1);
        let bounds = bounds(&labels, classes.len());
        let belonging = bounds[classes.len()];
        let vocabulary = Vocabulary::new(&featured, belonging, learned);
        let known: Vec<f32> = even_sample(belonging, MAX_MEASURED)
            .map(|example| vocabulary.known_without(&featured[example]))
            .collect();
        let vectors: Vec<Sparse> = featured
            .iter()
            .map(|features| vocabulary.vector(features).0)
            .collect();
        // Freed before the weights are allocated, because both are large.
        drop(featured);
        let words = Linear::train(
            &vectors,
            &labels,
            (vocabulary.len(), learned),
            Schedule::for_examples(examples.len()),
        );
        drop(vectors);

        let embedder = StaticEmbedder::new();
        let mut embeddings = Rows::new(embedder.dimension());
        for example in &examples {
            embeddings.push(embedder.embed(example.text).as_slice());
        }
        let means = Means::train(&embeddings, &labels, learned);
        let (mean, nearest) = scales(&labels[..belonging], &bounds, &means, &embeddings);
        let scales = Scales {
            mean,
            nearest,
            known: Scale::fit(&known, (0.6, 0.2)),
        };
        Ok(Self {
            names: classes.iter().map(|class| class.name.clone()).collect(),
            scarcity: classes.len() as f32 / belonging as f32,
            vocabulary,
            words,
            means,
            examples: embeddings,
            bounds,
            scales,
        })
    }

    /// The names of the classes, in the order they were given.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.names
    }

    /// Classifies a text.
    #[must_use]
    pub fn classify(&self, text: &str) -> Classification<'_> {
        let (shares, best, signals) = self.score(text);
        let ranking = self.ranking(&shares);
        let Some(signals) = signals else {
            return Classification {
                intent: None,
                confidence: Confidence::NONE,
                in_scope: Confidence::NONE,
                ranking,
            };
        };
        let in_scope = signals.in_scope_probability();
        Classification {
            intent: (in_scope >= IN_SCOPE_THRESHOLD).then_some(self.names[best].as_str()),
            confidence: confidence(in_scope * signals.right_probability()),
            in_scope: confidence(in_scope),
            ranking,
        }
    }

    /// The shares of all classes, the best class, and its signals; `None` if nothing in the text is known.
    fn score(&self, text: &str) -> (Vec<f32>, usize, Option<Signals>) {
        let (vector, known) = self.vocabulary.vector(&features(text));
        let embedding = StaticEmbedder::new().embed(text);
        let mut shares = self.words.scores(&vector);
        let distances = self
            .means
            .distances(&self.means.whiten(embedding.as_slice()));
        // The fewer examples a class has, the more its embeddings count relative to its words.
        let weight = 0.5 * (0.03 + self.scarcity.min(1.0 / 3.0));
        for (score, distance) in shares.iter_mut().zip(&distances) {
            *score -= weight * distance;
        }
        softmax(&mut shares);
        // The share of the out-of-scope class is dropped.
        shares.truncate(self.names.len());
        let best = first_best(&shares);
        if vector.is_empty() && embedding.is_zero() {
            return (shares, best, None);
        }
        let rows = compared(self.bounds[best]..self.bounds[best + 1]);
        let nearness = self.examples.nearness(embedding.as_slice(), rows, None);
        let signals = Signals {
            odds: Signals::odds(shares[best]),
            mean: self.scales.mean.standardise(-distances[best]),
            nearest: self.scales.nearest.standardise(nearness),
            known: self.scales.known.standardise(known),
            scarcity: self.scarcity,
        };
        (shares, best, Some(signals))
    }

    fn ranking(&self, shares: &[f32]) -> Vec<RankedClass<'_>> {
        let mut order: Vec<usize> = (0..shares.len()).collect();
        let better = |left: &usize, right: &usize| {
            shares[*right]
                .total_cmp(&shares[*left])
                .then(left.cmp(right))
        };
        if order.len() > RANKED {
            order.select_nth_unstable_by(RANKED, better);
            order.truncate(RANKED);
        }
        order.sort_unstable_by(better);
        order
            .into_iter()
            .map(|class| RankedClass {
                name: &self.names[class],
                share: shares[class],
            })
            .collect()
    }
}

/// The examples of all classes, sampled evenly if there are too many.
fn examples<'a>(
    classes: &'a [IntentClass],
    out_of_scope: &'a [String],
) -> Result<Vec<Example<'a>>, TrainError> {
    if classes.is_empty() {
        return Err(TrainError::NoClasses);
    }
    if classes.len() > MAX_CLASSES {
        return Err(TrainError::TooManyClasses(classes.len()));
    }
    let mut names = HashSet::new();
    let belonging: usize = classes.iter().map(|class| class.examples.len()).sum();
    let all = belonging + out_of_scope.len();
    let mut examples = Vec::with_capacity(all.min(MAX_EXAMPLES));
    for (label, class) in classes.iter().enumerate() {
        if class.name.trim().is_empty() {
            return Err(TrainError::NoName(label + 1));
        }
        if !names.insert(class.name.as_str()) {
            return Err(TrainError::TwiceDefined(class.name.clone()));
        }
        let before = examples.len();
        push_usable(&mut examples, &class.examples, label, all);
        if examples.len() == before {
            return Err(TrainError::NoExamples(class.name.clone()));
        }
    }
    push_usable(&mut examples, out_of_scope, classes.len(), all);
    Ok(examples)
}

/// Adds the texts with a letter or digit, sampled evenly if there are too many texts in `all`.
fn push_usable<'a>(examples: &mut Vec<Example<'a>>, texts: &'a [String], label: usize, all: usize) {
    let usable: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| text.chars().any(char::is_alphanumeric))
        .collect();
    let wanted = (usable.len() * MAX_EXAMPLES / all.max(MAX_EXAMPLES)).max(1);
    let part = even_sample(usable.len(), wanted).map(|index| Example {
        text: usable[index],
        label,
    });
    examples.extend(part);
}

/// `wanted` of `count` positions, evenly spaced.
fn even_sample(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let wanted = wanted.min(count);
    (0..wanted).map(move |index| index * count / wanted)
}

/// The examples of a class that a text is compared with: all, or a sample if there are too many.
fn compared(rows: Range<usize>) -> impl Iterator<Item = usize> {
    let begin = rows.start;
    even_sample(rows.len(), MAX_COMPARED).map(move |row| begin + row)
}

/// The first example of each class, and the end of the last class. Examples are in the order of classes.
fn bounds(labels: &[usize], classes: usize) -> Vec<usize> {
    (0..=classes)
        .map(|class| labels.partition_point(|&label| label < class))
        .collect()
}

/// The scales of the distance to the class mean and of the similarity to the nearest examples. Each example is
/// measured as if it were not an example itself.
fn scales(labels: &[usize], bounds: &[usize], means: &Means, embeddings: &Rows) -> (Scale, Scale) {
    let (mut near_means, mut nearest) = (Vec::new(), Vec::new());
    for row in even_sample(labels.len(), MAX_MEASURED) {
        let label = labels[row];
        let own = bounds[label]..bounds[label + 1];
        let count = own.len() as f32;
        if own.len() > 1 {
            let vector = embeddings.row(row);
            let distance = means.distance_to(&means.whiten(vector), label);
            // Corrects for the example's own contribution to the mean.
            near_means.push(-distance * (count / (count - 1.0)).powi(2));
            nearest.push(embeddings.nearness(vector, compared(own), Some(row)));
        }
    }
    (
        Scale::fit(&near_means, (-256.0, 60.0)),
        Scale::fit(&nearest, (0.7, 0.15)),
    )
}

fn first_best(shares: &[f32]) -> usize {
    let best = (0..shares.len()).max_by(|&left, &right| {
        shares[left]
            .total_cmp(&shares[right])
            .then(right.cmp(&left))
    });
    best.unwrap_or(0)
}

fn confidence(likelihood: f32) -> Confidence {
    Confidence::clamped(f64::from(likelihood)).0
}
