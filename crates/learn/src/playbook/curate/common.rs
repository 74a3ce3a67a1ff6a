//! What the sequences of similar tasks have in common. A run does more than its task needs; what two of them
//! did alike is more likely what both needed.
//!
//! Successes come one after the other, as they stand in the log, and each is compared with those before it. So what
//! was found in common once stays found, and what people say about it later can be applied to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_embed::{Embedding, StaticEmbedder};
use windlass_spec::{NonEmptyText, ToolName};

use crate::playbook::evidence::RunEvidence;

/// With how many successes before it one is compared, the latest ones.
const MOST_COMPARED: usize = 500;

/// How many tools similar tasks must have in common. One alone says too little about either.
const SHORTEST_PART: usize = 2;

/// A run that succeeded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Success<'e> {
    pub(super) run: &'e RunEvidence,
    pub(super) task: &'e NonEmptyText,
    /// How many runs there were then.
    pub(super) now: usize,
}

/// The successes so far. Sequences are known by their place, since few differ.
#[derive(Debug, Default)]
pub(super) struct Successes<'e> {
    sequences: Vec<Vec<ToolName>>,
    places: HashMap<Vec<ToolName>, usize>,
    /// What two sequences have in common, as far as that was asked; none if it is too little.
    common: HashMap<(usize, usize), Option<usize>>,
    groups: Vec<Group<'e>>,
    by_task: HashMap<(&'e NonEmptyText, usize), usize>,
}

/// The same done for the same task, once or again: it has nothing new in common with anything.
#[derive(Debug)]
struct Group<'e> {
    sequence: usize,
    meaning: Embedding,
    successes: Vec<Success<'e>>,
    /// The sequences that it has in common with similar ones.
    shows: BTreeSet<usize>,
}

/// A sequence that similar tasks have in common, with the successes that now show it and did not before.
pub(super) type Shown<'e> = (Vec<ToolName>, Vec<Success<'e>>);

impl<'e> Successes<'e> {
    /// Takes a success and says what it shows.
    pub(super) fn add(
        &mut self,
        success: Success<'e>,
        embedder: &StaticEmbedder,
        similar: f32,
    ) -> Vec<Shown<'e>> {
        if success.run.sequence.len() < SHORTEST_PART {
            return Vec::new();
        }
        let sequence = self.place_of(&success.run.sequence);
        if let Some(group) = self.by_task.get(&(success.task, sequence)) {
            let group = &mut self.groups[*group];
            group.successes.push(success);
            let again = group.shows.iter().map(|part| (*part, vec![success]));
            let again: Vec<(usize, Vec<Success<'e>>)> = again.collect();
            return self.named(again);
        }
        let mut group = Group {
            sequence,
            meaning: embedder.embed(success.task.as_str()),
            successes: vec![success],
            shows: BTreeSet::new(),
        };
        let mut shown: BTreeMap<usize, Vec<Success<'e>>> = BTreeMap::new();
        for other in self.groups.len().saturating_sub(MOST_COMPARED)..self.groups.len() {
            let Some(part) = self.in_common(self.groups[other].sequence, sequence) else {
                continue;
            };
            let other = &mut self.groups[other];
            // Where both are known to show it, nothing depends on how similar they are.
            let is_known = group.shows.contains(&part) && other.shows.contains(&part);
            if is_known || group.meaning.cosine(&other.meaning) < similar {
                continue;
            }
            group.shows.insert(part);
            let members = shown.entry(part).or_default();
            if other.shows.insert(part) {
                members.extend(&other.successes);
            }
        }
        for members in shown.values_mut() {
            members.push(success);
        }
        self.by_task
            .insert((success.task, sequence), self.groups.len());
        self.groups.push(group);
        self.named(shown)
    }

    fn named(&self, shown: impl IntoIterator<Item = (usize, Vec<Success<'e>>)>) -> Vec<Shown<'e>> {
        let shown = shown.into_iter();
        let mut named: Vec<Shown<'e>> = shown
            .map(|(part, members)| (self.sequences[part].clone(), members))
            .collect();
        named.sort_by(|one, two| one.0.cmp(&two.0));
        named
    }

    fn place_of(&mut self, sequence: &[ToolName]) -> usize {
        if let Some(place) = self.places.get(sequence) {
            return *place;
        }
        let place = self.sequences.len();
        self.sequences.push(sequence.to_vec());
        self.places.insert(sequence.to_vec(), place);
        place
    }

    fn in_common(&mut self, one: usize, two: usize) -> Option<usize> {
        let key = (one.min(two), one.max(two));
        if let Some(known) = self.common.get(&key) {
            return *known;
        }
        let both = in_common(&self.sequences[one], &self.sequences[two]);
        let part = (both.len() >= SHORTEST_PART).then(|| self.place_of(&both));
        self.common.insert(key, part);
        part
    }
}

/// The longest sequence that is part of both, with whatever between its tools. Of several that are equally long
/// always the same, whichever of both is named first.
fn in_common(one: &[ToolName], two: &[ToolName]) -> Vec<ToolName> {
    let (one, two) = (one.min(two), one.max(two));
    let width = two.len() + 1;
    let mut longest = vec![0_usize; (one.len() + 1) * width];
    for (i, left) in one.iter().enumerate().rev() {
        for (j, right) in two.iter().enumerate().rev() {
            longest[i * width + j] = match left == right {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut common = Vec::new();
    while i < one.len() && j < two.len() {
        if one[i] == two[j] {
            common.push(one[i].clone());
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}
