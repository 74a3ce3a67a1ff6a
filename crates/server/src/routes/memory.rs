//! Memory: what agents remember for the caller.

use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_service::types::ScopeReach;
use windlass_service::{NewMemoryDocument, Scope, ServiceError};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, PageQuery, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, Time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/memory"),
            (
                "list_memory",
                "List the caller's documents, the latest first",
            ),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::POST, "/v1/memory"),
            ("add_memory", "Remember a text"),
            Scope::Operate,
            add,
        )
        .answering(StatusCode::CREATED, "It is stored."),
        Route::new(
            (Method::GET, "/v1/memory/{document}"),
            ("show_memory", "Show a document with its text"),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::DELETE, "/v1/memory/{document}"),
            ("forget_memory", "Forget a document"),
            Scope::Operate,
            forget,
        )
        .answering(StatusCode::NO_CONTENT, "It is forgotten."),
        Route::new(
            (Method::POST, "/v1/memory/search"),
            (
                "search_memory",
                "Find parts of documents by meaning and words",
            ),
            Scope::Read,
            search,
        ),
        Route::new(
            (Method::GET, "/v1/statistics/memory"),
            ("memory_statistics", "How much is remembered"),
            Scope::Read,
            statistics,
        ),
    ]
}

/// A document in a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct DocumentItem {
    /// Its id.
    id: String,
    /// Which agents share it: `principal`, `agent:NAME` or `run:ID`.
    scope: String,
    /// Its title.
    title: Option<String>,
    /// Where it came from.
    source: Option<String>,
    /// The digest of its text.
    digest: String,
    /// The size of its text.
    bytes: u64,
    /// How many parts it has.
    chunks: u64,
    /// Whether it is derived from untrusted content.
    tainted: bool,
    /// When it was first stored.
    created_at: Time,
    /// When it was last stored.
    updated_at: Time,
    /// Further data about it.
    metadata: Map<String, Value>,
}

/// A document.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Document {
    #[serde(flatten)]
    document: DocumentItem,
    /// Its text.
    text: String,
}

async fn list(call: Call<PageQuery>) -> Result<Reply<Page<Shape<DocumentItem>>>, Problem> {
    let count = limit(call.query.limit) as usize;
    let after = call
        .query
        .after
        .as_deref()
        .map(str::parse::<usize>)
        .transpose();
    let skipped = after.map_err(|_| {
        Problem::new(400, "invalid_query", "The query is not valid")
            .with_detail("`after` is not the `next` of a page")
    })?;
    let skipped = skipped.unwrap_or(0).min(usize::MAX / 2);
    let listed = call
        .operate(move |service, identity, _| {
            let listed = service.list_memory(identity, &[], skipped, count + 1)?;
            let shown = listed.iter().map(serde_json::to_value);
            Ok(shown.collect::<Result<Vec<Value>, _>>()?)
        })
        .await?;
    let listed = listed.into_iter().enumerate().collect();
    Ok(Reply::ok(Page::new(
        listed,
        count,
        |(place, _)| (skipped + place + 1).to_string(),
        |(_, shown)| Shape::of(shown),
    )))
}

/// A text to remember.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewDocument {
    /// The text.
    #[schemars(length(min = 1))]
    text: String,
    /// Which agents share it: `principal` (all of them), `agent:NAME` or `run:ID`.
    scope: Option<String>,
    /// Its title.
    title: Option<String>,
    /// Where it came from.
    source: Option<String>,
    /// Whether it is untrusted content: a run that recalls it is tainted.
    #[serde(default)]
    tainted: bool,
}

/// A document that was stored.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct StoredItem {
    /// Its id.
    id: String,
    /// `added`, `replaced` or `known`.
    outcome: String,
    /// How many parts it has.
    chunks: u64,
}

async fn add(call: Call<Nothing, NewDocument>) -> Result<Reply<Shape<StoredItem>>, Problem> {
    let new = call.body.clone();
    let reach = match &new.scope {
        None => ScopeReach::Principal,
        Some(scope) => serde_json::from_value(json!(scope)).map_err(|error| {
            Problem::new(422, "bad_scope", "The scope is not valid").with_detail(error.to_string())
        })?,
    };
    let stored = call
        .operate(move |service, identity, _| {
            let new = NewMemoryDocument {
                reach,
                text: new.text,
                title: new.title,
                source: new.source,
                is_untrusted: new.tainted,
            };
            Shape::from(&service.add_memory(identity, new)?)
        })
        .await?;
    Ok(Reply::with(StatusCode::CREATED, stored))
}

async fn show(call: Call) -> Result<Reply<Shape<Document>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let (document, text) = service.show_memory(identity, &[], id)?;
            let mut object = serde_json::to_value(document)?;
            object["text"] = json!(text);
            Ok(Shape::of(object))
        })
        .await?;
    Ok(Reply::ok(shown))
}

async fn forget(call: Call) -> Result<Reply<()>, Problem> {
    call.operate(|service, identity, id| service.forget_memory(identity, &[], &[id.to_owned()]))
        .await?;
    Ok(Reply::with(StatusCode::NO_CONTENT, ()))
}

/// What to search for.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// What to find.
    #[schemars(length(min = 1))]
    query: String,
    /// At most this many parts, 10 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// A part of a document that was found.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Hit {
    /// The document.
    document: String,
    /// Which agents share it.
    scope: String,
    /// Its title.
    title: Option<String>,
    /// Where it came from.
    source: Option<String>,
    /// The text of the part.
    text: String,
    /// How well it fits; more is better.
    score: f64,
    /// Whether the document is derived from untrusted content.
    tainted: bool,
    /// When the document was last stored.
    stored_at: Time,
}

async fn search(call: Call<Nothing, Search>) -> Result<Reply<Page<Shape<Hit>>>, Problem> {
    let (query, count) = (call.body.query.clone(), limit(call.body.limit.or(Some(10))));
    let found = call
        .operate(move |service, identity, _| {
            let found = service.search_memory(identity, &[], &query, count as usize)?;
            found
                .iter()
                .map(Shape::from)
                .collect::<Result<Vec<_>, ServiceError>>()
        })
        .await?;
    Ok(Reply::ok(Page::whole(found)))
}

/// How much is remembered in a scope.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ScopeSize {
    /// The scope.
    scope: String,
    /// How many documents.
    documents: u64,
    /// How many of them are derived from untrusted content.
    tainted: u64,
    /// How many parts.
    chunks: u64,
    /// How many bytes of text.
    bytes: u64,
}

/// How much is remembered.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct MemorySize {
    /// What made the vectors.
    embedder: Option<String>,
    /// Whether it made all of them.
    is_whole: bool,
    /// Each scope that is not empty.
    scopes: Vec<ScopeSize>,
}

async fn statistics(call: Call) -> Result<Reply<Shape<MemorySize>>, Problem> {
    let counted = call
        .operate(|service, identity, _| {
            let mut object = serde_json::to_value(service.memory_statistics(identity)?)?;
            // The database is shared by all tenants.
            if let Some(object) = object.as_object_mut() {
                object.remove("database_bytes");
            }
            Ok(Shape::of(object))
        })
        .await?;
    Ok(Reply::ok(counted))
}
