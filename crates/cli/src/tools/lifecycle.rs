//! Where a tool stands in its life, from what is configured and what came of its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use windlass_config::Configuration;
use windlass_spec::{CallState, ToolName, ToolSpecification};
use windlass_store::{ExecutionFilter, RunFilter, RunState, Store, ToolStatistics};

use crate::data;

/// Where a tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is known, and switched off.
    Registered,
    /// It can be called, and never was.
    Available,
    /// It is being called.
    InUse,
    /// Its last call failed.
    Failed,
    /// Its last call succeeded.
    Succeeded,
    /// It is no longer to be used.
    Deprecated,
}

impl Stage {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Available => "available",
            Self::InUse => "in_use",
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
            Self::Deprecated => "deprecated",
        }
    }
}

/// What came of the calls of tools here.
pub(super) struct Past {
    statistics: BTreeMap<ToolName, ToolStatistics>,
    last: BTreeMap<ToolName, CallState>,
    in_use: BTreeSet<ToolName>,
}

impl Past {
    /// Reads it, if there is anything to read: nothing is made for it.
    pub(super) fn read(given: Option<&Path>) -> anyhow::Result<Self> {
        let mut past = Self {
            statistics: BTreeMap::new(),
            last: BTreeMap::new(),
            in_use: BTreeSet::new(),
        };
        if !data::directory(given)?.join("windlass.db").exists() {
            return Ok(past);
        }
        let stored = data::open(given)?;
        let store = stored.store();
        let filter = ExecutionFilter {
            tenant: Some(stored.who().tenant.to_string()),
            ..ExecutionFilter::default()
        };
        for statistics in store.tool_statistics(&filter)? {
            let last = ExecutionFilter {
                tool: Some(statistics.tool.clone()),
                limit: Some(1),
                ..filter.clone()
            };
            if let Some(last) = store.executions(&last)?.pop() {
                past.last.insert(last.tool, last.state);
            }
            past.statistics.insert(statistics.tool.clone(), statistics);
        }
        past.in_use = in_use(store)?;
        Ok(past)
    }

    /// How the calls of a tool ended, if there were any.
    pub(super) fn statistics(&self, tool: &ToolName) -> Option<&ToolStatistics> {
        self.statistics.get(tool)
    }

    /// Where a tool stands.
    pub(super) fn stage(
        &self,
        tool: &ToolName,
        specification: Option<&ToolSpecification>,
        configuration: &Configuration,
    ) -> Stage {
        let is_deprecated =
            specification.is_some_and(|tool| tool.attributes().deprecated.is_some());
        let switched_off = configuration.tool(tool, specification).switched_off;
        match self.last.get(tool) {
            _ if is_deprecated => Stage::Deprecated,
            _ if switched_off.is_some() => Stage::Registered,
            _ if self.in_use.contains(tool) => Stage::InUse,
            None => Stage::Available,
            Some(CallState::Success) => Stage::Succeeded,
            Some(_) => Stage::Failed,
        }
    }
}

/// The tools of calls that are under way.
fn in_use(store: &Store) -> anyhow::Result<BTreeSet<ToolName>> {
    let open = RunFilter {
        state: Some(RunState::Open),
        ..RunFilter::default()
    };
    let mut in_use = BTreeSet::new();
    for open in store.runs(&open)? {
        // A run that ends meanwhile uses nothing any more.
        let Ok(run) = store.fold(&open.run) else {
            continue;
        };
        let running = run
            .calls()
            .filter(|call| call.state() == CallState::Running);
        in_use.extend(running.map(|call| call.tool_name().clone()));
    }
    Ok(in_use)
}
