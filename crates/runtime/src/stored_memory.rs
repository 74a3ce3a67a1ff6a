//! The implementation of the memory tools: the store's memory, restricted to the scopes of the caller. What a
//! tainted run remembers is tainted.

use std::sync::Arc;

use windlass_spec::ErrorCategory;
use windlass_store::{
    Memory, MemoryError, MemoryScope, NewDocument, RememberOutcome, ScopeReach, Store,
};
use windlass_tools::{
    Caller, FoundMemory, MemoryPort, MemoryReach, NewMemory, SavedMemory, ToolError,
};

use crate::stored::Clock;

/// The longest chain of parent runs that is checked for taint.
const MAX_PARENTS: usize = 100;

/// The memory of a store, as the memory tools use it.
pub(crate) struct StoredMemory {
    memory: Memory,
    store: Arc<Store>,
    clock: Clock,
}

impl StoredMemory {
    pub(crate) fn new(store: Arc<Store>, clock: Clock) -> Self {
        Self {
            memory: Memory::new(Arc::clone(&store)),
            store,
            clock,
        }
    }

    /// Whether the caller's text may come from untrusted content: its run is tainted, or a parent run was
    /// when it called the sub-agent. Unknown counts as tainted.
    fn is_tainted(&self, caller: &Caller) -> bool {
        if caller.is_tainted {
            return true;
        }
        let mut parent = caller.parent.clone();
        for _ in 0..MAX_PARENTS {
            let Some(call) = parent else {
                return false;
            };
            let Ok(run) = self.store.fold(&call.run) else {
                return true;
            };
            if run.is_tainted_at(&call).unwrap_or(true) {
                return true;
            }
            parent = run.parent().cloned();
        }
        true
    }
}

fn scope(caller: &Caller, reach: MemoryReach) -> MemoryScope {
    let reach = match reach {
        MemoryReach::Agent => ScopeReach::Agent(caller.agent.to_string()),
        MemoryReach::Principal => ScopeReach::Principal,
        MemoryReach::Run => ScopeReach::Run(caller.run.to_string()),
    };
    MemoryScope::new(&caller.tenant, &caller.principal, reach)
}

impl MemoryPort for StoredMemory {
    fn remember(&self, caller: &Caller, new: NewMemory) -> Result<SavedMemory, ToolError> {
        let document = NewDocument {
            title: new.title,
            source: new.source.or_else(|| Some(format!("run:{}", caller.run))),
            is_tainted: self.is_tainted(caller),
            ..NewDocument::new(new.content, (self.clock)())
        };
        let stored = self
            .memory
            .remember(&scope(caller, new.reach), document)
            .map_err(to_tool_error)?;
        Ok(SavedMemory {
            id: stored.id,
            chunks: stored.chunks,
            is_known: stored.outcome == RememberOutcome::Known,
        })
    }

    fn search(
        &self,
        caller: &Caller,
        reaches: &[MemoryReach],
        query: &str,
        count: usize,
    ) -> Result<Vec<FoundMemory>, ToolError> {
        let scopes: Vec<MemoryScope> = reaches.iter().map(|reach| scope(caller, *reach)).collect();
        let hits = self
            .memory
            .search(&scopes, query, count)
            .map_err(to_tool_error)?;
        let found = hits.into_iter().map(|hit| FoundMemory {
            id: hit.document,
            text: hit.text,
            title: hit.title,
            source: hit.source,
            score: hit.score,
            why: hit.why,
            stored_at: hit.stored_at,
            is_tainted: hit.tainted,
        });
        Ok(found.collect())
    }

    fn forget(&self, caller: &Caller, id: &str) -> Result<(), ToolError> {
        let scopes = MemoryReach::ALL.map(|reach| scope(caller, reach));
        // A model must give the full id. Only people may shorten it.
        let document = self.memory.document(&scopes, id).map_err(to_tool_error)?;
        if document.id != id {
            return Err(to_tool_error(MemoryError::NoSuchDocument(id.to_owned())));
        }
        self.memory.forget(&scopes, id).map_err(to_tool_error)
    }
}

/// The error for the model. The database's message is for the operator only.
fn to_tool_error(error: MemoryError) -> ToolError {
    match &error {
        MemoryError::Store(_) => ToolError::foreign(ErrorCategory::Internal, error.to_string()),
        MemoryError::Embedder(_) => {
            ToolError::foreign(ErrorCategory::Unavailable, error.to_string())
        }
        MemoryError::OtherEmbedder { .. } | MemoryError::Reembedding(_) | MemoryError::InUse => {
            ToolError::of(ErrorCategory::Unavailable, error.to_string()).without_effect()
        }
        _ => ToolError::of(ErrorCategory::InvalidArguments, error.to_string()).without_effect(),
    }
}
