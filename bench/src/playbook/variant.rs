//! Variants of a task: the same template with other values. File names, quoted names and numbers that are in both
//! the user's text and the expected calls are replaced in the text, in the initial state of the APIs and in the
//! expected calls. Each replacement is checked by a replay of the expected calls. A value that the APIs do not
//! accept in another form stays as it is.

use serde_json::{Map, Number, Value};

use crate::random::{Random, seeded};
use crate::tasks::Task;
use crate::world::World;

/// The words of new names.
const NOUNS: [&str; 40] = [
    "harbour", "meadow", "lantern", "copper", "willow", "ember", "quartz", "saddle", "falcon",
    "orchard", "pebble", "timber", "violet", "canyon", "marble", "thistle", "anchor", "velvet",
    "cobalt", "juniper", "prairie", "walnut", "beacon", "glacier", "hazel", "ivory", "kestrel",
    "lagoon", "maple", "nectar", "opal", "plume", "raven", "sable", "tundra", "umber", "valley",
    "wicker", "yarrow", "zephyr",
];

/// The longest quotation that counts as a name, in words.
const MAX_WORDS: usize = 4;

/// The same task with other values; `None` if no value can be replaced.
pub async fn variant(world: &World, task: &Task, seed: u64) -> anyhow::Result<Option<Task>> {
    let mut random = seeded(seed, &task.id);
    let mut changed = task.clone();
    for old in values(task) {
        let new = new_value(&old, &mut random, &changed);
        let tried = replace_value(&changed, &old, &new);
        if world.replay(&tried).await?.is_empty() {
            changed = tried;
        }
    }
    Ok((changed.turns != task.turns).then_some(changed))
}

/// The values in the user's text that the expected calls use, longest first.
fn values(task: &Task) -> Vec<String> {
    let calls: Vec<&String> = task.expected.calls.iter().flatten().collect();
    let is_used = |value: &str| calls.iter().any(|call| find(call, value, 0).is_some());
    let mut values = Vec::new();
    for text in &task.turns {
        let mentioned = quotations(text).into_iter().chain(plain_values(text));
        for value in mentioned.filter(|value| is_used(value)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    // Longest first, because a name may be part of another.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// The texts in quotation marks that are short enough to be a name.
fn quotations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in ['\'', '"'] {
        let parts: Vec<&str> = text.split(mark).collect();
        // An apostrophe may look like an opening mark, so the text between any two marks is checked.
        for part in parts.iter().skip(1).take(parts.len().saturating_sub(2)) {
            let is_name = part.chars().any(char::is_alphabetic)
                && part.trim() == *part
                && part.split(' ').count() <= MAX_WORDS
                && part
                    .chars()
                    .all(|c| c.is_alphanumeric() || " _-.".contains(c));
            if is_name {
                found.push((*part).to_owned());
            }
        }
    }
    found
}

/// File names and numbers of at least two digits.
fn plain_values(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
    let words = words.map(|word| word.trim_matches(['.', '-']));
    let is_value = |word: &&str| is_number(word) || is_file_name(word);
    words.filter(is_value).map(str::to_owned).collect()
}

fn is_number(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    digits >= 2
        && word.parse::<f64>().is_ok()
        && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_file_name(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.chars().any(char::is_alphabetic)
            && (2..=4).contains(&ending.len())
            && ending
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && ending.starts_with(|c: char| c.is_ascii_lowercase())
    })
}

/// A value of the same form that is not in the task.
fn new_value(old: &str, random: &mut Random, task: &Task) -> String {
    let known = serde_json::to_string(task).unwrap_or_default();
    loop {
        let new = match old.rsplit_once('.') {
            _ if is_number(old) => number_like(old, random),
            Some((stem, ending)) if is_file_name(old) => {
                format!("{}.{ending}", words_like(stem, random))
            }
            _ => words_like(old, random),
        };
        if new != old && find(&known, &new, 0).is_none() {
            return new;
        }
    }
}

/// A number with the same number of digits.
fn number_like(old: &str, random: &mut Random) -> String {
    let mut is_first = true;
    let digits = old.chars().map(|c| match c {
        '.' => '.',
        _ => {
            // The first digit is not 0, so that the length stays the same.
            let least = u32::from(std::mem::take(&mut is_first));
            let digit = least + u32::try_from(random.below(10 - least as usize)).unwrap_or(0);
            char::from_digit(digit, 10).unwrap_or('7')
        }
    });
    digits.collect()
}

/// The same number of words, with the separators and the case of the old ones.
fn words_like(old: &str, random: &mut Random) -> String {
    let mut new = String::new();
    for part in old.split_inclusive([' ', '_', '-']) {
        let (word, joint) = match part.char_indices().last() {
            Some((at, last)) if " _-".contains(last) => part.split_at(at),
            _ => (part, ""),
        };
        let noun = NOUNS[random.below(NOUNS.len())];
        let is_capital = |c: char| c.is_uppercase();
        if word.len() > 1 && word.chars().filter(|c| c.is_alphabetic()).all(is_capital) {
            new.push_str(&noun.to_uppercase());
        } else if word.starts_with(is_capital) {
            new.push_str(&noun[..1].to_uppercase());
            new.push_str(&noun[1..]);
        } else {
            new.push_str(noun);
        }
        new.push_str(joint);
    }
    new
}

/// The task with one value replaced wherever it is a whole word.
fn replace_value(task: &Task, old: &str, new: &str) -> Task {
    let mut changed = task.clone();
    for text in &mut changed.turns {
        *text = replace_words(text, old, new);
    }
    for call in changed.expected.calls.iter_mut().flatten() {
        // The tool name stays the same.
        if let Some((tool, arguments)) = call.split_once('(') {
            *call = format!("{tool}({}", replace_words(arguments, old, new));
        }
    }
    for state in changed.initial_config.values_mut() {
        replace_in(state, old, new);
    }
    changed
}

fn replace_in(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) => *text = replace_words(text, old, new),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| replace_in(value, old, new)),
        Value::Object(fields) => {
            let fields_before = std::mem::take(fields);
            let renamed = fields_before.into_iter().map(|(key, mut value)| {
                replace_in(&mut value, old, new);
                (replace_words(&key, old, new), value)
            });
            *fields = renamed.collect::<Map<_, _>>();
        }
        Value::Number(number) => {
            let is_old = |old: f64| is_number_text(new) && number.as_f64() == Some(old);
            if old.parse().is_ok_and(is_old)
                && let Some(other) = number_as(number, new)
            {
                *number = other;
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn is_number_text(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// The number `new`, an integer if `old` is one.
fn number_as(old: &Number, new: &str) -> Option<Number> {
    match (old.is_f64(), new.parse::<i64>()) {
        (false, Ok(whole)) => Some(whole.into()),
        _ => Number::from_f64(new.parse().ok()?),
    }
}

fn replace_words(text: &str, old: &str, new: &str) -> String {
    let mut changed = String::new();
    let mut from = 0;
    while let Some(at) = find(text, old, from) {
        changed.push_str(&text[from..at]);
        changed.push_str(new);
        from = at + old.len();
    }
    changed + &text[from..]
}

/// The position of a value as a whole word or number, not as part of a longer one.
fn find(text: &str, value: &str, from: usize) -> Option<usize> {
    let is_word_character = |c: char| c.is_alphanumeric() || c == '_';
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut places = text[from..].match_indices(value).map(|(at, _)| from + at);
    places.find(|&at| {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        let is_alone =
            !before.ends_with(is_word_character) && !after.starts_with(is_word_character);
        let mut ahead = after.chars();
        let continues = ahead.next() == Some('.') && is_digit(ahead.next());
        let mut behind = before.chars().rev();
        let is_continuation = behind.next() == Some('.') && is_digit(behind.next());
        is_alone && !(is_number(value) && (continues || is_continuation))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::tests::task;

    #[test]
    fn values_are_in_the_text_and_in_a_call() {
        assert_eq!(values(&task()), ["final_report.pdf", "temp", "20"]);
    }

    #[test]
    fn value_is_replaced_as_a_whole_word_everywhere() {
        let changed = replace_value(&task(), "final_report.pdf", "draft_budget.pdf");
        let changed = replace_value(&changed, "20", "31");
        assert_eq!(changed.turns[1], "Show its last 31 lines.");
        assert_eq!(
            changed.expected.calls[0][1],
            "mv('draft_budget.pdf', 'temp')"
        );
        let root = &changed.initial_config["GorillaFileSystem"]["root"];
        let file = &root["draft_budget.pdf"];
        assert_eq!(file["content"], "draft_budget.pdf has 31 or 2000 lines");
        assert_eq!(file["size"], 31);
        assert!(
            !serde_json::to_string(&changed)
                .expect("JSON")
                .contains("final_report")
        );
    }

    #[test]
    fn part_of_a_longer_number_is_not_replaced() {
        assert_eq!(
            replace_words("20 and 20.5, 3.20 or 120. It is 20.", "20", "31"),
            "31 and 20.5, 3.20 or 120. It is 31."
        );
    }

    #[test]
    fn new_values_have_the_form_of_the_old() {
        let mut random = seeded(3, "");
        let file = new_value("final_report.pdf", &mut random, &task());
        assert!(
            is_file_name(&file) && file.ends_with(".pdf") && file.contains('_'),
            "{file}"
        );
        let number = new_value("150.75", &mut random, &task());
        assert!(is_number(&number) && number.len() == 6, "{number}");
        let name = new_value("Budget Analysis", &mut random, &task());
        assert!(
            name.split(' ')
                .all(|word| word.starts_with(char::is_uppercase)),
            "{name}"
        );
        let symbol = new_value("XTC", &mut random, &task());
        assert!(symbol.chars().all(char::is_uppercase), "{symbol}");
    }
}
