//! Policy for the gate: which calls may run, which need a person, which may not.
//!
//! Two parts decide, and the stricter of them wins. The [`floor`](floor()) is built in and follows
//! from the risk of a call. [`Policies`] are the operator's rules in the Cedar language; they are
//! checked against the tool specifications when they are loaded and decide in microseconds.
//! Everything here is a function of its inputs. No IO, no clock, no async.

mod analysis;
mod check;
mod decide;
mod decision;
mod error;
mod evaluate;
mod example;
mod explain;
mod floor;
mod load;
mod quick;
mod replay;
mod request;
mod schema;
mod seen;
mod shape;
mod slice;
mod source;
mod value;
mod verdict;

pub use decision::{Decision, Fault};
pub use error::{Place, PolicyError, PolicyWarning, Problem};
pub use explain::{Change, Explanation, RulePart};
pub use floor::{FloorReason, FloorSettings, Unstated, floor, floor_reason};
pub use load::{DEFAULT_POLICIES, Policies, Rule, RuleEffect, named_tools};
pub use replay::{Difference, replay};
pub use request::{Request, Session};
pub use verdict::{Verdict, default_security_level};
