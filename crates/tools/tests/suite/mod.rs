mod attribute;
mod binding;
mod building;
mod builtin;
mod commands;
mod differences;
mod dispatching;
mod envelopes;
mod http;
mod interrupted;
mod libraries;
mod library_files;
mod permits;
mod properties;
mod refused;
mod texts;
mod types;

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_spec::{Agent, NonEmptyText, Signature, ToolName, ToolSpecification};
use windlass_tools::{Tool, ToolBuilder, ToolLibrary};

const DESCRIPTION: &str = "Returns a friendly greeting message for the given name";

/// The specification of a tool with the usual description.
fn specification(name: &str, signature: &str) -> Arc<ToolSpecification> {
    described(name, DESCRIPTION, signature)
}

fn described(name: &str, description: &str, signature: &str) -> Arc<ToolSpecification> {
    Arc::new(ToolSpecification::new(
        ToolName::new(name).unwrap(),
        NonEmptyText::new(description).unwrap(),
        Signature::parse(signature).unwrap(),
    ))
}

fn agent(tools: impl IntoIterator<Item = Arc<ToolSpecification>>) -> Agent {
    let agent = Agent::new(
        "greeter".parse().unwrap(),
        "OpenAI/gpt-4o".parse().unwrap(),
        "Greet people.".parse().unwrap(),
    );
    tools
        .into_iter()
        .fold(agent, |agent, tool| agent.with_tool(tool).unwrap())
}

/// A builder for a tool with a description and a handler, but without a signature.
fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name)
        .description(DESCRIPTION)
        .handler(|_: Value| async { Ok(json!("never run")) })
}

/// A tool with the usual description and this signature.
fn tool(name: &str, signature: &str) -> Tool {
    builder(name).signature(signature).build().unwrap()
}

fn library(tools: impl IntoIterator<Item = Tool>) -> ToolLibrary {
    tools
        .into_iter()
        .fold(ToolLibrary::new("local"), ToolLibrary::with)
}
