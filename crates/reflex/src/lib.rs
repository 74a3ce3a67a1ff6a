//! Reflex: the embedded, deterministic tool-caller. It needs no key, no server and no download, and
//! the same request always gets the same answer.
//!
//! It is not a language model. It reads the same prompt as other models, ranks the tools by meaning and
//! words, fills arguments from the text by their schemas, makes one call after the other, and finishes
//! with the observations, or with the reason why it cannot do the task. No IO, no clock, no randomness.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod answer;
mod calibrate;
mod choose;
pub mod evaluate;
mod extract;
mod fill;
mod fit;
mod lexicon;
mod meaning;
mod missing;
mod observation;
mod parameter;
mod plan;
mod rank;
mod search;
mod split;
mod strategy;
mod text;
mod world;

pub use choose::{Choice, Reflex, Settings, ToolView};
pub use fit::{
    ContentWord, MentionedValue, ToolFit, ValueKind, content_words, content_words_of_name,
    mentioned_values, task_parts,
};
pub use search::{Hit, ToolIndex, ToolSelection, estimated_tokens};
pub use world::{is_web_search, is_world_question};

pub(crate) use parameter::written as parameter_text;
