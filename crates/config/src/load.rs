//! From texts, variables and flags to a configuration: read, check each, merge, check the whole,
//! build.

use std::iter;

use crate::build::build;
use crate::check::check;
use crate::configuration::Configuration;
use crate::merge::merge;
use crate::mistake::Mistake;
use crate::source::{Source, read};
use crate::{assign, keys, rules};

/// A configuration, and what is odd about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What holds.
    pub configuration: Configuration,
    /// What is probably not meant that way.
    pub warnings: Vec<Mistake>,
}

/// Loads a configuration. Later layers win over earlier ones, whatever the order of `sources`; of
/// two texts of one layer the later wins. `variables` are those of the process, of which the ones
/// that are not about the configuration are ignored; `flags` are `KEY=VALUE`, the last one wins.
///
/// # Errors
/// Everything that is wrong, with the warnings, in the order of layers and lines.
pub fn load(
    sources: &[Source],
    variables: impl IntoIterator<Item = (String, String)>,
    flags: &[String],
) -> Result<Loaded, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let mut trees = Vec::new();
    let mut sources: Vec<&Source> = sources.iter().collect();
    sources.sort_by_key(|source| source.layer);
    let mut number = 0;
    let mut next_number = || {
        number += 1;
        number
    };
    let mut unread = Vec::new();
    for source in sources {
        let reading = read(source, next_number());
        mistakes.extend(reading.mistakes);
        trees.push(reading.tree);
        unread.push(reading.unread);
    }
    let mut variables: Vec<(String, String)> = variables.into_iter().collect();
    variables.sort();
    for (name, value) in &variables {
        let tree = assign::variable(name, value, next_number(), &mut mistakes);
        trees.extend(tree);
    }
    for flag in flags {
        let tree = assign::flag(flag, next_number(), &mut mistakes);
        trees.extend(tree);
    }
    let unreadable = unread.iter().any(|unread| !unread.is_empty());
    let mut merged = keys::built_in();
    // Only files come with lines, and they come first.
    let unread = unread.into_iter().chain(iter::repeat_with(Vec::new));
    for (mut tree, unread) in trees.into_iter().zip(unread) {
        let mut found = Vec::new();
        check(&mut tree, &mut found);
        // What is left of what cannot be read is not what was meant.
        let line = |mistake: &Mistake| mistake.line.unwrap_or_default();
        found.retain(|mistake| unread.iter().all(|lines| !lines.contains(&line(mistake))));
        mistakes.extend(found);
        merge(&mut merged, tree, &mut mistakes);
    }
    // Where lines are missing, what seems to be missing elsewhere may well stand in them.
    if !unreadable {
        rules::check(&merged, &mut mistakes);
    }
    Mistake::sort(&mut mistakes);
    if mistakes.iter().any(Mistake::is_error) {
        return Err(mistakes);
    }
    Ok(Loaded {
        configuration: build(merged),
        warnings: mistakes,
    })
}
