//! Live events of a run, and of all runs that the caller may see.

use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::Call;
use crate::events::{Cursor, Topic, stream};
use crate::frames::{Frame, RunFrame};
use crate::problem::Problem;
use crate::route::{Route, described};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::stream(
            "/v1/runs/{run}/events",
            (
                "run_events",
                "Follow a run: its events from the beginning, then as they happen",
            ),
            described::<Frame>(),
            run_events,
        ),
        Route::stream(
            "/v1/events",
            (
                "events",
                "Follow all runs that the caller may see, from now on",
            ),
            described::<RunFrame>(),
            all_events,
        ),
    ]
}

/// Where a stream begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The id of the last event that the caller has, instead of the header `Last-Event-ID`.
    after: Option<String>,
}

/// The id of the last event that a listener has.
fn last_event(headers: &HeaderMap, query: &EventsQuery) -> Result<Option<Cursor>, Problem> {
    let sent = headers
        .get("last-event-id")
        .map(|id| id.to_str().unwrap_or_default());
    let Some(id) = sent.or(query.after.as_deref()) else {
        return Ok(None);
    };
    Cursor::parse(id).map(Some).ok_or_else(|| {
        Problem::new(
            400,
            "invalid_event_id",
            "The id of the last event is not valid",
        )
        .with_hint("send the `id` of an event of this stream")
    })
}

async fn run_events(call: Call<EventsQuery>) -> Result<Response, Problem> {
    let cursor = last_event(&call.headers, &call.query)?.unwrap_or(Cursor::BEGINNING);
    let run = call
        .operate(|service, identity, id| Ok(service.show_run(identity, id)?.summary.run))
        .await?;
    let credential = call.credential.clone();
    stream(
        &call.app,
        call.identity(),
        Topic::Run(run),
        cursor,
        credential,
    )
    .await
}

async fn all_events(call: Call<EventsQuery>) -> Result<Response, Problem> {
    let cursor = match last_event(&call.headers, &call.query)? {
        Some(cursor) => cursor,
        None => {
            let newest = call
                .operate(|service, identity, _| service.newest_event(identity))
                .await?;
            Cursor::after(newest.event, 2 * newest.end)
        }
    };
    let credential = call.credential.clone();
    let tenant = Topic::Tenant(call.identity().tenant().to_string());
    stream(&call.app, call.identity(), tenant, cursor, credential).await
}
