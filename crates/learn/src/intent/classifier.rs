//! The classifier: which of the classes a text belongs to, if any. Classes are defined by examples
//! and by nothing else; examples of what belongs to none may be given, and need not be.

use std::collections::HashSet;
use std::ops::Range;

use windlass_embed::{Embedder as _, StaticEmbedder};
use windlass_spec::Confidence;

use super::dense::{Means, Rows};
use super::features::{Feature, features};
use super::linear::{Linear, Schedule, Sparse, Vocabulary, softmax};
use super::scope::{Scale, Signs};

/// Of more examples than this, an even part is taken from each class.
const MAX_EXAMPLES: usize = 30_000;

/// How many examples the scales of the signs are measured on.
const MEASURED: usize = 2_000;

/// How many examples of a class a text is compared with; more would take long and tell little.
const MAX_COMPARED: usize = 400;

/// How many classes a ranking names.
const RANKED: usize = 5;

/// The most classes there can be.
const MAX_CLASSES: usize = 10_000;

/// From this likelihood on, a text counts as belonging to a class.
const ACCEPTED: f32 = 0.5;

/// A class, defined by its examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// What it is called.
    pub name: String,
    /// Texts that belong to it.
    pub examples: Vec<String>,
}

/// Why classes cannot be learned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// There is no class.
    #[error("there are no classes to learn")]
    NoClasses,
    /// There are too many.
    #[error("there are {0} classes; at most {MAX_CLASSES} can be learned")]
    TooManyClasses(usize),
    /// A class has no name.
    #[error("class {0} has no name")]
    NoName(usize),
    /// Two classes have the same name.
    #[error("there are two classes `{0}`")]
    TwiceDefined(String),
    /// A class has no example with a letter or digit in it.
    #[error("the class `{0}` has no example with a word in it")]
    NoExamples(String),
}

/// What a text was taken for.
#[derive(Debug, Clone, PartialEq)]
pub struct Classification<'a> {
    /// The class it belongs to; none if it is out of scope.
    pub intent: Option<&'a str>,
    /// How likely the first of the ranking is right.
    pub confidence: Confidence,
    /// How likely the text belongs to any class.
    pub in_scope: Confidence,
    /// The classes that suit it best, best first.
    pub ranking: Vec<Candidate<'a>>,
}

/// A class that suits a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// The class.
    pub name: &'a str,
    /// Its share among all classes, from 0 to 1, if the text belongs to one of them.
    pub share: f32,
}

/// Tells which class a text belongs to.
#[derive(Debug, Clone)]
pub struct IntentClassifier {
    names: Vec<String>,
    vocabulary: Vocabulary,
    words: Linear,
    means: Means,
    /// One over how many examples a class has, on average.
    scarcity: f32,
    /// The embeddings of the examples, by class.
    examples: Rows,
    /// Where the examples of each class begin, and the last end.
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
    /// Learns classes from their examples. Examples without a letter or digit are passed over.
    ///
    /// # Errors
    /// If there is no class, a class has no name or a name is used twice, or a class has no example.
    pub fn train(classes: &[Class]) -> Result<Self, TrainError> {
        Self::train_against(classes, &[])
    }

    /// Learns classes from their examples, and from texts that belong to none of them. Such texts are
    /// not needed, but help to refuse others like them.
    ///
    /// # Errors
    /// As [`train`](Self::train).
    pub fn train_against(classes: &[Class], out_of_scope: &[String]) -> Result<Self, TrainError> {
        let examples = examples(classes, out_of_scope)?;
        let labels: Vec<usize> = examples.iter().map(|example| example.label).collect();

        let featured: Vec<Vec<Feature>> = examples
            .iter()
            .map(|example| features(example.text))
            .collect();
        // What is out of scope is learned as one more class, after the others.
        let learned = labels.last().map_or(0, |last| last + 1);
        let bounds = bounds(&labels, classes.len());
        let belonging = bounds[classes.len()];
        let vocabulary = Vocabulary::new(&featured, belonging, learned);
        let known: Vec<f32> = even_part(belonging, MEASURED)
            .map(|example| vocabulary.known_without(&featured[example]))
            .collect();
        let vectors: Vec<Sparse> = featured
            .iter()
            .map(|features| vocabulary.vector(features).0)
            .collect();
        // Before there are weights: both take much room.
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
            known: Scale::of(&known, (0.6, 0.2)),
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

    /// Which class a text belongs to.
    #[must_use]
    pub fn classify(&self, text: &str) -> Classification<'_> {
        let (shares, best, signs) = self.read(text);
        let ranking = self.ranking(&shares);
        let Some(signs) = signs else {
            return Classification {
                intent: None,
                confidence: Confidence::NONE,
                in_scope: Confidence::NONE,
                ranking,
            };
        };
        let in_scope = signs.in_scope();
        Classification {
            intent: (in_scope >= ACCEPTED).then_some(self.names[best].as_str()),
            confidence: confidence(in_scope * signs.right()),
            in_scope: confidence(in_scope),
            ranking,
        }
    }

    /// The shares of all classes, the best class, and what speaks for it; nothing does if the text
    /// holds nothing known.
    fn read(&self, text: &str) -> (Vec<f32>, usize, Option<Signs>) {
        let (vector, known) = self.vocabulary.vector(&features(text));
        let embedding = StaticEmbedder::new().embed(text);
        let mut shares = self.words.scores(&vector);
        let distances = self
            .means
            .distances(&self.means.whiten(embedding.as_slice()));
        // The fewer examples a class has, the less its words are to be trusted beside its meaning.
        let weight = 0.5 * (0.03 + self.scarcity.min(1.0 / 3.0));
        for (score, distance) in shares.iter_mut().zip(&distances) {
            *score -= weight * distance;
        }
        softmax(&mut shares);
        // What the class of all that is out of scope has is missing from the others.
        shares.truncate(self.names.len());
        let best = first_best(&shares);
        if vector.is_empty() && embedding.is_zero() {
            return (shares, best, None);
        }
        let rows = compared(self.bounds[best]..self.bounds[best + 1]);
        let nearness = self.examples.nearness(embedding.as_slice(), rows, None);
        let signs = Signs {
            odds: Signs::odds(shares[best]),
            mean: self.scales.mean.place(-distances[best]),
            nearest: self.scales.nearest.place(nearness),
            known: self.scales.known.place(known),
            scarcity: self.scarcity,
        };
        (shares, best, Some(signs))
    }

    fn ranking(&self, shares: &[f32]) -> Vec<Candidate<'_>> {
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
            .map(|class| Candidate {
                name: &self.names[class],
                share: shares[class],
            })
            .collect()
    }
}

/// The examples of all classes, an even part of each if there are too many.
fn examples<'a>(
    classes: &'a [Class],
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

/// Adds the texts with a letter or digit in them, an even part if `all` texts are too many.
fn push_usable<'a>(examples: &mut Vec<Example<'a>>, texts: &'a [String], label: usize, all: usize) {
    let usable: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| text.chars().any(char::is_alphanumeric))
        .collect();
    let wanted = (usable.len() * MAX_EXAMPLES / all.max(MAX_EXAMPLES)).max(1);
    let part = even_part(usable.len(), wanted).map(|index| Example {
        text: usable[index],
        label,
    });
    examples.extend(part);
}

/// `wanted` of `count` positions, evenly spaced.
fn even_part(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let wanted = wanted.min(count);
    (0..wanted).map(move |index| index * count / wanted)
}

/// The examples of a class that a text is compared with: all, unless they are very many.
fn compared(rows: Range<usize>) -> impl Iterator<Item = usize> {
    let begin = rows.start;
    even_part(rows.len(), MAX_COMPARED).map(move |row| begin + row)
}

/// Where the examples of each class begin, and the last end; examples stand in the order of classes.
fn bounds(labels: &[usize], classes: usize) -> Vec<usize> {
    (0..=classes)
        .map(|class| labels.partition_point(|&label| label < class))
        .collect()
}

/// Where the examples lie by their class's mean and by their nearest, each as if it were none.
fn scales(labels: &[usize], bounds: &[usize], means: &Means, embeddings: &Rows) -> (Scale, Scale) {
    let (mut near_means, mut nearest) = (Vec::new(), Vec::new());
    for row in even_part(labels.len(), MEASURED) {
        let label = labels[row];
        let own = bounds[label]..bounds[label + 1];
        let count = own.len() as f32;
        if own.len() > 1 {
            let vector = embeddings.row(row);
            let distance = means.distance_to(&means.whiten(vector), label);
            // A mean lies farther from a vector that it was not made of.
            near_means.push(-distance * (count / (count - 1.0)).powi(2));
            nearest.push(embeddings.nearness(vector, compared(own), Some(row)));
        }
    }
    (
        Scale::of(&near_means, (-256.0, 60.0)),
        Scale::of(&nearest, (0.7, 0.15)),
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
