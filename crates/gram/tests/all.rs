//! The integration tests of the notation, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
