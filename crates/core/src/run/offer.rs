//! Which tools a model is shown. Mostly all; but what is switched off is not, and where there are so
//! many that they would crowd out the task, only those that fit it, with `find_tools` to find others.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use windlass_spec::{
    CallRecord, Field, NonEmptyText, RawUserIntent, RiskLevel, Signature, ToolAttributes,
    ToolGapReport, ToolName, ToolSpecification, Type,
};

use super::event::{LeftOut, LeftOutBecause};
use super::state::Run;

/// Finds tools that the model is not shown.
pub const FIND_TOOLS: &str = "find_tools";

static FINDING: LazyLock<Option<Arc<ToolSpecification>>> = LazyLock::new(|| {
    let query = Field::required("query", Type::Text)
        .described("What you want to do, in a few words, such as `send a message to a channel`");
    let limit =
        Field::optional("limit", Type::Integer).described("How many tools at most; 5 if not given");
    let signature = Signature::new(vec![query, limit], Type::List(Box::new(Type::Object))).ok()?;
    let description = NonEmptyText::new(
        "Finds tools that are not shown here. There are more than fit; those it finds can be called \
         from the next turn on.",
    );
    // Looking changes nothing.
    let attributes = ToolAttributes {
        risk: Some(RiskLevel::Reversible),
        ..ToolAttributes::default()
    };
    let name = ToolName::new(FIND_TOOLS).ok()?;
    ToolSpecification::new(name, description.ok()?, signature)
        .with_attributes(attributes)
        .ok()
        .map(Arc::new)
});

/// What was found out about a task, and what the model is shown for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// What the task wants, as far as that could be told.
    pub intent: Option<RawUserIntent>,
    /// The tools that are shown.
    pub tools: Vec<ToolName>,
    /// The others, and why they are not.
    pub left_out: Vec<LeftOut>,
    /// The arguments of tools that the operator sets, and that calls may leave out.
    pub set: BTreeMap<ToolName, Vec<String>>,
    /// What no tool seems to do of what the task wants.
    pub gap: Option<ToolGapReport>,
}

impl Offer {
    /// Whether a tool of that name is shown.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.as_str() == name)
    }

    /// Whether there are tools that can be found.
    #[must_use]
    pub fn can_find(&self) -> bool {
        let mut left_out = self.left_out.iter();
        left_out.any(|left_out| left_out.because == LeftOutBecause::Budget)
    }
}

/// The tool that finds tools, for those who have rules for it.
pub(crate) fn find_tools() -> Option<&'static Arc<ToolSpecification>> {
    FINDING.as_ref()
}

impl Run {
    /// What was found out about the task, and what the model is shown for it. Nothing, if it is shown
    /// everything.
    #[must_use]
    pub fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// What an agent declares that the task allows, sub-agents included.
    pub fn allowed_tools(&self) -> impl Iterator<Item = &Arc<ToolSpecification>> {
        let available = self.task.available_tools.as_ref();
        let own = self.agent.tools().iter().chain(&self.sub_agents);
        own.filter(move |tool| {
            available.is_none_or(|names| names.iter().any(|name| name == tool.name().as_str()))
        })
    }

    /// Whether a call looks for tools.
    #[must_use]
    pub fn is_finding(&self, name: &str) -> bool {
        name == FIND_TOOLS && self.agent.tool(name).is_none() && !self.is_sub_agent(name)
    }

    /// The tools that were looked for and found so far, in that order.
    #[must_use]
    pub fn found_tools(&self) -> Vec<ToolName> {
        let looked = |record: &&CallRecord| self.is_finding(record.tool_name().as_str());
        let found = self.calls().filter(looked).filter_map(|record| {
            let found = record.outcome()?.ok()?.as_array()?;
            Some(found.iter().filter_map(|tool| tool.get("name")?.as_str()))
        });
        let mut names: Vec<ToolName> = Vec::new();
        for name in found.flatten().filter_map(|name| ToolName::new(name).ok()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The tool that finds tools, if there is anything to find.
    pub(super) fn finding(&self) -> Option<&Arc<ToolSpecification>> {
        let can_find = self.offer.as_ref().is_some_and(Offer::can_find);
        find_tools().filter(|_| can_find && self.is_finding(FIND_TOOLS))
    }

    /// Takes what the model is shown from now on. What a task wants and lacks is found out once.
    pub(super) fn offer_tools(&mut self, mut offer: Offer) {
        if let Some(known) = self.offer.take() {
            offer.intent = offer.intent.or(known.intent);
            offer.gap = offer.gap.or(known.gap);
        }
        self.offer = Some(offer);
    }

    /// Whether a call of a tool may leave an argument out because the operator sets it.
    pub(super) fn is_set(&self, tool: &ToolName, argument: &str) -> bool {
        let set = self.offer.as_ref().and_then(|offer| offer.set.get(tool));
        set.is_some_and(|set| set.iter().any(|name| name == argument))
    }
}

/// What looking for tools gives: each with what it does and takes, so that it can be called.
#[must_use]
pub fn found(tools: &[&ToolSpecification]) -> Value {
    tools
        .iter()
        .map(|tool| {
            serde_json::json!({
                "name": tool.name().as_str(),
                "description": tool.description(),
                "parameters": tool.schema(),
            })
        })
        .collect()
}
