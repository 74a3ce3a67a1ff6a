//! What is learned from examples. [`intent`] tells what a text asks for: a classifier whose classes
//! are defined by examples, and what is understood of a text beyond its class. [`gap`] tells what tools a task
//! lacks. [`playbook`] keeps what worked.
//!
//! [`ab`] says what an experiment shows.
//!
//! Everything here is pure computation: no IO, no clock, no randomness but what follows from a seed that is
//! passed in. The same examples always give the same classifier.

pub mod ab;
pub mod gap;
pub mod intent;
pub mod playbook;
