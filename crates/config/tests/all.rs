//! The integration tests of the configuration, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
