//! Without the feature `learn`, gaps are not detected.

use tokio_util::sync::CancellationToken;
use windlass_config::Configuration;
use windlass_core::gate::Rules;
use windlass_core::run::{DisabledTool, Run};
use windlass_model::ModelClient;
use windlass_spec::{Agent, ToolGapReport, ToolName};
use windlass_tools::{BindingFailure, ToolLibrary};

/// The operator's settings for the detection of gaps: it does not happen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GapCheck {
    pub(crate) ask_model: bool,
}

impl GapCheck {
    pub(crate) fn of(_: &Configuration) -> Option<Self> {
        None
    }
}

/// A tool of an agent that can do nothing until it is configured, and why.
pub(crate) struct UnconfiguredTool {
    #[expect(dead_code, reason = "only the detection of gaps reads it")]
    pub(crate) tool: ToolName,
    #[expect(dead_code, reason = "only the detection of gaps reads it")]
    pub(crate) because: String,
}

/// What the task of a run needs and cannot have: not detected.
#[derive(Debug, Default)]
pub(crate) struct Lacking {
    pub(crate) gap: Option<ToolGapReport>,
    pub(crate) disabled: Vec<DisabledTool>,
}

pub(crate) fn before_run(_: &Run, _: &Rules, _: GapCheck, _: &[UnconfiguredTool]) -> Lacking {
    Lacking::default()
}

pub(crate) async fn before_run_by_model(
    _: &Run,
    _: &Rules,
    _: GapCheck,
    _: &[UnconfiguredTool],
    _: &dyn ModelClient,
    _: &CancellationToken,
) -> Option<Lacking> {
    None
}

/// The tools that a run lacked: not detected.
#[must_use]
pub fn during_run(_: &Run) -> Option<ToolGapReport> {
    None
}

/// The gap of an agent that could not be loaded: not detected.
pub(crate) fn at_load(_: &Agent, _: &ToolLibrary, _: &[BindingFailure]) -> Option<ToolGapReport> {
    None
}
