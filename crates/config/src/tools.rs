//! The settings of one tool in the current environment, and the check of all settings against the
//! existing tools.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use windlass_spec::registry::{CategoryName, Environment, Permission, RateLimits, Resolved};
use windlass_spec::{
    AgentName, NonEmptyText, TimeoutSeconds, ToolName, ToolSpecification, nearest,
};

use crate::configuration::{Category, Configuration};
use crate::mistake::{ConfigMistake, did_you_mean, quoted};
use crate::origin::{Layer, Origin};
use crate::rules::{misfit_message, node_at_pointer};
use crate::tree::{Node, dotted};

/// The settings of one tool in the current environment.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    /// Its category: the one that configures it, else the one that it declares.
    pub category: Option<CategoryName>,
    /// Why it is switched off, if it is.
    pub switched_off: Option<SwitchedOff>,
    /// The permissions that it requires of the principal.
    pub demands: BTreeSet<Permission>,
    /// The rate limits of the tool.
    pub rate_limits: RateLimits,
    /// The rate limits of all tools of its category together.
    pub category_rate_limits: RateLimits,
    /// How long a call may take.
    pub timeout: TimeoutSeconds,
    /// The values of parameters that a call omits.
    pub parameters: Map<String, Value>,
}

/// The reason why a tool is switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOff {
    /// The tool.
    pub tool: ToolName,
    /// What is switched off.
    pub what: SwitchedOffWhat,
}

/// The part of the configuration that is switched off.
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
    /// The environment that the setting is for. `None` means all environments.
    pub environment: Option<Environment>,
    /// The origin of the setting.
    pub origin: Option<Origin>,
}

impl SwitchedOff {
    /// The cause, for a message that already says that the tool is switched off.
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

/// The text after "is switched off": the environment and the origin.
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
    /// The settings of a tool in the current environment. Each comes from the environment's override, else
    /// from the tool's general settings, else from its specification.
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
        let left = self.left_category(name, specification);
        let mut demands = known.map_or_else(BTreeSet::new, |known| demands(known, name));
        demands.extend(
            left.into_iter()
                .flat_map(|left| left.category.permissions.clone()),
        );
        let left_limits = left.map(|left| left.rate_limits.clone());
        ToolSettings {
            switched_off: self
                .unknown_category(name, specification)
                .or_else(|| self.switched_off(name, left, None))
                .or_else(|| self.switched_off(name, known, set.as_ref())),
            demands,
            rate_limits: own_limits
                .unwrap_or_default()
                .lowered_to(&left_limits.unwrap_or_default())
                .lowered_to(&ceilings.rate_limits),
            category_rate_limits: category_limits
                .unwrap_or_default()
                .capped_at(&ceilings.rate_limits),
            timeout: self.timeout(set.as_ref(), specification),
            parameters: parameters(known, set, specification),
            category,
        }
    }

    /// The category that configures a tool, else the one that its specification declares, if that category
    /// exists.
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

    /// The category that a tool declares, if only a project lists it in another one. It still applies: a project
    /// cannot move a tool out of a category that the user or the administrator restricts.
    fn left_category(
        &self,
        name: &ToolName,
        specification: Option<&ToolSpecification>,
    ) -> Option<&Category> {
        let declared = specification?.attributes().category.as_ref()?;
        let declared = self.known_categories().require(declared.as_str()).ok()?;
        let is_moved = self.inner.categorized_by_project.contains(name)
            && self.inner.category_of.get(name) != Some(declared);
        self.inner.categories.get(declared).filter(|_| is_moved)
    }

    /// Switches off a tool whose category does not exist, because its required permissions are unknown.
    fn unknown_category(
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

    /// The setting that switches off the category or tool at a path: the environment's override if there is
    /// one, else the general setting.
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

    /// Checks the configuration against the existing tools. Values for a tool must fit its signature, and its
    /// category must exist. Names of tools that do not exist are warnings.
    #[must_use]
    pub fn check_tools(&self, tools: &[ToolSpecification]) -> Vec<ConfigMistake> {
        let mut mistakes = Vec::new();
        for tool in tools {
            self.check_category(tool, &mut mistakes);
            self.check_parameters(tool, &mut mistakes);
            self.check_global_config(tool, &mut mistakes);
        }
        self.check_names(tools, &mut mistakes);
        ConfigMistake::sort(&mut mistakes);
        mistakes
    }

    /// Checks the configuration against the existing agents. The name of an agent that does not exist is a
    /// warning: a misspelt name restricts no agent.
    #[must_use]
    pub fn check_agents<'a>(
        &self,
        agents: impl IntoIterator<Item = &'a AgentName>,
    ) -> Vec<ConfigMistake> {
        let names: BTreeSet<&str> = agents.into_iter().map(AgentName::as_str).collect();
        let mut mistakes = Vec::new();
        for (name, node) in self.inner.tree.entries(&["agents"]) {
            if !names.contains(name) {
                let message = format!("there is no agent `{name}`");
                let help = did_you_mean(nearest(name, names.iter().copied()));
                let key = dotted(&["agents", name]);
                mistakes.push(ConfigMistake::warning(&node.origin, key, message).help(help));
            }
        }
        ConfigMistake::sort(&mut mistakes);
        mistakes
    }

    fn check_category(&self, tool: &ToolSpecification, mistakes: &mut Vec<ConfigMistake>) {
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
                    Some(meant) => format!("did you mean `{meant}`? Known categories: {known}"),
                    None => format!(
                        "known categories: {known}. To define one: [categories.NAME] schema = \"...\""
                    ),
                };
                let mistake = ConfigMistake::error(&origin, "category", unknown.to_string());
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
                        "its specification declares the category `{declared}`; using `{configured}`"
                    );
                    mistakes.push(ConfigMistake::warning(origin, dotted(&path), message));
                }
            }
        }
    }

    fn check_parameters(&self, tool: &ToolSpecification, mistakes: &mut Vec<ConfigMistake>) {
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
            let (key, node) = node_at_pointer(&misfit.pointer, node, &path);
            mistakes.push(ConfigMistake::error(
                &node.origin,
                key,
                misfit_message(&misfit),
            ));
        }
    }

    /// Checks that the global_config of a category fits its tools that have such parameters.
    fn check_global_config(&self, tool: &ToolSpecification, mistakes: &mut Vec<ConfigMistake>) {
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
                let (key, node) = node_at_pointer(&misfit.pointer, node, &path);
                let message = format!(
                    "does not fit the tool `{}`: {}",
                    tool.name(),
                    misfit_message(&misfit)
                );
                mistakes.push(ConfigMistake::error(&node.origin, key, message));
            }
        }
    }

    /// Warns about names of tools that do not exist.
    fn check_names(&self, tools: &[ToolSpecification], mistakes: &mut Vec<ConfigMistake>) {
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
        let tree = &self.inner.tree;
        let mut check = |name: &str, node: &Node, key: String| {
            if !names.contains(name) {
                let message = format!("there is no tool `{name}`");
                let help = did_you_mean(nearest(name, names.iter().copied()));
                mistakes.push(ConfigMistake::warning(&node.origin, key, message).help(help));
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

/// The values of parameters that a call omits: those of the tool, else those in its category's
/// global_config.
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
