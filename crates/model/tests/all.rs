//! The integration tests of the models, in one binary.

#![allow(clippy::unwrap_used, clippy::panic)]

mod suite;
