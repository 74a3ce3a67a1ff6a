//! The program as a user meets it: whole commands with what they print and how they end.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
