//! Integration tests of policies, in one binary.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod suite {
    mod approvers;
    mod decisions;
    mod defaults;
    mod documentation;
    mod examples;
    mod explanations;
    mod load_errors;
    mod mapping;
    mod properties;
    mod reference;
    mod support;
}
