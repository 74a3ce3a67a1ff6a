//! The features of a task and a tool, from which the probability of a gap is computed.

use serde_json::Value;
use windlass_reflex::{Reflex, ToolView, content_words, content_words_of_name, mentioned_values};

use super::words::{Meanings, Word, coverage, implied};

/// How many features there are.
pub(super) const COUNT: usize = 10;

/// A description of each feature, for readers of the weights.
pub(super) const NAMES: [&str; COUNT] = [
    "similarity of the embeddings of task and tool",
    "words of the description that the task covers",
    "words of the description's first clause that the task covers",
    "words of the name that are in the task",
    "the word of the name that the task covers least",
    "words of the task that the tool covers",
    "the first words of the task that the tool covers",
    "the word of the task that the tool misses most",
    "required arguments that the task does not give",
    "whether the task gives all required arguments",
];

/// The features of one task and one tool.
pub(super) type Features = [f64; COUNT];

/// The longest description that is read, in bytes.
const LONGEST_DESCRIPTION: usize = 600;
/// The most parameters of a tool that are read.
const MOST_PARAMETERS: usize = 30;
/// The most words of a text that are compared.
const MOST_WORDS: usize = 200;
/// How many first words of a task count as its subject.
const HEAD: usize = 3;

/// The words of a tool.
#[derive(Debug, Clone)]
pub(super) struct ToolWords {
    name: Vec<Word>,
    /// The words of the description.
    description: Vec<Word>,
    /// The words of its first clause, which usually names the action.
    first_clause: Vec<Word>,
    /// The words of the names and descriptions of parameters.
    parameters: Vec<Word>,
}

impl ToolWords {
    pub(super) fn new(tool: &ToolView<'_>, meanings: &mut Meanings) -> Self {
        let description = beginning(tool.description, LONGEST_DESCRIPTION);
        Self {
            name: limited(meanings.words(content_words_of_name(tool.name))),
            description: limited(meanings.words(content_words(description))),
            first_clause: limited(meanings.words(content_words(first_clause(description)))),
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

/// The words of a task.
#[derive(Debug)]
pub(super) struct TaskWords<'a> {
    text: &'a str,
    words: Vec<Word>,
    /// Words that the text implies, see [`implied`].
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

    /// Whether it has words that can be compared with a tool.
    pub(super) fn has_content(&self) -> bool {
        self.words.iter().any(|word| !word.light)
    }
}

/// Computes the features of one task and one tool.
pub(super) fn features(
    task: &TaskWords<'_>,
    tool: &ToolView<'_>,
    words: &ToolWords,
    reflex: &Reflex,
) -> Features {
    let fit = reflex.fit(task.text, tool);
    let task_words: Vec<&Word> = task.words.iter().collect();
    let task_and_implied: Vec<&Word> = task.words.iter().chain(&task.implied).collect();
    let name: Vec<&Word> = words.name.iter().collect();
    let heavy_name: Vec<&Word> = words.name.iter().filter(|word| !word.light).collect();
    let own: Vec<&Word> = distinct(words.name.iter().chain(&words.description));
    let heavy_own: Vec<&Word> = own.iter().copied().filter(|word| !word.light).collect();
    let first: Vec<&Word> = words
        .first_clause
        .iter()
        .filter(|word| !word.light)
        .collect();
    let whole: Vec<&Word> = distinct(own.iter().copied().chain(&words.parameters));
    // Arguments, names and words like `find` do not identify the tool.
    let asked: Vec<&Word> = task_words
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

    let of_own = coverage(&heavy_own, &task_and_implied).map_or(0.0, |found| found.mean);
    let of_task = coverage(&asked, &whole);
    let missing = fit.missing.len() as f64;
    [
        f64::from(fit.similarity),
        of_own,
        coverage(&first, &task_and_implied).map_or(of_own, |found| found.mean),
        coverage(&heavy_name, &task_and_implied).map_or(0.0, |found| found.exact),
        coverage(&name, &task_words).map_or(0.0, |found| found.least),
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
    // An empty clause is skipped.
    let end = ends.filter(|end| *end > 0).min();
    &description[..end.unwrap_or(description.len())]
}
