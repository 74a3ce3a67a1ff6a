//! Describes the first difference of two JSON values.

use serde_json::Value;

/// How many characters of a value are shown around its difference.
const SHOWN: usize = 60;

/// The first difference, with its JSON pointer. `None` if the values are equal.
pub(super) fn first_difference(recorded: &Value, asked: &Value) -> Option<String> {
    difference("", recorded, asked)
}

fn difference(pointer: &str, recorded: &Value, asked: &Value) -> Option<String> {
    match (recorded, asked) {
        (Value::Object(old), Value::Object(new)) => {
            let step =
                |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            let missing = old.keys().find(|name| !new.contains_key(*name));
            let added = new.keys().find(|name| !old.contains_key(*name));
            let inside = || {
                old.iter()
                    .find_map(|(name, value)| difference(&step(name), value, new.get(name)?))
            };
            missing
                .map(|name| format!("at {} it had a value, now it has none", step(name)))
                .or_else(|| {
                    added.map(|name| format!("at {} it had no value, now it has one", step(name)))
                })
                .or_else(inside)
        }
        (Value::Array(old), Value::Array(new)) => {
            let pairs = old.iter().zip(new).enumerate();
            let inside = pairs
                .map(|(index, (old, new))| difference(&format!("{pointer}/{index}"), old, new))
                .find_map(|found| found);
            let counted = || {
                (old.len() != new.len()).then(|| {
                    format!(
                        "at {pointer} it had {} items, now it has {}",
                        old.len(),
                        new.len()
                    )
                })
            };
            inside.or_else(counted)
        }
        _ if recorded == asked => None,
        _ => {
            let (old, new) = around(recorded, asked);
            Some(format!("at {pointer} it was {old}, now it is {new}"))
        }
    }
}

/// Both values from shortly before their first difference.
fn around(recorded: &Value, asked: &Value) -> (String, String) {
    let (old, new) = (recorded.to_string(), asked.to_string());
    let same = old
        .chars()
        .zip(new.chars())
        .take_while(|(old, new)| old == new)
        .count();
    let from = same.saturating_sub(SHOWN / 3);
    let cut = |text: &str| {
        let shown: String = text.chars().skip(from).take(SHOWN).collect();
        let before = if from > 0 { "..." } else { "" };
        let after = if text.chars().count() > from + SHOWN {
            "..."
        } else {
            ""
        };
        format!("{before}{shown}{after}")
    };
    (cut(&old), cut(&new))
}
