//! `windlass models`: what can be asked from here, and what each can do.

use serde_json::json;
use windlass_model::{Place, ReflexModel};

use super::Outcome;
use super::arguments::Models;
use super::program::Program;
use super::run::block_on_until_interrupted;
use super::terminal::{put, say};

pub(super) fn run(program: &Program, command: &Models) -> anyhow::Result<Outcome> {
    let service = program.service(None);
    let identity = program.identity()?;
    let places = block_on_until_interrupted(&service, service.list_models(&identity))??;
    for place in &places {
        let can = what_it_can(place);
        if command.json {
            let mut told = json!(place);
            told["can"] = json!(can);
            put(&format!("{told}\n"))?;
            continue;
        }
        let mark = if place.is_reachable { "yes" } else { "no " };
        say(&format!(
            "{mark}  {:<10} {}; {can}",
            place.provider, place.why
        ))?;
        if place.models != [ReflexModel::NAME] {
            for model in &place.models {
                say(&format!("       {model}"))?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn what_it_can(place: &Place) -> &'static str {
    match place.provider.as_str() {
        ReflexModel::NAME => "chooses tools and fills their arguments, writes nothing of its own",
        "OpenAI" | "Anthropic" | "Google" => "native and structured calls",
        _ => "native calls where the model has them, structured calls with any",
    }
}
