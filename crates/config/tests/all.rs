//! The integration tests of the configuration, in one binary.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read files"
)]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
