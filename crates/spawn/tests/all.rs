//! Tests with real programs, as the user that runs them and, if that is root, as an ordinary user too.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod suite;
