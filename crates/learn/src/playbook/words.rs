//! The text of learned strategies. It consists of tool names, error categories and the task as the person wrote
//! it. It never contains tool output.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use windlass_spec::text::{TextUse, strip};
use windlass_spec::{
    ErrorCategory, NonEmptyText, StrategyId, StrategySection, ToolCallingStrategy, ToolName,
};

/// The most characters of a task that are quoted.
const QUOTED: usize = 240;

/// The id of a learned strategy: the same for the same tools in the same section, for every learner. A strategy
/// without tools is identified by its text.
#[must_use]
pub(super) fn strategy_id(
    section: StrategySection,
    sequence: &[ToolName],
    content: &str,
) -> StrategyId {
    let mut text = section.as_str().to_owned();
    for tool in sequence {
        let _ = write!(text, "\u{0}{tool}");
    }
    if sequence.is_empty() {
        let _ = write!(text, "\u{0}\u{0}{}", content.trim());
    }
    StrategyId::of_digest(section, &Sha256::digest(text.as_bytes()))
}

/// The id of a strategy: its own, else the one that it would be learned under.
#[must_use]
pub fn id_of(strategy: &ToolCallingStrategy) -> StrategyId {
    strategy.id.clone().unwrap_or_else(|| {
        let content = strategy.content.as_str();
        strategy_id(strategy.section, strategy.tool_sequence(), content)
    })
}

/// A task in one line, shortened for a quotation.
pub(super) fn quote_task(task: &str) -> String {
    let visible = |c: char| match c {
        '"' | '`' => '\'',
        c if c.is_whitespace() => ' ',
        c => c,
    };
    let text: String = task.chars().map(visible).collect();
    let text = strip(&text, TextUse::Display);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(QUOTED) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Tool names in the order to call them, as text.
fn in_order(sequence: &[ToolName]) -> String {
    let names: Vec<String> = sequence.iter().map(|name| format!("`{name}`")).collect();
    names.join(", then ")
}

/// The text of a strategy that was learned from success. Files and logs store it: if it changes, stored
/// strategies count as edited.
pub(super) fn success_text(sequence: &[ToolName], task: Option<&NonEmptyText>) -> NonEmptyText {
    let calls = in_order(sequence);
    let text = match task {
        Some(task) => format!("For tasks like \"{}\": {calls}.", quote_task(task.as_str())),
        None => format!("These calls went well together: {calls}."),
    };
    NonEmptyText::or(&text, "-")
}

/// The text of a pitfall.
pub(super) fn pitfall_text(
    sequence: &[ToolName],
    category: Option<ErrorCategory>,
    task: Option<&NonEmptyText>,
) -> NonEmptyText {
    let about = match task {
        Some(task) => format!(" for tasks like \"{}\"", quote_task(task.as_str())),
        None => String::new(),
    };
    let text = match (category, sequence) {
        (Some(category), [before, failed]) => {
            format!("Avoid, right after `{before}`, `{failed}`{about}: it failed ({category}).")
        }
        (Some(category), [.., failed]) => {
            format!("Avoid `{failed}`{about}: it failed ({category}).")
        }
        (None, _) | (_, []) => {
            format!(
                "Avoid {}{about}: the task was not done.",
                in_order(sequence)
            )
        }
    };
    NonEmptyText::or(&text, "-")
}
