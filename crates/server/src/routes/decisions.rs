//! Decisions about calls that other programs make.

use std::time::Duration;

use axum::http::{Method, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_service::types::{
    Confidence, Digest, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName,
    ToolSpecification,
};
use windlass_service::{
    Attachment, OutsideCallRequest, OutsideDecision, OutsideOutcome, OutsideTool, Scope, Service,
    ServiceError,
};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, Time};

/// The longest time that a request waits for a decision.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/v1/decisions"),
            (
                "request_decision",
                "Ask whether another program may make a call: allow, hold, ask or deny",
            ),
            Scope::Run,
            request,
        )
        .answering(StatusCode::CREATED, "The decision."),
        Route::new(
            (Method::GET, "/v1/decisions"),
            (
                "list_decisions",
                "List the decisions of a session, the latest first",
            ),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/decisions/{decision}"),
            (
                "show_decision",
                "Show a decision, or wait until the call can begin or will not",
            ),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::POST, "/v1/decisions/{decision}/begin"),
            (
                "begin_decided_call",
                "Begin a call that was allowed, once: it is decided again, and may only become stricter",
            ),
            Scope::Run,
            begin,
        ),
        Route::new(
            (Method::POST, "/v1/decisions/{decision}/outcome"),
            ("end_decided_call", "Report how a call ended that was begun"),
            Scope::Run,
            outcome,
        ),
    ]
}

/// A call that another program is about to make.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecisionRequest {
    /// The name of the tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// What the tool is, if neither an agent, a library nor the program says it.
    specification: Option<InlineTool>,
    /// The agent of the project that declares the tool.
    agent: Option<String>,
    /// The library that has the tool; the built-in tools if nothing says where it is.
    library: Option<String>,
    /// The program that makes the call. The built-in tools of `claude-code` and `codex` are known.
    program: Option<String>,
    /// The session of the program. What its earlier calls read and did counts for this one.
    session: Option<String>,
    /// The program's own id of the call. The same id of a session again is the same call.
    call_id: Option<String>,
    /// What the user asked for.
    task: Option<String>,
    /// How sure the model is that requested the call.
    confidence: Option<Confidence>,
    /// Untrusted texts that the program read before the call, such as results of tools.
    #[serde(default)]
    read: Vec<String>,
    /// Whether untrusted content may have led to the call, whatever it was.
    #[serde(default)]
    tainted: bool,
    /// How many seconds after its beginning the outcome of the call counts as unknown, 900 if absent.
    #[schemars(range(min = 1, max = 86_400))]
    outcome_seconds: Option<u32>,
}

/// A tool that another program has.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InlineTool {
    /// What it does.
    description: String,
    /// The JSON Schema of its arguments; any arguments if absent.
    parameters: Option<Map<String, Value>>,
    /// How reversible a call is. Its name and description decide if it is absent.
    risk: Option<RiskLevel>,
    /// Whether calling it twice with the same arguments is the same as calling it once.
    idempotent: Option<bool>,
    /// Whether its results come from outside the operator's control.
    open_world: Option<bool>,
    /// Whether its results are confidential.
    sensitive: Option<bool>,
    /// How long a call is held before it may begin.
    undo_window_seconds: Option<u32>,
}

impl InlineTool {
    fn specification(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolSpecification, ServiceError> {
        let invalid = |error: &dyn std::fmt::Display| {
            ServiceError::invalid("invalid_call", format!("the specification: {error}"))
        };
        let parameters = match &self.parameters {
            Some(schema) => Value::Object(schema.clone()),
            None => {
                let any = arguments
                    .keys()
                    .map(|name| (name.clone(), serde_json::json!({})));
                let properties: Map<String, Value> = any.collect();
                serde_json::json!({"type": "object", "properties": properties})
            }
        };
        let signature = Signature::from_schemas_approximately(&parameters, None)
            .map_err(|error| invalid(&error))?;
        let attributes = ToolAttributes {
            risk: self.risk,
            idempotent: self.idempotent,
            open_world: self.open_world,
            sensitive: self.sensitive,
            undo_window_seconds: self.undo_window_seconds,
            ..ToolAttributes::default()
        };
        let name = ToolName::new(name).map_err(|error| invalid(&error))?;
        let description = NonEmptyText::new(self.description.clone());
        let description = description.map_err(|error| invalid(&error))?;
        ToolSpecification::new(name, description, signature)
            .with_attributes(attributes)
            .map_err(|error| invalid(&error))
    }
}

impl DecisionRequest {
    fn request(self) -> Result<OutsideCallRequest, ServiceError> {
        let tool = match &self.specification {
            Some(inline) => {
                OutsideTool::Specified(Box::new(inline.specification(&self.tool, &self.arguments)?))
            }
            None => OutsideTool::Named {
                name: self.tool,
                agent: self.agent,
                library: self.library,
            },
        };
        Ok(OutsideCallRequest {
            tool,
            arguments: self.arguments,
            program: self.program,
            session: self.session,
            call_id: self.call_id,
            task: self.task,
            confidence: self.confidence,
            read: self.read,
            is_tainted: self.tainted,
            outcome_seconds: self.outcome_seconds,
        })
    }
}

/// The decision about a call that another program makes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct DecisionItem {
    /// Its id, which is that of the run of the call.
    id: String,
    /// The call, unless it was refused before it was one.
    call: Option<String>,
    /// Whether the program may make the call: `allow`, `hold`, `ask` or `deny`.
    verdict: String,
    /// Where the call is: `ready`, `held`, `waiting`, `stopped`, `denied`, `begun`, `ended` or `unknown`.
    state: String,
    /// Why it is refused, held or asked about, or how it failed.
    reason: Option<String>,
    /// The tool.
    tool: String,
    /// The arguments to make the call with.
    arguments: Map<String, Value>,
    /// Whether an approver or the operator changed them.
    edited: bool,
    /// The digest of the call with these arguments.
    digest: Option<String>,
    /// The risk of the call.
    risk: Option<String>,
    /// The id of the open request, for an approver to decide.
    approval: Option<String>,
    /// When the undo window or the request ends, or until when the call may begin or its outcome be reported.
    until: Option<Time>,
    /// When the same call may be requested again.
    retry_at: Option<Time>,
    /// How it ended: `success`, `error`, `timeout`, `cancelled` or `unknown`.
    outcome: Option<String>,
}

fn shape(decision: &OutsideDecision) -> Shape<DecisionItem> {
    Shape::of(decision.to_json())
}

async fn request(
    call: Call<Nothing, DecisionRequest>,
) -> Result<Reply<Shape<DecisionItem>>, Problem> {
    let request = call.body.clone().request()?;
    let (app, identity) = (call.app.clone(), call.identity().clone());
    let attachment = Attachment {
        watch: Some(app.watch()),
        ..Attachment::default()
    };
    // A task of its own: a client that hangs up does not leave half of a decision.
    let decided = tokio::spawn(async move {
        let decided = app
            .service
            .judge_outside_call(&identity, request, attachment);
        decided.await
    });
    let decided = decided.await.map_err(|error| Problem::internal(&error))?;
    let decision = decided.map_err(Problem::of_configuration)?;
    let location = format!("/v1/decisions/{}", decision.run);
    Ok(Reply::with(StatusCode::CREATED, shape(&decision)).header(header::LOCATION, location))
}

/// Which decisions are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecisionsQuery {
    /// The session of the program.
    session: String,
    /// Only that about the call with this id of the program, which needs the `program` as well.
    call_id: Option<String>,
    /// The program.
    program: Option<String>,
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

async fn list(call: Call<DecisionsQuery>) -> Result<Reply<Page<Shape<DecisionItem>>>, Problem> {
    let count = limit(call.query.limit);
    let (session, call_id) = (call.query.session.clone(), call.query.call_id.clone());
    let program = call.query.program.clone();
    let listed = call
        .operate(move |service, identity, _| {
            let listed = match call_id {
                Some(call_id) => {
                    let (program, session) = (program.as_deref(), Some(session.as_str()));
                    match service.outside_decision_of(identity, program, session, &call_id) {
                        Ok(decision) => vec![decision],
                        Err(error) if error.code() == "no_such_decision" => Vec::new(),
                        Err(error) => return Err(error),
                    }
                }
                None => service.outside_decisions(identity, &session, count)?,
            };
            Ok(listed.iter().map(shape).collect())
        })
        .await?;
    Ok(Reply::ok(Page::whole(listed)))
}

/// How long to wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitQuery {
    /// Wait at most this many seconds while the call is held or waits for a person.
    #[schemars(range(max = 50))]
    wait: Option<u64>,
}

async fn show(call: Call<WaitQuery>) -> Result<Reply<Shape<DecisionItem>>, Problem> {
    let wait = Duration::from_secs(call.query.wait.unwrap_or_default()).min(LONGEST_WAIT);
    let waiting = call
        .app
        .service
        .wait_for_outside_call(call.identity(), call.part(0), wait);
    let decision = tokio::select! {
        decision = waiting => decision?,
        () = call.app.closing.cancelled() => {
            return Err(Problem::new(503, "closing", "The server stops").with_hint("try again").retry_after(1));
        }
    };
    Ok(Reply::ok(shape(&decision)))
}

/// The beginning of a call.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Beginning {
    /// The digest of the call that the program is about to make. Another one than the decided is refused.
    digest: Option<String>,
    /// The arguments that the program is about to make the call with, instead of the digest.
    arguments: Option<Map<String, Value>>,
}

async fn begin(call: Call<Nothing, Beginning>) -> Result<Reply<Shape<DecisionItem>>, Problem> {
    let given = call
        .body
        .digest
        .as_deref()
        .map(str::parse::<Digest>)
        .transpose();
    let given = given.map_err(|error| {
        Problem::new(422, "does_not_fit", "The body does not fit").with_detail(error.to_string())
    })?;
    let expected = match (given, call.body.arguments.clone()) {
        (Some(digest), _) => Some(digest),
        (None, Some(arguments)) => {
            let shown = call.operate(Service::outside_decision);
            let tool = ToolName::new(shown.await?.tool).ok();
            tool.map(|tool| Digest::of_call(&tool, &arguments))
        }
        (None, None) => None,
    };
    let (app, identity) = (call.app.clone(), call.identity().clone());
    let id = call.part(0).to_owned();
    // A task of its own: a client that hangs up does not leave half of a beginning.
    let begun = tokio::spawn(async move {
        app.service
            .begin_outside_call(&identity, &id, expected)
            .await
    });
    let begun = begun.await.map_err(|error| Problem::internal(&error))??;
    Ok(Reply::ok(shape(&begun)))
}

/// How a call ended.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outcome {
    /// `success`; `error`; `not_made` if the program did not make the call; `unknown`.
    outcome: OutcomeName,
    /// The result of a success.
    result: Option<Value>,
    /// What happened, otherwise.
    message: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutcomeName {
    Success,
    Error,
    NotMade,
    Unknown,
}

async fn outcome(call: Call<Nothing, Outcome>) -> Result<Reply<Shape<DecisionItem>>, Problem> {
    let Outcome {
        outcome,
        result,
        message,
    } = call.body.clone();
    let message = message.unwrap_or_else(|| "the program gave no reason".to_owned());
    let outcome = match outcome {
        OutcomeName::Success => OutsideOutcome::Success(result.unwrap_or_default()),
        OutcomeName::Error => OutsideOutcome::Error(message),
        OutcomeName::NotMade => OutsideOutcome::NotMade(message),
        OutcomeName::Unknown => OutsideOutcome::Unknown(message),
    };
    let (app, identity) = (call.app.clone(), call.identity().clone());
    let id = call.part(0).to_owned();
    let ended =
        tokio::spawn(async move { app.service.end_outside_call(&identity, &id, outcome).await });
    let ended = ended.await.map_err(|error| Problem::internal(&error))??;
    Ok(Reply::ok(shape(&ended)))
}
