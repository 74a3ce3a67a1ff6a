//! Stop orders: the work that an operator stopped, which nobody begins until it is started again.
//!
//! An order covers whole runs, or the calls of one tool. While it lasts, no call that it covers starts and no model is asked
//! in a run that it covers. What has begun before ends.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{AgentName, NonEmptyText, RunId, Timestamp, ToolName};

use crate::approval::{Principal, TenantPrincipal};

/// What a stop order covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum StopTarget {
    /// Everything.
    All,
    /// The runs of an agent, and the runs that work for them.
    Agent(AgentName),
    /// The calls of a tool.
    Tool(ToolName),
    /// The runs that act for a principal.
    Principal(Principal),
    /// A run, and the runs that work for it.
    Run(RunId),
}

impl StopTarget {
    /// What kind of thing it is, as in the options of `windlass stop`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Agent(_) => "agent",
            Self::Tool(_) => "tool",
            Self::Principal(_) => "principal",
            Self::Run(_) => "run",
        }
    }

    /// The name of the thing; `None` if it is everything.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Agent(name) => Some(name.as_str()),
            Self::Tool(name) => Some(name.as_str()),
            Self::Principal(name) => Some(name.as_str()),
            Self::Run(run) => Some(run.as_str()),
        }
    }

    fn covers(&self, work: &StoppableWork) -> bool {
        match self {
            Self::All => true,
            Self::Agent(name) => work.agents.contains(name),
            Self::Tool(name) => work.tool.as_ref() == Some(name),
            Self::Principal(name) => work.who.principal == *name,
            Self::Run(run) => {
                let rest = work.run.as_str().strip_prefix(run.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
        }
    }
}

impl fmt::Display for StopTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "the {} `{name}`", self.kind()),
            None => f.write_str("everything"),
        }
    }
}

/// An order to stop, which lasts until what it covers is started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    /// The tenant whose work is stopped; `None` for every tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<NonEmptyText>,
    /// What is stopped.
    #[serde(flatten)]
    pub target: StopTarget,
    /// Who stopped it.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
    /// Why, if a reason was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NonEmptyText>,
}

impl StopOrder {
    /// Whether it stops the same for the same tenant as another one.
    #[must_use]
    pub fn is_about(&self, tenant: Option<&NonEmptyText>, target: &StopTarget) -> bool {
        self.tenant.as_ref() == tenant && self.target == *target
    }

    /// Whether work of a tenant may be covered by it.
    #[must_use]
    pub fn is_for(&self, tenant: &NonEmptyText) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }
}

impl fmt::Display for StopOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stopped {}", self.by, self.target)?;
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// Work that a stop order may cover: a run, or one of its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppableWork {
    /// Whom the run acts for.
    pub who: TenantPrincipal,
    /// The run.
    pub run: RunId,
    /// The agent of the run, and those of the runs that it works for.
    pub agents: Vec<AgentName>,
    /// The tool, if it is a call.
    pub tool: Option<ToolName>,
}

/// All stop orders that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopOrders {
    /// How often something was stopped or started.
    pub revision: u64,
    /// The orders, the oldest first.
    pub orders: Vec<StopOrder>,
}

impl StopOrders {
    /// The first order that covers some work.
    #[must_use]
    pub fn covering(&self, work: &StoppableWork) -> Option<&StopOrder> {
        let mut orders = self.orders.iter();
        orders.find(|stop| stop.is_for(&work.who.tenant) && stop.target.covers(work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(tenant: Option<&str>, target: StopTarget) -> StopOrders {
        let stop = StopOrder {
            tenant: tenant.map(|tenant| NonEmptyText::new(tenant).unwrap()),
            target,
            by: Principal::new("ada").unwrap(),
            at: Timestamp::from_microseconds(0),
            reason: None,
        };
        StopOrders {
            revision: 1,
            orders: vec![stop],
        }
    }

    fn work(run: &str, agents: &[&str], tool: Option<&str>) -> StoppableWork {
        let tenant = NonEmptyText::new("acme").unwrap();
        StoppableWork {
            who: TenantPrincipal::new(tenant, Principal::new("bob").unwrap()),
            run: RunId::new(run).unwrap(),
            agents: agents
                .iter()
                .map(|name| AgentName::new(*name).unwrap())
                .collect(),
            tool: tool.map(|name| ToolName::new(name).unwrap()),
        }
    }

    #[test]
    fn a_stop_covers_what_it_names_and_what_works_for_it() {
        let call = work("r1.1.0", &["helper", "lead"], Some("deploy"));
        let covers = |target| stops(None, target).covering(&call).is_some();
        let run = |run: &str| StopTarget::Run(RunId::new(run).unwrap());
        let agent = |name: &str| StopTarget::Agent(AgentName::new(name).unwrap());
        let tool = |name: &str| StopTarget::Tool(ToolName::new(name).unwrap());
        let principal = |name: &str| StopTarget::Principal(Principal::new(name).unwrap());
        assert!(covers(StopTarget::All));
        assert!(covers(run("r1")) && covers(run("r1.1.0")));
        assert!(!covers(run("r")) && !covers(run("r1.1.0.2")) && !covers(run("r11")));
        assert!(covers(agent("helper")) && covers(agent("lead")) && !covers(agent("other")));
        assert!(covers(tool("deploy")) && !covers(tool("read")));
        assert!(covers(principal("bob")) && !covers(principal("ada")));
        let whole = work("r1", &["lead"], None);
        assert!(stops(None, tool("deploy")).covering(&whole).is_none());
    }

    #[test]
    fn a_stop_of_a_tenant_covers_no_other_tenant() {
        let work = work("r1", &["lead"], None);
        assert!(
            stops(Some("acme"), StopTarget::All)
                .covering(&work)
                .is_some()
        );
        assert!(
            stops(Some("other"), StopTarget::All)
                .covering(&work)
                .is_none()
        );
    }

    #[test]
    fn a_stored_stop_reads_back_as_it_was() {
        for target in [
            StopTarget::All,
            StopTarget::Tool(ToolName::new("deploy").unwrap()),
        ] {
            let stop = stops(Some("acme"), target).orders.remove(0);
            let text = serde_json::to_string(&stop).unwrap();
            assert_eq!(
                serde_json::from_str::<StopOrder>(&text).unwrap(),
                stop,
                "{text}"
            );
        }
    }
}
