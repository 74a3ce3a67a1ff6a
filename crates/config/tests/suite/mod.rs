//! The tests, one file a subject, and what they have in common.

mod documents;
mod layers;
mod mistakes;
mod properties;
mod rules;
mod servers;
mod tools;
mod values;

use std::path::PathBuf;

use windlass_config::{Configuration, Layer, Loaded, Mistake, Source, load};

/// A project's file.
fn project(text: &str) -> Source {
    source(Layer::Project, "windlass.toml", text)
}

fn source(layer: Layer, name: &str, text: &str) -> Source {
    Source {
        layer,
        name: name.to_owned(),
        directory: PathBuf::from("/project"),
        text: text.to_owned(),
    }
}

fn load_project(text: &str) -> Result<Loaded, Vec<Mistake>> {
    load(&[project(text)], [], &[])
}

/// What a project's file makes, when nothing is wrong with it.
fn configured(text: &str) -> Configuration {
    let loaded = load_project(text).unwrap_or_else(|mistakes| panic!("{}", shown(&mistakes)));
    assert!(loaded.warnings.is_empty(), "{}", shown(&loaded.warnings));
    loaded.configuration
}

/// All mistakes of a project's file as text; warnings too.
fn wrong(text: &str) -> String {
    match load_project(text) {
        Err(mistakes) => shown(&mistakes),
        Ok(loaded) => panic!("nothing is wrong: {:?}", loaded.warnings),
    }
}

/// The warnings about a project's file that can be loaded.
fn warned(text: &str) -> String {
    match load_project(text) {
        Ok(loaded) => shown(&loaded.warnings),
        Err(mistakes) => panic!("{}", shown(&mistakes)),
    }
}

fn shown(mistakes: &[Mistake]) -> String {
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
