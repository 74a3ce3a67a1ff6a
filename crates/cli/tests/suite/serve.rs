//! `windlass serve`: a real server process, real sockets and a real store.

mod chat;
mod client;
mod decisions;
mod events;
mod experiments;
mod objects;
mod oidc;
mod openai;
mod refusals;
mod routes;
mod runs;
mod server;
mod sessions;
mod stopping;
mod stops;
mod tls;
mod webhooks;
