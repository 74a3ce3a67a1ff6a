//! Counts with their nouns.

/// A count and its noun: `1 strategy`, `2 strategies`.
pub(super) fn counted(count: usize, singular: &str, plural: &str) -> String {
    let noun = if count == 1 { singular } else { plural };
    format!("{count} {noun}")
}
