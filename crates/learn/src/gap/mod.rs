//! Detects which tools an agent lacks. [`ToolGapDetector`] decides whether the available tools can do a task. If
//! not, it reports what is missing, the nearest tools, and a proposed specification. [`evaluate()`] scores the
//! detection on labelled cases.
//!
//! No language model is called. A task is split into the capabilities it needs, and each is compared with each
//! tool: by embedding, by words in both directions, and by whether the tool's required arguments are in the
//! text. A calibrated logistic model turns the result into one probability.

mod calibration;
mod detector;
mod evaluate;
mod features;
mod logistic;
mod propose;
mod shipped;
mod similar;
mod words;

pub use detector::{Capability, GapAssessment, ToolGapDetector};
pub use evaluate::{
    ExpectedGap, GapCase, GapCaseError, GapCaseTool, GapReliability, GapReport, ShippedReport,
    WrongCase, evaluate, fit, read_cases,
};
pub use propose::specification as proposed_specification;
pub use similar::group_similar as group_similar_capabilities;
