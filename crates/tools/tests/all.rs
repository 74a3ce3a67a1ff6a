//! The integration tests of the tools, in one binary.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

// The macros generate paths with `::windlass`. This crate provides the same names under `windlass_tools`.
extern crate windlass_tools as windlass;

mod suite;
