//! Gram notation (grammar 0.6.1): a lossless parser, a printer, a formatter and diagnostics.
//!
//! [`parse`] turns any text into a [`SyntaxTree`]; [`print()`] turns the tree back into the same text,
//! byte for byte; [`format()`] writes it in the one canonical layout. [`SyntaxTree::document`] gives
//! typed access to its content. This crate does not know agents or tools and does no IO.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod diagnostic;
mod format;
mod parse;
mod scan;
mod token;
mod tree;
mod value;
mod view;

pub use diagnostic::{Diagnostic, LineIndex, Position, Severity, Span};
pub use format::{format, quote, quote_name};
pub use parse::parse;
pub use token::{Token, TokenKind};
pub use tree::{NodeKind, SyntaxTree, print};
pub use value::{Number, Value, ValueData};
pub use view::{
    Annotated, Arrow, ArrowKind, ArrowLine, Bracket, Document, Element, IdentifiedAnnotation, Item,
    Name, Node, Path, Property, PropertyAnnotation, Record, Subject,
};
