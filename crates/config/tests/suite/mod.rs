//! The tests, one file for each subject, and their helpers.

mod documents;
mod layers;
mod mistakes;
mod properties;
mod rules;
mod servers;
mod tools;
mod trust;
mod values;
mod webhooks;

use std::path::PathBuf;

use windlass_config::{
    ConfigMistake, ConfigSource, Configuration, Layer, LoadedConfiguration, load,
};

/// A project's file.
fn project(text: &str) -> ConfigSource {
    source(Layer::Project, "windlass.toml", text)
}

fn source(layer: Layer, name: &str, text: &str) -> ConfigSource {
    ConfigSource {
        layer,
        name: name.to_owned(),
        directory: PathBuf::from("/project"),
        text: text.to_owned(),
    }
}

fn load_project(text: &str) -> Result<LoadedConfiguration, Vec<ConfigMistake>> {
    load(&[project(text)], [], &[])
}

/// Loads a project's file that has no mistakes.
fn configured(text: &str) -> Configuration {
    let loaded = load_project(text).unwrap_or_else(|mistakes| panic!("{}", render(&mistakes)));
    assert!(loaded.warnings.is_empty(), "{}", render(&loaded.warnings));
    loaded.configuration
}

/// The errors and warnings of a project's file that cannot be loaded, as text.
fn load_errors(text: &str) -> String {
    match load_project(text) {
        Err(mistakes) => render(&mistakes),
        Ok(loaded) => panic!("nothing is wrong: {:?}", loaded.warnings),
    }
}

/// The warnings of a project's file that can be loaded, as text.
fn load_warnings(text: &str) -> String {
    match load_project(text) {
        Ok(loaded) => render(&loaded.warnings),
        Err(mistakes) => panic!("{}", render(&mistakes)),
    }
}

fn render(mistakes: &[ConfigMistake]) -> String {
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
