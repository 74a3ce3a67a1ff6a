//! The behaviour of reflex as its users see it.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite {
    mod bad_input;
    mod turns;
}
