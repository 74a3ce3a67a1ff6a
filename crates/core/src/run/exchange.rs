//! What a run adds to a conversation: the task, the calls with their results, and the reply.

use super::{Entry, Run};
use crate::model::{ChatCall, ChatMessage, RequestedArguments};

impl Run {
    /// The messages to add to a conversation for this run: its task, each turn that made calls with their
    /// results, and the reply. `number` is the place of the run in the conversation, so that the calls of its
    /// runs have different ids.
    #[must_use]
    pub fn exchange(&self, number: usize, reply: String) -> Vec<ChatMessage> {
        let mut messages = vec![ChatMessage::User {
            content: self.task.description.clone(),
        }];
        for turn in self.turns() {
            let mut calls = Vec::new();
            let mut results = Vec::new();
            let requested = turn.entries.iter().zip(&turn.answer.calls).enumerate();
            for (index, (entry, requested)) in requested {
                // A mistake is no call, and the end is in the reply.
                let Entry::Call { record, .. } = entry else {
                    continue;
                };
                let call_id = format!("call_{number}_{}_{index}", turn.turn);
                calls.push(ChatCall {
                    id: call_id.clone(),
                    tool: requested.tool.clone(),
                    arguments: match &requested.arguments {
                        RequestedArguments::Json(value) => value.clone(),
                        RequestedArguments::Text(_) => record.arguments().clone().into(),
                    },
                });
                results.push(ChatMessage::Tool {
                    call_id,
                    tool: requested.tool.clone(),
                    content: self.transcript.observation(entry),
                    untrusted: self.untrusted_content(entry).is_some(),
                });
            }
            if !calls.is_empty() {
                let content = turn.answer.text.clone();
                messages.push(ChatMessage::Assistant { content, calls });
                messages.extend(results);
            }
        }
        messages.push(ChatMessage::Assistant {
            content: reply,
            calls: Vec::new(),
        });
        messages
    }
}
