//! The tools of memory: to remember, to look for what was remembered, to forget. They act for whoever makes
//! the call and see nothing else. When something that once came from outside is found, the call says so,
//! and the run is as careful as if it had just read it there.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::{ErrorCategory, Timestamp};

use super::declared::{self, Declared};
use super::invalid;
use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::memory::{Caller, FoundMemory, MemoryPort, MemoryReach, NewMemory};
use crate::tool::{CallContext, Tool};

/// More results help nobody.
const MOST_RESULTS: usize = 50;

pub(super) fn tools() -> [Result<Tool, ToolBuildError>; 7] {
    [
        with_memory(&declared::REMEMBER, |memory, caller, new: Content| {
            let kept = memory.remember(caller, new.into_memory())?;
            answer(&Remembered {
                id: kept.id,
                known: kept.is_known,
            })
        }),
        search(&declared::RECALL),
        with_memory(&declared::FORGET, |memory, caller, which: Which| {
            memory.forget(caller, &which.id)?;
            answer(&Forgotten {
                id: which.id,
                forgotten: true,
            })
        }),
        search(&declared::SEARCH_MEMORIES),
        search(&declared::MEMORY_SEARCH),
        with_memory(&declared::STORE_DOCUMENT, |memory, caller, new: Content| {
            let kept = memory.remember(caller, new.into_memory())?;
            answer(&StoredDocument {
                document_id: kept.id,
                chunks: kept.chunks,
                known: kept.is_known,
            })
        }),
        search(&declared::SEMANTIC_SEARCH),
    ]
}

fn search(declared: &'static Declared) -> Result<Tool, ToolBuildError> {
    with_memory(declared, |memory, caller, wanted: Wanted| {
        let count = usize::try_from(wanted.max_results)
            .ok()
            .filter(|count| (1..=MOST_RESULTS).contains(count))
            .ok_or_else(|| invalid(format!("max_results is 1 to {MOST_RESULTS}")))?;
        let reaches = match wanted.scope {
            ScopeWord::All => MemoryReach::ALL.to_vec(),
            ScopeWord::Agent => vec![MemoryReach::Agent],
            ScopeWord::Principal => vec![MemoryReach::Principal],
            ScopeWord::Run => vec![MemoryReach::Run],
        };
        let found = memory.search(caller, &reaches, &wanted.query, count)?;
        if found.iter().any(|found| found.is_tainted) {
            caller.taint.mark();
        }
        answer(&found.into_iter().map(Hit::from).collect::<Vec<_>>())
    })
}

/// The tool that does `work` in the memory of its caller.
fn with_memory<A, F>(declared: &'static Declared, work: F) -> Result<Tool, ToolBuildError>
where
    A: for<'de> Deserialize<'de> + Send + 'static,
    F: Fn(&dyn MemoryPort, &Caller, A) -> Result<Value, ToolError> + Copy + Send + Sync + 'static,
{
    declared
        .builder()
        .in_context(move |arguments: Value, context: CallContext| async move {
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
        let message = "nothing is remembered here: the run is not kept in a store";
        ToolError::of(ErrorCategory::Unavailable, message).without_effect()
    })
}

fn answer(result: &impl Serialize) -> Result<Value, ToolError> {
    serde_json::to_value(result)
        .map_err(|error| ToolError::of(ErrorCategory::Internal, error.to_string()))
}

#[derive(Deserialize)]
struct Content {
    content: String,
    title: Option<String>,
    source: Option<String>,
    #[serde(default)]
    scope: ReachWord,
}

impl Content {
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
struct Wanted {
    query: String,
    #[serde(default = "five")]
    max_results: i64,
    #[serde(default)]
    scope: ScopeWord,
}

fn five() -> i64 {
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
struct Which {
    id: String,
}

#[derive(Serialize)]
struct Remembered {
    id: String,
    known: bool,
}

#[derive(Serialize)]
struct StoredDocument {
    document_id: String,
    chunks: usize,
    known: bool,
}

#[derive(Serialize)]
struct Forgotten {
    id: String,
    forgotten: bool,
}

#[derive(Serialize)]
struct Hit {
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

impl From<FoundMemory> for Hit {
    fn from(found: FoundMemory) -> Self {
        Self {
            id: found.id,
            text: found.text,
            title: found.title,
            source: found.source,
            // What is shown need not be longer than what it tells.
            score: (f64::from(found.score) * 1e4).round() / 1e4,
            why: found.why,
            stored_at: found.stored_at,
            untrusted: found.is_tainted,
        }
    }
}
