//! MCP servers as libraries of governed tools.
//!
//! A server is a stranger: what it says of its tools is pinned when it is first used and compared from
//! then on, every text it sends is looked through for what people would not see, and its processes and
//! connections are watched. No type of the protocol's own library appears in what this crate offers.
//!
//! [`Servers`] is what a program uses: it makes a library of what was accepted, without starting anything.
//! Under it is [`Governed`], one server with its pins in a [`Ledger`], and under that [`Server`], the bare
//! connection.

pub mod bounds;
mod child;
mod client;
mod definition;
mod governed;
pub mod import;
mod ledger;
mod library;
pub mod naming;
mod oauth;
pub mod pin;
pub mod program;
mod server;
pub mod text;

pub use client::{
    Answered, Authorizer, BeforeStart, BoxFuture, CallError, CallRequest, Came, Elicitation, Era,
    Greeting, Health, Limits, Lookup, Progress, Refusal, Reply, SampleAnswer, SampleMessage,
    SampleRequest, Sampler, Secret, ServerError, ServerOptions, UnknownEra, asks_for_secret,
};
pub use definition::{Definition, Hints};
pub use governed::{Governed, MeetError, program_of};
pub use import::{ImportError, Imported, import, to_toml};
pub use ledger::{Ledger, LedgerError, reached};
pub use library::{LIBRARY, Notice, Offered, Servers, introduce};
pub use naming::{LookAlike, Mention, NamingProblem, look_alikes, mentions, tool_name};
pub use oauth::{Login, OAuthError, Present, Tokens, forget_logins, kept_login, login};
pub use pin::{Change, Pin, PinState, Rename, diff, digest, renames};
pub use program::Program;
pub use server::Server;
pub use text::visible;
