//! The run of the loop benchmark in rig: `windlass-bench-rig URL AT_ONCE TOTAL [whole]` makes TOTAL
//! runs, AT_ONCE at a time, each of two model calls and one tool call, and fails if one does not give
//! the expected answer. Answers are streamed unless `whole` is given.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use rig::prelude::*;
use rig::providers::openai::OpenAIConfig;
use serde::Deserialize;
use serde_json::{Value, json};

const TASK: &str = "Which city has the worse weather today, Oslo or Bergen?";

struct Weather;

#[derive(Deserialize)]
struct WeatherArguments {
    city: String,
    days: i64,
}

impl Tool for Weather {
    const NAME: &'static str = "weather";
    type Args = WeatherArguments;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Tells the weather of a city for the coming days".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
            "additionalProperties": false,
        })
    }

    async fn call(
        &self,
        _: &mut ToolContext,
        arguments: WeatherArguments,
    ) -> Result<String, Infallible> {
        Ok(format!(
            "{}: rain on each of the next {} days",
            arguments.city, arguments.days
        ))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, at_once, total, form @ ..] = &arguments[..] else {
        return Err("usage: URL AT_ONCE TOTAL [whole]".into());
    };
    let (at_once, total): (usize, usize) = (at_once.parse()?, total.parse()?);
    let is_whole = form.first().is_some_and(|form| form == "whole");
    let model = OpenAIConfig::new("no-key")
        .with_base_url(url)
        .client()
        .chat("fake");
    let agent = AgentBuilder::new(model)
        .preamble("You answer questions about the weather. Look before you answer.")
        .tool(Weather)
        .build();
    let agent = Arc::new(agent);
    let started = Arc::new(AtomicUsize::new(0));
    let workers = (0..at_once).map(|_| {
        let (agent, started) = (Arc::clone(&agent), Arc::clone(&started));
        tokio::spawn(async move {
            while started.fetch_add(1, Ordering::Relaxed) < total {
                let answer = if is_whole {
                    whole(&agent).await
                } else {
                    streamed(&agent).await
                };
                let answer = answer.map_err(|error| error.to_string())?;
                if !answer.contains("Bergen") {
                    return Err(format!("no answer: {answer}"));
                }
            }
            Ok(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    Ok(())
}

async fn whole(agent: &Agent) -> Result<String, Box<dyn Error + Send + Sync>> {
    let response = agent.prompt(TASK).max_turns(4).await?;
    Ok(response.output().to_string())
}

async fn streamed(agent: &Agent) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut stream = agent.prompt(TASK).max_turns(4).stream();
    let mut answer = String::new();
    while let Some(item) = stream.next().await {
        if let MultiTurnStreamItem::FinalResponse(response) = item? {
            answer = response.output().to_string();
        }
    }
    Ok(answer)
}
