//! The pure core of the runtime: it makes decisions and performs no side effects.
//!
//! [`run`] is the state machine that takes a task through its turns. [`gate`] decides about calls.
//! [`limits`] holds rate limits and the circuit breaker. [`risk`] assesses how reversible a call is.
//! [`approval`] holds approvals, holds and standing approvals. [`model`] has the types that models and
//! the run machine share. [`durable`] has the values that drivers and stores of runs exchange.
//! [`stop`] has what operators stopped. [`redact`] keeps secrets out of stored data.
//!
//! Everything here is a function of its inputs: no IO, no clock, no randomness, no async runtime.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod approval;
mod catalog;
pub mod durable;
pub mod gate;
pub mod limits;
pub mod model;
pub mod redact;
pub mod risk;
pub mod run;
pub mod stop;
