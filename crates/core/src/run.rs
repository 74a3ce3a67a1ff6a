//! The run machine: one agent, one task, from the first turn to the end.
//!
//! A run is a fold: its state is what its events make of it, and nothing else. [`Run::apply`] takes
//! the next event, [`Run::next`] says what to do now. Drivers do it (ask the model, run the calls)
//! and append what came of it as further events. The machine reads no clock and draws no numbers, so
//! the same events always give the same state, the same requests and the same end.

mod allowance;
mod answer;
mod apply;
mod calls;
mod context;
mod event;
mod gating;
mod mistake;
mod offer;
mod outcome;
mod people;
mod plan;
mod repair;
mod request;
mod settings;
mod settling;
mod single;
mod stand;
mod state;
mod sub_agent;

pub use answer::Answer;
pub use event::{CallEnd, Event, LeftOut, LeftOutBecause, Ran, RecalledStrategy, Task, Variant};
pub use mistake::{Mistake, MistakeKind};
pub use offer::{FIND_TOOLS, Offer, found};
pub use outcome::{FoldError, Next, PermitError, RunEnd, Waiting};
pub(crate) use people::offered;
pub use people::{ASK_HUMAN, GateStep, REQUEST_AUTHORIZATION, ToolQuestion};
pub use plan::{
    CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, PlanState, PlanTaskStatus, ReplanError, TaskEnd,
    TaskState, UPDATE_TASK_STATUS,
};
pub use repair::{NotJson, repair_json};
pub use request::NO_TOOL_NOTE;
pub use settings::{Budget, Settings};
pub use stand::{Reply, Stand};
pub use state::{Entry, Run, TurnState};

#[cfg(test)]
mod tests;
