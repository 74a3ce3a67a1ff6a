//! Variants of a task: the same template with other values in it. File names, quoted names and numbers that
//! the user says and the expected calls use are replaced by others, in what the user says, in the first state
//! of the APIs and in the expected calls alike. What the APIs do not take that way (a name that means
//! something to them, say) is left as it was: each value is tried by a replay of the expected calls.

use serde_json::{Map, Number, Value};

use crate::random::{Random, chance};
use crate::tasks::Task;
use crate::world::World;

/// What new names are made of.
const NOUNS: [&str; 40] = [
    "harbour", "meadow", "lantern", "copper", "willow", "ember", "quartz", "saddle", "falcon",
    "orchard", "pebble", "timber", "violet", "canyon", "marble", "thistle", "anchor", "velvet",
    "cobalt", "juniper", "prairie", "walnut", "beacon", "glacier", "hazel", "ivory", "kestrel",
    "lagoon", "maple", "nectar", "opal", "plume", "raven", "sable", "tundra", "umber", "valley",
    "wicker", "yarrow", "zephyr",
];

/// The longest quotation that is taken for a name, in words.
const MAX_WORDS: usize = 4;

/// The same task with other values. Nothing if none can be replaced.
pub async fn variant(world: &World, task: &Task, seed: u64) -> anyhow::Result<Option<Task>> {
    let mut random = chance(seed, &task.id);
    let mut changed = task.clone();
    for old in values(task) {
        let new = other(&old, &mut random, &changed);
        let tried = renamed(&changed, &old, &new);
        if world.replay(&tried).await?.is_empty() {
            changed = tried;
        }
    }
    Ok((changed.turns != task.turns).then_some(changed))
}

/// The values a user says that the expected calls use, in the order in which they are said.
fn values(task: &Task) -> Vec<String> {
    let calls: Vec<&String> = task.expected.calls.iter().flatten().collect();
    let is_used = |value: &str| calls.iter().any(|call| find(call, value, 0).is_some());
    let mut values = Vec::new();
    for text in &task.turns {
        let said = quotations(text).into_iter().chain(plain_values(text));
        for value in said.filter(|value| is_used(value)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    // The longest first: a name may be part of another.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}

/// What stands in quotation marks, if it is short enough to be a name.
fn quotations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in ['\'', '"'] {
        let parts: Vec<&str> = text.split(mark).collect();
        // An apostrophe may begin what looks like a quotation: what lies between any two marks is looked at.
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

/// A value of the same form that the task does not have.
fn other(old: &str, random: &mut Random, task: &Task) -> String {
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

/// A number with as many digits.
fn number_like(old: &str, random: &mut Random) -> String {
    let mut is_first = true;
    let digits = old.chars().map(|c| match c {
        '.' => '.',
        _ => {
            // The first is not 0, so that it stays as long as it is.
            let least = u32::from(std::mem::take(&mut is_first));
            let digit = least + u32::try_from(random.below(10 - least as usize)).unwrap_or(0);
            char::from_digit(digit, 10).unwrap_or('7')
        }
    });
    digits.collect()
}

/// As many words, joined and written as the old ones are.
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

/// The task with one value replaced wherever it stands by itself.
fn renamed(task: &Task, old: &str, new: &str) -> Task {
    let mut changed = task.clone();
    for text in &mut changed.turns {
        *text = replaced(text, old, new);
    }
    for call in changed.expected.calls.iter_mut().flatten() {
        // What is called stays the same.
        if let Some((tool, arguments)) = call.split_once('(') {
            *call = format!("{tool}({}", replaced(arguments, old, new));
        }
    }
    for state in changed.initial_config.values_mut() {
        rename_in(state, old, new);
    }
    changed
}

fn rename_in(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) => *text = replaced(text, old, new),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| rename_in(value, old, new)),
        Value::Object(fields) => {
            let fields_before = std::mem::take(fields);
            let renamed = fields_before.into_iter().map(|(key, mut value)| {
                rename_in(&mut value, old, new);
                (replaced(&key, old, new), value)
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

/// A number as `new` says, whole if `old` is.
fn number_as(old: &Number, new: &str) -> Option<Number> {
    match (old.is_f64(), new.parse::<i64>()) {
        (false, Ok(whole)) => Some(whole.into()),
        _ => Number::from_f64(new.parse().ok()?),
    }
}

fn replaced(text: &str, old: &str, new: &str) -> String {
    let mut changed = String::new();
    let mut from = 0;
    while let Some(at) = find(text, old, from) {
        changed.push_str(&text[from..at]);
        changed.push_str(new);
        from = at + old.len();
    }
    changed + &text[from..]
}

/// Where a value stands by itself, not as a part of a longer word or number.
fn find(text: &str, value: &str, from: usize) -> Option<usize> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut places = text[from..].match_indices(value).map(|(at, _)| from + at);
    places.find(|&at| {
        let (before, after) = (&text[..at], &text[at + value.len()..]);
        let is_alone = !before.ends_with(is_of_word) && !after.starts_with(is_of_word);
        let mut ahead = after.chars();
        let goes_on = ahead.next() == Some('.') && is_digit(ahead.next());
        let mut behind = before.chars().rev();
        let came_before = behind.next() == Some('.') && is_digit(behind.next());
        is_alone && !(is_number(value) && (goes_on || came_before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::tests::task;

    #[test]
    fn values_are_what_a_user_says_and_a_call_uses() {
        assert_eq!(values(&task()), ["final_report.pdf", "temp", "20"]);
    }

    #[test]
    fn a_value_is_replaced_wherever_it_stands_by_itself() {
        let changed = renamed(&task(), "final_report.pdf", "draft_budget.pdf");
        let changed = renamed(&changed, "20", "31");
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
    fn a_number_is_not_part_of_another() {
        assert_eq!(
            replaced("20 and 20.5, 3.20 or 120. It is 20.", "20", "31"),
            "31 and 20.5, 3.20 or 120. It is 31."
        );
    }

    #[test]
    fn new_values_have_the_form_of_the_old() {
        let mut random = chance(3, "");
        let file = other("final_report.pdf", &mut random, &task());
        assert!(
            is_file_name(&file) && file.ends_with(".pdf") && file.contains('_'),
            "{file}"
        );
        let number = other("150.75", &mut random, &task());
        assert!(is_number(&number) && number.len() == 6, "{number}");
        let name = other("Budget Analysis", &mut random, &task());
        assert!(
            name.split(' ')
                .all(|word| word.starts_with(char::is_uppercase)),
            "{name}"
        );
        let symbol = other("XTC", &mut random, &task());
        assert!(symbol.chars().all(char::is_uppercase), "{symbol}");
    }
}
