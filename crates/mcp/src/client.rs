//! The client's side of a connection with a server: starting it, listing its tools, calling them,
//! answering what it asks. Everything of the protocol's own library stays in here.

mod api;
mod backoff;
mod calls;
mod connection;
mod elicitation;
mod handler;
mod http;
mod list;
mod output;
mod sampling;
mod schema;
mod wire;

pub use api::{
    Answered, Authorizer, BeforeStart, BoxFuture, CallError, CallRequest, Came, Elicitation, Era,
    Greeting, Health, Limits, Lookup, Progress, Refusal, Reply, SampleAnswer, SampleMessage,
    SampleRequest, Sampler, Secret, ServerError, ServerOptions, UnknownEra,
};
pub use elicitation::asks_for_secret;

pub(crate) use backoff::Backoff;
pub(crate) use calls::{Call, Step};
pub(crate) use connection::{Connection, ask_before_start};
pub(crate) use list::Listing;
pub(crate) use output::Checks;
pub(crate) use schema::Schema;
pub(crate) use wire::{Inbound, Wire};

use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_spec::text::{TextUse, escape};

use crate::text::clipped;

/// Locks. What a panicking thread left behind is still whole: nothing here is changed in two steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The beginning of a text, `most` characters at most, with what cannot be seen escaped: texts of
/// servers end in error messages and on terminals.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let text = text.trim();
    let beginning = clipped(text, most);
    let mut shown = escape(beginning, TextUse::Display).into_owned();
    if beginning.len() < text.len() {
        shown.push('…');
    }
    shown
}
