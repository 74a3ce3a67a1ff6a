//! Replays the expected calls in real runs. It checks that the APIs, the server and Windlass accept the calls and
//! reach the expected state.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use windlass_core::model::{
    ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments, RequestedCall,
};
use windlass_core::run::{Entry, Mistake};
use windlass_model::{ImmediateModel, ModelError};

use crate::arms::TurnContext;
use crate::policy::ExpectedCall;
use crate::tasks::Task;
use crate::world::{Chooser, World};

/// Makes the expected calls in order, then finishes.
#[derive(Debug, Default)]
pub struct ExpectedCallsModel {
    expected: Mutex<Vec<ExpectedCall>>,
}

impl Chooser for ExpectedCallsModel {
    fn expect(&self, calls: Vec<ExpectedCall>) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = calls;
    }
}

impl ImmediateModel for ExpectedCallsModel {
    fn compute_answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let is_observation =
            |message: &&Arc<ChatMessage>| matches!(***message, ChatMessage::Tool { .. });
        let made = request.messages.iter().filter(is_observation).count();
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let (tool, arguments) = match expected.get(made) {
            Some(next) => (next.tool.clone(), Value::Object(next.arguments.clone())),
            None => {
                let finish = json!({"answer": "Done.", "reasoning": "Replayed.", "confidence": 1});
                (FINISH.to_owned(), finish)
            }
        };
        Ok(ModelAnswer {
            calls: vec![RequestedCall {
                tool,
                arguments: RequestedArguments::Json(arguments),
                confidence: Some(1.0),
            }],
            ..ModelAnswer::default()
        })
    }
}

/// Replays tasks, prints failures and returns how many tasks failed. A task whose expected calls violate the schema
/// of a tool is printed but does not count as failed, because Windlass rejects it correctly in every arm.
pub async fn replay(world: &mut World, tasks: &[Task]) -> anyhow::Result<usize> {
    let (mut calls, mut good, mut forbidden, mut wrong) = (0, 0, 0, 0);
    for task in tasks {
        let outcome = world.run(task, &|_: &TurnContext<'_>| Vec::new()).await?;
        let runs = outcome.turns.iter().map(|turn| &turn.run);
        let all: Vec<_> = runs
            .flat_map(|run| run.turns())
            .flat_map(|turn| &turn.entries)
            .collect();
        // Without the call that finishes each turn.
        calls += all.len().saturating_sub(outcome.turns.len());
        let ended = outcome.turns.iter().flat_map(|turn| turn.run.calls());
        good += ended
            .filter(|call| matches!(call.outcome(), Some(Ok(_))))
            .count();
        let iterations: u32 = outcome.turns.iter().map(|turn| turn.iterations).sum();
        if !outcome.is_success || iterations != task.optimum() {
            let is_forbidden = all.iter().any(|entry| is_misfit(entry));
            forbidden += usize::from(is_forbidden);
            wrong += usize::from(!is_forbidden);
            println!("{}: {}", task.id, describe_failures(&outcome.turns));
        }
    }
    println!(
        "{} tasks: {good} of {calls} expected calls succeeded; {forbidden} tasks expect calls that violate a schema; \
         {wrong} other tasks did not reach the expected state",
        tasks.len()
    );
    Ok(wrong)
}

fn is_misfit(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Mistake {
            mistake: Mistake::Misfits(_),
            ..
        }
    )
}

/// Describes the failures in runs.
fn describe_failures(turns: &[crate::world::TurnOutcome]) -> String {
    let messages = turns
        .iter()
        .flat_map(|turn| turn.run.turns())
        .flat_map(|turn| {
            turn.entries.iter().filter_map(|entry| match entry {
                Entry::Mistake { mistake, .. } => Some(mistake.to_string()),
                Entry::Call { record, .. } => match record.outcome() {
                    Some(Err(failure)) => Some(failure.model_message.clone()),
                    _ => None,
                },
                Entry::Finish => None,
            })
        });
    let messages: Vec<String> = messages.take(3).collect();
    match messages.is_empty() {
        true => "the state differs".to_owned(),
        false => messages.join(" | "),
    }
}

/// The model that replays.
pub fn chooser() -> Arc<dyn Chooser> {
    Arc::new(ExpectedCallsModel::default())
}
