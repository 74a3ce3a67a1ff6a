//! Tests of the public interface.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
