//! The type of a tool: its parameters and its return type. A signature can be written as text, as JSON
//! Schema, or be built in Rust. All three describe the same closed set of types, and each form converts
//! into the others without loss or returns the reasons why it cannot. This module also checks whether a
//! tool with one signature fits a specification with another, and whether arguments fit a signature.

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

/// The largest nesting depth of types and of default values. This module traverses types recursively,
/// so this also bounds the stack.
pub const MAX_DEPTH: usize = 32;

/// `text` cut to a length suitable for a message.
fn shortened(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
