//! What is learned from examples. [`intent`] tells what a text asks for: a classifier whose classes
//! are defined by examples, and what is understood of a text beyond its class. [`gap`] tells what tools a task
//! lacks. [`playbook`] keeps what worked.
//!
//! Everything here is pure computation: no IO, no clock, no randomness. The same examples always
//! give the same classifier.

pub mod gap;
pub mod intent;
pub mod playbook;
