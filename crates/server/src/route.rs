//! A route: its path, what it takes and returns, and its handler. The router and the OpenAPI document are made from the
//! same routes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};
use windlass_service::Scope;
use windlass_service::types::read_json;

use crate::app::App;
use crate::call::{Call, Nothing, Reply};
use crate::problem::Problem;

/// The largest body of a request, in bytes.
pub(crate) const MAX_BODY: usize = 4 << 20;

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an operation may take that does not wait for a run.
const TIMEOUT: Duration = Duration::from_secs(60);

type Answer = Pin<Box<dyn Future<Output = Result<Response, Problem>> + Send>>;
type Handler = Arc<dyn Fn(Arc<App>, Request) -> Answer + Send + Sync>;
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone who can reach the server.
    Public,
    /// Holders of a token with this scope. It is checked before more of the request is read, and again by the service.
    Token(Scope),
}

/// The form of the errors of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// Problem documents (RFC 9457).
    Problem,
    /// As OpenAI's API has them.
    OpenAi,
}

impl ErrorForm {
    fn response(self, problem: Problem) -> Response {
        match self {
            Self::Problem => problem.into_response(),
            Self::OpenAi => problem.into_openai_response(),
        }
    }
}

/// What a route answers with.
#[derive(Clone)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) description: &'static str,
    pub(crate) content: Option<(&'static str, MakeSchema)>,
}

/// A route of the API.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// The name of the operation, unique in the API.
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) query: Option<MakeSchema>,
    pub(crate) body: Option<MakeSchema>,
    pub(crate) answers: Vec<Answered>,
    /// Whether it starts a run, and so takes `Idempotency-Key` and `Prefer`.
    pub(crate) starts_run: bool,
    /// The form of its errors.
    pub(crate) errors: ErrorForm,
    handler: Handler,
}

/// A query or a body that can be described.
pub(crate) trait Described: DeserializeOwned + JsonSchema + Send + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Described for T {}

impl Route {
    /// A route for holders of tokens.
    pub(crate) fn new<Q, B, R, Done>(
        (method, path): (Method, &'static str),
        (name, summary): (&'static str, &'static str),
        scope: Scope,
        handle: impl Fn(Call<Q, B>) -> Done + Clone + Send + Sync + 'static,
    ) -> Self
    where
        Q: Described,
        B: Described,
        R: Serialize + JsonSchema + 'static,
        Done: Future<Output = Result<Reply<R>, Problem>> + Send + 'static,
    {
        let has_body = method != Method::GET && method != Method::DELETE && !is_nothing::<B>();
        let handler: Handler = Arc::new(move |app, request| {
            let handle = handle.clone();
            Box::pin(async move {
                let call = read::<Q, B>(app, request, has_body, (name, scope)).await?;
                let limit = call.wait().unwrap_or_default() + TIMEOUT;
                match tokio::time::timeout(limit, handle(call)).await {
                    Ok(reply) => reply?.into_response(),
                    Err(_) => Err(Problem::new(503, "timeout", "The operation took too long")
                        .with_hint("try again later")
                        .retry_after(5)),
                }
            })
        });
        Self {
            method,
            path,
            name,
            summary,
            access: Access::Token(scope),
            query: (!is_nothing::<Q>()).then_some(schema_of::<Q> as MakeSchema),
            body: has_body.then_some(schema_of::<B> as MakeSchema),
            answers: vec![Answered {
                status: StatusCode::OK,
                description: "Done.",
                content: Some(("application/json", schema_of::<R>)),
            }],
            starts_run: false,
            errors: ErrorForm::Problem,
            handler,
        }
    }

    /// A route for holders of tokens that answers with a stream.
    pub(crate) fn stream<Q, Done>(
        path: &'static str,
        (name, summary): (&'static str, &'static str),
        frame: MakeSchema,
        handle: impl Fn(Call<Q>) -> Done + Clone + Send + Sync + 'static,
    ) -> Self
    where
        Q: Described,
        Done: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |app, request| {
            let handle = handle.clone();
            Box::pin(
                async move { handle(read(app, request, false, (name, Scope::Read)).await?).await },
            )
        });
        Self {
            method: Method::GET,
            path,
            name,
            summary,
            access: Access::Token(Scope::Read),
            query: (!is_nothing::<Q>()).then_some(schema_of::<Q> as MakeSchema),
            body: None,
            answers: vec![Answered {
                status: StatusCode::OK,
                description: "Server-sent events. The data of each one is a JSON object.",
                content: Some(("text/event-stream", frame)),
            }],
            starts_run: false,
            errors: ErrorForm::Problem,
            handler,
        }
    }

    /// A route with a body that makes its whole response itself.
    pub(crate) fn responding<B, Done>(
        (method, path): (Method, &'static str),
        (name, summary): (&'static str, &'static str),
        scope: Scope,
        answers: Vec<Answered>,
        handle: impl Fn(Call<Nothing, B>) -> Done + Clone + Send + Sync + 'static,
    ) -> Self
    where
        B: Described,
        Done: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |app, request| {
            let handle = handle.clone();
            Box::pin(async move { handle(read(app, request, true, (name, scope)).await?).await })
        });
        Self {
            method,
            path,
            name,
            summary,
            access: Access::Token(scope),
            query: None,
            body: Some(schema_of::<B>),
            answers,
            starts_run: false,
            errors: ErrorForm::Problem,
            handler,
        }
    }

    /// The same route, whose errors are those of OpenAI's API.
    pub(crate) fn with_openai_errors(mut self) -> Self {
        self.errors = ErrorForm::OpenAi;
        self
    }

    /// A route that needs no token.
    pub(crate) fn public<Done>(
        path: &'static str,
        (name, summary): (&'static str, &'static str),
        answer: Answered,
        handle: impl Fn(Arc<App>, Request) -> Done + Clone + Send + Sync + 'static,
    ) -> Self
    where
        Done: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        Self {
            method: Method::GET,
            path,
            name,
            summary,
            access: Access::Public,
            query: None,
            body: None,
            answers: vec![answer],
            starts_run: false,
            errors: ErrorForm::Problem,
            handler: Arc::new(move |app, request| Box::pin(handle(app, request))),
        }
    }

    /// The same route, with a query that it reads itself.
    pub(crate) fn with_query(mut self, query: MakeSchema) -> Self {
        self.query = Some(query);
        self
    }

    /// The same route, which answers with this status instead of 200.
    pub(crate) fn answering(mut self, status: StatusCode, description: &'static str) -> Self {
        for answer in &mut self.answers {
            answer.status = status;
            answer.description = description;
            if status == StatusCode::NO_CONTENT {
                answer.content = None;
            }
        }
        self
    }

    /// The same route, which starts a run: 202 with the run, or 200 with the run as it ended or waits if the caller
    /// prefers to wait.
    pub(crate) fn starting_run(mut self) -> Self {
        let ended = self.answers.first().cloned().map(|answer| Answered {
            description: "The run as it is after the time that the caller prefers to wait.",
            ..answer
        });
        self = self.answering(StatusCode::ACCEPTED, "The run that was started.");
        self.answers.extend(ended);
        self.starts_run = true;
        self
    }
}

/// The router of these routes. What no route answers is a problem document, too.
pub(crate) fn router(app: &Arc<App>, routes: &[Route]) -> Router {
    let mut paths: Vec<(&'static str, MethodRouter)> = Vec::new();
    for route in routes {
        let (app, handler) = (Arc::clone(app), Arc::clone(&route.handler));
        let errors = route.errors;
        let path = route.path;
        let answer = move |request: Request| {
            let (app, handler) = (Arc::clone(&app), Arc::clone(&handler));
            Span::current().record("http.route", path);
            async move {
                match handler(app, request).await {
                    Ok(response) => response,
                    Err(problem) => {
                        Span::current().record("error.type", problem.code());
                        errors.response(problem)
                    }
                }
            }
        };
        let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::GET);
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, methods)) => *methods = std::mem::take(methods).on(filter, answer),
            None => paths.push((route.path, MethodRouter::new().on(filter, answer))),
        }
    }
    let wrong_method = || async {
        Problem::new(405, "wrong_method", "The path has other methods").into_response()
    };
    let mut router = Router::new();
    for (path, methods) in paths {
        router = router.route(path, methods.fallback(wrong_method));
    }
    let unknown = || async {
        Problem::new(404, "no_such_path", "There is nothing at this path")
            .with_hint("`/openapi.json` describes all paths")
            .into_response()
    };
    let app = Arc::clone(app);
    router.fallback(unknown).layer(axum::middleware::from_fn(
        move |request: Request, next: axum::middleware::Next| {
            let checked = app.hosts.check(request.headers());
            let span = request_span(request.method());
            let answered = async move {
                let mut response = match checked {
                    Ok(()) => next.run(request).await,
                    Err(problem) => problem.into_response(),
                };
                for (name, value) in SECURITY_HEADERS {
                    response.headers_mut().insert(name, value);
                }
                Span::current().record("http.response.status_code", response.status().as_u16());
                response
            };
            answered.instrument(span)
        },
    ))
}

/// The span of a request that the server receives, until the head of its answer. Its route is recorded when it is
/// found, and not its path: a path contains ids.
fn request_span(method: &Method) -> Span {
    // Any word may come as a method.
    let is_known = [Method::GET, Method::POST, Method::PUT, Method::DELETE].contains(method);
    info_span!(
        "http_request",
        otel.kind = "server",
        http.request.method = if is_known { method.as_str() } else { "_OTHER" },
        http.route = Empty,
        http.response.status_code = Empty,
        error.type = Empty,
    )
}

/// What browsers may do with answers: nothing.
const SECURITY_HEADERS: [(header::HeaderName, header::HeaderValue); 4] = [
    (
        header::REFERRER_POLICY,
        header::HeaderValue::from_static("same-origin"),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    ),
    (
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    ),
    (
        header::CONTENT_SECURITY_POLICY,
        header::HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
];

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The schema of a type, for answers that are described by hand.
pub(crate) fn described<T: JsonSchema>() -> MakeSchema {
    schema_of::<T>
}

fn is_nothing<T: 'static>() -> bool {
    std::any::TypeId::of::<T>() == std::any::TypeId::of::<Nothing>()
}

/// Reads a request: the caller first, so that nobody else can make the server read.
async fn read<Q: Described, B: Described>(
    app: Arc<App>,
    request: Request,
    has_body: bool,
    (name, scope): (&'static str, Scope),
) -> Result<Call<Q, B>, Problem> {
    let (mut parts, body) = request.into_parts();
    let operation = format!("{name} {}", parts.uri.path());
    let (caller, credential) = app.caller(&parts.method, &parts.headers, operation).await?;
    caller.identity.require(scope)?;
    let path = path_of(&mut parts).await?;
    let query = Query::<Q>::try_from_uri(&parts.uri).map_err(|error| {
        Problem::new(400, "invalid_query", "The query is not valid").with_detail(error.body_text())
    })?;
    let bytes = match has_body {
        true => body_of(&parts, body).await?,
        false => Bytes::new(),
    };
    let mut fingerprint = format!("{} {}\n", parts.method, parts.uri.path()).into_bytes();
    fingerprint.extend_from_slice(&bytes);
    let text: &[u8] = if has_body { &bytes } else { b"{}" };
    Ok(Call {
        app,
        caller,
        credential,
        path,
        query: query.0,
        body: from_json(text)?,
        headers: parts.headers,
        fingerprint: fingerprint.into(),
    })
}

async fn path_of(parts: &mut Parts) -> Result<Vec<String>, Problem> {
    let invalid = || Problem::new(400, "invalid_path", "The path is not valid UTF-8");
    let path = RawPathParams::from_request_parts(parts, &()).await;
    let path = path.map_err(|_| invalid())?;
    Ok(path.iter().map(|(_, value)| value.to_owned()).collect())
}

async fn body_of(parts: &Parts, body: Body) -> Result<Bytes, Problem> {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(415, "not_json", "The body must be JSON")
            .with_hint("send the header `Content-Type: application/json`"));
    }
    let too_large = || {
        let title = "The body is too large";
        Problem::new(413, "too_large", title)
            .with_detail(format!("A body has at most {MAX_BODY} bytes."))
    };
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(too_large());
    }
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect());
    match collected.await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(400, "incomplete", "The body is incomplete")),
        Err(_) => Err(Problem::new(
            408,
            "too_slow",
            "The body did not arrive in time",
        )),
    }
}

/// Reads JSON. Its depth is limited by the parser, so deep JSON takes no stack.
fn from_json<B: DeserializeOwned>(text: &[u8]) -> Result<B, Problem> {
    let text = std::str::from_utf8(text);
    let text = text.map_err(|_| Problem::new(400, "not_json", "The body is not UTF-8"))?;
    read_json(text).map_err(|error| {
        let detail = error.to_string();
        match error.classify() {
            serde_json::error::Category::Data => {
                Problem::new(422, "does_not_fit", "The body does not fit").with_detail(detail)
            }
            _ if detail.contains("recursion limit") => {
                Problem::new(400, "too_deep", "The JSON is nested too deeply")
            }
            _ => Problem::new(400, "not_json", "The body is not JSON").with_detail(detail),
        }
    })
}
