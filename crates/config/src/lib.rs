//! The configuration: the file `windlass.toml` and what overrides it.
//!
//! [`load`] takes the texts of all layers and gives a [`Configuration`], or everything that is wrong
//! with them at once. Nothing is read from disk or from the environment here; whoever calls does
//! that. All keys stand in one table, from which checking, suggestions, defaults and the JSON
//! Schema for editors come.

mod assign;
mod build;
mod check;
mod configuration;
mod form;
mod keys;
mod load;
mod merge;
mod mistake;
mod origin;
mod rules;
mod schema;
mod settings;
mod show;
mod source;
mod starter;
mod tools;
mod tree;

pub use assign::is_setting_variable;
pub use configuration::Configuration;
pub use keys::key_names;
pub use load::{Loaded, load};
pub use mistake::{Mistake, Severity};
pub use origin::{Layer, Origin};
pub use schema::schema;
pub use settings::{
    AgentSettings, Breaker, Ceilings, Files, Gaps, Gate, Http, Intent, Intents, Learning, Library,
    Principal, Search, Selection, WithoutConfidence,
};
pub use show::Shown;
pub use source::Source;
pub use starter::starter;
pub use tools::{SwitchedOff, SwitchedOffBy, SwitchedOffWhat, ToolSettings};
