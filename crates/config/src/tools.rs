//! What holds for one tool in the current environment, and whether the tools that there are fit what
//! is set for them.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use windlass_spec::registry::{CategoryName, Environment, Permission, RateLimits, Resolved};
use windlass_spec::{
    AgentName, NonEmptyText, TimeoutSeconds, ToolName, ToolSpecification, nearest,
};

use crate::configuration::{Category, Configuration};
use crate::mistake::{Mistake, did_you_mean, quoted};
use crate::origin::{Layer, Origin};
use crate::rules::{inner, told};
use crate::tree::{Node, dotted};

/// What holds for one tool in the current environment.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    /// The category it belongs to: the one that configures it, else the one it declares.
    pub category: Option<CategoryName>,
    /// Why it cannot be used, if it cannot: what is switched off, where, and by which line.
    pub switched_off: Option<SwitchedOff>,
    /// What it demands of whom it is called for.
    pub demands: BTreeSet<Permission>,
    /// How many calls may be made to it.
    pub rate_limits: RateLimits,
    /// How many calls may be made to all tools of its category together.
    pub category_rate_limits: RateLimits,
    /// How long a call may take.
    pub timeout: TimeoutSeconds,
    /// The values that its parameters have when a call leaves them out.
    pub parameters: Map<String, Value>,
}

/// Why a tool cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOff {
    /// The tool.
    pub tool: ToolName,
    /// What is switched off.
    pub what: SwitchedOffWhat,
}

/// What is switched off, so that a tool cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchedOffWhat {
    /// The tool itself.
    Tool(SwitchedOffBy),
    /// Its category.
    Category(CategoryName, SwitchedOffBy),
    /// Its category does not exist.
    UnknownCategory(NonEmptyText),
}

/// The setting that switches something off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOffBy {
    /// The environment in which it does, if it does not everywhere.
    pub environment: Option<Environment>,
    /// Where it is written.
    pub origin: Option<Origin>,
}

impl SwitchedOff {
    /// The cause alone, for a message that already says that the tool is switched off.
    #[must_use]
    pub fn cause(&self) -> String {
        match &self.what {
            SwitchedOffWhat::Tool(by) => {
                let environment = by.environment.as_ref();
                let environment = environment.map(|environment| format!("in {environment}"));
                let origin = by.origin.as_ref().map(|origin| format!("at {origin}"));
                match (environment, origin) {
                    (Some(environment), Some(origin)) => format!("{environment}, {origin}"),
                    (Some(cause), None) | (None, Some(cause)) => cause,
                    (None, None) => "by the configuration".to_owned(),
                }
            }
            SwitchedOffWhat::Category(..) | SwitchedOffWhat::UnknownCategory(_) => self.to_string(),
        }
    }
}

impl fmt::Display for SwitchedOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            SwitchedOffWhat::Tool(by) => write!(f, "the tool `{}` is switched off{by}", self.tool),
            SwitchedOffWhat::Category(category, by) => {
                write!(f, "its category `{category}` is switched off{by}")
            }
            SwitchedOffWhat::UnknownCategory(category) => {
                write!(f, "its category `{category}` does not exist")
            }
        }
    }
}

/// What follows "is switched off": in which environment, and where that is written.
impl fmt::Display for SwitchedOffBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(environment) = &self.environment {
            write!(f, " in {environment}")?;
        }
        match &self.origin {
            Some(origin) => write!(f, ", at {origin}"),
            None => Ok(()),
        }
    }
}

impl Serialize for SwitchedOff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Configuration {
    /// What holds for a tool in the current environment: what the override for the environment
    /// says, else what is set everywhere, else what the specification says.
    #[must_use]
    pub fn tool(&self, name: &ToolName, specification: Option<&ToolSpecification>) -> ToolSettings {
        let category = self.category_of(name, specification);
        let known = category
            .as_ref()
            .and_then(|name| self.inner.categories.get(name));
        let set = known
            .and_then(|known| known.category.tools().get(name))
            .map(|tool| tool.resolved(self.environment()));
        let ceilings = self.ceilings();
        let own_limits = set.as_ref().map(|set| set.rate_limits.clone());
        let category_limits = known.map(|known| known.rate_limits.clone());
        ToolSettings {
            switched_off: self
                .without_category(name, specification)
                .or_else(|| self.switched_off(name, known, set.as_ref())),
            demands: known.map_or_else(BTreeSet::new, |known| demands(known, name)),
            rate_limits: own_limits
                .unwrap_or_default()
                .lowered_to(&ceilings.rate_limits),
            category_rate_limits: category_limits
                .unwrap_or_default()
                .capped_at(&ceilings.rate_limits),
            timeout: self.timeout(set.as_ref(), specification),
            parameters: parameters(known, set, specification),
            category,
        }
    }

    /// The category that configures a tool, else the one that its specification declares, if there
    /// is such a category.
    fn category_of(
        &self,
        name: &ToolName,
        specification: Option<&ToolSpecification>,
    ) -> Option<CategoryName> {
        let declared = || {
            let declared = specification?.attributes().category.as_ref()?;
            self.known_categories().require(declared.as_str()).ok()
        };
        self.inner.category_of.get(name).or_else(declared).cloned()
    }

    /// A tool of a category that does not exist cannot be used: nobody can say what it demands.
    fn without_category(
        &self,
        name: &ToolName,
        specification: Option<&ToolSpecification>,
    ) -> Option<SwitchedOff> {
        let declared = specification?.attributes().category.as_ref()?;
        if self.category_of(name, specification).is_some() {
            return None;
        }
        Some(SwitchedOff {
            tool: name.clone(),
            what: SwitchedOffWhat::UnknownCategory(declared.clone()),
        })
    }

    fn timeout(
        &self,
        set: Option<&Resolved>,
        specification: Option<&ToolSpecification>,
    ) -> TimeoutSeconds {
        let set = set.and_then(|set| set.timeout_seconds);
        let declared = specification.and_then(|tool| tool.attributes().timeout_seconds);
        let wanted = set.or(declared).unwrap_or(TimeoutSeconds::DEFAULT);
        self.ceilings()
            .timeout
            .map_or(wanted, |most| wanted.min(most))
    }

    fn switched_off(
        &self,
        name: &ToolName,
        category: Option<&Category>,
        set: Option<&Resolved>,
    ) -> Option<SwitchedOff> {
        let category = category?;
        let environment = self.environment();
        let category_name = &category.category.name;
        let there = category.overrides.get(environment);
        let top = ["categories", category_name.as_str()];
        let switched_off = |what| SwitchedOff {
            tool: name.clone(),
            what,
        };
        if !there.copied().unwrap_or(category.category.enabled) {
            let by = self.switched_off_by(&top);
            let what = SwitchedOffWhat::Category(category_name.clone(), by);
            return Some(switched_off(what));
        }
        let enabled = set.is_none_or(|set| set.enabled);
        (!enabled).then(|| {
            let path = [&top[..], &["tools", name.as_str()]].concat();
            switched_off(SwitchedOffWhat::Tool(self.switched_off_by(&path)))
        })
    }

    /// What switches off what is configured at a path: the override for the environment if there is one,
    /// else what holds everywhere.
    fn switched_off_by(&self, path: &[&str]) -> SwitchedOffBy {
        let environment = self.environment();
        let here = ["environment_overrides", environment.as_str(), "enabled"];
        let origin = |path: &[&str]| {
            let node = self.inner.tree.at(path);
            node.map(|node| node.origin.clone())
        };
        match origin(&[path, &here].concat()) {
            Some(origin) => SwitchedOffBy {
                environment: Some(environment.clone()),
                origin: Some(origin),
            },
            None => SwitchedOffBy {
                environment: None,
                origin: origin(&[path, &["enabled"]].concat()),
            },
        }
    }

    /// Holds the configuration against the tools that there are. What is set for a tool must fit its
    /// signature; a tool's category must exist; tools that are named and do not exist are told as
    /// warnings.
    #[must_use]
    pub fn check_tools(&self, tools: &[ToolSpecification]) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        for tool in tools {
            self.check_category(tool, &mut mistakes);
            self.check_parameters(tool, &mut mistakes);
            self.check_global_config(tool, &mut mistakes);
        }
        self.check_names(tools, &mut mistakes);
        Mistake::sort(&mut mistakes);
        mistakes
    }

    /// Holds the configuration against the agents that there are: one that is named and does not
    /// exist is told as a warning, since a misspelt one narrows nobody.
    #[must_use]
    pub fn check_agents<'a>(
        &self,
        agents: impl IntoIterator<Item = &'a AgentName>,
    ) -> Vec<Mistake> {
        let names: BTreeSet<&str> = agents.into_iter().map(AgentName::as_str).collect();
        let mut mistakes = Vec::new();
        for (name, node) in self.inner.tree.entries(&["agents"]) {
            if !names.contains(name) {
                let message = format!("there is no agent `{name}`");
                let help = did_you_mean(nearest(name, names.iter().copied()));
                let key = dotted(&["agents", name]);
                mistakes.push(Mistake::warning(&node.origin, key, message).help(help));
            }
        }
        Mistake::sort(&mut mistakes);
        mistakes
    }

    fn check_category(&self, tool: &ToolSpecification, mistakes: &mut Vec<Mistake>) {
        let Some(declared) = &tool.attributes().category else {
            return;
        };
        let origin = Origin::new(
            Layer::BuiltIn,
            format!("the specification of `{}`", tool.name()),
            0,
        );
        match self.known_categories().require(declared.as_str()) {
            Err(unknown) => {
                let known = quoted(unknown.known.iter().map(String::as_str));
                let help = match &unknown.nearest {
                    Some(meant) => format!("did you mean `{meant}`? Known are {known}"),
                    None => format!(
                        "known are {known}; declare others with [categories.NAME] schema = \"...\""
                    ),
                };
                let mistake = Mistake::error(&origin, "category", unknown.to_string());
                mistakes.push(mistake.help(help));
            }
            Ok(declared) => {
                let configured = self.inner.category_of.get(tool.name());
                if let Some(configured) = configured.filter(|configured| *configured != declared) {
                    let path = [
                        "categories",
                        configured.as_str(),
                        "tools",
                        tool.name().as_str(),
                    ];
                    let origin = self.origin(&path).unwrap_or(&origin);
                    let message = format!(
                        "its specification says that it belongs to `{declared}`; `{configured}` holds"
                    );
                    mistakes.push(Mistake::warning(origin, dotted(&path), message));
                }
            }
        }
    }

    fn check_parameters(&self, tool: &ToolSpecification, mistakes: &mut Vec<Mistake>) {
        let Some(category) = self.inner.category_of.get(tool.name()) else {
            return;
        };
        let path = [
            "categories",
            category.as_str(),
            "tools",
            tool.name().as_str(),
        ];
        let known = self.inner.categories.get(category);
        let set = known.and_then(|known| known.category.tools().get(tool.name()));
        let node = self.inner.tree.at(&path);
        let (Some(set), Some(node)) = (set, node) else {
            return;
        };
        for misfit in set.misfits(tool.signature()) {
            let (key, node) = inner(&misfit.pointer, node, &path);
            mistakes.push(Mistake::error(&node.origin, key, told(&misfit)));
        }
    }

    /// What is set for all tools of a category must fit those that take it.
    fn check_global_config(&self, tool: &ToolSpecification, mistakes: &mut Vec<Mistake>) {
        let Some(category) = self.category_of(tool.name(), Some(tool)) else {
            return;
        };
        let Some(known) = self.inner.categories.get(&category) else {
            return;
        };
        for (name, value) in &known.category.global_config {
            let Some(parameter) = tool.signature().parameter(name) else {
                continue;
            };
            let path = [
                "categories",
                category.as_str(),
                "global_config",
                name.as_str(),
            ];
            let Some(node) = self.inner.tree.at(&path) else {
                continue;
            };
            for misfit in parameter.ty.misfits(value) {
                let (key, node) = inner(&misfit.pointer, node, &path);
                let message = format!("does not fit the tool `{}`: {}", tool.name(), told(&misfit));
                mistakes.push(Mistake::error(&node.origin, key, message));
            }
        }
    }

    /// Tools that are named somewhere and do not exist.
    fn check_names(&self, tools: &[ToolSpecification], mistakes: &mut Vec<Mistake>) {
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
        let tree = &self.inner.tree;
        let mut check = |name: &str, node: &Node, key: String| {
            if !names.contains(name) {
                let message = format!("there is no tool `{name}`");
                let help = did_you_mean(nearest(name, names.iter().copied()));
                mistakes.push(Mistake::warning(&node.origin, key, message).help(help));
            }
        };
        for (category, node) in tree.entries(&["categories"]) {
            for (tool, node) in node.entries(&["tools"]) {
                check(tool, node, dotted(&["categories", category, "tools", tool]));
            }
        }
        for (tool, node) in tree.entries(&["risk"]) {
            check(tool, node, dotted(&["risk", tool]));
        }
        let mut lists = vec![("selection", "always", tree.items(&["selection", "always"]))];
        for (intent, node) in tree.entries(&["intents"]) {
            lists.push((intent, "tools", node.items(&["tools"])));
        }
        for (above, list, items) in lists {
            let path = match list {
                "always" => dotted(&[above, list]),
                _ => dotted(&["intents", above, list]),
            };
            for (index, item) in items.iter().enumerate() {
                check(
                    item.text().unwrap_or_default(),
                    item,
                    format!("{path}[{index}]"),
                );
            }
        }
    }
}

fn demands(category: &Category, tool: &ToolName) -> BTreeSet<Permission> {
    let own = category.demands.get(tool).into_iter().flatten();
    own.chain(&category.category.permissions).cloned().collect()
}

/// What the parameters of a tool are when a call leaves them out: what is set for the tool, else
/// what is set for its category under the name of one of its parameters.
fn parameters(
    category: Option<&Category>,
    set: Option<Resolved>,
    specification: Option<&ToolSpecification>,
) -> Map<String, Value> {
    let mut parameters = Map::new();
    if let (Some(category), Some(tool)) = (category, specification) {
        let shared = category.category.global_config.iter();
        let taken = shared.filter(|(name, _)| tool.signature().parameter(name).is_some());
        parameters.extend(taken.map(|(name, value)| (name.clone(), value.clone())));
    }
    parameters.extend(set.map(|set| set.parameters).unwrap_or_default());
    parameters
}
