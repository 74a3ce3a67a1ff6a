//! The way from tools to memory: what the built-in tools ask of it, and for whom they act. Whoever drives
//! runs stands behind it; no tool is told where things are kept, and nothing a model says names another
//! tenant, principal, agent or run than its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_spec::{AgentName, CallId, RunId, Timestamp};

use crate::error::ToolError;

/// For whom a call is made.
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
    /// Whether the run had read something from outside before the call was asked for.
    pub is_tainted: bool,
    /// To be marked if the result comes from outside, though the tool does not reach there.
    pub taint: Taint,
}

/// Whether the result of a call comes from outside. Copies are of one call.
#[derive(Debug, Clone, Default)]
pub struct Taint(Arc<AtomicBool>);

impl Taint {
    /// It does.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was marked.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Whose memory is meant, among those of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryReach {
    /// That of the agent, in all its runs for the principal.
    Agent,
    /// That of all agents that work for the principal.
    Principal,
    /// That of the run alone.
    Run,
}

impl MemoryReach {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Principal, Self::Run];
}

/// Something to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// What.
    pub content: String,
    /// What it is called.
    pub title: Option<String>,
    /// Where it came from; the run, if nothing is said.
    pub source: Option<String>,
    /// Whose memory it becomes.
    pub reach: MemoryReach,
}

/// What was remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMemory {
    /// The id of the document.
    pub id: String,
    /// In how many parts it is kept.
    pub chunks: usize,
    /// Whether it was known before.
    pub is_known: bool,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMemory {
    /// The id of the document.
    pub id: String,
    /// The part of it that was found.
    pub text: String,
    /// What it is called.
    pub title: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// How well it fits.
    pub score: f32,
    /// Why it was found.
    pub why: String,
    /// When it was stored or last told again.
    pub stored_at: Timestamp,
    /// Whether it comes from outside.
    pub is_tainted: bool,
}

/// Where memories are kept. Everything blocks. Only what is the caller's own is seen or changed.
pub trait MemoryPort: Send + Sync {
    /// Remembers something. What is known already is not stored twice.
    ///
    /// # Errors
    /// If it cannot be remembered.
    fn remember(&self, caller: &Caller, new: NewMemory) -> Result<KeptMemory, ToolError>;

    /// What fits a query best, best first.
    ///
    /// # Errors
    /// If nothing can be looked for.
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
