//! The ranking of tools for a text: which fit best, and which fit into a budget of tokens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_reflex::{ToolIndex, ToolView};
use windlass_spec::ToolSpecification;

/// The tokens of a tool's definition, estimated.
pub(crate) fn estimated_tokens(tool: &ToolSpecification) -> usize {
    windlass_reflex::estimated_tokens(&ToolView::from(tool))
}

/// How many indexes are cached. A crew has few sets of tools and searches the same ones repeatedly.
const MAX_INDEXES: usize = 8;

/// The indexes of the sets of tools that were searched, the most recently used first. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolIndexes(Arc<Mutex<VecDeque<IndexedTools>>>);

/// A set of tools with its index.
#[derive(Debug, Clone)]
struct IndexedTools {
    tools: Vec<Arc<ToolSpecification>>,
    index: Arc<ToolIndex>,
}

impl IndexedTools {
    /// Whether these are the tools, in this order.
    fn is_of(&self, tools: &[&Arc<ToolSpecification>]) -> bool {
        let is_same = |(one, other): (&Arc<ToolSpecification>, &&Arc<ToolSpecification>)| {
            Arc::ptr_eq(one, other) || one == *other
        };
        self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(is_same)
    }
}

impl ToolIndexes {
    /// The positions of the tools that fit a query best, at most `limit`.
    pub(crate) fn search(
        &self,
        tools: &[&Arc<ToolSpecification>],
        query: &str,
        limit: usize,
    ) -> Vec<usize> {
        let index = self.of(tools);
        let hits = index.search(query, limit);
        hits.iter().map(|hit| hit.index).collect()
    }

    /// The positions of the tools that are shown for a task within a budget of tokens, and of the others. The
    /// tools in `always` come first.
    pub(crate) fn select(
        &self,
        tools: &[&Arc<ToolSpecification>],
        task: &str,
        token_budget: usize,
        always: &[&str],
    ) -> (Vec<usize>, Vec<usize>) {
        let selected = self.of(tools).select(task, token_budget, always);
        (selected.offered, selected.left_out)
    }

    /// The index of these tools, built when they are first searched.
    pub(crate) fn of(&self, tools: &[&Arc<ToolSpecification>]) -> Arc<ToolIndex> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = {
            let mut cached = lock();
            let position = cached.iter().position(|indexed| indexed.is_of(tools));
            position.and_then(|position| cached.remove(position))
        };
        // The lock is not held while the index is built. At worst two threads build the same one.
        let indexed = found.unwrap_or_else(|| IndexedTools {
            tools: tools.iter().map(|tool| Arc::clone(tool)).collect(),
            index: Arc::new(ToolIndex::build(
                tools.iter().map(|tool| ToolView::from(&***tool)),
            )),
        });
        let index = Arc::clone(&indexed.index);
        let mut cached = lock();
        cached.push_front(indexed);
        cached.truncate(MAX_INDEXES);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_set_of_tools_is_built_once() {
        let agent = |names: &[&str]| {
            let tools: Vec<String> = names
                .iter()
                .map(|name| {
                    format!("[{name}:Tool {{description: \"Does {name} for a user\"}} | (a::Text)==>(::Text)]")
                })
                .collect();
            let text = format!(
                "[helper:Agent {{instruction: \"Help.\", model: \"OpenAI/gpt-4o-mini\"}} | {}]",
                tools.join(", ")
            );
            windlass_spec::read(&text).file.unwrap().agents()[0].clone()
        };
        let indexes = ToolIndexes::default();
        let index_of =
            |agent: &windlass_spec::Agent| indexes.of(&agent.tools().iter().collect::<Vec<_>>());
        let two = agent(&["search", "send"]);
        let first = index_of(&two);
        assert!(Arc::ptr_eq(&first, &index_of(&two)));
        // A journal that is read again has equal tools at another address.
        assert!(Arc::ptr_eq(&first, &index_of(&agent(&["search", "send"]))));
        assert!(!Arc::ptr_eq(&first, &index_of(&agent(&["search"]))));
        assert!(!Arc::ptr_eq(&first, &index_of(&agent(&["search", "post"]))));
        assert!(Arc::ptr_eq(&first, &index_of(&two)));
    }
}
