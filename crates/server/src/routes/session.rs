//! Who the caller is, and the login of a browser.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Query, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::types::Timestamp;
use windlass_service::{CallerKind, Scope};

use crate::app::App;
use crate::call::{Call, Reply};
use crate::problem::Problem;
use crate::route::{Answered, Route, described};
use crate::server::Peer;
use crate::session::AFTER_LOGIN;
use crate::shapes::Time;

pub(super) fn routes() -> Vec<Route> {
    let redirected = Answered {
        status: StatusCode::SEE_OTHER,
        description: "The browser has the cookie of a new session.",
        content: None,
    };
    vec![
        Route::public(
            "/login",
            (
                "log_in",
                "Begin the session of a browser with the code that the server printed at its terminal",
            ),
            redirected,
            log_in,
        )
        .with_query(described::<LoginQuery>()),
        Route::new(
            (Method::GET, "/v1/session"),
            ("show_session", "Show who the caller is"),
            Scope::Read,
            show_session,
        ),
        Route::new(
            (Method::POST, "/v1/session/end"),
            (
                "end_session",
                "End the session of the browser that sends the request",
            ),
            Scope::Read,
            end_session,
        )
        .answering(StatusCode::NO_CONTENT, "The session has ended."),
    ]
}

/// How a browser logs in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginQuery {
    /// The code. Without one, the server prints a new URL at its terminal.
    code: Option<String>,
}

async fn log_in(app: Arc<App>, request: Request) -> Result<Response, Problem> {
    let query = Query::<LoginQuery>::try_from_uri(request.uri()).map_err(|error| {
        Problem::new(400, "invalid_query", "The query is not valid").with_detail(error.body_text())
    })?;
    let Some(code) = &query.code else {
        return Err(match app.logins.announce(Instant::now())? {
            true => Problem::new(401, "code_needed", "The login needs a code")
                .with_hint("open the URL that the server has printed at its terminal"),
            false => Problem::new(
                403,
                "no_login",
                "This server was not started at a terminal, so it has no login",
            )
            .with_hint("use a token of `windlass token create`"),
        });
    };
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let client = app.hosts.client(peer, request.headers());
    let client = client.map(tracing::field::display);
    let cookie = match app.logins.log_in(&app.service, code).await {
        Ok(cookie) => {
            tracing::info!(client, "a browser logged in");
            cookie
        }
        Err(problem) => {
            tracing::warn!(client, "a login was refused");
            return Err(problem);
        }
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(header::SET_COOKIE, cookie);
    headers.insert(header::LOCATION, HeaderValue::from_static(AFTER_LOGIN));
    Ok(response)
}

/// Who a caller is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct SessionDetails {
    /// How it is authenticated.
    kind: KindName,
    /// The principal that it acts as.
    principal: String,
    /// Its tenant.
    tenant: String,
    /// What it may do.
    scopes: Vec<String>,
    /// When its token or session expires, unless it does not.
    expires_at: Option<Time>,
}

/// How a caller is authenticated.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum KindName {
    /// With a token of this installation.
    Token,
    /// With the session of a browser.
    Session,
    /// With a token of the issuer.
    Oidc,
}

async fn show_session(call: Call) -> Result<Reply<SessionDetails>, Problem> {
    let (caller, identity) = (&call.caller, call.identity());
    Ok(Reply::ok(SessionDetails {
        kind: match caller.kind {
            CallerKind::Token => KindName::Token,
            CallerKind::Session => KindName::Session,
            CallerKind::Oidc => KindName::Oidc,
        },
        principal: identity.principal().to_string(),
        tenant: identity.tenant().to_string(),
        scopes: identity.scopes().map(|scope| scope.to_string()).collect(),
        expires_at: caller.expires_at.map(|at: Timestamp| Time(at.to_string())),
    }))
}

async fn end_session(call: Call) -> Result<Reply<()>, Problem> {
    let caller = call.caller.clone();
    call.operate(move |service, _, _| service.end_session(&caller))
        .await?;
    let cleared = call.app.logins.cookie.clear();
    Ok(Reply::with(StatusCode::NO_CONTENT, ()).header(header::SET_COOKIE, cleared))
}
