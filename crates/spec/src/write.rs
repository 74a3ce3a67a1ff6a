//! Writes an [`AgentFile`] as gram text, in the canonical layout. The text reads back as the same file.

use std::sync::Arc;

use serde_json::Value as Json;
use windlass_gram::{quote, quote_name};

use crate::agent::{Agent, AgentFile};
use crate::signature::{Field, Presence, Signature, Type};
use crate::tool::ToolSpecification;

/// A text that cannot be written in gram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} contains a NUL character, which gram does not allow; remove it")]
pub struct WriteError(String);

/// Writes a file as gram text.
///
/// # Errors
/// If a text contains a NUL character.
pub fn write(file: &AgentFile) -> Result<String, WriteError> {
    // One agent with just its own tools reads best with the tools in it; otherwise every tool is
    // defined once, before the agents that share it.
    let inline = matches!(&file.agents[..], [only] if only.tools() == file.tools);
    let mut text = String::new();
    if !inline {
        for tool in &file.tools {
            text.push_str(&tool_text(tool)?);
            text.push_str("\n\n");
        }
    }
    for agent in &file.agents {
        text.push_str(&agent_text(agent, inline)?);
        text.push_str("\n\n");
    }
    Ok(formatted(text))
}

/// Writes one agent with its tools as gram text. Sub-agents are referred to by name only.
///
/// # Errors
/// If a text contains a NUL character.
pub fn write_agent(agent: &Agent) -> Result<String, WriteError> {
    Ok(formatted(agent_text(agent, true)?))
}

/// Writes one tool as gram text, as in an agent file.
///
/// # Errors
/// If a text contains a NUL character.
pub fn write_tool(tool: &Arc<ToolSpecification>) -> Result<String, WriteError> {
    Ok(formatted(tool_text(tool)?))
}

fn formatted(text: String) -> String {
    windlass_gram::format(&windlass_gram::parse(&text)).unwrap_or(text)
}

fn agent_text(agent: &Agent, inline: bool) -> Result<String, WriteError> {
    let mut properties = Vec::new();
    if let Some(description) = agent.description() {
        properties.push(format!(
            "description: {}",
            value(description, "a description")?
        ));
    }
    properties.push(format!(
        "instruction: {}",
        value(agent.instruction(), "an instruction")?
    ));
    properties.push(format!(
        "model: {}",
        value(&agent.model().to_string(), "a model")?
    ));
    let mut elements = Vec::new();
    for tool in agent.tools() {
        elements.push(if inline {
            tool_text(tool)?
        } else {
            name(tool.name().as_str())?
        });
    }
    for sub_agent in agent.agents() {
        elements.push(name(sub_agent.as_str())?);
    }
    for step in agent.flow() {
        elements.push(format!(
            "({})-[:THEN]->({})",
            name(&step.from)?,
            name(&step.to)?
        ));
    }
    let elements = match elements.is_empty() {
        true => String::new(),
        false => format!(" | {}", elements.join(", ")),
    };
    Ok(format!(
        "[{}:Agent {{{}}}{elements}]",
        name(agent.name().as_str())?,
        properties.join(", ")
    ))
}

fn tool_text(tool: &Arc<ToolSpecification>) -> Result<String, WriteError> {
    let mut properties = vec![format!(
        "description: {}",
        value(tool.description(), "a description")?
    )];
    let attributes = tool.attributes();
    let mut put = |key: &str, text: Option<String>| {
        properties.extend(text.map(|text| format!("{key}: {text}")));
    };
    put("risk", attributes.risk.map(|risk| risk.to_string()));
    let category = attributes.category.as_ref();
    put(
        "category",
        category
            .map(|text| value(text.as_str(), "a category"))
            .transpose()?,
    );
    put(
        "timeout_seconds",
        attributes
            .timeout_seconds
            .map(|timeout| timeout.get().to_string()),
    );
    for (key, flag) in [
        ("idempotent", attributes.idempotent),
        ("cacheable", attributes.cacheable),
        ("open_world", attributes.open_world),
        ("sensitive", attributes.sensitive),
        ("deferred", attributes.deferred),
    ] {
        put(key, flag.map(|flag| flag.to_string()));
    }
    put(
        "undo_window_seconds",
        attributes
            .undo_window_seconds
            .map(|seconds| seconds.to_string()),
    );
    let dry_run = attributes.dry_run_argument.as_ref();
    put(
        "dry_run_argument",
        dry_run.map(|text| value(text, "an argument")).transpose()?,
    );
    put(
        "envelope",
        attributes.envelope.map(|envelope| envelope.to_string()),
    );
    let deprecated = attributes.deprecated.as_ref();
    put(
        "deprecated",
        deprecated
            .map(|text| value(text.as_str(), "a deprecation note"))
            .transpose()?,
    );
    if !attributes.metadata.is_empty() {
        let metadata = Json::Object(attributes.metadata.clone());
        let text = match gram_value(&metadata) {
            Some(map) => map,
            // What a map of gram cannot hold, such as maps in maps.
            None => value(&metadata.to_string(), "the metadata")?,
        };
        put("metadata", Some(text));
    }
    let path = path(tool.signature());
    if path.is_none() {
        put(
            "typeSignature",
            Some(value(&tool.signature().to_string(), "a signature")?),
        );
    }
    Ok(format!(
        "[{}:Tool {{{}}}{}]",
        name(tool.name().as_str())?,
        properties.join(", "),
        path.map_or_else(String::new, |path| format!(" | {path}"))
    ))
}

fn value(text: &str, what: &str) -> Result<String, WriteError> {
    quote(text).ok_or_else(|| WriteError(what.to_owned()))
}

fn name(text: &str) -> Result<String, WriteError> {
    quote_name(text).ok_or_else(|| WriteError("a name".to_owned()))
}

/// The signature as a path; `None` if a part of it cannot be written as one, such as a default that
/// is an empty list.
fn path(signature: &Signature) -> Option<String> {
    let parameters: Vec<String> = match signature.parameters() {
        [] => vec!["()".to_owned()],
        parameters => parameters.iter().map(parameter).collect::<Option<_>>()?,
    };
    let (label, mut properties) = type_label(signature.returns())?;
    if matches!(signature.returns(), Type::Nullable(_)) {
        properties.push("optional: true".to_owned());
    }
    let returns = node("", &label, &properties);
    Some(format!("{}==>{returns}", parameters.join("==>")))
}

fn parameter(field: &Field) -> Option<String> {
    let (label, mut properties) = type_label(&field.ty)?;
    match &field.presence {
        Presence::Required => {}
        Presence::Optional => properties.push("optional: true".to_owned()),
        Presence::Default(default) => properties.push(format!("default: {}", gram_value(default)?)),
    }
    if let Some(description) = &field.description {
        properties.push(format!("description: {}", quote(description)?));
    }
    Some(node(&quote_name(&field.name)?, &label, &properties))
}

fn node(name: &str, label: &str, properties: &[String]) -> String {
    match properties {
        [] => format!("({name}::{label})"),
        _ => format!("({name}::{label} {{{}}})", properties.join(", ")),
    }
}

/// A type as a label and the properties that refine it.
fn type_label(ty: &Type) -> Option<(String, Vec<String>)> {
    let plain = |label: &str| Some((label.to_owned(), Vec::new()));
    match ty {
        Type::Text
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Object
        | Type::Array
        | Type::Any => plain(&ty.to_string()),
        Type::Enum(options) => {
            let options: Vec<String> = options
                .iter()
                .map(|option| quote(option))
                .collect::<Option<_>>()?;
            Some((
                Type::Text.to_string(),
                vec![format!("enum: [{}]", options.join(", "))],
            ))
        }
        Type::List(item) => {
            let element = quote(&item.to_string())?;
            Some((
                Type::Array.to_string(),
                vec![format!("elementType: {element}")],
            ))
        }
        Type::Record(_) => plain(&quote_name(&ty.to_string())?),
        Type::Nullable(inner) => type_label(inner),
    }
}

/// A JSON value as a gram value, where gram has one.
fn gram_value(value: &Json) -> Option<String> {
    let scalar = |value: &Json| match value {
        Json::Bool(boolean) => Some(boolean.to_string()),
        Json::Number(number) => {
            let text = number.to_string();
            let is_plain = number.as_i64().is_some()
                || (number.is_f64() && text.contains('.') && !text.contains(['e', 'E']));
            is_plain.then_some(text)
        }
        Json::String(text) => quote(text),
        _ => None,
    };
    let array = |items: &[Json]| {
        let items: Vec<String> = items.iter().map(scalar).collect::<Option<_>>()?;
        (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
    };
    match value {
        Json::Array(items) => array(items),
        Json::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| {
                    let value = match value {
                        Json::Array(items) => array(items),
                        other => scalar(other),
                    };
                    Some(format!("{}: {}", quote_name(key)?, value?))
                })
                .collect::<Option<_>>()?;
            Some(format!("{{{}}}", entries.join(", ")))
        }
        other => scalar(other),
    }
}
