//! Splits a compound task into parts, one for each request. A part becomes a step only if a tool fits it.

use crate::lexicon::words;
use crate::text::Text;

/// The most parts that a task is split into.
const MAX_PARTS: usize = 12;

/// The parts of a task, in order; the whole task if it cannot be split.
pub(crate) fn split(task: &str) -> Vec<String> {
    let text = Text::new(task);
    let quoted = quoted_tokens(&text);
    let mut parts = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while at < text.tokens.len() && parts.len() + 1 < MAX_PARTS {
        match boundary(&text, &quoted, at) {
            Some(next) if at > from => {
                push(&text, from, at, &mut parts);
                from = next;
                at = next;
            }
            _ => at += 1,
        }
    }
    push(&text, from, text.tokens.len(), &mut parts);
    if parts.is_empty() {
        parts.push(task.to_owned());
    }
    parts
}

fn push(text: &Text, from: usize, to: usize, parts: &mut Vec<String>) {
    let part = text.slice(from, to).trim();
    if part.chars().any(char::is_alphanumeric) {
        parts.push(part.to_owned());
    }
}

fn quoted_tokens(text: &Text) -> Vec<bool> {
    let mut inside = vec![false; text.tokens.len()];
    let verbatim = crate::extract::quoted::quotations(text)
        .into_iter()
        .chain(crate::extract::quoted::brackets(text));
    for part in verbatim {
        let to = part.to.min(inside.len());
        if part.from < to {
            inside[part.from..to].fill(true);
        }
    }
    inside
}

/// Whether a word is one letter, as in `e.g.` and initials.
pub(crate) fn is_letter(word: &str) -> bool {
    word.chars().count() == 1 && word.chars().all(char::is_alphabetic)
}

/// The start of the next part, if a part ends at this token.
fn boundary(text: &Text, quoted: &[bool], at: usize) -> Option<usize> {
    if quoted[at] {
        return None;
    }
    let token = &text.tokens[at];
    let next_is_spaced = text.tokens.get(at + 1).is_none_or(|next| next.spaced);
    let lower = token.lower.as_str();
    if matches!(lower, "." | "!" | "?" | ";" | "。" | "！" | "？") {
        let abbreviation = lower == "."
            && (is_letter(text.before(at))
                || matches!(
                    text.before(at),
                    "mr" | "mrs" | "dr" | "st" | "inc" | "ltd" | "vs"
                ));
        return (next_is_spaced && !abbreviation).then_some(at + 1);
    }
    if matches!(lower, "then" | "afterwards" | "finally" | "next" | "also") {
        let leads = matches!(text.before(at), "and" | "," | "." | ";");
        let verb = words::is_request_verb(text.lower(at + 1)) || text.lower(at + 1) == ",";
        return (leads && verb).then_some(at + 1);
    }
    if matches!(lower, "and" | ",") {
        let mut next = at + 1;
        while matches!(
            text.lower(next),
            "then" | "also" | "and" | "please" | "finally" | ","
        ) {
            next += 1;
        }
        // A request verb begins a new part: `and send it`, but not `search and rescue team`.
        let asks = words::is_request_verb(text.lower(next));
        let object = text.tokens.get(next + 1).is_some_and(|object| {
            words::is_determiner(&object.lower)
                || words::is_pronoun(&object.lower)
                || object.is_number()
                || object.capital
                || object.is('\'')
                || object.is('"')
                || words::is_preposition(&object.lower)
                || !words::is_function_word(&object.lower) && lower == "and"
        });
        return (asks && object).then_some(next);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_split_at_each_new_request() {
        assert_eq!(
            split("Find the weather in Paris, then book a table for 2 and send it to Ann."),
            [
                "Find the weather in Paris",
                "book a table for 2",
                "send it to Ann"
            ]
        );
        assert_eq!(
            split("Add 1 and 2. Then greet Mr. Smith."),
            ["Add 1 and 2", "Then greet Mr. Smith"]
        );
    }

    #[test]
    fn quotations_and_lists_are_not_split() {
        for task in [
            "Send 'Hi. Find me and call me.'",
            "Compare cats, dogs and birds",
            "",
            "🦀",
        ] {
            assert_eq!(split(task).len(), 1, "{task}");
        }
    }
}
