//! Conversations: messages to an agent, each answered by a run.

use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_service::types::{Settings, StoredConversation};
use windlass_service::{
    ConversationChoice, Identity, NewRun, RunOptions, Scope, Service, ServiceError,
};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{RunDetails, Shape, Time};
use crate::start::{Prepared, start};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/v1/conversations"),
            (
                "create_conversation",
                "Begin a conversation with its first message",
            ),
            Scope::Run,
            create,
        )
        .starting_run(),
        Route::new(
            (Method::GET, "/v1/conversations"),
            (
                "list_conversations",
                "List the caller's conversations, the latest first",
            ),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/conversations/{conversation}"),
            ("show_conversation", "Show a conversation with its messages"),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::POST, "/v1/conversations/{conversation}/messages"),
            ("append_message", "Add a message, which a run answers"),
            Scope::Run,
            append,
        )
        .starting_run(),
        Route::new(
            (Method::DELETE, "/v1/conversations/{conversation}"),
            (
                "delete_conversation",
                "Delete a conversation; its runs stay",
            ),
            Scope::Run,
            delete,
        )
        .answering(StatusCode::NO_CONTENT, "It is deleted."),
    ]
}

/// A conversation in a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ConversationItem {
    /// Its id.
    id: String,
    /// The agent.
    agent: String,
    /// The runs that answered its messages, in order.
    runs: Vec<String>,
    /// When its last message was added.
    updated_at: Time,
}

/// A message of a conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ConversationMessage {
    /// `user` or `assistant`.
    role: String,
    /// The text.
    content: String,
}

/// A conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ConversationDetails {
    #[serde(flatten)]
    conversation: ConversationItem,
    /// Its messages, in order. An answer is added when its run waits for a person, and replaced when it has ended.
    messages: Vec<ConversationMessage>,
}

fn item(found: &StoredConversation) -> Value {
    json!({
        "id": found.id, "agent": found.agent, "runs": found.runs, "updated_at": found.updated_at,
    })
}

/// The first message of a conversation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewConversation {
    /// The name of the agent.
    agent: String,
    /// The message.
    #[schemars(length(min = 1))]
    message: String,
}

/// A message.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    /// The message.
    #[schemars(length(min = 1))]
    message: String,
}

/// Binds the run that answers a message. The service adds the answer to the conversation.
fn answer(
    service: &Service,
    identity: &Identity,
    agent: &str,
    choice: &ConversationChoice,
    message: String,
) -> Result<Prepared, ServiceError> {
    if message.trim().is_empty() {
        return Err(ServiceError::invalid("empty_text", "the message is empty"));
    }
    let found = service.show_agent(identity, agent)?;
    let conversation = service.conversation(identity, agent, choice)?;
    let bound = service.bind(identity, &found.declared, &RunOptions::default())?;
    let mut new = NewRun::of_message(&conversation, &message, Settings::default());
    new.task
        .metadata
        .insert("conversation".to_owned(), json!(conversation.id));
    Ok(Prepared { bound, new })
}

async fn create(call: Call<Nothing, NewConversation>) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let NewConversation { agent, message } = call.body.clone();
    let started = start(&call, move |service, identity| {
        answer(service, identity, &agent, &ConversationChoice::New, message)
    });
    started.await?.reply(&call).await
}

async fn append(call: Call<Nothing, NewMessage>) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let (id, message) = (call.part(0).to_owned(), call.body.message.clone());
    let started = start(&call, move |service, identity| {
        let known = service.show_conversation(identity, &id)?;
        answer(
            service,
            identity,
            &known.agent,
            &ConversationChoice::Id(id),
            message,
        )
    });
    started.await?.reply(&call).await
}

/// Which conversations are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConversationsQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Only those with this agent.
    agent: Option<String>,
}

async fn list(
    call: Call<ConversationsQuery>,
) -> Result<Reply<Page<Shape<ConversationItem>>>, Problem> {
    let count = limit(call.query.limit);
    let (agent, after) = (call.query.agent.clone(), call.query.after.clone());
    let listed = call
        .operate(move |service, identity, _| {
            if let Some(after) = &after {
                service.show_conversation(identity, after)?;
            }
            let after = after.as_deref();
            service.list_conversations(identity, agent.as_deref(), count + 1, after)
        })
        .await?;
    Ok(Reply::ok(Page::new(
        listed,
        count as usize,
        |one| one.id.clone(),
        |one| Shape::of(item(&one)),
    )))
}

async fn show(call: Call) -> Result<Reply<Shape<ConversationDetails>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let found = service.show_conversation(identity, id)?;
            let mut object = item(&found);
            object["messages"] = json!(found.messages);
            Ok(Shape::of(object))
        })
        .await?;
    Ok(Reply::ok(shown))
}

async fn delete(call: Call) -> Result<Reply<()>, Problem> {
    call.operate(Service::delete_conversation).await?;
    Ok(Reply::with(StatusCode::NO_CONTENT, ()))
}
