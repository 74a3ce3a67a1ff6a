//! Reads agents and resolves their references.

use std::collections::{HashMap, HashSet};

use windlass_gram::{Diagnostic, Element, Name, Path, Span};

use super::definitions::{Definition, Definitions, Kind, Role, role};
use super::{ReadTools, Reader};
use crate::agent::{Agent, FlowStep};
use crate::model::{Model, Provider};
use crate::names::AgentName;

const PROPERTIES: [&str; 4] = ["name", "description", "instruction", "model"];

/// The definitions that an agent's elements refer to, with the places of the references.
#[derive(Debug, Default)]
struct Parts {
    tools: Vec<usize>,
    agents: Vec<(usize, Span)>,
    known: HashSet<usize>,
    flow: Vec<(usize, usize, Span)>,
}

impl<'t> Reader<'t> {
    pub(super) fn agents(
        &mut self,
        definitions: &Definitions<'t>,
        tools: &ReadTools,
    ) -> Vec<Agent> {
        let mut agents = Vec::new();
        let mut sub_agents: HashMap<usize, Vec<(usize, Span)>> = HashMap::new();
        for (index, definition) in definitions.of_kind(Kind::Agent) {
            let parts = self.parts(definition, definitions);
            self.check_flow(&parts, definitions);
            if let Some(agent) = self.agent(definition) {
                agents.push(assemble(agent, &parts, definitions, tools));
            }
            sub_agents.insert(index, parts.agents);
        }
        self.check_cycles(definitions, &sub_agents);
        agents
    }

    fn agent(&mut self, definition: &Definition<'t>) -> Option<Agent> {
        let name = match AgentName::new(&*definition.name.text) {
            Ok(name) => Some(name),
            Err(error) => {
                let message = format!("this is not a valid agent name: {error}");
                let hint = "use a word for the role of the agent, such as `news_desk`";
                self.error_with_hint("bad-name", definition.name.span, message, hint);
                None
            }
        };
        let owner = format!("agent `{}`", definition.name.text);
        let place = definition.name.span;
        let properties = self.properties(owner, place, definition.subject.record(), &PROPERTIES);
        self.check_stated_name(definition, &properties);
        let description = self.optional_text(&properties, "description");
        let instruction = self.required_text(
            &properties,
            "instruction",
            "What the agent should do, and how",
        );
        let model = self
            .required_text(&properties, "model", "OpenAI/gpt-4o-mini")
            .and_then(|(text, span)| self.model(text.as_str(), span));
        let agent = Agent::new(name?, model?, instruction?.0);
        Some(match description {
            Some((description, _)) => agent.with_description(description),
            None => agent,
        })
    }

    fn model(&mut self, text: &str, span: Span) -> Option<Model> {
        let Ok(model) = text.parse::<Model>() else {
            self.error_with_hint(
                "bad-model",
                span,
                format!("`{text}` is not a model"),
                "write the provider and the model: `OpenAI/gpt-4o-mini`",
            );
            return None;
        };
        if let Provider::Other(name) = model.provider() {
            let hint = self
                .did_you_mean(name.as_str(), Provider::KNOWN)
                .unwrap_or_else(|| {
                    "it is used as the name of a server with the OpenAI protocol".to_owned()
                });
            let message = format!("`{name}` is not a built-in provider");
            self.report(Diagnostic::warning("unknown-provider", span, message).with_hint(hint));
        }
        Some(model)
    }

    fn parts(&mut self, definition: &Definition<'t>, definitions: &Definitions<'t>) -> Parts {
        let mut parts = Parts::default();
        // Flows are read last, wherever they are written: they add a part only if no other element
        // names it.
        let is_flow = |element: &Element<'t>| matches!(element, Element::Path(path) if path.arrows().next().is_some());
        let (flows, others): (Vec<_>, Vec<_>) = definition.elements().partition(is_flow);
        for element in others.into_iter().chain(flows) {
            match element {
                Element::Reference(name) => self.refer(&mut parts, &name, definition, definitions),
                Element::Bracket(bracket) => {
                    let Some(name) = bracket.subject().identifier() else {
                        continue;
                    };
                    let is_part = match role(bracket.subject(), Some(bracket)) {
                        // A second definition of a name is reported already and is not a part.
                        Role::Defines(_) => definitions.defines(&name),
                        Role::Refers => true,
                        Role::Other => false,
                    };
                    if is_part {
                        self.refer(&mut parts, &name, definition, definitions);
                    }
                }
                Element::Path(path) => self.path_element(&mut parts, path, definition, definitions),
            }
        }
        parts
    }

    /// A single node is a reference; a path of several nodes declares the order of parts.
    fn path_element(
        &mut self,
        parts: &mut Parts,
        path: Path<'t>,
        definition: &Definition<'t>,
        definitions: &Definitions<'t>,
    ) {
        let nodes: Vec<_> = path.nodes().collect();
        let mut members = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let Some(name) = node.subject().identifier() else {
                self.error_with_hint(
                    "flow-shape",
                    node.span(),
                    format!("this node of agent `{}` has no name", definition.name.text),
                    "name a tool or an agent in it: `(researcher)-[:THEN]->(writer)`",
                );
                return;
            };
            if role(node.subject(), None) == Role::Other {
                return;
            }
            if nodes.len() == 1 {
                return self.refer(parts, &name, definition, definitions);
            }
            match definitions.find(&name.text) {
                Some((index, found)) => {
                    add(parts, index, found.kind, name.span);
                    members.push(index);
                }
                None => {
                    self.unresolved(&name, definition, definitions);
                    return;
                }
            }
        }
        for (pair, arrow) in members.windows(2).zip(path.arrows()) {
            let [left, right] = *pair else {
                continue;
            };
            if let Some(label) = arrow.subject().labels().find(|label| label.text != "THEN") {
                let hint = "write the order of work as `-[:THEN]->`";
                let message = format!("`{}` is not a kind of step", label.text);
                self.error_with_hint("flow-shape", label.span, message, hint);
            }
            let kind = arrow.kind();
            match (kind.to_left, kind.to_right) {
                (false, true) => parts.flow.push((left, right, arrow.span())),
                (true, false) => parts.flow.push((right, left, arrow.span())),
                _ => self.error_with_hint(
                    "flow-shape",
                    arrow.span(),
                    "a step must have one direction",
                    "write `-[:THEN]->`",
                ),
            }
        }
    }

    fn refer(
        &mut self,
        parts: &mut Parts,
        name: &Name<'t>,
        definition: &Definition<'t>,
        definitions: &Definitions<'t>,
    ) {
        let Some((index, found)) = definitions.find(&name.text) else {
            return self.unresolved(name, definition, definitions);
        };
        if !add(parts, index, found.kind, name.span) {
            let what = match found.kind {
                Kind::Agent => "sub-agent",
                Kind::Tool => "tool",
            };
            self.error_with_hint(
                "duplicate-element",
                name.span,
                format!(
                    "agent `{}` has the {what} `{}` twice",
                    definition.name.text, name.text
                ),
                "list it once; tool names are unique within an agent",
            );
        }
    }

    fn unresolved(
        &mut self,
        name: &Name<'t>,
        definition: &Definition<'t>,
        definitions: &Definitions<'t>,
    ) {
        let others = definitions
            .names()
            .filter(|other| *other != definition.name.text);
        let hint = self
            .did_you_mean(&name.text, others)
            .unwrap_or_else(|| "define it in this file as a Tool or an Agent".to_owned());
        let message = format!("`{}` is not defined in this file", name.text);
        self.error_with_hint("unresolved-reference", name.span, message, hint);
    }

    /// Checks that no agent contains itself, directly or indirectly.
    fn check_cycles(
        &mut self,
        definitions: &Definitions<'t>,
        sub_agents: &HashMap<usize, Vec<(usize, Span)>>,
    ) {
        let edges = |node: usize| sub_agents.get(&node).map_or(&[][..], Vec::as_slice);
        for (path, span) in cycles(
            definitions.of_kind(Kind::Agent).map(|(index, _)| index),
            edges,
        ) {
            self.error_with_hint(
                "reference-cycle",
                span,
                format!("an agent contains itself: {}", chain(&path, definitions)),
                "remove one of these references",
            );
        }
    }

    /// Checks that the order of parts has no cycle.
    fn check_flow(&mut self, parts: &Parts, definitions: &Definitions<'t>) {
        let mut next: HashMap<usize, Vec<(usize, Span)>> = HashMap::new();
        for &(from, to, span) in &parts.flow {
            next.entry(from).or_default().push((to, span));
        }
        let edges = |node: usize| next.get(&node).map_or(&[][..], Vec::as_slice);
        for (path, span) in cycles(parts.flow.iter().map(|&(from, _, _)| from), edges) {
            self.error_with_hint(
                "flow-cycle",
                span,
                format!("these steps form a cycle: {}", chain(&path, definitions)),
                "remove one of them",
            );
        }
    }
}

/// Adds a part to an agent. Returns false if the agent has it already.
fn add(parts: &mut Parts, index: usize, kind: Kind, span: Span) -> bool {
    if !parts.known.insert(index) {
        return false;
    }
    match kind {
        Kind::Tool => parts.tools.push(index),
        Kind::Agent => parts.agents.push((index, span)),
    }
    true
}

fn assemble(
    agent: Agent,
    parts: &Parts,
    definitions: &Definitions<'_>,
    tools: &ReadTools,
) -> Agent {
    let name = |index: usize| {
        definitions
            .all
            .get(index)
            .map(|definition| &*definition.name.text)
    };
    let tools = parts
        .tools
        .iter()
        .filter_map(|index| tools.get(index).cloned());
    let agents = parts
        .agents
        .iter()
        .filter_map(|&(index, _)| AgentName::new(name(index)?).ok());
    let flow = parts.flow.iter().filter_map(|&(from, to, _)| {
        Some(FlowStep {
            from: name(from)?.to_owned(),
            to: name(to)?.to_owned(),
        })
    });
    agent.with_parts(tools.collect(), agents.collect(), flow.collect())
}

/// The largest number of reported cycles. Each is listed node by node, so the full list can be long.
const MAX_CYCLES: usize = 10;

/// The cycles found in one traversal of a graph: the nodes of each in order, and the edge that closes it.
/// Uses an explicit stack, so that the depth is not limited by the call stack.
fn cycles<'e>(
    starts: impl Iterator<Item = usize>,
    edges: impl Fn(usize) -> &'e [(usize, Span)],
) -> Vec<(Vec<usize>, Span)> {
    let mut found = Vec::new();
    let mut done = HashSet::new();
    let mut on_path: HashMap<usize, usize> = HashMap::new();
    for start in starts {
        let mut path: Vec<(usize, usize)> = Vec::new();
        if done.insert(start) {
            on_path.insert(start, 0);
            path.push((start, 0));
        }
        while let Some((node, next)) = path.last_mut() {
            let Some(&(target, span)) = edges(*node).get(*next) else {
                on_path.remove(node);
                path.pop();
                continue;
            };
            *next += 1;
            if let Some(&position) = on_path.get(&target) {
                if found.len() >= MAX_CYCLES {
                    return found;
                }
                let cycle = path[position..].iter().map(|&(node, _)| node).collect();
                found.push((cycle, span));
            } else if done.insert(target) {
                on_path.insert(target, path.len());
                path.push((target, 0));
            }
        }
    }
    found
}

/// `a -> b -> a`, shortened in the middle.
fn chain(path: &[usize], definitions: &Definitions<'_>) -> String {
    const SHOWN: usize = 8;
    let name = |&index: &usize| {
        definitions
            .all
            .get(index)
            .map_or_else(String::new, |definition| {
                format!("`{}`", definition.name.text)
            })
    };
    let mut names: Vec<String> = path.iter().take(SHOWN).map(name).collect();
    if path.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.extend(path.first().map(name));
    names.join(" -> ")
}
