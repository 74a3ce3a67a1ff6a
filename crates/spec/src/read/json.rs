//! Agent files as JSON: an object with `agents` and `tools`, as it is written for a file, or one agent. The
//! rules are those of the text form.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use windlass_gram::{Diagnostic, Span};

use super::{Reading, read};
use crate::agent::{Agent, AgentFile};
use crate::tool::ToolSpecification;
use crate::write::write;

/// The JSON form of a file, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    agents: Vec<Agent>,
    #[serde(default)]
    tools: Vec<ToolSpecification>,
}

/// Reads a text that is a JSON object; `None` for other texts.
pub(super) fn read_json(text: &str) -> Option<Reading> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let object: serde_json::Map<String, serde_json::Value> = match serde_json::from_str(text) {
        Ok(object) => object,
        // A text of gram can begin with a record.
        Err(_) if windlass_gram::parse(text).is_valid() => return None,
        Err(error) if text.trim_start()[1..].trim_start().starts_with('"') => {
            return Some(refused(text, &error));
        }
        Err(_) => return None,
    };
    let is_agent = object.contains_key("instruction") || object.contains_key("model");
    let raw = match is_agent {
        true => serde_json::from_str(text).map(|agent| RawFile {
            agents: vec![agent],
            tools: Vec::new(),
        }),
        false => serde_json::from_str(text),
    };
    Some(match raw {
        Ok(raw) => read_agents(raw.agents, raw.tools),
        Err(error) => refused(text, &error),
    })
}

/// Checks agents and tools by the rules of the text form, by reading them as one.
pub(crate) fn read_agents(agents: Vec<Agent>, tools: Vec<ToolSpecification>) -> Reading {
    let mut file = AgentFile {
        tools: tools.into_iter().map(Arc::new).collect(),
        agents,
    };
    let mut known: HashSet<_> = file.tools.iter().map(|tool| tool.name().clone()).collect();
    for agent in &file.agents {
        for tool in agent.tools() {
            if known.insert(tool.name().clone()) {
                file.tools.push(Arc::clone(tool));
            }
        }
    }
    let differs = file.agents.iter().flat_map(Agent::tools).find(|tool| {
        let declared = file.tool(tool.name().as_str());
        declared.is_some_and(|declared| declared != *tool)
    });
    if let Some(tool) = differs {
        let message = format!("the tool `{}` is declared in two ways", tool.name());
        return error("duplicate-identity", Span::empty(0), message);
    }
    match write(&file) {
        Ok(written) => {
            let mut reading = read(&written);
            // The places are those of the written text.
            for diagnostic in &mut reading.diagnostics {
                diagnostic.span = Span::empty(0);
            }
            reading
        }
        Err(unwritable) => error("bad-text", Span::empty(0), unwritable.to_string()),
    }
}

fn refused(text: &str, refusal: &serde_json::Error) -> Reading {
    let before = text
        .split_inclusive('\n')
        .take(refusal.line().saturating_sub(1));
    let offset = before.map(str::len).sum::<usize>() + refusal.column().saturating_sub(1);
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let place = u32::try_from(offset).map_or(Span::empty(0), Span::empty);
    error(
        "bad-json",
        place,
        format!("the agent file is not valid: {refusal}"),
    )
}

fn error(code: &'static str, place: Span, message: String) -> Reading {
    let hint = "`windlass agent show FILE --json` writes an agent file as JSON";
    Reading {
        file: None,
        diagnostics: vec![Diagnostic::error(code, place, message).with_hint(hint)],
    }
}
