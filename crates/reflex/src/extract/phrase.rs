//! Phrases that could be a value: runs of words between function words, and phrases joined by `of`.

use super::{Mention, MentionKind};
use crate::lexicon::words;
use crate::text::{Text, TokenKind};

/// The longest phrase in tokens.
const LONGEST: usize = 8;

/// All phrases outside of other mentions.
pub(crate) fn phrases(text: &Text, taken: &[bool]) -> Vec<Mention> {
    let runs = runs(text, taken);
    let mut found: Vec<Mention> = runs
        .iter()
        .map(|&(from, to)| Mention {
            kind: MentionKind::Phrase,
            from,
            to,
        })
        .collect();
    for &(from, to) in runs.iter().filter(|(from, to)| to - from > 1) {
        found.extend(
            (from..to)
                .filter(|&at| {
                    let token = &text.tokens[at];
                    token.is_word() && !token.capital && token.lower.len() > 2
                })
                .map(|at| Mention {
                    kind: MentionKind::Word,
                    from: at,
                    to: at + 1,
                }),
        );
    }
    for pair in runs.windows(2) {
        let [(from, end), (next, to)] = *pair else {
            continue;
        };
        let joined = text.lower(end) == "of"
            && (next == end + 1 || next == end + 2 && words::is_determiner(text.lower(end + 1)));
        if joined && to - from <= LONGEST {
            found.push(Mention {
                kind: MentionKind::Phrase,
                from,
                to,
            });
        }
    }
    found
}

fn runs(text: &Text, taken: &[bool]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        if !belongs(text, taken, at) || opens_request(text, at) {
            at += 1;
            continue;
        }
        let mut to = at + 1;
        while to < text.tokens.len() && to - at < LONGEST {
            let token = &text.tokens[to];
            let hyphen = token.is('-') && !token.spaced;
            if hyphen
                && to + 1 < text.tokens.len()
                && !text.tokens[to + 1].spaced
                && belongs(text, taken, to + 1)
            {
                to += 2;
            } else if belongs(text, taken, to) {
                to += 1;
            } else {
                break;
            }
        }
        runs.push((at, to));
        at = to;
    }
    runs
}

fn belongs(text: &Text, taken: &[bool], at: usize) -> bool {
    let token = &text.tokens[at];
    token.kind == TokenKind::Word
        && !taken.get(at).copied().unwrap_or(true)
        && !words::is_function_word(&token.lower)
}

/// Whether a token is a verb that begins a request: `Find`, `Calculate`, `to book`.
fn opens_request(text: &Text, at: usize) -> bool {
    let before = text.before(at);
    let leads = text.begins_sentence(at)
        || matches!(
            before,
            "to" | "please"
                | "you"
                | "and"
                | "i"
                | "also"
                | "then"
                | "can"
                | "could"
                | "me"
                | ","
                | "let"
                | "us"
        );
    words::is_request_verb(text.lower(at)) && leads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(source: &str) -> Vec<String> {
        let text = Text::new(source);
        let taken = vec![false; text.tokens.len()];
        phrases(&text, &taken)
            .iter()
            .filter(|mention| mention.kind == MentionKind::Phrase)
            .map(|mention| text.slice(mention.from, mention.to).to_owned())
            .collect()
    }

    #[test]
    fn phrases_lie_between_function_words() {
        assert_eq!(
            written("Find the theory of evolution for a gluten-free cookie"),
            [
                "theory",
                "evolution",
                "gluten-free cookie",
                "theory of evolution"
            ]
        );
    }

    #[test]
    fn request_verbs_are_not_values() {
        assert_eq!(
            written("Please calculate it and show me"),
            Vec::<String>::new()
        );
    }
}
