//! The integration tests of the tools, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

// The macros write `::windlass`, which users have; here the same names are one crate further down.
extern crate windlass_tools as windlass;

mod suite;
