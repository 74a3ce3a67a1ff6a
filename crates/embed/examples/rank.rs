//! Measures how often the right tool comes first. Takes JSON Lines, each `{task, tools: [{name, description,
//! input_schema}], expected: {calls: [{name}]}}`, and prints the share of tasks whose tool is first
//! among the task's own tools, and first or in the first five among the tools of all tasks.
//!
//! `cargo run --release -p windlass-embed --example rank -- select.jsonl`

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;

use serde::Deserialize;
use windlass_embed::{
    Embedder as _, HybridIndex, HybridParameters, StaticEmbedder, tool_text,
    tool_text_with_parameters,
};

#[derive(Deserialize)]
struct Task {
    task: String,
    tools: Vec<Tool>,
    expected: Expected,
}

#[derive(Deserialize, Clone)]
struct Tool {
    name: String,
    description: String,
    #[serde(default)]
    input_schema: Schema,
}

#[derive(Deserialize, Clone, Default)]
struct Schema {
    #[serde(default)]
    properties: BTreeMap<String, Parameter>,
}

#[derive(Deserialize, Clone)]
struct Parameter {
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Expected {
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: rank FILE.jsonl")?;
    let tasks = std::fs::read_to_string(path)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Task>, _>>()?;
    println!(
        "{} tasks; the right tool first of the task's own | of all | in five of all",
        tasks.len()
    );
    let plain: fn(&Tool) -> String = |tool| tool_text(&tool.name, &tool.description);
    let full: fn(&Tool) -> String = |tool| {
        let parameters = tool.input_schema.properties.iter();
        let parameters = parameters.map(|(name, parameter)| (&**name, &*parameter.description));
        tool_text_with_parameters(&tool.name, &tool.description, parameters)
    };
    for (text_name, text) in [("name and description", plain), ("with parameters", full)] {
        for weight in [0.0, 0.01, 0.03, 0.05] {
            let parameters = HybridParameters {
                lexical_weight: weight,
                ..Default::default()
            };
            let [own, first, five] = measure(&tasks, text, parameters)?;
            println!(
                "{text_name:21} cosine + {weight:.2} BM25   {own:.3} | {first:.3} | {five:.3}"
            );
        }
    }
    Ok(())
}

fn measure(
    tasks: &[Task],
    text: fn(&Tool) -> String,
    parameters: HybridParameters,
) -> Result<[f64; 3], Box<dyn Error>> {
    let all: BTreeMap<&str, &Tool> = tasks
        .iter()
        .flat_map(|task| &task.tools)
        .map(|tool| (&*tool.name, tool))
        .collect();
    let all: Vec<Tool> = all.into_values().cloned().collect();
    let mut counts = [0u32; 3];
    for task in tasks {
        let expected = &task
            .expected
            .calls
            .first()
            .ok_or("a task without an expected call")?
            .name;
        let place_of_expected = |tools: &[Tool]| -> Result<Option<usize>, Box<dyn Error>> {
            let embedder = StaticEmbedder::new();
            let entries = tools
                .iter()
                .map(text)
                .map(|text| (text.clone(), embedder.embed(&text)));
            let index = HybridIndex::build(parameters, embedder.dimension(), entries)?;
            let hits = index.search(&task.task, &embedder.embed(&task.task), 5)?;
            Ok(hits.iter().position(|hit| tools[hit.id].name == *expected))
        };
        let (own, among_all) = (place_of_expected(&task.tools)?, place_of_expected(&all)?);
        let won = [own == Some(0), among_all == Some(0), among_all.is_some()];
        for (count, won) in counts.iter_mut().zip(won) {
            *count += u32::from(won);
        }
    }
    Ok(counts.map(|count| f64::from(count) / tasks.len() as f64))
}
