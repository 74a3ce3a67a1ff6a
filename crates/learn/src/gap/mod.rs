//! What an agent lacks. [`ToolGapDetector`] tells whether the tools at hand do what a task asks, and if
//! not, what is missing, which tools come nearest and what a fitting one could look like. [`evaluate()`]
//! says how well that goes on labelled cases.
//!
//! No model is asked. A task is taken apart into what it needs, and each need is held against each tool:
//! by meaning, by words in both directions, and by whether the tool's required arguments can be found in
//! the text. A calibrated model makes one probability of that.

mod calibration;
mod detector;
mod evaluate;
mod features;
mod logistic;
mod propose;
mod shipped;
mod wishes;
mod words;

pub use detector::{Assessment, Capability, ToolGapDetector};
pub use evaluate::{
    CaseTool, ExpectedGap, GapCase, GapCaseError, GapReport, ReliabilityRow, ShippedReport,
    WrongCase, evaluate, fit, read_cases,
};
pub use propose::specification as proposed_specification;
pub use wishes::merge as merge_wishes;
