//! Reflex: the embedded, deterministic tool-caller. It needs no key, no server and no download, and
//! the same request always gets the same answer.
//!
//! It is no language model. It reads the prompt every model reads, ranks the tools by meaning and
//! words, fills arguments from the text by their schemas, makes one step after the other, and finishes
//! with what it observed; where it cannot, it says so. No IO, no clock, no randomness.

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

pub use choose::{Choice, Reflex, Settings, ToolView};
pub use fit::{
    ContentWord, MentionedValue, ToolFit, ValueKind, content_words, content_words_of_name,
    mentioned_values, parts,
};
pub use search::{Hit, Selection, ToolIndex, estimated_tokens};

pub(crate) use parameter::written as parameter_text;
