//! Learning from examples and runs.
//!
//! - [`intent`] classifies what a text asks for. Classes are defined by examples.
//! - [`gap`] detects which tools a task lacks.
//! - [`playbook`] keeps the strategies that worked.
//! - [`ab`] analyses experiments.
//!
//! Everything here is pure computation: no IO, no clock, and randomness only from a seed that is passed in. The
//! same examples always give the same classifier.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ab;
pub mod gap;
pub mod intent;
pub mod playbook;
