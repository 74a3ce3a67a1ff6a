//! Whether the server lives, is ready, and which version it is.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::{HealthRequest, Scope};

use crate::app::{App, blocking};
use crate::call::{Call, Reply};
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Answered, Route, described};

pub(super) fn routes() -> Vec<Route> {
    let text = |description| Answered {
        status: StatusCode::OK,
        description,
        content: Some(("text/plain", described::<String>())),
    };
    let document = Answered {
        status: StatusCode::OK,
        description: "The OpenAPI document.",
        content: Some((
            "application/json",
            described::<serde_json::Map<String, serde_json::Value>>(),
        )),
    };
    vec![
        Route::public(
            "/livez",
            ("live", "Whether the server answers"),
            text("It does."),
            livez,
        ),
        Route::public(
            "/readyz",
            ("ready", "Whether the server can start and resume runs"),
            text("It can."),
            readyz,
        ),
        Route::public(
            "/openapi.json",
            ("openapi", "The description of this API"),
            document,
            openapi,
        ),
        Route::new(
            (Method::GET, "/v1/version"),
            ("version", "The version of the server"),
            Scope::Read,
            version,
        ),
        Route::new(
            (Method::GET, "/v1/health"),
            ("health", "Check everything that agents need"),
            Scope::Read,
            health,
        ),
    ]
}

async fn livez(_: Arc<App>, _: Request) -> Result<Response, Problem> {
    Ok(with_type("text/plain; charset=utf-8", "ok\n".to_owned()))
}

async fn readyz(app: Arc<App>, _: Request) -> Result<Response, Problem> {
    let not_ready = || {
        Problem::new(503, "not_ready", "The server is not ready")
            .with_hint("try again later")
            .retry_after(1)
    };
    if app.closing.is_cancelled() {
        return Err(not_ready());
    }
    let service = app.service.clone();
    match blocking(move || service.check()).await {
        Ok(()) => Ok(with_type("text/plain; charset=utf-8", "ok\n".to_owned())),
        Err(_) => Err(not_ready()),
    }
}

async fn openapi(app: Arc<App>, _: Request) -> Result<Response, Problem> {
    Ok(with_type("application/json", app.openapi.clone()))
}

fn with_type(kind: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The version of the server.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Version {
    /// `windlass`.
    name: String,
    /// The version.
    version: String,
}

async fn version(_: Call) -> Result<Reply<Version>, Problem> {
    Ok(Reply::ok(Version {
        name: "windlass".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

/// The result of one check.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Finding {
    /// What it is about, such as `policies`.
    about: String,
    /// `ok`, `warning` or `error`.
    status: String,
}

async fn health(call: Call) -> Result<Reply<Page<Finding>>, Problem> {
    let request = HealthRequest {
        is_offline: true,
        ..HealthRequest::default()
    };
    let findings = call.app.service.examine(call.identity(), &request).await?;
    // What was found names files and programs of the server.
    let shown = findings.into_iter().map(|finding| Finding {
        about: finding.about.to_owned(),
        status: finding.status.as_str().to_owned(),
    });
    Ok(Reply::ok(Page::whole(shown.collect())))
}
