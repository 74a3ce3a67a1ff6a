//! Which model runs when nobody named one: the agents' own if they can be asked from here, else the
//! embedded one, but only where no call can do harm.

use std::sync::Arc;

use windlass_core::risk::ToolRisk;
use windlass_model::{ModelClient, ReflexModel, check_reach};
use windlass_spec::{Agent, Model, RiskLevel};

/// Which model runs.
pub struct ModelChoice {
    /// Asked by all agents instead of what they declare.
    pub instead: Option<Arc<dyn ModelClient>>,
    /// Which it is, in a line for people.
    pub told: String,
}

impl std::fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told)
    }
}

/// A model cannot be asked, and none can stand in for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model `{model}` cannot be used: {why}")]
pub struct NoModel {
    /// The model.
    pub model: Model,
    /// Why, and what to do about it.
    pub why: String,
}

/// Chooses for `lead` and all agents it may hand work to.
///
/// # Errors
/// If a model cannot be asked and some tool is not known to be reversible.
pub fn choose_model(
    agents: &[Agent],
    lead: &Agent,
    base_url: Option<&str>,
) -> Result<ModelChoice, NoModel> {
    let workers = with_sub_agents(agents, lead);
    let declares_reflex = |worker: &&Agent| worker.model().id() == ReflexModel::NAME;
    if workers.iter().all(declares_reflex) {
        return Ok(reflex("reflex, as the agent declares".to_owned()));
    }
    let mut hosted = workers.iter().filter(|worker| !declares_reflex(worker));
    let failed = hosted.find_map(|worker| {
        let why = check_reach(worker.model(), base_url).err()?;
        Some((worker.model(), why))
    });
    let Some((model, why)) = failed else {
        return Ok(ModelChoice {
            instead: None,
            told: lead.model().to_string(),
        });
    };
    let mut tools = workers.iter().flat_map(|worker| worker.tools());
    if tools.all(|tool| ToolRisk::of_specification(tool).at_worst().level == RiskLevel::Reversible)
    {
        let told = format!("reflex, the embedded one, because `{model}` cannot be used: {why}");
        return Ok(reflex(told));
    }
    Err(NoModel {
        model: model.clone(),
        why,
    })
}

fn reflex(told: String) -> ModelChoice {
    ModelChoice {
        instead: Some(Arc::new(ReflexModel::new())),
        told,
    }
}

/// An agent and all those it may hand work to, directly or through each other.
fn with_sub_agents<'a>(agents: &'a [Agent], lead: &'a Agent) -> Vec<&'a Agent> {
    let mut found = vec![lead];
    let mut next = 0;
    while let Some(agent) = found.get(next).copied() {
        next += 1;
        for name in agent.agents() {
            let named = agents.iter().find(|agent| agent.name() == name);
            found.extend(named.filter(|named| !found.contains(named)));
        }
    }
    found
}
