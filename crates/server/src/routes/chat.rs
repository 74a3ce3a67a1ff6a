//! The part of OpenAI's API that chat clients use: a model is an agent of the project.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_service::types::{Approval, ChatMessage, RunEnd, Settings, Usage};
use windlass_service::{ChatMessages, ChatRequest, RunOptions, Scope, Service, subject_of};

use crate::app::blocking;
use crate::authentication::Credential;
use crate::call::{Call, Nothing, Reply};
use crate::chat::{ChatReply, ChatText, Finished, Piece, approval_link};
use crate::problem::Problem;
use crate::route::{Answered, Route, described};
use crate::shapes::Time;
use crate::start::{Prepared, StartedRun, begin};

/// How long an answer that is sent as a whole is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How often a stream without news shows that it lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) fn routes() -> Vec<Route> {
    let completion = Answered {
        status: StatusCode::OK,
        description: "The answer of the agent, or that it waits for a person. With `stream`, its pieces.",
        content: Some(("application/json", described::<ChatCompletion>())),
    };
    let pieces = Answered {
        content: Some(("text/event-stream", described::<ChatCompletionChunk>())),
        ..completion.clone()
    };
    let routes = [
        Route::responding(
            (Method::POST, "/v1/chat/completions"),
            (
                "create_chat_completion",
                "Answer a conversation, as OpenAI's API does",
            ),
            Scope::Run,
            vec![completion, pieces],
            complete,
        ),
        Route::new(
            (Method::GET, "/v1/models"),
            (
                "list_chat_models",
                "List the agents as models, as OpenAI's API does",
            ),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/models/{model}"),
            (
                "show_chat_model",
                "Show an agent as a model, as OpenAI's API does",
            ),
            Scope::Read,
            show,
        ),
    ];
    routes.map(Route::with_openai_errors).to_vec()
}

/// A request of a chat client. Parameters that change how a model writes, such as `temperature`, have no effect: the
/// agent's declaration and the configuration set them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct NewChatCompletion {
    /// The name of an agent.
    model: String,
    /// The conversation. Its last message is a text of the user.
    #[schemars(length(min = 1))]
    messages: Vec<RequestMessage>,
    /// Whether the answer is sent in pieces, as server-sent events.
    #[serde(default)]
    stream: Option<bool>,
    /// Options of a stream.
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    /// How many answers; only 1 is possible.
    #[serde(default)]
    n: Option<u32>,
    /// Not possible: the agent has its own tools.
    #[serde(default)]
    tools: Option<Vec<Value>>,
    /// Not possible: the agent has its own tools.
    #[serde(default)]
    functions: Option<Vec<Value>>,
    /// Only `{"type": "text"}` is possible.
    #[serde(default)]
    response_format: Option<Value>,
    /// Not possible.
    #[serde(default)]
    stop: Option<Value>,
    /// Not possible.
    #[serde(default)]
    logprobs: Option<bool>,
    /// Only `["text"]` is possible.
    #[serde(default)]
    modalities: Option<Vec<String>>,
    /// Not possible.
    #[serde(default)]
    audio: Option<Value>,
    /// Not possible.
    #[serde(default)]
    prediction: Option<Value>,
    /// Not possible: the agent has its own tools.
    #[serde(default)]
    web_search_options: Option<Value>,
}

/// Options of a stream.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
struct StreamOptions {
    /// Whether the last piece has the usage.
    #[serde(default)]
    include_usage: Option<bool>,
}

/// A message of a conversation.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct RequestMessage {
    /// `system`, `developer`, `user` or `assistant`.
    role: String,
    /// Its text.
    #[serde(default)]
    content: Option<RequestContent>,
    /// Not possible: calls are in the trace of their run.
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
}

/// The text of a message.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
enum RequestContent {
    /// The text.
    Text(String),
    /// Its parts.
    Parts(Vec<ContentPart>),
}

/// A part of a message. Only texts are possible.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct ContentPart {
    /// `text`.
    #[serde(rename = "type")]
    kind: String,
    /// The text.
    #[serde(default)]
    text: Option<String>,
}

/// The answer to a conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatCompletion {
    /// Its id, with that of its run.
    id: String,
    /// `chat.completion`.
    object: &'static str,
    /// When it was made, in seconds since 1970.
    created: i64,
    /// The agent.
    model: String,
    /// The one answer.
    choices: [ChatChoice; 1],
    /// The tokens since the previous answer about the run, also those of sub-agents.
    usage: ChatUsage,
    /// What clients of OpenAI's API do not know.
    windlass: ChatRun,
}

/// The one answer.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatChoice {
    /// 0.
    index: u32,
    /// The message.
    message: AnswerMessage,
    /// None.
    logprobs: Option<Value>,
    /// `stop`, or `length` if a limit of the run was reached.
    finish_reason: &'static str,
}

/// The message of an agent.
#[derive(Debug, Serialize, JsonSchema)]
struct AnswerMessage {
    /// `assistant`.
    role: &'static str,
    /// Its text.
    content: String,
    /// None.
    refusal: Option<String>,
}

/// A piece of an answer. The last event of a stream is `[DONE]`.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatCompletionChunk {
    /// The id of the answer.
    id: String,
    /// `chat.completion.chunk`.
    object: &'static str,
    /// When the answer was begun, in seconds since 1970.
    created: i64,
    /// The agent.
    model: String,
    /// The piece; empty in the one with the usage.
    choices: Vec<ChunkChoice>,
    /// The usage, in the last piece if the client asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<ChatUsage>>,
    /// What clients of OpenAI's API do not know, in the piece with the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    windlass: Option<ChatRun>,
}

/// A piece of the one answer.
#[derive(Debug, Serialize, JsonSchema)]
struct ChunkChoice {
    /// 0.
    index: u32,
    /// What is new.
    delta: Delta,
    /// None.
    logprobs: Option<Value>,
    /// How it ended, in the last piece.
    finish_reason: Option<&'static str>,
}

/// New text of an answer.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Delta {
    /// `assistant`, in the first piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

/// The usage of a model.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct ChatUsage {
    /// Tokens that it read.
    prompt_tokens: u64,
    /// Tokens that it wrote.
    completion_tokens: u64,
    /// Both.
    total_tokens: u64,
}

impl From<Usage> for ChatUsage {
    fn from(usage: Usage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        }
    }
}

/// The run behind an answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ChatRun {
    /// Its id.
    run: String,
    /// `ended`, or `waiting` for a person.
    state: &'static str,
    /// What it waits for.
    approvals: Vec<ChatApproval>,
}

/// A question that a run waits for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ChatApproval {
    /// Its id.
    id: String,
    /// The tool of the call, or the text of the question.
    what: String,
    /// The digest that a decision names.
    digest: String,
    /// Where it is shown; a decision is sent to `/decision` below.
    url: String,
    /// When it expires.
    expires_at: Time,
}

/// An agent as a model.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatModel {
    /// The name of the agent.
    id: String,
    /// `model`.
    object: &'static str,
    /// When its file was changed, in seconds since 1970.
    created: i64,
    /// `windlass`.
    owned_by: &'static str,
}

/// The agents as models.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatModels {
    /// `list`.
    object: &'static str,
    /// The models.
    data: Vec<ChatModel>,
}

impl ChatModel {
    fn of(id: &str, file: &std::path::Path) -> Self {
        let changed = std::fs::metadata(file).and_then(|file| file.modified());
        let since = changed.ok().and_then(|at| {
            let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        });
        Self {
            id: id.to_owned(),
            object: "model",
            created: since.unwrap_or_default(),
            owned_by: "windlass",
        }
    }
}

async fn list(call: Call) -> Result<Reply<ChatModels>, Problem> {
    let data = call
        .operate(|service, identity, _| {
            let found = service.list_agents(identity)?.agents;
            let model = |name: &str, file: &std::path::Path| ChatModel::of(name, file);
            Ok(found
                .iter()
                .map(|found| model(found.agent().name().as_str(), &found.file))
                .collect())
        })
        .await?;
    Ok(Reply::ok(ChatModels {
        object: "list",
        data,
    }))
}

async fn show(call: Call) -> Result<Reply<ChatModel>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let found = service.show_agent(identity, id)?;
            Ok(ChatModel::of(id, &found.file))
        })
        .await?;
    Ok(Reply::ok(shown))
}

impl NewChatCompletion {
    /// Refuses parameters that promise something else than the agent does.
    fn check(&self) -> Result<(), Problem> {
        let refused = |parameter: &str, detail: &str| {
            let title = "The parameter is not possible";
            Err(Problem::new(422, "unsupported_parameter", title)
                .with_detail(format!("`{parameter}`: {detail}"))
                .about(parameter))
        };
        let is_given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
        let own_tools = "the agent calls its own tools, and its client none";
        if self.n.is_some_and(|n| n != 1) {
            return refused("n", "an agent gives one answer");
        }
        for (name, tools) in [("tools", &self.tools), ("functions", &self.functions)] {
            if tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
                return refused(name, own_tools);
            }
        }
        if is_given(&self.web_search_options) {
            return refused("web_search_options", own_tools);
        }
        let format = self.response_format.as_ref();
        let is_text = |format: &Value| format.is_null() || format["type"] == "text";
        if format.is_some_and(|format| !is_text(format)) {
            return refused("response_format", "an agent answers with text");
        }
        if self.logprobs == Some(true) {
            return refused("logprobs", "an agent has no probabilities of tokens");
        }
        let kinds = self.modalities.as_deref().unwrap_or_default();
        if kinds.iter().any(|kind| kind != "text") || is_given(&self.audio) {
            return refused("modalities", "an agent answers with text");
        }
        for (name, value) in [("stop", &self.stop), ("prediction", &self.prediction)] {
            if is_given(value) {
                return refused(name, "the answer of an agent is not cut or predicted");
            }
        }
        Ok(())
    }

    fn messages(&self) -> Result<ChatMessages, Problem> {
        let messages = self.messages.iter().enumerate();
        let messages = messages.map(|(place, message)| message.read(place));
        let messages: Vec<ChatMessage> = messages.collect::<Result<_, _>>()?;
        ChatMessages::new(messages).map_err(|error| Problem::from(error).about("messages"))
    }
}

impl RequestMessage {
    fn read(&self, place: usize) -> Result<ChatMessage, Problem> {
        let refused = |detail: &str| {
            let parameter = format!("messages[{place}]");
            Problem::new(422, "unsupported_message", "The message is not possible")
                .with_detail(format!("`{parameter}`: {detail}"))
                .about(&parameter)
        };
        let calls = self.tool_calls.as_deref().unwrap_or_default();
        if !calls.is_empty() {
            return Err(refused("the agent calls its own tools"));
        }
        let content = match &self.content {
            None => String::new(),
            Some(RequestContent::Text(text)) => text.clone(),
            Some(RequestContent::Parts(parts)) => {
                let texts = parts
                    .iter()
                    .map(|part| match (part.kind.as_str(), &part.text) {
                        ("text", Some(text)) => Ok(text.as_str()),
                        _ => Err(refused("only parts of the type `text` are possible")),
                    });
                texts.collect::<Result<Vec<_>, _>>()?.join("\n")
            }
        };
        Ok(match self.role.as_str() {
            "system" | "developer" => ChatMessage::System { content },
            "user" => ChatMessage::User { content },
            "assistant" => ChatMessage::Assistant {
                content,
                calls: Vec::new(),
            },
            "tool" | "function" => return Err(refused("the agent calls its own tools")),
            _ => return Err(refused("the role is not known")),
        })
    }
}

async fn complete(call: Call<Nothing, NewChatCompletion>) -> Result<Response, Problem> {
    call.body.check()?;
    let messages = call.body.messages()?;
    let reply = start(&call, messages).await?;
    let completion = Completion {
        id: format!("chatcmpl-{}", reply.run()),
        model: call.body.model.clone(),
        created: call.app.service.now().as_microseconds() / 1_000_000,
        address: call.app.hosts.address(&call.headers),
        service: call.app.service.clone(),
        credential: call.credential.clone(),
        has_usage: call
            .body
            .stream_options
            .as_ref()
            .is_some_and(|options| options.include_usage == Some(true)),
    };
    match call.body.stream {
        Some(true) => completion.stream(reply),
        _ => completion.whole(reply).await,
    }
}

/// Finds or starts the run that answers a conversation.
async fn start(
    call: &Call<Nothing, NewChatCompletion>,
    messages: ChatMessages,
) -> Result<ChatReply, Problem> {
    let (app, identity) = (Arc::clone(&call.app), call.identity().clone());
    let agent = call.body.model.clone();
    // The official clients count how often they repeat a request.
    let repeated = call.headers.get("x-stainless-retry-count");
    let is_repeated = repeated.is_some_and(|count| count.as_bytes() != b"0");
    let address = app.hosts.address(&call.headers);
    app.check_open()?;
    // A task of its own: it is not dropped if the client hangs up.
    let started = tokio::spawn(async move {
        let (service, caller) = (app.service.clone(), identity.clone());
        let (name, conversation) = (agent.clone(), messages.clone());
        let reserved = blocking(move || {
            let request = ChatRequest {
                agent: &name,
                messages: &conversation,
                is_repeated,
            };
            service.reserve_chat(&caller, &request)
        });
        let reserved = reserved.await?;
        let live = ChatText::of(&app, &reserved.run);
        let started = match reserved.exists {
            true => StartedRun::existing(reserved.run.clone()),
            false => {
                let new = messages.run(&reserved, Settings::default());
                let run = Some(reserved.run.clone());
                begin(&app, &identity, run, move |service, identity| {
                    let found = service.show_agent(identity, &agent)?;
                    let options = RunOptions::default();
                    let bound = service.bind(identity, &found.declared, &options)?;
                    Ok(Prepared { bound, new })
                })
                .await?
            }
        };
        let parts = (started, live);
        Ok(ChatReply::new(&app, identity, reserved, parts, address))
    });
    started.await.map_err(|error| Problem::internal(&error))?
}

/// What all pieces of an answer have.
struct Completion {
    id: String,
    model: String,
    created: i64,
    address: String,
    service: Service,
    /// What the client was authenticated with, which is checked again while it waits.
    credential: Credential,
    /// Whether the client asked for the usage in a stream.
    has_usage: bool,
}

impl Completion {
    async fn whole(self, reply: ChatReply) -> Result<Response, Problem> {
        let Ok(ended) = tokio::time::timeout(LONGEST_WAIT, reply.end()).await else {
            return Err(Problem::new(503, "still_running", "The run takes longer")
                .with_hint("repeat the request, or use `stream`")
                .retry_after(1));
        };
        let finished = ended?;
        let windlass = self.windlass(&finished);
        let reason = finish_reason(&finished.answer.end);
        Reply::ok(ChatCompletion {
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: [ChatChoice {
                index: 0,
                message: AnswerMessage {
                    role: "assistant",
                    content: finished.whole,
                    refusal: None,
                },
                logprobs: None,
                finish_reason: reason,
            }],
            usage: finished.answer.usage.into(),
            windlass,
        })
        .into_response()
    }

    fn stream(self, reply: ChatReply) -> Result<Response, Problem> {
        let first = Delta {
            role: Some("assistant"),
            content: Some(String::new()),
        };
        let first = self.chunk(first, None);
        let state = Some((self, reply));
        let pieces = futures::stream::unfold((Some(first), state), |(first, state)| async move {
            if let Some(first) = first {
                return Some((Ok::<Bytes, Infallible>(first.into()), (None, state)));
            }
            let (completion, mut reply) = state?;
            let (text, is_over) = match reply.next(HEARTBEAT).await {
                Ok(Piece::Text(text)) => (completion.text(text), false),
                Ok(Piece::Nothing) => match completion.check_credential().await {
                    Ok(()) => (": alive\n\n".to_owned(), false),
                    Err(problem) => (event(&problem.to_openai()), true),
                },
                Ok(Piece::End(finished)) => (completion.last(&finished), true),
                Err(problem) => (event(&problem.to_openai()), true),
            };
            let state = (!is_over).then_some((completion, reply));
            Some((Ok(text.into()), (None, state)))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("text/event-stream");
        headers.insert(header::CONTENT_TYPE, kind);
        // Proxies would collect the events otherwise.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    /// Refuses a token that was revoked or has expired meanwhile.
    async fn check_credential(&self) -> Result<(), Problem> {
        self.credential.authenticate(&self.service).await.map(drop)
    }

    fn text(&self, text: String) -> String {
        let delta = Delta {
            content: Some(text),
            ..Delta::default()
        };
        self.chunk(delta, None)
    }

    /// The last pieces of a stream.
    fn last(&self, finished: &Finished) -> String {
        let mut text = match finished.rest.is_empty() {
            true => String::new(),
            false => self.text(finished.rest.clone()),
        };
        let end = (finish_reason(&finished.answer.end), self.windlass(finished));
        text.push_str(&self.chunk(Delta::default(), Some(end)));
        if self.has_usage {
            text.push_str(&event(&ChatCompletionChunk {
                choices: Vec::new(),
                usage: Some(Some(finished.answer.usage.into())),
                ..self.empty()
            }));
        }
        text.push_str("data: [DONE]\n\n");
        text
    }

    fn chunk(&self, delta: Delta, end: Option<(&'static str, ChatRun)>) -> String {
        let (finish_reason, windlass) = end.unzip();
        event(&ChatCompletionChunk {
            choices: vec![ChunkChoice {
                index: 0,
                delta,
                logprobs: None,
                finish_reason,
            }],
            windlass,
            ..self.empty()
        })
    }

    fn empty(&self) -> ChatCompletionChunk {
        ChatCompletionChunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices: Vec::new(),
            usage: self.has_usage.then_some(None),
            windlass: None,
        }
    }

    fn windlass(&self, finished: &Finished) -> ChatRun {
        let answer = &finished.answer;
        let approval = |question: &Approval| ChatApproval {
            id: question.call().to_string(),
            what: subject_of(question.question()).to_owned(),
            digest: question.digest().to_string(),
            url: approval_link(&self.address, question),
            expires_at: Time(question.request().expires_at.to_string()),
        };
        ChatRun {
            run: answer.run.to_string(),
            state: match answer.end.is_final() {
                true => "ended",
                false => "waiting",
            },
            approvals: answer.questions.iter().map(approval).collect(),
        }
    }
}

fn finish_reason(end: &RunEnd) -> &'static str {
    match end {
        RunEnd::IterationLimit | RunEnd::Budget { .. } => "length",
        _ => "stop",
    }
}

/// A server-sent event with a JSON object.
fn event<T: Serialize>(object: &T) -> String {
    format!("data: {}\n\n", json!(object))
}
