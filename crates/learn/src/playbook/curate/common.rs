//! What the sequences of similar tasks have in common. A run does more than its task needs; what two of them
//! did alike is more likely what both needed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use windlass_embed::{Embedding, StaticEmbedder};
use windlass_spec::{AgentName, NonEmptyText, RunId, Timestamp, ToolName};

/// How many successes are compared with each other, the latest ones.
const MOST_COMPARED: usize = 500;

/// How many tools similar tasks must have in common. One alone says too little about either.
const SHORTEST_PART: usize = 2;

/// A run that succeeded.
pub(super) struct Success {
    pub(super) run: RunId,
    pub(super) agent: AgentName,
    pub(super) task: NonEmptyText,
    pub(super) sequence: Vec<ToolName>,
    pub(super) at: Timestamp,
    pub(super) iterations: u32,
    /// How many runs there were then.
    pub(super) now: usize,
}

/// The sequences that similar tasks have in common, each with the successes that show it.
pub(super) fn common_sequences<'s>(
    successes: &'s [Success],
    embedder: &StaticEmbedder,
    similar: f32,
) -> Vec<(Vec<ToolName>, Vec<&'s Success>)> {
    // The same done again for the same task has nothing new in common with anything.
    let mut alike: BTreeMap<(&NonEmptyText, &[ToolName]), Vec<&Success>> = BTreeMap::new();
    for success in successes {
        let key = (&success.task, success.sequence.as_slice());
        alike.entry(key).or_default().push(success);
    }
    let mut groups: Vec<Vec<&Success>> = alike.into_values().collect();
    groups.sort_by_key(|group| group.last().map(|last| Reverse(last.now)));
    groups.truncate(MOST_COMPARED);
    groups.reverse();
    let meanings: Vec<Embedding> = groups
        .iter()
        .map(|group| embedder.embed(group[0].task.as_str()))
        .collect();
    let mut common: BTreeMap<Vec<ToolName>, BTreeSet<usize>> = BTreeMap::new();
    for (one, meaning) in meanings.iter().enumerate() {
        for (two, other) in meanings.iter().enumerate().skip(one + 1) {
            if meaning.cosine(other) < similar {
                continue;
            }
            let both = in_common(&groups[one][0].sequence, &groups[two][0].sequence);
            if both.len() >= SHORTEST_PART {
                common.entry(both).or_default().extend([one, two]);
            }
        }
    }
    let shown = |places: BTreeSet<usize>| {
        let members = places.iter().flat_map(|place| &groups[*place]);
        members.copied().collect()
    };
    common
        .into_iter()
        .map(|(sequence, places)| (sequence, shown(places)))
        .collect()
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
