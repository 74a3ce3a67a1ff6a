//! What policies promise, from outside.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite {
    mod decisions;
    mod defaults;
    mod documentation;
    mod examples;
    mod explanations;
    mod load_errors;
    mod mapping;
    mod plain;
    mod properties;
    mod support;
}
