//! The port from tools to memory: what the built-in tools need from it, and on whose behalf they act. The driver of
//! runs implements it. No tool knows where memories are stored, and no argument of a model can name another
//! tenant, principal, agent or run than its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_spec::{AgentName, CallId, RunId, Timestamp};

use crate::error::ToolError;

/// On whose behalf a call is made.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The organisation.
    pub tenant: String,
    /// The person or program on whose behalf the run acts.
    pub principal: String,
    /// The agent that makes the call.
    pub agent: AgentName,
    /// Its run.
    pub run: RunId,
    /// The call of another run that this one works for.
    pub parent: Option<CallId>,
    /// Whether the run had read untrusted content before the call was requested.
    pub is_tainted: bool,
    /// Set by a tool that is not open-world if its result contains untrusted content.
    pub taint: Taint,
}

/// Whether the result of a call contains untrusted content. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct Taint(Arc<AtomicBool>);

impl Taint {
    /// Marks the result as tainted.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the result is tainted.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Which of the caller's memories is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryReach {
    /// The memory of the agent, in all its runs for the principal.
    Agent,
    /// The memory of all agents that work for the principal.
    Principal,
    /// The memory of this run only.
    Run,
}

impl MemoryReach {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Principal, Self::Run];
}

/// A document to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Its text.
    pub content: String,
    /// Its title.
    pub title: Option<String>,
    /// Where it came from; the run by default.
    pub source: Option<String>,
    /// The memory to store it in.
    pub reach: MemoryReach,
}

/// The result of remembering a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedMemory {
    /// The id of the document.
    pub id: String,
    /// The number of its chunks.
    pub chunks: usize,
    /// Whether it was already stored.
    pub is_known: bool,
}

/// A search result.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMemory {
    /// The id of the document.
    pub id: String,
    /// The chunk of it that was found.
    pub text: String,
    /// Its title.
    pub title: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// The score.
    pub score: f32,
    /// Why it was found.
    pub why: String,
    /// When it was last stored.
    pub stored_at: Timestamp,
    /// Whether it is derived from untrusted content.
    pub is_tainted: bool,
}

/// Access to stored memories. All methods block. They see and change only the caller's own memories.
pub trait MemoryPort: Send + Sync {
    /// Stores a document. A known document is not stored twice.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn remember(&self, caller: &Caller, new: NewMemory) -> Result<SavedMemory, ToolError>;

    /// The best results for a query, best first.
    ///
    /// # Errors
    /// If the search is not possible.
    fn search(
        &self,
        caller: &Caller,
        reaches: &[MemoryReach],
        query: &str,
        count: usize,
    ) -> Result<Vec<FoundMemory>, ToolError>;

    /// Forgets a document for good.
    ///
    /// # Errors
    /// If the caller has no such document.
    fn forget(&self, caller: &Caller, id: &str) -> Result<(), ToolError>;
}
