//! Loads a configuration from texts, variables and flags: reads and checks each layer, merges them,
//! checks the result, and builds the configuration.

use std::iter;
use std::path::{Component, Path, PathBuf};

use crate::build::build;
use crate::check::check;
use crate::configuration::Configuration;
use crate::merge::merge;
use crate::mistake::ConfigMistake;
use crate::origin::Layer;
use crate::restrict::{ProjectRules, Restricted, UntrustedSetting, restrict};
use crate::source::{ConfigSource, read};
use crate::tree::Node;
use crate::{assign, keys, rules};

/// A configuration with its warnings.
#[derive(Debug, Clone)]
pub struct LoadedConfiguration {
    /// The effective configuration.
    pub configuration: Configuration,
    /// Values that are probably not intended.
    pub warnings: Vec<ConfigMistake>,
    /// The settings of the project that have no effect because it is not trusted.
    pub untrusted: Vec<UntrustedSetting>,
}

/// Loads a configuration with a trusted project. Later layers override earlier ones, in any order of `sources`; of two texts
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
    let rules = ProjectRules {
        is_trusted: true,
        resolve: &without_dots,
    };
    load_with(sources, variables, flags, rules)
}

/// Loads a configuration, with these rules for the project's file. Otherwise like [`load`].
///
/// # Errors
/// All errors and warnings, in the order of layers and lines.
pub fn load_with(
    sources: &[ConfigSource],
    variables: impl IntoIterator<Item = (String, String)>,
    flags: &[String],
    rules: ProjectRules<'_>,
) -> Result<LoadedConfiguration, Vec<ConfigMistake>> {
    let mut layers = Layers::merge(sources, variables, flags, rules);
    // A name that seems undeclared may be declared in an unreadable line.
    if !layers.has_unreadable_lines {
        rules::check(&layers.merged, &mut layers.mistakes);
    }
    let warnings = warnings(layers.mistakes)?;
    Ok(LoadedConfiguration {
        configuration: build(layers.merged, &layers.restricted),
        warnings,
        untrusted: layers.restricted.untrusted,
    })
}

/// The settings of the project's file that need trust. What refers to them is not checked: variables, flags and
/// other settings may name a server that only a trusted project has.
///
/// # Errors
/// All errors and warnings of the files by themselves.
pub fn settings_that_need_trust(
    sources: &[ConfigSource],
    resolve: &dyn Fn(&Path) -> PathBuf,
) -> Result<Vec<UntrustedSetting>, Vec<ConfigMistake>> {
    let rules = ProjectRules {
        is_trusted: false,
        resolve,
    };
    let layers = Layers::merge(sources, [], &[], rules);
    warnings(layers.mistakes)?;
    Ok(layers.restricted.untrusted)
}

/// All mistakes if one is an error, else the warnings.
fn warnings(mut mistakes: Vec<ConfigMistake>) -> Result<Vec<ConfigMistake>, Vec<ConfigMistake>> {
    ConfigMistake::sort(&mut mistakes);
    match mistakes.iter().any(ConfigMistake::is_error) {
        true => Err(mistakes),
        false => Ok(mistakes),
    }
}

/// All layers, each checked by itself, merged into one tree.
struct Layers {
    merged: Node,
    restricted: Restricted,
    mistakes: Vec<ConfigMistake>,
    has_unreadable_lines: bool,
}

impl Layers {
    fn merge(
        sources: &[ConfigSource],
        variables: impl IntoIterator<Item = (String, String)>,
        flags: &[String],
        rules: ProjectRules<'_>,
    ) -> Self {
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
        let has_unreadable_lines = unread.iter().any(|unread| !unread.is_empty());
        let mut merged = keys::built_in();
        let mut restricted = Restricted::default();
        // Only files have unreadable lines, and files come first.
        let unread = unread.into_iter().chain(iter::repeat_with(Vec::new));
        for (mut tree, unread) in trees.into_iter().zip(unread) {
            let mut found = Vec::new();
            check(&mut tree, &mut found);
            // Mistakes in unreadable lines are only consequences of the syntax error.
            let line = |mistake: &ConfigMistake| mistake.line.unwrap_or_default();
            found.retain(|mistake| unread.iter().all(|lines| !lines.contains(&line(mistake))));
            mistakes.extend(found);
            if tree.origin.layer() == Layer::Project {
                restricted = restrict(&mut tree, &merged, rules, &mut mistakes);
            }
            merge(&mut merged, tree, &mut mistakes);
        }
        Self {
            merged,
            restricted,
            mistakes,
            has_unreadable_lines,
        }
    }
}

/// A path without `.` and `..`, which are resolved as if there were no links.
fn without_dots(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    resolved
}
