//! The type of a tool: which arguments it takes and what it returns. A signature can be written as
//! text, as JSON Schema, or be built in Rust; all three describe the same closed set of types, and
//! each form converts into the others without loss or says why it cannot. Whether a tool with one
//! signature can stand in for a specification with another is decided here too. What a tool does,
//! and the checking of arguments at call time, are not this module's business.

mod arguments;
mod check;
mod compatible;
mod display;
mod from_schema;
mod schema;
mod text;
mod types;

#[cfg(test)]
mod tests;

pub use arguments::Misfit;
pub use check::SignatureError;
pub use compatible::{Mismatch, accepts_parameters};
pub use from_schema::{Inexpressible, NoSignature, parameters_from_schema};
pub use types::{Field, Presence, Signature, Type};

/// How many levels types, and the JSON values given as defaults, may nest. Everything here walks
/// types recursively, so this is also what keeps the stack bounded.
pub const MAX_DEPTH: usize = 32;

/// `text` cut to a length that fits in a sentence.
fn shortened(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
