//! What other rooms rely on, checked from outside.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite;
