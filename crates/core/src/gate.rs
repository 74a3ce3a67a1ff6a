//! The gate: what every call passes before a tool may run. It is a fixed row of stages; the first
//! that refuses decides, and its decision is recorded. Whatever leaves it with leave to run carries
//! a [`Permit`]; running the tool is not the gate's business.

mod decision;
mod permit;

pub use decision::{Decision, Stage, Verdict};
pub use permit::Permit;

use windlass_spec::{AgentName, CallRecord, ErrorCategory, ToolSpecification};

/// What the gate knows of a run when it decides about one of its calls.
#[derive(Clone, Copy)]
pub struct GateContext<'a> {
    /// The agent that asks.
    pub agent: &'a AgentName,
    /// What is declared of the tool, if the agent has it.
    pub specification: Option<&'a ToolSpecification>,
    /// Whether a tool is switched on, here and now.
    pub is_enabled: &'a dyn Fn(&str) -> bool,
    /// Calls of the run that were allowed so far.
    pub calls_allowed: u32,
    /// Calls the run may make.
    pub max_calls: u32,
}

/// Decides about one call. Pure: the same call in the same context gets the same decision.
#[must_use]
pub fn decide(call: &CallRecord, context: &GateContext<'_>) -> Decision {
    let stages: [fn(&CallRecord, &GateContext<'_>) -> Option<Decision>; 4] =
        [known_tool, enabled, arguments, budget];
    stages
        .into_iter()
        .find_map(|stage| stage(call, context))
        .unwrap_or_else(Decision::allow)
}

fn known_tool(call: &CallRecord, context: &GateContext<'_>) -> Option<Decision> {
    let name = call.tool_name().as_str();
    context.specification.is_none().then(|| {
        let reason = format!("the agent `{}` has no tool `{name}`", context.agent);
        Decision::deny(Stage::KnownTool, ErrorCategory::UnknownTool, reason)
    })
}

fn enabled(call: &CallRecord, context: &GateContext<'_>) -> Option<Decision> {
    let name = call.tool_name().as_str();
    (!(context.is_enabled)(name)).then(|| {
        let reason = format!("the tool `{name}` is switched off");
        Decision::deny(Stage::Enabled, ErrorCategory::PermissionDenied, reason)
    })
}

fn arguments(call: &CallRecord, context: &GateContext<'_>) -> Option<Decision> {
    let misfits = context
        .specification?
        .signature()
        .misfits(&serde_json::Value::Object(call.arguments().clone()));
    (!misfits.is_empty()).then(|| {
        let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        let reason = format!("the arguments do not fit: {}", misfits.join("; "));
        Decision::deny(Stage::Arguments, ErrorCategory::InvalidArguments, reason)
    })
}

fn budget(_: &CallRecord, context: &GateContext<'_>) -> Option<Decision> {
    (context.calls_allowed >= context.max_calls).then(|| {
        let reason = format!(
            "the run has made all of its {} calls; finish with what is known",
            context.max_calls
        );
        Decision::deny(Stage::Budget, ErrorCategory::BudgetExceeded, reason)
    })
}
