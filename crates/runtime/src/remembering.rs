//! What stands behind the tools of memory: the store's memory, seen with the eyes of whoever calls. Here it
//! is decided which scopes a caller has, and that what a tainted run remembers is tainted.

use std::sync::Arc;

use windlass_spec::ErrorCategory;
use windlass_store::{
    Memory, MemoryError, MemoryScope, NewDocument, Reach, RememberOutcome, Store,
};
use windlass_tools::{
    Caller, FoundMemory, KeptMemory, MemoryPort, MemoryReach, NewMemory, ToolError,
};

use crate::stored::Clock;

/// How many runs work for each other at most when it is looked whether one of them is tainted.
const MOST_PARENTS: usize = 100;

/// The memory of a store, as tools see it.
pub(crate) struct Remembering {
    memory: Memory,
    store: Arc<Store>,
    clock: Clock,
}

impl Remembering {
    pub(crate) fn new(store: Arc<Store>, clock: Clock) -> Self {
        Self {
            memory: Memory::new(Arc::clone(&store)),
            store,
            clock,
        }
    }

    /// Whether what the caller tells may come from outside: it has read something there, or whoever it
    /// works for had when the work was handed over. What cannot be told is taken for tainted.
    fn is_tainted(&self, caller: &Caller) -> bool {
        if caller.is_tainted {
            return true;
        }
        let mut parent = caller.parent.clone();
        for _ in 0..MOST_PARENTS {
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
        MemoryReach::Agent => Reach::Agent(caller.agent.to_string()),
        MemoryReach::Principal => Reach::Principal,
        MemoryReach::Run => Reach::Run(caller.run.to_string()),
    };
    MemoryScope::new(&caller.tenant, &caller.principal, reach)
}

impl MemoryPort for Remembering {
    fn remember(&self, caller: &Caller, new: NewMemory) -> Result<KeptMemory, ToolError> {
        let document = NewDocument {
            title: new.title,
            source: new.source.or_else(|| Some(format!("run:{}", caller.run))),
            is_tainted: self.is_tainted(caller),
            ..NewDocument::new(new.content, (self.clock)())
        };
        let stored = self
            .memory
            .remember(&scope(caller, new.reach), document)
            .map_err(told)?;
        Ok(KeptMemory {
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
        let hits = self.memory.search(&scopes, query, count).map_err(told)?;
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
        // A model names what it means in full; the start of an id is for people who see the list.
        let document = self.memory.document(&scopes, id).map_err(told)?;
        if document.id != id {
            return Err(told(MemoryError::NoSuchDocument(id.to_owned())));
        }
        self.memory.forget(&scopes, id).map_err(told)
    }
}

/// What the model is told. What the database says is for the operator.
fn told(error: MemoryError) -> ToolError {
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
