//! MCP servers as libraries of governed tools.
//!
//! A server is untrusted. The definitions of its tools are pinned on the first connection and compared
//! from then on. Every text it sends is searched for hidden content. Its processes and connections are
//! supervised. No type of `rmcp` appears in the public interface of this crate.
//!
//! [`Servers`] is what a program uses: it makes a library of the accepted tools without starting a server.
//! It has one [`GovernedServer`] per server, with the pins in a [`Ledger`]. Each of those contains a [`Server`],
//! the bare connection.

#![deny(clippy::disallowed_methods)]

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

#[cfg(feature = "fuzzing")]
pub use client::fuzzing;
pub use client::{
    AfterStart, Authorizer, BeforeStart, BoxFuture, CallError, CallOutcome, CallRequest,
    Elicitation, ElicitationReply, Era, Health, Limits, Lookup, Progress, Refusal, SampleAnswer,
    SampleMessage, SampleRequest, Sampler, Secret, ServerError, ServerInfo, ServerOptions,
    ToolAnswer, asks_for_secret,
};
pub use definition::{Definition, Hints};
pub use governed::{ConnectError, GovernedServer, program_of};
pub use import::{ImportError, Imported, import, to_toml};
pub use ledger::{Ledger, LedgerError, describe_transport};
pub use library::{AcceptedTools, LIBRARY, ServerNotice, Servers};
pub use naming::{LookAlike, Mention, NamingProblem, look_alikes, mentions, tool_name};
pub use oauth::{Login, OAuthError, OAuthTokens, ShowLoginUrl, forget_logins, login, stored_login};
pub use pin::{Change, Pin, PinState, Rename, diff, digest, renames};
pub use program::Program;
pub use server::Server;
pub use text::visible;
