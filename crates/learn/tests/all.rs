//! Tests of the public interface.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite {
    mod classify;
    mod evaluate;
    mod experiments;
    mod gap;
    mod properties;
    mod shipped;
    mod understand;
}
