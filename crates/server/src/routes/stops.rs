//! Stops: stop work in every process of the store, and start it again.

use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_service::{Scope, ServiceError, StopRequest, StopSelector, stop_to_json};

use crate::call::{Call, Nothing, Reply};
use crate::page::Page;
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, StopItem};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/v1/stops"),
            (
                "stop",
                "Stop work: no call that the stop covers begins any more, in any process",
            ),
            Scope::Operate,
            stop,
        )
        .answering(StatusCode::CREATED, "The stop."),
        Route::new(
            (Method::GET, "/v1/stops"),
            ("list_stops", "List what is stopped, the oldest first"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::POST, "/v1/starts"),
            ("start_again", "Start again what was stopped"),
            Scope::Operate,
            start_again,
        ),
    ]
}

/// What to stop or to start again: exactly one of `all`, `agent`, `tool`, `principal` and `run`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopBody {
    /// Everything.
    #[serde(default)]
    all: bool,
    /// The runs of the agent of this name, and those that work for them.
    agent: Option<String>,
    /// The calls of the tool of this name.
    tool: Option<String>,
    /// The runs that act for the principal of this name.
    principal: Option<String>,
    /// The run of this id, and those that work for it.
    run: Option<String>,
    /// Why. It is recorded.
    reason: Option<String>,
    /// Whether it is about every tenant. Needs the scope `admin`.
    #[serde(default)]
    every_tenant: bool,
}

impl StopBody {
    fn request(&self) -> Result<StopRequest, ServiceError> {
        let named = [
            self.all.then_some(StopSelector::All),
            self.agent.clone().map(StopSelector::Agent),
            self.tool.clone().map(StopSelector::Tool),
            self.principal.clone().map(StopSelector::Principal),
            self.run.clone().map(StopSelector::Run),
        ];
        let mut named = named.into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(selector), None) => Ok(StopRequest {
                selector,
                reason: self.reason.clone(),
                every_tenant: self.every_tenant,
            }),
            _ => Err(ServiceError::invalid(
                "invalid_stop",
                "name exactly one of `all`, `agent`, `tool`, `principal` and `run`",
            )),
        }
    }
}

async fn stop(call: Call<Nothing, StopBody>) -> Result<Reply<Shape<StopItem>>, Problem> {
    let body = call.body.clone();
    let stopped = call
        .operate(move |service, identity, _| {
            Ok(Shape::of(stop_to_json(
                &service.stop(identity, &body.request()?)?.order,
            )))
        })
        .await?;
    Ok(Reply::with(StatusCode::CREATED, stopped))
}

async fn start_again(call: Call<Nothing, StopBody>) -> Result<Reply<Shape<StopItem>>, Problem> {
    let body = call.body.clone();
    let started = call
        .operate(move |service, identity, _| {
            Ok(Shape::of(stop_to_json(
                &service.start_again(identity, &body.request()?)?,
            )))
        })
        .await?;
    Ok(Reply::ok(started))
}

async fn list(call: Call) -> Result<Reply<Page<Shape<StopItem>>>, Problem> {
    let listed = call
        .operate(|service, identity, _| {
            let orders = service.list_stops(identity)?;
            Ok(orders
                .iter()
                .map(|order| Shape::of(stop_to_json(order)))
                .collect())
        })
        .await?;
    Ok(Reply::ok(Page::whole(listed)))
}
