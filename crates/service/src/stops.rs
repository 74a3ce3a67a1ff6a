//! Stopping work and starting it again: what an operator stops does not go on in any process of the store.

use serde_json::{Value, json};
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::run::Run;
use windlass_core::stop::{StopOrder, StopTarget, StoppableWork};
use windlass_spec::{AgentName, CallState, NonEmptyText, ToolName};
use windlass_store::{RunFilter, RunState, RunSummary};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::runs::RunStatus;
use crate::service::Service;
use crate::tools::ExecutionQuery;

/// The longest reason, in characters.
const MAX_REASON: usize = 1_000;

/// What to stop, or to start again, as a caller names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopSelector {
    /// Everything.
    All,
    /// The runs of the agent of that name, and those that work for them.
    Agent(String),
    /// The calls of the tool of that name.
    Tool(String),
    /// The runs that act for the principal of that name.
    Principal(String),
    /// The run with that id or prefix of an id, and those that work for it.
    Run(String),
}

/// A request to stop something, or to start it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRequest {
    /// What.
    pub selector: StopSelector,
    /// Why.
    pub reason: Option<String>,
    /// Whether it is about every tenant, and not only about that of the caller. Needs the scope `admin`.
    pub every_tenant: bool,
}

/// Something that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The order.
    pub order: StopOrder,
    /// Whether nothing of that name is known in the store, so that it may be misspelt.
    pub is_unknown: bool,
}

/// A stop as JSON.
#[must_use]
pub fn stop_to_json(order: &StopOrder) -> Value {
    json!({
        "kind": order.target.kind(), "name": order.target.name(), "tenant": order.tenant,
        "by": order.by, "at": order.at, "reason": order.reason,
    })
}

impl Service {
    /// Stops something: from when this returns, no call with an effect that it covers begins in any process of the store.
    /// Reversible calls and requests to models do not begin after [`STOPS_AGE`](windlass_runtime::STOPS_AGE). The runs are
    /// suspended, and workers resume them after [`Service::start_again`].
    ///
    /// # Errors
    /// If the identity is not an operator, the name is not valid, or there is no such run.
    pub fn stop(
        &self,
        identity: &Identity,
        request: &StopRequest,
    ) -> Result<Stopped, ServiceError> {
        let order = self.order_of(identity, request)?;
        let order = self.store()?.stop(identity.tenant(), order)?;
        Ok(Stopped {
            is_unknown: self.is_unknown(identity, &order)?,
            order,
        })
    }

    /// Starts again what was stopped with the same selector. Returns the stop that ended.
    ///
    /// # Errors
    /// If the identity is not an operator, or nothing was stopped with this selector.
    pub fn start_again(
        &self,
        identity: &Identity,
        request: &StopRequest,
    ) -> Result<StopOrder, ServiceError> {
        let order = self.order_of(identity, request)?;
        let target = order.target.clone();
        let ended = self.store()?.start_again(identity.tenant(), order)?;
        ended.ok_or_else(|| {
            ServiceError::not_found("not_stopped", format!("{target} is not stopped"))
                .with_hint("`windlass stop --list` lists what is stopped")
        })
    }

    /// What is stopped for the identity's tenant, the oldest first.
    ///
    /// # Errors
    /// If the identity may not read, or the list was changed outside Windlass.
    pub fn list_stops(&self, identity: &Identity) -> Result<Vec<StopOrder>, ServiceError> {
        identity.require(Scope::Read)?;
        let mut orders = self.store()?.stops()?.orders;
        orders.retain(|order| order.is_for(identity.tenant()));
        Ok(orders)
    }

    fn order_of(
        &self,
        identity: &Identity,
        request: &StopRequest,
    ) -> Result<StopOrder, ServiceError> {
        identity.require(Scope::Operate)?;
        if request.every_tenant {
            identity.require(Scope::Admin)?;
        }
        let invalid = |error: &dyn std::fmt::Display| {
            ServiceError::invalid("invalid_stop", error.to_string())
        };
        let reason = request.reason.as_deref().map(str::trim);
        let reason = reason.filter(|reason| !reason.is_empty());
        if reason.is_some_and(|reason| reason.chars().count() > MAX_REASON) {
            let message = format!("a reason has at most {MAX_REASON} characters");
            return Err(invalid(&message));
        }
        let target = match &request.selector {
            StopSelector::All => StopTarget::All,
            StopSelector::Agent(name) => {
                StopTarget::Agent(AgentName::new(name.clone()).map_err(|error| invalid(&error))?)
            }
            StopSelector::Tool(name) => {
                StopTarget::Tool(ToolName::new(name.clone()).map_err(|error| invalid(&error))?)
            }
            StopSelector::Principal(name) => StopTarget::Principal(
                Principal::new(name.clone()).map_err(|error| invalid(&error))?,
            ),
            StopSelector::Run(id) => StopTarget::Run(self.find_run(identity, id)?.0.run),
        };
        Ok(StopOrder {
            tenant: (!request.every_tenant).then(|| identity.tenant().clone()),
            target,
            by: identity.principal().clone(),
            at: self.now(),
            reason: reason.and_then(|reason| NonEmptyText::new(reason).ok()),
        })
    }

    /// Whether nothing of the name of a stop is known in the store.
    fn is_unknown(&self, identity: &Identity, order: &StopOrder) -> Result<bool, ServiceError> {
        let store = self.store()?;
        let tenant = order.tenant.as_ref().map(ToString::to_string);
        let filter = RunFilter {
            tenant: tenant.clone(),
            limit: Some(1),
            ..RunFilter::default()
        };
        Ok(match &order.target {
            StopTarget::All | StopTarget::Run(_) => false,
            StopTarget::Agent(name) => store
                .runs(&RunFilter {
                    agent: Some(name.to_string()),
                    ..filter
                })?
                .is_empty(),
            StopTarget::Principal(name) => store
                .runs(&RunFilter {
                    principal: Some(name.to_string()),
                    ..filter
                })?
                .is_empty(),
            StopTarget::Tool(name) => {
                let query = ExecutionQuery {
                    tool: Some(name.to_string()),
                    limit: Some(1),
                    ..ExecutionQuery::default()
                };
                self.tool_executions(identity, &query)?.is_empty()
            }
        })
    }

    /// The stop that keeps a run from going on, if one does.
    pub(crate) fn stop_of(&self, status: &RunStatus) -> Result<Option<StopOrder>, ServiceError> {
        if status.summary.state == RunState::Ended {
            return Ok(None);
        }
        let orders = self.store()?.stops()?;
        if orders.orders.is_empty() {
            return Ok(None);
        }
        let Some(mut work) = work_of(&status.summary) else {
            return Ok(None);
        };
        if status.outermost != status.summary.run {
            let outer = self.store()?.summary(&status.outermost)?.agent;
            work.agents.extend(AgentName::new(outer));
        }
        let calls = status.run.iter().flat_map(Run::calls);
        let open = calls.filter(|call| call.state() == CallState::Pending);
        let tools = open.map(|call| Some(call.tool_name().clone()));
        let stop = std::iter::once(None).chain(tools).find_map(|tool| {
            work.tool = tool;
            orders.covering(&work).cloned()
        });
        Ok(stop)
    }
}

/// A run as a stop may cover it, as far as its row says.
pub(crate) fn work_of(summary: &RunSummary) -> Option<StoppableWork> {
    let tenant = NonEmptyText::new(summary.tenant.clone()).ok()?;
    let principal = Principal::new(summary.principal.clone()).ok()?;
    Some(StoppableWork {
        who: TenantPrincipal::new(tenant, principal),
        run: summary.run.clone(),
        agents: AgentName::new(summary.agent.clone()).into_iter().collect(),
        tool: None,
    })
}
