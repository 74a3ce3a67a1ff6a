//! Ranks tools for a task by meaning, by shared words, and by the words of their names.

use std::collections::HashSet;

use windlass_embed::{Bm25Index, tool_text};

use crate::meaning::Meaning;
use crate::text::{Text, beginning, name_words, stem};
use crate::{ToolView, lexicon::words};

/// The number of tools that are compared in detail.
const MAX_RANKED: usize = 8;

/// A tool with its scores for a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankedTool {
    /// The tool's index.
    pub(crate) index: usize,
    /// How well it fits the task.
    pub(crate) score: f32,
    /// The similarity of task and tool by meaning alone.
    pub(crate) similarity: f32,
    /// The share of the words of the tool's name that are in the task.
    pub(crate) named: f32,
}

/// The tools that fit a task best, best first, up to a small limit.
pub(crate) fn rank(task: &Text, tools: &[ToolView<'_>], meaning: &Meaning) -> Vec<RankedTool> {
    if tools.is_empty() {
        return Vec::new();
    }
    let source = task.source.as_str();
    let task_stems = stems(task);
    let texts: Vec<String> = tools.iter().map(|tool| whole_text(tool)).collect();
    let shared = Bm25Index::build(&texts).scores(source);
    let most = shared.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let query = meaning.of(source);
    let mut ranked: Vec<RankedTool> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            let short = tool_text(tool.name, beginning(tool.description, 600));
            let similarity = query.cosine(&meaning.of(&short));
            let named = name_share(tool.name, &task_stems);
            let words = shared.get(index).copied().unwrap_or(0.0) / most;
            RankedTool {
                index,
                score: similarity + 0.25 * words + 0.2 * named,
                similarity,
                named,
            }
        })
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
    ranked.truncate(MAX_RANKED);
    // Comparing parameters costs more, so only the best tools are compared by them.
    for one in &mut ranked {
        let text = &texts[one.index];
        one.score += 0.5 * query.cosine(&meaning.of(text));
    }
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
    ranked
}

/// The scores of one tool by itself, without the score for shared words, which needs other tools.
pub(crate) fn rank_one(task: &Text, tool: &ToolView<'_>, meaning: &Meaning) -> RankedTool {
    let short = tool_text(tool.name, beginning(tool.description, 600));
    let similarity = meaning.of(&task.source).cosine(&meaning.of(&short));
    let named = name_share(tool.name, &stems(task));
    RankedTool {
        index: 0,
        score: similarity + 0.2 * named,
        similarity,
        named,
    }
}

fn stems(task: &Text) -> HashSet<&str> {
    let words = task.tokens.iter().filter(|token| token.is_word());
    words.map(|token| token.stem.as_str()).collect()
}

/// Name, description and parameters as one text.
pub(crate) fn whole_text(tool: &ToolView<'_>) -> String {
    let mut text = tool_text(tool.name, beginning(tool.description, 600));
    let properties = tool
        .input_schema
        .get("properties")
        .and_then(serde_json::Value::as_object);
    for (name, property) in properties.into_iter().flatten().take(30) {
        text.push_str(". ");
        text.push_str(&name_words(name).join(" "));
        if let Some(description) = property
            .get("description")
            .and_then(serde_json::Value::as_str)
        {
            text.push_str(": ");
            text.push_str(beginning(description, 160));
        }
        if let Some(options) = property.get("enum").and_then(serde_json::Value::as_array) {
            for option in options
                .iter()
                .take(12)
                .filter_map(serde_json::Value::as_str)
            {
                text.push(' ');
                text.push_str(beginning(option, 40));
            }
        }
    }
    text
}

fn name_share(name: &str, task: &HashSet<&str>) -> f32 {
    let stems: Vec<String> = name_words(name)
        .iter()
        .filter(|word| !words::is_function_word(word) && word.len() > 1)
        .map(|word| stem(word))
        .collect();
    if stems.is_empty() {
        return 0.0;
    }
    let shared = stems
        .iter()
        .filter(|stem| task.contains(stem.as_str()))
        .count();
    shared as f32 / stems.len() as f32
}

/// The stems of a tool's name and description. Its arguments rarely contain them.
pub(crate) fn tool_stems(tool: &ToolView<'_>) -> HashSet<String> {
    let described = Text::new(beginning(tool.description, 600));
    name_words(tool.name)
        .iter()
        .map(|word| stem(word))
        .chain(
            described
                .tokens
                .into_iter()
                .filter(|token| token.is_word() && !words::is_function_word(&token.lower))
                .map(|token| token.stem),
        )
        .collect()
}
