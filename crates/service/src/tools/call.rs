//! A single call of a tool without an agent. It is a run like any other, with a gate and a journal, of an
//! agent that has only this tool.

use std::sync::Arc;

use windlass_core::approval::{Approval, PersonDecision};
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::{Run, Task};
use windlass_runtime::{AskOutcome, Asker};
use windlass_spec::{Agent, AgentName, NonEmptyText, ToolSpecification};

use super::ToolDetails;
use crate::approvals::{Confirmation, DecisionRequest};
use crate::assembly::{BoundAgent, NO_MODEL, NewRun};
use crate::error::{ServiceError, with_sources};
use crate::identity::{Identity, Scope};
use crate::options::{Attachment, RunOptions};
use crate::service::{Service, blocking};

/// A call of a tool by a person or program, without an agent.
#[derive(Debug, Clone)]
pub struct ToolCallRequest {
    /// The tool, from [`Service::describe_tool`].
    pub tool: ToolDetails,
    /// Its arguments.
    pub arguments: RequestedArguments,
    /// Whether the caller approves the call in advance, if it needs approval. That does not count for a call that
    /// needs two approvers.
    pub is_approved: bool,
}

impl Service {
    /// Calls a tool: starts a run whose task is the call and drives it until it ends, waits for a person,
    /// or is stopped. With `is_approved`, the identity must be allowed to approve.
    ///
    /// # Errors
    /// If the identity may not run tools; if the tool cannot be called without a declaration; or if the
    /// configuration, the policies or the journal cannot be used.
    pub async fn call_tool(
        &self,
        identity: &Identity,
        call: ToolCallRequest,
        mut attachment: Attachment,
    ) -> Result<Run, ServiceError> {
        identity.require(Scope::Run)?;
        if call.is_approved {
            identity.require(Scope::Approve)?;
            attachment.asker = Some(self.approving(identity));
        }
        let (service, caller) = (self.clone(), identity.clone());
        let prepared = blocking(move || service.bind_tool_call(&caller, call));
        let (bound, new) = prepared.await?;
        bound.start(identity, new, attachment).await
    }

    /// Binds the run whose task is a call, for [`BoundAgent::begin`]. Nobody approves it in advance. Blocks while the
    /// library is loaded.
    ///
    /// # Errors
    /// If the identity may not run tools; if the tool cannot be called without a declaration; or if the
    /// configuration or the policies cannot be used.
    pub fn bind_tool_call(
        &self,
        identity: &Identity,
        call: ToolCallRequest,
    ) -> Result<(BoundAgent, NewRun), ServiceError> {
        identity.require(Scope::Run)?;
        let name = call.tool.tool.name().clone();
        let specification = call.tool.callable()?;
        let agent = agent_with(specification)
            .map_err(|error| ServiceError::failed(with_sources(error.as_ref())))?;
        let options = RunOptions {
            library: call.tool.source.into_iter().collect(),
            model: Some(NO_MODEL.to_owned()),
            ..RunOptions::default()
        };
        let bound = self.bind_tool(identity, &agent, &options)?;
        let task = Task {
            description: format!("Call `{name}` by hand."),
            call: Some(Box::new(RequestedCall {
                tool: name.to_string(),
                arguments: call.arguments,
                // A call by a person has full confidence.
                confidence: Some(1.0),
            })),
            ..Task::default()
        };
        let new = NewRun {
            task,
            ..NewRun::default()
        };
        Ok((bound, new))
    }

    /// An asker that approves every question on behalf of the identity.
    fn approving(&self, identity: &Identity) -> Asker {
        let (service, identity) = (self.clone(), identity.clone());
        Arc::new(move |question: Approval| {
            let (service, identity) = (service.clone(), identity.clone());
            Box::pin(async move {
                let decided = tokio::task::spawn_blocking(move || {
                    let request = DecisionRequest {
                        digest: Some(question.digest()),
                        confirmation: Confirmation::OwnCall,
                        ..DecisionRequest::from(PersonDecision::Approve)
                    };
                    service.decide(&identity, question.call(), request)
                });
                match decided.await {
                    Ok(Ok(taken)) if taken.approval.still_needed() == 0 => AskOutcome::Decided,
                    _ => AskOutcome::NotDecided,
                }
            })
        })
    }
}

/// An agent that has only this tool. Its model is never asked: the task is the call.
fn agent_with(specification: Arc<ToolSpecification>) -> Result<Agent, Box<dyn std::error::Error>> {
    let instruction = NonEmptyText::new("Make the call that a person asks for.")?;
    let agent = Agent::new(
        AgentName::new("by_hand")?,
        "by_hand/none".parse()?,
        instruction,
    );
    Ok(agent.with_tool(specification)?)
}
