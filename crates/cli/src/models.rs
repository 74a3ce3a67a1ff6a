//! `windlass models`: lists the available models and what each supports.

use serde_json::json;
use windlass_model::{ProviderStatus, ReflexModel};

use super::CommandOutcome;
use super::arguments::Models;
use super::program::Program;
use super::run::block_on_until_interrupted;
use super::terminal::{print_json, print_line, visible_line};

pub(super) fn run(program: &Program, command: &Models) -> anyhow::Result<CommandOutcome> {
    let service = program.service(None);
    let identity = program.identity()?;
    let places = block_on_until_interrupted(&service, service.list_models(&identity))??;
    for place in &places {
        let can = describe_capabilities(place);
        if command.json {
            let mut object = json!(place);
            object["can"] = json!(can);
            print_json(&format!("{object}\n"))?;
            continue;
        }
        let mark = if place.is_reachable { "yes" } else { "no " };
        print_line(&format!(
            "{mark}  {:<10} {}; {can}",
            place.provider, place.why
        ))?;
        if place.models != [ReflexModel::NAME] {
            for model in &place.models {
                print_line(&format!("       {}", visible_line(model)))?;
            }
        }
    }
    Ok(CommandOutcome::Done)
}

fn describe_capabilities(place: &ProviderStatus) -> &'static str {
    match place.provider.as_str() {
        ReflexModel::NAME => "chooses tools and fills their arguments, writes no text",
        "OpenAI" | "Anthropic" | "Google" => "native and structured calls",
        _ => "native calls if the model supports them, structured calls with any model",
    }
}
