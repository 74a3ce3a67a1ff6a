//! Finds the tool sequences that similar tasks have in common. A run may do more than its task needs; what two
//! runs share is more likely what both tasks need.
//!
//! Successes are added in the order of the log, and each is compared with those before it. So a common sequence,
//! once found, stays found, and later changes by people can refer to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_embed::{Embedding, StaticEmbedder};
use windlass_spec::{NonEmptyText, ToolName};

use crate::playbook::evidence::RunEvidence;

/// Each success is compared with at most this many earlier groups, the latest ones.
const MOST_COMPARED: usize = 500;

/// The least length of a common sequence. A single tool is no pattern.
const MIN_COMMON: usize = 2;

/// A run that succeeded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Success<'e> {
    pub(super) run: &'e RunEvidence,
    pub(super) task: &'e NonEmptyText,
    /// How many runs there were at that time.
    pub(super) now: usize,
}

/// The successes so far. Sequences are interned, because few differ.
#[derive(Debug, Default)]
pub(super) struct Successes<'e> {
    sequences: Vec<Vec<ToolName>>,
    sequence_numbers: HashMap<Vec<ToolName>, usize>,
    /// A cache of the common subsequence of two sequences; `None` if it is too short.
    common: HashMap<(usize, usize), Option<usize>>,
    groups: Vec<Group<'e>>,
    by_task: HashMap<(&'e NonEmptyText, usize), usize>,
}

/// All successes with the same task and the same sequence.
#[derive(Debug)]
struct Group<'e> {
    sequence: usize,
    meaning: Embedding,
    successes: Vec<Success<'e>>,
    /// The sequences that it has in common with similar tasks.
    common: BTreeSet<usize>,
}

/// A sequence that similar tasks have in common, with the successes that were not known to contain it before.
pub(super) type CommonSequence<'e> = (Vec<ToolName>, Vec<Success<'e>>);

impl<'e> Successes<'e> {
    /// Adds a success and returns the common sequences that it newly proves.
    pub(super) fn add(
        &mut self,
        success: Success<'e>,
        embedder: &StaticEmbedder,
        similar: f32,
    ) -> Vec<CommonSequence<'e>> {
        if success.run.sequence.len() < MIN_COMMON {
            return Vec::new();
        }
        let sequence = self.intern(&success.run.sequence);
        if let Some(group) = self.by_task.get(&(success.task, sequence)) {
            let group = &mut self.groups[*group];
            group.successes.push(success);
            let again = group.common.iter().map(|part| (*part, vec![success]));
            let again: Vec<(usize, Vec<Success<'e>>)> = again.collect();
            return self.resolve(again);
        }
        let mut group = Group {
            sequence,
            meaning: embedder.embed(success.task.as_str()),
            successes: vec![success],
            common: BTreeSet::new(),
        };
        let mut found: BTreeMap<usize, Vec<Success<'e>>> = BTreeMap::new();
        for other in self.groups.len().saturating_sub(MOST_COMPARED)..self.groups.len() {
            let Some(part) = self.common_part(self.groups[other].sequence, sequence) else {
                continue;
            };
            let other = &mut self.groups[other];
            // If both are known to have it, their similarity does not matter.
            let is_known = group.common.contains(&part) && other.common.contains(&part);
            if is_known || group.meaning.cosine(&other.meaning) < similar {
                continue;
            }
            group.common.insert(part);
            let members = found.entry(part).or_default();
            if other.common.insert(part) {
                members.extend(&other.successes);
            }
        }
        for members in found.values_mut() {
            members.push(success);
        }
        self.by_task
            .insert((success.task, sequence), self.groups.len());
        self.groups.push(group);
        self.resolve(found)
    }

    fn resolve(
        &self,
        found: impl IntoIterator<Item = (usize, Vec<Success<'e>>)>,
    ) -> Vec<CommonSequence<'e>> {
        let found = found.into_iter();
        let mut resolved: Vec<CommonSequence<'e>> = found
            .map(|(part, members)| (self.sequences[part].clone(), members))
            .collect();
        resolved.sort_by(|one, two| one.0.cmp(&two.0));
        resolved
    }

    fn intern(&mut self, sequence: &[ToolName]) -> usize {
        if let Some(place) = self.sequence_numbers.get(sequence) {
            return *place;
        }
        let place = self.sequences.len();
        self.sequences.push(sequence.to_vec());
        self.sequence_numbers.insert(sequence.to_vec(), place);
        place
    }

    fn common_part(&mut self, one: usize, two: usize) -> Option<usize> {
        let key = (one.min(two), one.max(two));
        if let Some(known) = self.common.get(&key) {
            return *known;
        }
        let both = longest_common_subsequence(&self.sequences[one], &self.sequences[two]);
        let part = (both.len() >= MIN_COMMON).then(|| self.intern(&both));
        self.common.insert(key, part);
        part
    }
}

/// The longest common subsequence. Of several that are equally long it returns always the same, whatever the
/// order of the arguments.
fn longest_common_subsequence(one: &[ToolName], two: &[ToolName]) -> Vec<ToolName> {
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
