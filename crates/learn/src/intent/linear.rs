//! Classes by their words: multinomial logistic regression over the features of the examples, weighted by
//! rarity.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::features::Feature;

/// The most weights: 64 MB.
const MAX_WEIGHTS: usize = 16_000_000;

/// With more examples than this, a feature must occur twice to be known, because a single occurrence among so
/// many is rarely repeated.
const MANY_EXAMPLES: usize = 1_000;

/// The weights of a feature are padded to a multiple of this, so that loops over them have no remainder.
const LANES: usize = 8;

/// A text's known features and their values, of unit length.
pub(super) type Sparse = Vec<(u32, f32)>;

/// A hasher that returns its input, because features are hashes already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

type FeatureMap = HashMap<u64, u32, BuildHasherDefault<IdentityHasher>>;

/// The features that occur in the examples.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    places: FeatureMap,
    /// The inverse document frequency of each feature.
    rarity: Vec<f32>,
    /// In how many in-scope examples each feature occurs.
    counts: Vec<u32>,
    /// The rarity of an unknown feature.
    unknown: f32,
    /// The least number of examples of a known feature.
    least: u32,
}

impl Vocabulary {
    /// The features of the examples, of which the first `belonging` are in scope.
    pub(super) fn new(examples: &[Vec<Feature>], belonging: usize, classes: usize) -> Self {
        let mut counts = FeatureMap::default();
        for feature in examples.iter().flatten() {
            *counts.entry(feature.hash()).or_default() += 1;
        }
        let least = if examples.len() > MANY_EXAMPLES { 2 } else { 1 };
        let mut kept: Vec<(u64, u32)> = counts
            .into_iter()
            .filter(|&(_, count)| count >= least)
            .collect();
        // Also sorted by hash, since the order of a map differs from run to run.
        kept.sort_unstable_by_key(|&(hash, count)| (std::cmp::Reverse(count), hash));
        kept.truncate(MAX_WEIGHTS / classes.next_multiple_of(LANES).max(1));
        let all = examples.len() as f32;
        let rarity = |count: u32| ((1.0 + all) / (1.0 + count as f32)).ln() + 1.0;
        let mut vocabulary = Self {
            rarity: kept.iter().map(|&(_, count)| rarity(count)).collect(),
            counts: kept.iter().map(|&(_, count)| count).collect(),
            places: (0..)
                .zip(&kept)
                .map(|(at, &(hash, _))| (hash, at))
                .collect(),
            unknown: rarity(least),
            least,
        };
        for feature in examples[belonging..].iter().flatten() {
            if let Some(&place) = vocabulary.places.get(&feature.hash()) {
                vocabulary.counts[place as usize] -= 1;
            }
        }
        vocabulary
    }

    pub(super) fn len(&self) -> usize {
        self.rarity.len()
    }

    /// The vector of a text, and the share of the text that is known from in-scope examples.
    pub(super) fn vector(&self, features: &[Feature]) -> (Sparse, f32) {
        let mut vector = Sparse::with_capacity(features.len());
        let (mut known, mut out_of_scope, mut unknown) = (0.0, 0.0, 0.0);
        for feature in features {
            match self.places.get(&feature.hash()) {
                Some(&place) => {
                    let value = feature.weight() * self.rarity[place as usize];
                    if self.counts[place as usize] > 0 {
                        known += value * value;
                    } else {
                        out_of_scope += value * value;
                    }
                    vector.push((place, value));
                }
                None => unknown += (feature.weight() * self.unknown).powi(2),
            }
        }
        let squares: f32 = known + out_of_scope;
        if squares > 0.0 {
            let scale = squares.sqrt().recip();
            vector.iter_mut().for_each(|(_, value)| *value *= scale);
        }
        vector.shrink_to_fit();
        (vector, share(known, out_of_scope + unknown))
    }

    /// The share of an example that would be known if it were not an example itself.
    pub(super) fn known_without(&self, features: &[Feature]) -> f32 {
        let (mut known, mut unknown) = (0.0, 0.0);
        for feature in features {
            let place = self
                .places
                .get(&feature.hash())
                .map(|&place| place as usize);
            match place.filter(|&place| self.counts[place] > self.least) {
                Some(place) => known += (feature.weight() * self.rarity[place]).powi(2),
                None => unknown += (feature.weight() * self.unknown).powi(2),
            }
        }
        share(known, unknown)
    }
}

fn share(known: f32, unknown: f32) -> f32 {
    if known > 0.0 {
        known / (known + unknown)
    } else {
        0.0
    }
}

/// How long and how fast is learned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    /// How often every example is used.
    pub(super) epochs: usize,
    /// The initial learning rate; it decreases linearly to zero.
    pub(super) rate: f32,
}

impl Schedule {
    /// The more examples, the fewer epochs.
    pub(super) fn for_examples(examples: usize) -> Self {
        Self {
            epochs: (100_000 / examples.max(1)).clamp(8, 24),
            rate: 3.0,
        }
    }
}

/// A weight for every feature and class.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    classes: usize,
    stride: usize,
    weights: Vec<f32>,
}

impl Linear {
    /// Learns from vectors and their classes by stochastic gradient descent, in a pseudo-random order that is always
    /// the same.
    pub(super) fn train(
        vectors: &[Sparse],
        labels: &[usize],
        (features, classes): (usize, usize),
        schedule: Schedule,
    ) -> Self {
        let stride = classes.next_multiple_of(LANES);
        let mut model = Self {
            classes,
            stride,
            weights: vec![0.0; features * stride],
        };
        let mut order: Vec<usize> = (0..vectors.len()).collect();
        let mut random = Xorshift::default();
        let mut scores = vec![0.0; stride];
        let steps = (schedule.epochs * vectors.len()) as f32;
        let mut step = 0.0;
        for _ in 0..schedule.epochs {
            random.shuffle(&mut order);
            for &example in &order {
                let rate = schedule.rate * (1.0 - step / steps);
                step += 1.0;
                model.learn(&vectors[example], labels[example], rate, &mut scores);
            }
        }
        model
    }

    fn learn(&mut self, vector: &Sparse, label: usize, rate: f32, scores: &mut [f32]) {
        self.scores_into(vector, scores);
        softmax(&mut scores[..self.classes]);
        scores[label] -= 1.0;
        scores.iter_mut().for_each(|score| *score *= -rate);
        for &(feature, value) in vector {
            let begin = feature as usize * self.stride;
            let weights = &mut self.weights[begin..begin + self.stride];
            for (weight, change) in weights.iter_mut().zip(&*scores) {
                *weight += value * change;
            }
        }
    }

    /// The score of every class.
    pub(super) fn scores(&self, vector: &Sparse) -> Vec<f32> {
        let mut scores = vec![0.0; self.stride];
        self.scores_into(vector, &mut scores);
        scores.truncate(self.classes);
        scores
    }

    fn scores_into(&self, vector: &Sparse, scores: &mut [f32]) {
        scores.fill(0.0);
        for &(feature, value) in vector {
            let begin = feature as usize * self.stride;
            let weights = &self.weights[begin..begin + self.stride];
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += value * weight;
            }
        }
    }
}

/// Turns scores into shares that sum to one.
pub(super) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    for score in scores.iter_mut() {
        *score /= sum;
    }
}

/// A pseudo-random generator with a fixed seed (xorshift). Another one than in `ab`, because another order of the
/// examples would change the classifiers and their measured figures.
struct Xorshift(u64);

impl Default for Xorshift {
    fn default() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }
}

impl Xorshift {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}
