//! The integration tests of the core, in one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read files"
)]

mod suite;
