//! The pure heart of the runtime: what decides, without doing.
//!
//! [`run`] is the machine that takes a task through its turns, [`gate`] decides about calls, [`limits`]
//! is how often they may come, [`risk`] says how reversible a call is, [`approval`] is what people are asked, [`model`] is what they know
//! of models, [`durable`] is what drivers and stores of runs exchange, [`redact`] keeps secrets out of it. Everything here is a function of its inputs. No IO, no clock, no randomness, no async
//! runtime.

pub mod approval;
mod catalog;
pub mod durable;
pub mod gate;
pub mod limits;
pub mod model;
pub mod redact;
pub mod risk;
pub mod run;
