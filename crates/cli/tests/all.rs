//! End-to-end tests of the program: commands, their output and their exit codes.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
