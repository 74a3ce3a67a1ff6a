//! Loads a configuration from texts, variables and flags: reads and checks each layer, merges them,
//! checks the result, and builds the configuration.

use std::iter;

use crate::build::build;
use crate::check::check;
use crate::configuration::Configuration;
use crate::merge::merge;
use crate::mistake::ConfigMistake;
use crate::source::{ConfigSource, read};
use crate::{assign, keys, rules};

/// A configuration with its warnings.
#[derive(Debug, Clone)]
pub struct LoadedConfiguration {
    /// The effective configuration.
    pub configuration: Configuration,
    /// Values that are probably not intended.
    pub warnings: Vec<ConfigMistake>,
}

/// Loads a configuration. Later layers override earlier ones, in any order of `sources`; of two texts
/// of one layer the later wins. `variables` are those of the process; unrelated variables are ignored.
/// `flags` are `KEY=VALUE`; the last one wins.
///
/// # Errors
/// All errors and warnings, in the order of layers and lines.
pub fn load(
    sources: &[ConfigSource],
    variables: impl IntoIterator<Item = (String, String)>,
    flags: &[String],
) -> Result<LoadedConfiguration, Vec<ConfigMistake>> {
    let mut mistakes = Vec::new();
    let mut trees = Vec::new();
    let mut sources: Vec<&ConfigSource> = sources.iter().collect();
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
    // Only files have unreadable lines, and files come first.
    let unread = unread.into_iter().chain(iter::repeat_with(Vec::new));
    for (mut tree, unread) in trees.into_iter().zip(unread) {
        let mut found = Vec::new();
        check(&mut tree, &mut found);
        // Mistakes in unreadable lines are only consequences of the syntax error.
        let line = |mistake: &ConfigMistake| mistake.line.unwrap_or_default();
        found.retain(|mistake| unread.iter().all(|lines| !lines.contains(&line(mistake))));
        mistakes.extend(found);
        merge(&mut merged, tree, &mut mistakes);
    }
    // A name that seems undeclared may be declared in an unreadable line.
    if !unreadable {
        rules::check(&merged, &mut mistakes);
    }
    ConfigMistake::sort(&mut mistakes);
    if mistakes.iter().any(ConfigMistake::is_error) {
        return Err(mistakes);
    }
    Ok(LoadedConfiguration {
        configuration: build(merged),
        warnings: mistakes,
    })
}
