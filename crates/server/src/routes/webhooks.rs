//! Webhooks, and the events that are sent to them.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_service::types::DeliveryState;
use windlass_service::{DeliveryQuery, Scope, Service, WebhookStatus, delivery_to_json};

use crate::call::{Call, Reply};
use crate::page::{Page, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, Time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/webhooks"),
            (
                "list_webhooks",
                "List who is notified of events, with how many events wait",
            ),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/webhooks/deliveries"),
            (
                "list_deliveries",
                "List the events for webhooks, the latest first",
            ),
            Scope::Read,
            list_deliveries,
        ),
        Route::new(
            (Method::GET, "/v1/webhooks/deliveries/{delivery}"),
            (
                "show_delivery",
                "Show an event for a webhook, with what is sent",
            ),
            Scope::Read,
            show_delivery,
        ),
        Route::new(
            (Method::POST, "/v1/webhooks/deliveries/{delivery}/retry"),
            ("retry_delivery", "Send an event again, now"),
            Scope::Operate,
            retry_delivery,
        ),
    ]
}

/// A webhook of the configuration.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct WebhookItem {
    /// Its name.
    name: String,
    /// The URL or the command line.
    target: String,
    /// Its events.
    events: Vec<String>,
    /// Whether events are sent.
    enabled: bool,
    /// How many events will be sent.
    pending: u64,
    /// How many were received in the last days.
    delivered: u64,
    /// How many were given up.
    dead: u64,
}

/// Whether an event was received.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DeliveryStateName {
    /// It will be sent.
    Pending,
    /// It was received.
    Delivered,
    /// It was given up.
    Dead,
}

/// An event for a webhook.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct DeliveryItem {
    /// Its id, which the receiver gets as `webhook-id`.
    id: String,
    /// The name of the webhook.
    webhook: String,
    /// The event.
    event: String,
    /// Whether it was received.
    state: DeliveryStateName,
    /// The run.
    run: Option<String>,
    /// The approval.
    approval: Option<String>,
    /// When it happened.
    at: Time,
    /// How many attempts were made.
    attempts: u32,
    /// When the last attempt was made.
    attempted_at: Option<Time>,
    /// When it was received or given up.
    settled_at: Option<Time>,
    /// When the next attempt is due.
    due_at: Option<Time>,
    /// Why the last attempt failed.
    error: Option<String>,
}

/// An event for a webhook, with what is sent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct DeliveryDetails {
    #[serde(flatten)]
    delivery: DeliveryItem,
    /// What is sent; none if what it is about was purged.
    message: Option<Map<String, Value>>,
}

/// Which events are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeliveriesQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Only those of the webhook of this name.
    webhook: Option<String>,
    /// Only those in this state.
    state: Option<DeliveryStateName>,
}

async fn list(call: Call) -> Result<Reply<Page<Shape<WebhookItem>>>, Problem> {
    let found = call
        .operate(|service, identity, _| service.list_webhooks(identity))
        .await?;
    let items = found.iter().map(WebhookStatus::to_json).map(Shape::of);
    Ok(Reply::ok(Page::whole(items.collect())))
}

async fn list_deliveries(
    call: Call<DeliveriesQuery>,
) -> Result<Reply<Page<Shape<DeliveryItem>>>, Problem> {
    let count = limit(call.query.limit);
    let query = DeliveryQuery {
        webhook: call.query.webhook.clone(),
        state: call.query.state.as_ref().map(|state| match state {
            DeliveryStateName::Pending => DeliveryState::Pending,
            DeliveryStateName::Delivered => DeliveryState::Delivered,
            DeliveryStateName::Dead => DeliveryState::Dead,
        }),
        after: call.query.after.clone(),
        limit: Some(count + 1),
    };
    let found = call
        .operate(move |service, identity, _| service.list_deliveries(identity, &query))
        .await?;
    Ok(Reply::ok(Page::new(
        found,
        count as usize,
        |delivery| delivery.id.clone(),
        |delivery| Shape::of(delivery_to_json(&delivery)),
    )))
}

async fn show_delivery(call: Call) -> Result<Reply<Shape<DeliveryDetails>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let mut object = delivery_to_json(&service.show_delivery(identity, id)?);
            object["message"] = json!(service.delivery_message(identity, id).ok());
            Ok(Shape::of(object))
        })
        .await?;
    Ok(Reply::ok(shown))
}

async fn retry_delivery(call: Call) -> Result<Reply<Shape<DeliveryItem>>, Problem> {
    let retried = call.operate(Service::retry_delivery).await?;
    Ok(Reply::ok(Shape::of(delivery_to_json(&retried))))
}
