//! The HTTP API of Windlass. It translates requests into operations of [`windlass_service`] and their results back, and
//! decides nothing: who may do what is checked by the service.
//!
//! [`Server::bind`] opens a socket, and [`Server::run`] answers requests and drives runs until it is stopped.
//!
//! One table of routes (`routes.rs`) makes both the router and the OpenAPI document, so a route that is answered is also
//! described. A request passes, in this order: `Host` and `Origin`, its token or session, its rate, its scope, the size of
//! its body, the depth of its JSON, and the schema of its body. Every error is a problem document (RFC 9457).

mod app;
mod authentication;
mod call;
mod chat;
mod connection;
mod events;
mod frames;
mod hosts;
mod openapi;
mod options;
mod page;
mod problem;
mod rate;
mod route;
mod routes;
mod server;
mod session;
mod shapes;
mod start;
mod tls;

pub use openapi::document as openapi_document;
pub use options::{LoginOptions, ServerOptions, ServerOptionsError};
pub use server::{Server, ServerError};
pub use tls::{TlsError, TlsFiles};
