//! The choice of a model when none was named: the agents' own if it can be reached, else the embedded
//! one, but only if all tools are reversible.

use std::sync::Arc;

use windlass_core::risk::ToolRisk;
#[cfg(feature = "learn")]
use windlass_model::ReflexModel;
use windlass_model::{ModelClient, check_reach};
use windlass_spec::{Agent, Model, RiskLevel};

/// The name of the embedded model.
const REFLEX: &str = "reflex";

/// The chosen model.
pub struct ModelChoice {
    /// The model that all agents use instead of the declared ones.
    pub override_model: Option<Arc<dyn ModelClient>>,
    /// One line for people that names the model.
    pub description: String,
    /// Whether the embedded model answers because a declared one cannot be used.
    pub is_fallback: bool,
}

impl std::fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.description)
    }
}

/// A model cannot be used, and the embedded one cannot replace it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model `{model}` cannot be used: {why}")]
pub struct NoModel {
    /// The model.
    pub model: Model,
    /// Why, and what to do about it.
    pub why: String,
}

/// Chooses the model for `lead` and all its sub-agents.
///
/// # Errors
/// If a model cannot be used and some tool is not known to be reversible.
pub fn choose_model(
    agents: &[Agent],
    lead: &Agent,
    base_url: Option<&str>,
) -> Result<ModelChoice, NoModel> {
    let members = with_sub_agents(agents, lead);
    let declares_reflex = |member: &&Agent| member.model().id() == REFLEX;
    if members.iter().all(declares_reflex) {
        let description = "reflex, as the agent declares".to_owned();
        return reflex(description, false).ok_or_else(|| NoModel {
            model: lead.model().clone(),
            why: "this program is built without the feature `learn`".to_owned(),
        });
    }
    let mut hosted = members.iter().filter(|member| !declares_reflex(member));
    let failed = hosted.find_map(|member| {
        let why = check_reach(member.model(), base_url).err()?;
        Some((member.model(), why))
    });
    let Some((model, why)) = failed else {
        return Ok(ModelChoice {
            override_model: None,
            description: lead.model().to_string(),
            is_fallback: false,
        });
    };
    let mut tools = members.iter().flat_map(|member| member.tools());
    if tools.all(|tool| ToolRisk::of_specification(tool).at_worst().level == RiskLevel::Reversible)
    {
        let description =
            format!("reflex, the embedded one, because `{model}` cannot be used: {why}");
        if let Some(choice) = reflex(description, true) {
            return Ok(choice);
        }
    }
    Err(NoModel {
        model: model.clone(),
        why,
    })
}

/// The embedded model, if it is built in.
#[cfg(feature = "learn")]
fn reflex(description: String, is_fallback: bool) -> Option<ModelChoice> {
    Some(ModelChoice {
        override_model: Some(Arc::new(ReflexModel::new())),
        description,
        is_fallback,
    })
}

#[cfg(not(feature = "learn"))]
fn reflex(_: String, _: bool) -> Option<ModelChoice> {
    None
}

/// An agent and all its sub-agents, direct and indirect.
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
