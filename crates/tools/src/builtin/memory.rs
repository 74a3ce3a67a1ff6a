//! The memory tools: remember, search, forget. They act on behalf of the caller and see only the caller's
//! memories. A search that returns tainted memories taints the call, so
//! the run is treated as if it had just read the untrusted content.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::{ErrorCategory, Timestamp};

use super::declared::{self, DeclaredTool};
use super::invalid;
use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::memory::{Caller, FoundMemory, MemoryPort, MemoryReach, NewMemory};
use crate::tool::{CallContext, Tool};

/// The maximum number of search results.
const MAX_RESULTS: usize = 50;

pub(super) fn tools() -> [Result<Tool, ToolBuildError>; 7] {
    [
        with_memory(&declared::REMEMBER, |memory, caller, new: NewContent| {
            let kept = memory.remember(caller, new.into_memory())?;
            to_json(&RememberedAnswer {
                id: kept.id,
                known: kept.is_known,
            })
        }),
        search(&declared::RECALL),
        with_memory(&declared::FORGET, |memory, caller, document: DocumentId| {
            memory.forget(caller, &document.id)?;
            to_json(&ForgottenAnswer {
                id: document.id,
                forgotten: true,
            })
        }),
        search(&declared::SEARCH_MEMORIES),
        search(&declared::MEMORY_SEARCH),
        with_memory(
            &declared::STORE_DOCUMENT,
            |memory, caller, new: NewContent| {
                let kept = memory.remember(caller, new.into_memory())?;
                to_json(&StoredDocumentAnswer {
                    document_id: kept.id,
                    chunks: kept.chunks,
                    known: kept.is_known,
                })
            },
        ),
        search(&declared::SEMANTIC_SEARCH),
    ]
}

fn search(declared: &'static DeclaredTool) -> Result<Tool, ToolBuildError> {
    with_memory(declared, |memory, caller, search: SearchArguments| {
        let count = usize::try_from(search.max_results)
            .ok()
            .filter(|count| (1..=MAX_RESULTS).contains(count))
            .ok_or_else(|| invalid(format!("`max_results` must be 1 to {MAX_RESULTS}")))?;
        let reaches = match search.scope {
            ScopeWord::All => MemoryReach::ALL.to_vec(),
            ScopeWord::Agent => vec![MemoryReach::Agent],
            ScopeWord::Principal => vec![MemoryReach::Principal],
            ScopeWord::Run => vec![MemoryReach::Run],
        };
        let found = memory.search(caller, &reaches, &search.query, count)?;
        if found.iter().any(|found| found.is_tainted) {
            caller.taint.mark();
        }
        to_json(
            &found
                .into_iter()
                .map(MemoryHitAnswer::from)
                .collect::<Vec<_>>(),
        )
    })
}

/// A tool that does `work` in the memory of its caller.
fn with_memory<A, F>(declared: &'static DeclaredTool, work: F) -> Result<Tool, ToolBuildError>
where
    A: for<'de> Deserialize<'de> + Send + 'static,
    F: Fn(&dyn MemoryPort, &Caller, A) -> Result<Value, ToolError> + Copy + Send + Sync + 'static,
{
    declared
        .builder()
        .handler_with_context(move |arguments: Value, context: CallContext| async move {
            let arguments: A = serde_json::from_value(arguments)?;
            let (memory, caller) = memory_of(context)?;
            tokio::task::spawn_blocking(move || work(memory.as_ref(), &caller, arguments))
                .await
                .map_err(|error| ToolError::of(ErrorCategory::Internal, error.to_string()))?
        })
        .build()
}

fn memory_of(context: CallContext) -> Result<(Arc<dyn MemoryPort>, Caller), ToolError> {
    context.memory.zip(context.caller).ok_or_else(|| {
        let message = "memory is not available: the run is not kept in a store";
        ToolError::of(ErrorCategory::Unavailable, message).without_effect()
    })
}

fn to_json(result: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(result)
        .map_err(|error| ToolError::of(ErrorCategory::Internal, error.to_string()))
}

#[derive(Deserialize)]
struct NewContent {
    content: String,
    title: Option<String>,
    source: Option<String>,
    #[serde(default)]
    scope: ReachWord,
}

impl NewContent {
    fn into_memory(self) -> NewMemory {
        NewMemory {
            content: self.content,
            title: self.title,
            source: self.source,
            reach: match self.scope {
                ReachWord::Agent => MemoryReach::Agent,
                ReachWord::Principal => MemoryReach::Principal,
                ReachWord::Run => MemoryReach::Run,
            },
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReachWord {
    #[default]
    Agent,
    Principal,
    Run,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    #[serde(default = "default_max_results")]
    max_results: i64,
    #[serde(default)]
    scope: ScopeWord,
}

fn default_max_results() -> i64 {
    5
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeWord {
    #[default]
    All,
    Agent,
    Principal,
    Run,
}

#[derive(Deserialize)]
struct DocumentId {
    id: String,
}

#[derive(Serialize)]
struct RememberedAnswer {
    id: String,
    known: bool,
}

#[derive(Serialize)]
struct StoredDocumentAnswer {
    document_id: String,
    chunks: usize,
    known: bool,
}

#[derive(Serialize)]
struct ForgottenAnswer {
    id: String,
    forgotten: bool,
}

#[derive(Serialize)]
struct MemoryHitAnswer {
    id: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    score: f64,
    why: String,
    stored_at: Timestamp,
    untrusted: bool,
}

impl From<FoundMemory> for MemoryHitAnswer {
    fn from(found: FoundMemory) -> Self {
        Self {
            id: found.id,
            text: found.text,
            title: found.title,
            source: found.source,
            // Four decimals are enough for people and models.
            score: (f64::from(found.score) * 1e4).round() / 1e4,
            why: found.why,
            stored_at: found.stored_at,
            untrusted: found.is_tainted,
        }
    }
}
