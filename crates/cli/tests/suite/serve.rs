//! `windlass serve`: a real server process, real sockets and a real store.

mod client;
mod events;
mod objects;
mod refusals;
mod runs;
mod server;
mod stopping;
mod stops;
