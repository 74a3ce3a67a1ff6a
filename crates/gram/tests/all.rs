//! The integration tests of `windlass-gram`, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
