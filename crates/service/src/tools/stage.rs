//! The stage of a tool in its life cycle, from its settings and its executions.

use std::collections::{BTreeMap, BTreeSet};

use windlass_config::ToolSettings;
use windlass_spec::{CallState, ToolName, ToolSpecification};
use windlass_store::{ExecutionFilter, RunFilter, RunState, Store, ToolStatistics};

use crate::error::ServiceError;
use crate::identity::Identity;
use crate::service::Service;

/// The name of the database file in a data directory.
const DATABASE: &str = "windlass.db";

windlass_spec::word_set! {
    /// The stage of a tool in its life cycle.
    ToolStage, "stage" {
        /// It is known, and switched off.
        Registered = "registered",
        /// It can be called, and never was.
        Available = "available",
        /// It is being called.
        InUse = "in_use",
        /// Its last call failed.
        Failed = "failed",
        /// Its last call succeeded.
        Succeeded = "succeeded",
        /// It is no longer to be used.
        Deprecated = "deprecated",
    }
}

/// The past calls of a tenant's tools.
#[derive(Default)]
pub(super) struct History {
    statistics: BTreeMap<ToolName, ToolStatistics>,
    last: BTreeMap<ToolName, CallState>,
    in_use: BTreeSet<ToolName>,
}

impl History {
    /// Reads it, if there is anything to read: no store is created for it.
    pub(super) fn read(service: &Service, identity: &Identity) -> Result<Self, ServiceError> {
        let mut history = Self::default();
        if !service.data_directory()?.join(DATABASE).exists() {
            return Ok(history);
        }
        let store = service.store()?;
        let tenant = identity.tenant().to_string();
        let filter = ExecutionFilter {
            tenant: Some(tenant.clone()),
            ..ExecutionFilter::default()
        };
        for statistics in store.tool_statistics(&filter)? {
            let last = ExecutionFilter {
                tool: Some(statistics.tool.clone()),
                limit: Some(1),
                ..filter.clone()
            };
            if let Some(last) = store.executions(&last)?.pop() {
                history.last.insert(last.tool, last.state);
            }
            let tool = statistics.tool.clone();
            history.statistics.insert(tool, statistics);
        }
        history.in_use = in_use(&store, tenant)?;
        Ok(history)
    }

    /// How the calls of a tool ended, if there were any.
    pub(super) fn statistics(&self, tool: &ToolName) -> Option<&ToolStatistics> {
        self.statistics.get(tool)
    }

    /// The stage of a tool with these settings.
    pub(super) fn stage(
        &self,
        tool: &ToolName,
        specification: Option<&ToolSpecification>,
        settings: &ToolSettings,
    ) -> ToolStage {
        let is_deprecated =
            specification.is_some_and(|tool| tool.attributes().deprecated.is_some());
        match self.last.get(tool) {
            _ if is_deprecated => ToolStage::Deprecated,
            _ if settings.switched_off.is_some() => ToolStage::Registered,
            _ if self.in_use.contains(tool) => ToolStage::InUse,
            None => ToolStage::Available,
            Some(CallState::Success) => ToolStage::Succeeded,
            Some(_) => ToolStage::Failed,
        }
    }
}

/// The tools of calls that are running.
fn in_use(store: &Store, tenant: String) -> Result<BTreeSet<ToolName>, ServiceError> {
    let open = RunFilter {
        tenant: Some(tenant),
        state: Some(RunState::Open),
        ..RunFilter::default()
    };
    let mut in_use = BTreeSet::new();
    for open in store.runs(&open)? {
        // A run that ends meanwhile uses nothing any more.
        let Ok(run) = store.fold(&open.run) else {
            continue;
        };
        let calls = run.calls();
        let running = calls.filter(|call| call.state() == CallState::Running);
        in_use.extend(running.map(|call| call.tool_name().clone()));
    }
    Ok(in_use)
}
