//! The pure heart of the runtime: what decides, without doing.
//!
//! Everything here is a function of its inputs. No IO, no clock, no randomness, no async runtime.

pub mod gate;
