//! The table of words in `lexicon.txt`, read once. Nothing is decided here: [`super::words`] looks
//! words up, [`super::reading`] decides what a name or description says with them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a word says is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// Something is looked at.
    Read,
    /// Something is changed, and can be changed back.
    Change,
    /// Something is set going; what it is decides.
    Run,
    /// Something is lost, paid, made public or otherwise done for good.
    Final,
}

/// What is known of a word that may be a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verb {
    pub(super) deed: Deed,
    /// Whether the word also names a thing.
    pub(super) or_noun: bool,
}

/// What a word means beside what it does. A word may be several of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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

/// The sections that list words of one kind, by their heading.
const KINDS: [(&str, Kind); 17] = [
    ("read as thing", Kind::ReadAsThing),
    ("code", Kind::Code),
    ("question", Kind::Question),
    ("money", Kind::Money),
    ("paid for", Kind::PaidFor),
    ("secret", Kind::Secret),
    ("final as noun", Kind::FinalAsNoun),
    ("disk", Kind::Disk),
    ("read noun", Kind::ReadNoun),
    ("hardening", Kind::Hardening),
    ("taken back", Kind::TakenBack),
    ("lead in", Kind::LeadIn),
    ("sql final", Kind::SqlFinal),
    ("sql change", Kind::SqlChange),
    ("sql harmless", Kind::SqlHarmless),
    ("carrier", Kind::Carrier),
    ("preposition", Kind::Preposition),
];

/// The sections that list verbs, by their heading.
const VERBS: [(&str, Deed, bool); 8] = [
    ("read", Deed::Read, false),
    ("read or noun", Deed::Read, true),
    ("change", Deed::Change, false),
    ("change or noun", Deed::Change, true),
    ("run", Deed::Run, false),
    ("run or noun", Deed::Run, true),
    ("final", Deed::Final, false),
    ("final or noun", Deed::Final, true),
];

/// The whole table.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    verbs: HashMap<&'static str, Verb>,
    kinds: HashMap<&'static str, u32>,
    irregular: HashMap<&'static str, &'static str>,
    /// Phrases and what they say is done, in the order in which they are tried.
    pub(super) phrases: Vec<(Vec<&'static str>, Deed)>,
    /// Phrases that make a deed final.
    pub(super) grave: Vec<&'static str>,
    /// Phrases that promise that nothing is changed.
    pub(super) harmless: Vec<&'static str>,
}

/// The table.
pub(super) static LEXICON: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::read(include_str!("lexicon.txt")));

impl Lexicon {
    /// What is known of a verb in its base form.
    pub(super) fn verb(&self, word: &str) -> Option<Verb> {
        self.verbs.get(word).copied()
    }

    /// Whether a word is of that kind.
    pub(super) fn is(&self, word: &str, kind: Kind) -> bool {
        self.kinds
            .get(word)
            .is_some_and(|kinds| kinds & (1 << kind as u32) != 0)
    }

    /// Whether the table holds the word as it is.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.verbs.contains_key(word) || self.kinds.contains_key(word)
    }

    /// The base of a form that no rule reduces.
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
            "phrases: final" => self.phrases.push((words.collect(), Deed::Final)),
            "phrases: change" => self.phrases.push((words.collect(), Deed::Change)),
            "phrases: read" => self.phrases.push((words.collect(), Deed::Read)),
            "irregular" => self.irregular.extend(line.split_once(' ')),
            _ => {
                for &(_, deed, or_noun) in VERBS.iter().filter(|(name, ..)| *name == section) {
                    let verb = Verb { deed, or_noun };
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
            assert!(filled, "nothing is in [{name}]");
        }
    }

    #[test]
    fn no_verb_stands_twice_in_the_table() {
        let mut seen = HashSet::new();
        let mut section = "";
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                Some(heading) => section = heading,
                None if VERBS.iter().any(|(name, ..)| *name == section) => {
                    for word in line.split_ascii_whitespace() {
                        assert!(seen.insert(word), "`{word}` stands twice");
                    }
                }
                None => {}
            }
        }
        assert!(seen.len() > 300);
    }
}
