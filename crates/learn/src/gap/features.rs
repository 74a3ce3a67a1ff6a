//! What speaks for and against a tool being one that does what a text asks, as a few numbers.

use serde_json::Value;
use windlass_reflex::{Reflex, ToolView, content_words, content_words_of_name, mentioned_values};

use super::words::{Meanings, Word, coverage, implied};

/// How many numbers there are.
pub(super) const COUNT: usize = 10;

/// What each number is, for people who read the weights.
pub(super) const NAMES: [&str; COUNT] = [
    "likeness of task and tool by meaning",
    "words of the description that the task covers",
    "words of the description's first clause that the task covers",
    "words of the name that the task says",
    "the word of the name that the task covers least",
    "words of the task that the tool covers",
    "the first words of the task that the tool covers",
    "the word of the task that the tool misses most",
    "required arguments that the task does not give",
    "whether the task gives all required arguments",
];

/// The numbers of one task and one tool.
pub(super) type Features = [f64; COUNT];

/// How much of a description is read, in bytes.
const LONGEST_DESCRIPTION: usize = 600;
/// How many parameters of a tool are read.
const MOST_PARAMETERS: usize = 30;
/// How many words of a text are compared.
const MOST_WORDS: usize = 200;
/// How many of the first words of a task say best what it is about.
const HEAD: usize = 3;

/// A tool, read once.
#[derive(Debug, Clone)]
pub(super) struct ToolWords {
    name: Vec<Word>,
    /// Of the description.
    described: Vec<Word>,
    /// Of its first clause, which says what the tool does before it says to what.
    first: Vec<Word>,
    /// Of names and descriptions of parameters.
    parameters: Vec<Word>,
}

impl ToolWords {
    pub(super) fn new(tool: &ToolView<'_>, meanings: &mut Meanings) -> Self {
        let description = beginning(tool.description, LONGEST_DESCRIPTION);
        Self {
            name: limited(meanings.words(content_words_of_name(tool.name))),
            described: limited(meanings.words(content_words(description))),
            first: limited(meanings.words(content_words(first_clause(description)))),
            parameters: limited(meanings.words(parameter_words(tool.input_schema))),
        }
    }
}

fn parameter_words(schema: &Value) -> Vec<windlass_reflex::ContentWord> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut words = Vec::new();
    for (name, property) in properties.into_iter().flatten().take(MOST_PARAMETERS) {
        words.extend(content_words_of_name(name));
        if let Some(description) = property.get("description").and_then(Value::as_str) {
            words.extend(content_words(beginning(description, 160)));
        }
        let options = property.get("enum").and_then(Value::as_array);
        for option in options
            .into_iter()
            .flatten()
            .take(12)
            .filter_map(Value::as_str)
        {
            words.extend(content_words_of_name(beginning(option, 40)));
        }
    }
    words
}

/// A task, read once.
#[derive(Debug)]
pub(super) struct TaskWords<'a> {
    text: &'a str,
    words: Vec<Word>,
    /// What it says without words.
    implied: Vec<Word>,
}

impl<'a> TaskWords<'a> {
    pub(super) fn new(text: &'a str, meanings: &mut Meanings) -> Self {
        Self {
            text,
            words: limited(meanings.words(content_words(text))),
            implied: meanings.words(implied(text, &mentioned_values(text))),
        }
    }

    /// Whether it says anything that a tool could be held against.
    pub(super) fn says_something(&self) -> bool {
        self.words.iter().any(|word| !word.light)
    }
}

/// The numbers of one task and one tool.
pub(super) fn features(
    task: &TaskWords<'_>,
    tool: &ToolView<'_>,
    words: &ToolWords,
    reflex: &Reflex,
) -> Features {
    let fit = reflex.fit(task.text, tool);
    let said: Vec<&Word> = task.words.iter().collect();
    let meant: Vec<&Word> = task.words.iter().chain(&task.implied).collect();
    let name: Vec<&Word> = words.name.iter().collect();
    let heavy_name: Vec<&Word> = words.name.iter().filter(|word| !word.light).collect();
    let own: Vec<&Word> = distinct(words.name.iter().chain(&words.described));
    let heavy_own: Vec<&Word> = own.iter().copied().filter(|word| !word.light).collect();
    let first: Vec<&Word> = words.first.iter().filter(|word| !word.light).collect();
    let whole: Vec<&Word> = distinct(own.iter().copied().chain(&words.parameters));
    // What became an argument, a name or a mere `find` does not say which tool is meant.
    let asked: Vec<&Word> = said
        .iter()
        .copied()
        .filter(|word| {
            let used = |part: &std::ops::Range<usize>| {
                part.start < word.place.end && word.place.start < part.end
            };
            !word.name && !word.light && !word.asks && !fit.used.iter().any(used)
        })
        .collect();
    let head = &asked[..asked.len().min(HEAD)];

    let of_own = coverage(&heavy_own, &meant).map_or(0.0, |found| found.mean);
    let of_task = coverage(&asked, &whole);
    let missing = fit.missing.len() as f64;
    [
        f64::from(fit.likeness),
        of_own,
        coverage(&first, &meant).map_or(of_own, |found| found.mean),
        coverage(&heavy_name, &meant).map_or(0.0, |found| found.exact),
        coverage(&name, &said).map_or(0.0, |found| found.least),
        of_task.map_or(0.5, |found| found.mean),
        coverage(head, &whole).map_or(0.5, |found| found.mean),
        of_task.map_or(0.0, |found| found.most_missed),
        missing / (fit.required as f64).max(1.0),
        if fit.missing.is_empty() { 1.0 } else { 0.0 },
    ]
}

fn distinct<'a>(words: impl Iterator<Item = &'a Word>) -> Vec<&'a Word> {
    let mut known = std::collections::HashSet::new();
    words.filter(|word| known.insert(&word.stem)).collect()
}

fn limited(mut words: Vec<Word>) -> Vec<Word> {
    words.truncate(MOST_WORDS);
    words
}

/// The first bytes of a text, cut between characters.
pub(super) fn beginning(text: &str, longest: usize) -> &str {
    let mut end = text.len().min(longest);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn first_clause(description: &str) -> &str {
    const ENDS: [&str; 11] = [
        ".", ",", ";", " based ", " given ", " for ", " with ", " using ", " within ", " if ", ":",
    ];
    let ends = ENDS.iter().filter_map(|end| description.find(end));
    // A clause that ends where it begins says nothing.
    let end = ends.filter(|end| *end > 0).min();
    &description[..end.unwrap_or(description.len())]
}
