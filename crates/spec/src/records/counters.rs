//! Counters of successful and failed calls by tool: a fold over call records.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::CallRecord;
use super::state::CallState;
use crate::names::ToolName;

/// The number of calls of a tool, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCounters {
    /// Calls that ended with a result.
    pub success_count: u64,
    /// Started calls that ended in any other way.
    pub failure_count: u64,
}

impl ToolCounters {
    /// The counters of every tool that was called.
    #[must_use]
    pub fn of_tools<'a>(
        calls: impl IntoIterator<Item = &'a CallRecord>,
    ) -> BTreeMap<ToolName, Self> {
        let mut tools: BTreeMap<ToolName, Self> = BTreeMap::new();
        for call in calls.into_iter().filter(|call| is_counted(call)) {
            tools
                .entry(call.tool_name().clone())
                .or_default()
                .count(call);
        }
        tools
    }

    /// Counts a call, unless it was never permitted or has not ended.
    pub fn count(&mut self, call: &CallRecord) {
        if !is_counted(call) {
            return;
        }
        let counter = match call.state() {
            CallState::Success => &mut self.success_count,
            _ => &mut self.failure_count,
        };
        *counter = counter.saturating_add(1);
    }
}

fn is_counted(call: &CallRecord) -> bool {
    call.was_permitted() && call.state().is_final()
}
