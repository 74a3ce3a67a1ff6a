//! The table of words in `lexicon.txt`, parsed once. [`super::words`] looks words up; [`super::reading`]
//! decides what a name or description means.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The kind of action that a verb names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ActionKind {
    /// It reads.
    Read,
    /// It makes a change that can be undone.
    Change,
    /// It runs something; the object decides.
    Run,
    /// It is permanent: it loses, pays or publishes something.
    Final,
}

/// A word that may be a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verb {
    pub(super) action: ActionKind,
    /// Whether the word is also a noun.
    pub(super) is_also_noun: bool,
}

/// Other properties of a word. A word may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    ReadAsThing,
    Code,
    Question,
    Money,
    PaidFor,
    Secret,
    FinalAsNoun,
    Disk,
    ReadNoun,
    Hardening,
    TakenBack,
    LeadIn,
    SqlFinal,
    SqlChange,
    SqlHarmless,
    Carrier,
    Preposition,
}

/// The sections with words of one kind, by heading.
const KINDS: [(&str, WordKind); 17] = [
    ("read as thing", WordKind::ReadAsThing),
    ("code", WordKind::Code),
    ("question", WordKind::Question),
    ("money", WordKind::Money),
    ("paid for", WordKind::PaidFor),
    ("secret", WordKind::Secret),
    ("final as noun", WordKind::FinalAsNoun),
    ("disk", WordKind::Disk),
    ("read noun", WordKind::ReadNoun),
    ("hardening", WordKind::Hardening),
    ("taken back", WordKind::TakenBack),
    ("lead in", WordKind::LeadIn),
    ("sql final", WordKind::SqlFinal),
    ("sql change", WordKind::SqlChange),
    ("sql harmless", WordKind::SqlHarmless),
    ("carrier", WordKind::Carrier),
    ("preposition", WordKind::Preposition),
];

/// The sections with verbs, by heading.
const VERBS: [(&str, ActionKind, bool); 8] = [
    ("read", ActionKind::Read, false),
    ("read or noun", ActionKind::Read, true),
    ("change", ActionKind::Change, false),
    ("change or noun", ActionKind::Change, true),
    ("run", ActionKind::Run, false),
    ("run or noun", ActionKind::Run, true),
    ("final", ActionKind::Final, false),
    ("final or noun", ActionKind::Final, true),
];

/// The whole table.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    verbs: HashMap<&'static str, Verb>,
    kinds: HashMap<&'static str, u32>,
    irregular: HashMap<&'static str, &'static str>,
    /// Phrases and their kind of action, in the order in which they are tried.
    pub(super) phrases: Vec<(Vec<&'static str>, ActionKind)>,
    /// Phrases that make an action permanent.
    pub(super) grave: Vec<&'static str>,
    /// Phrases that promise that nothing changes.
    pub(super) harmless: Vec<&'static str>,
}

/// The table.
pub(super) static LEXICON: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::read(include_str!("lexicon.txt")));

impl Lexicon {
    /// The verb of that base form.
    pub(super) fn verb(&self, word: &str) -> Option<Verb> {
        self.verbs.get(word).copied()
    }

    /// Whether a word is of that kind.
    pub(super) fn is(&self, word: &str, kind: WordKind) -> bool {
        self.kinds
            .get(word)
            .is_some_and(|kinds| kinds & (1 << kind as u32) != 0)
    }

    /// Whether the table has the word as it is.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.verbs.contains_key(word) || self.kinds.contains_key(word)
    }

    /// The base of an irregular form.
    pub(super) fn irregular(&self, word: &str) -> Option<&'static str> {
        self.irregular.get(word).copied()
    }

    fn read(text: &'static str) -> Self {
        let mut lexicon = Self::default();
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                Some(heading) => section = heading,
                None => lexicon.add(section, line),
            }
        }
        lexicon
    }

    fn add(&mut self, section: &str, line: &'static str) {
        let words = line.split_ascii_whitespace();
        match section {
            "grave" => self.grave.push(line),
            "harmless" => self.harmless.push(line),
            "phrases: final" => self.phrases.push((words.collect(), ActionKind::Final)),
            "phrases: change" => self.phrases.push((words.collect(), ActionKind::Change)),
            "phrases: read" => self.phrases.push((words.collect(), ActionKind::Read)),
            "irregular" => self.irregular.extend(line.split_once(' ')),
            _ => {
                for &(_, action, is_also_noun) in VERBS.iter().filter(|(name, ..)| *name == section)
                {
                    let verb = Verb {
                        action,
                        is_also_noun,
                    };
                    self.verbs.extend(words.clone().map(|word| (word, verb)));
                }
                for &(_, kind) in KINDS.iter().filter(|(name, _)| *name == section) {
                    for word in words.clone() {
                        *self.kinds.entry(word).or_default() |= 1 << kind as u32;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const TEXT: &str = include_str!("lexicon.txt");

    #[test]
    fn every_section_of_the_table_is_known_and_filled() {
        let special = [
            "grave",
            "harmless",
            "irregular",
            "phrases: final",
            "phrases: change",
            "phrases: read",
        ];
        let known: HashSet<&str> = VERBS
            .iter()
            .map(|(name, ..)| *name)
            .chain(KINDS.iter().map(|(name, _)| *name))
            .chain(special)
            .collect();
        let found: HashSet<&str> = TEXT
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'))
            .collect();
        assert_eq!(found, known);
        for (name, kind) in KINDS {
            let filled = LEXICON.kinds.values().any(|k| k & (1 << kind as u32) != 0);
            assert!(filled, "[{name}] is empty");
        }
    }

    #[test]
    fn every_verb_occurs_once_in_the_table() {
        let mut seen = HashSet::new();
        let mut section = "";
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                Some(heading) => section = heading,
                None if VERBS.iter().any(|(name, ..)| *name == section) => {
                    for word in line.split_ascii_whitespace() {
                        assert!(seen.insert(word), "`{word}` occurs twice");
                    }
                }
                None => {}
            }
        }
        assert!(seen.len() > 300);
    }
}
