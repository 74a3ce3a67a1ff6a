//! `windlass serve`: a real server process, real sockets and a real store.

mod chat;
mod client;
mod decisions;
mod events;
mod objects;
mod openai;
mod refusals;
mod runs;
mod server;
mod stopping;
mod stops;
mod webhooks;
