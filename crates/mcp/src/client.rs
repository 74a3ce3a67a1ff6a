//! The client side of a connection to a server: starting it, listing and calling its tools, and answering
//! its requests. Types of `rmcp` do not leave this module.

mod api;
mod backoff;
mod calls;
mod connection;
mod elicitation;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handler;
mod http;
mod list;
mod output;
mod sampling;
mod schema;
mod wire;

pub use api::{
    AfterStart, Authorizer, BeforeStart, BoxFuture, CallError, CallOutcome, CallRequest,
    Elicitation, ElicitationReply, Era, Health, Limits, Lookup, Progress, Refusal, SampleAnswer,
    SampleMessage, SampleRequest, Sampler, Secret, ServerError, ServerInfo, ServerOptions,
    ToolAnswer,
};
pub use elicitation::asks_for_secret;

pub(crate) use backoff::Backoff;
pub(crate) use calls::{Call, Step};
pub(crate) use connection::{Connection, check_before_start};
pub(crate) use list::Listing;
pub(crate) use output::OutputSchemas;
pub(crate) use schema::Schema;
pub(crate) use wire::{Inbound, Wire};

use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_spec::text::{TextUse, escape, escape_line};

use crate::text::clipped;

/// Locks a mutex, even if it is poisoned: no value here is ever left half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first `most` characters of a text on one line, with hidden characters escaped. Texts of servers get into
/// error messages and onto terminals.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let (beginning, ellipsis) = beginning_of(text, most);
    format!("{}{ellipsis}", escape_line(beginning, TextUse::Display))
}

/// Like [`shown`], with the line breaks of the text.
pub(crate) fn shown_lines(text: &str, most: usize) -> String {
    let (beginning, ellipsis) = beginning_of(text, most);
    format!("{}{ellipsis}", escape(beginning, TextUse::Display))
}

fn beginning_of(text: &str, most: usize) -> (&str, &'static str) {
    let text = text.trim();
    let beginning = clipped(text, most);
    let is_whole = beginning.len() == text.len();
    (beginning, if is_whole { "" } else { "…" })
}
