//! MCP servers as libraries of governed tools.
//!
//! A server is a stranger: what it says of its tools is pinned when it is first used and compared from
//! then on, every text it sends is looked through for what people would not see, and its processes and
//! connections are watched. No type of the protocol's own library appears in what this crate offers.

mod definition;

pub use definition::{Definition, Hints};
