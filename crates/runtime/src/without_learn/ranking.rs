//! Without the feature `learn`, tools are ranked by the words that they share with a text.

use std::sync::Arc;

use windlass_spec::ToolSpecification;

/// The bytes of a token, roughly.
const BYTES_PER_TOKEN: usize = 4;

/// The tokens of a tool's definition, estimated.
pub(crate) fn estimated_tokens(tool: &ToolSpecification) -> usize {
    let schema = tool.schema().to_string();
    (tool.name().as_str().len() + tool.description().len() + schema.len()) / BYTES_PER_TOKEN
}

/// The sets of tools that were searched. Ranking by words needs no index.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolIndexes {}

impl ToolIndexes {
    /// The positions of the tools that share most words with a query, at most `limit`.
    pub(crate) fn search(
        &self,
        tools: &[&Arc<ToolSpecification>],
        query: &str,
        limit: usize,
    ) -> Vec<usize> {
        let mut ranked = ranked(tools, query);
        ranked.retain(|(shared, _)| *shared > 0);
        ranked.truncate(limit);
        ranked.into_iter().map(|(_, position)| position).collect()
    }

    /// The positions of the tools that are shown for a task within a budget of tokens, and of the others. The tools
    /// in `always` come first.
    pub(crate) fn select(
        &self,
        tools: &[&Arc<ToolSpecification>],
        task: &str,
        token_budget: usize,
        always: &[&str],
    ) -> (Vec<usize>, Vec<usize>) {
        let is_named = |position: &usize| always.contains(&tools[*position].name().as_str());
        let ranked = ranked(tools, task)
            .into_iter()
            .map(|(_, position)| position);
        let (mut order, others): (Vec<usize>, Vec<usize>) = ranked.partition(is_named);
        order.sort_by_key(|position| {
            let name = tools[*position].name().as_str();
            always.iter().position(|named| *named == name)
        });
        order.extend(others);
        let mut left = token_budget;
        order.into_iter().partition(|position| {
            let tokens = estimated_tokens(tools[*position]);
            let fits = tokens <= left;
            left -= if fits { tokens } else { 0 };
            fits
        })
    }
}

/// The tools by the number of words that they share with a text, the most first.
fn ranked(tools: &[&Arc<ToolSpecification>], text: &str) -> Vec<(usize, usize)> {
    let wanted = words(text);
    let shared = |tool: &ToolSpecification| {
        let known = words(&format!("{} {}", tool.name(), tool.description()));
        wanted.iter().filter(|word| known.contains(word)).count()
    };
    let mut ranked: Vec<(usize, usize)> = tools
        .iter()
        .enumerate()
        .map(|(position, tool)| (shared(tool), position))
        .collect();
    ranked.sort_by_key(|(shared, position)| (std::cmp::Reverse(*shared), *position));
    ranked
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.chars().nth(2).is_some());
    words.map(str::to_lowercase).collect()
}
