//! Policy for the gate: which calls may run, which need approval, and which are denied.
//!
//! The stricter of two parts decides. The [`floor`](floor()) is built in and follows from the risk of a
//! call. [`Policies`] are the operator's rules in the Cedar language. They are checked against the tool
//! specifications when they are loaded and decide in microseconds. Everything here is a function of its
//! inputs: no IO, no clock, no async.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod analysis;
mod approvers;
mod cache;
mod check;
mod decide;
mod decision;
mod error;
mod evaluate;
mod example;
mod explain;
mod floor;
mod groups;
mod load;
mod replay;
mod request;
mod schema;
mod shape;
mod slice;
mod source;
mod value;
mod verdict;

pub use approvers::GroupDemand;
pub use decision::{Decision, Fault};
pub use error::{PolicyError, PolicyPosition, PolicyWarning, Problem};
pub use explain::{Change, Explanation, RulePart};
pub use floor::{FloorReason, FloorSettings, Unstated, floor, floor_reason};
pub use load::{DEFAULT_POLICIES, ParsedPolicies, Policies, Rule, RuleEffect, named_tools};
pub use replay::{Difference, replay};
pub use request::{Request, Session};
pub use verdict::{Verdict, default_security_level};
