//! Selects the tools that a model is shown if it cannot be shown all.

use windlass_spec::JsonSize;

use super::{ToolIndex, by_rank};
use crate::ToolView;

/// The tools of an index, split into those to offer and those to leave out, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSelection {
    /// The tools to offer: all in the given order, or the required ones and then the best.
    pub offered: Vec<usize>,
    /// The tools that are left out, best first.
    pub left_out: Vec<usize>,
    /// The estimated number of tokens of the offered tools.
    pub tokens: usize,
}

/// The estimated number of tokens of a tool's definition, rather too high than too low: two tokens for every
/// seven characters of name, description and JSON Schema, and eight for the provider's wrapping. Prose takes
/// fewer tokens, and JSON about as many.
#[must_use]
pub fn estimated_tokens(tool: &ToolView<'_>) -> usize {
    let written = [tool.name, tool.description].map(|text| text.chars().count());
    let characters = written.iter().sum::<usize>() + JsonSize::of(tool.input_schema).characters;
    (characters * 2).div_ceil(7) + 8
}

impl ToolIndex {
    /// The tools to show for `query` within `token_budget`. If all fit, all are offered, in the given order.
    /// Otherwise the tools named in `always` come first, in that order, then the others, best first. A tool that
    /// does not fit into the budget is skipped, and a smaller one after it may still be offered.
    #[must_use]
    pub fn select(&self, query: &str, token_budget: usize, always: &[&str]) -> ToolSelection {
        let all: usize = self.tools.iter().map(|tool| tool.tokens).sum();
        if all <= token_budget {
            return ToolSelection {
                offered: (0..self.len()).collect(),
                left_out: Vec::new(),
                tokens: all,
            };
        }
        let mut hits = self.scored(query);
        hits.sort_unstable_by(by_rank);
        let wanted = always.iter().flat_map(|name| {
            let named = self.tools.iter().enumerate();
            named.filter_map(move |(index, tool)| (tool.name == *name).then_some(index))
        });
        let mut seen = vec![false; self.len()];
        let mut selection = ToolSelection {
            offered: Vec::new(),
            left_out: Vec::new(),
            tokens: 0,
        };
        for index in wanted.chain(hits.iter().map(|hit| hit.index)) {
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            let tokens = self.tools[index].tokens;
            if selection.tokens + tokens <= token_budget {
                selection.tokens += tokens;
                selection.offered.push(index);
            } else {
                selection.left_out.push(index);
            }
        }
        selection
    }
}
