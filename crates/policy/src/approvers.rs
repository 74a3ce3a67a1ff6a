//! The annotations that say who has to approve: `@approvers("finance", 2)`, `@expires("4h")` and
//! `@escalate("leads", "1h")`.
//!
//! An annotation of Cedar has one text. So two values in an annotation are read as one text, which has the same place and
//! length in the file: every position in a message is that of the file.

use std::borrow::Cow;
use std::collections::BTreeSet;

use cedar_policy::Policy;
use serde::{Deserialize, Serialize};

use crate::error::{PolicyError, Problem};
use crate::load::{Draft, Policies};

/// The annotations with two values.
const PAIRS: [&str; 2] = ["approvers", "escalate"];

/// The most approvers of a group that a rule can demand.
const MAX_COUNT: usize = 16;

/// The longest time that an annotation can set, in seconds: 30 days.
const MAX_SECONDS: u64 = 30 * 24 * 60 * 60;

/// How many members of a group a rule demands, and who decides if they do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupDemand {
    /// The name of the group.
    pub group: String,
    /// How many approvers.
    pub count: usize,
    /// The group that may decide too, and after how many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<(String, u64)>,
}

/// What a rule demands of an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Demands {
    pub(crate) approvers: Option<GroupDemand>,
    pub(crate) expires_seconds: Option<u64>,
}

impl Demands {
    /// The demands of a rule whose annotations are valid.
    pub(crate) fn of(policy: &Policy) -> Self {
        let escalation = policy.annotation("escalate").and_then(escalation);
        let approvers = policy.annotation("approvers").and_then(group_and_count);
        Self {
            approvers: approvers.map(|(group, count)| GroupDemand {
                group,
                count,
                escalation,
            }),
            expires_seconds: policy.annotation("expires").and_then(seconds),
        }
    }
}

/// Combines the demands of the rules that decide: all groups have to agree, within the shortest time.
pub(crate) fn combine<'d>(
    demands: impl Iterator<Item = &'d Demands> + Clone,
) -> (Vec<GroupDemand>, Option<u64>) {
    let mut groups: Vec<GroupDemand> = Vec::new();
    for demand in demands.clone().filter_map(|one| one.approvers.as_ref()) {
        match groups.iter_mut().find(|one| one.group == demand.group) {
            Some(one) => {
                one.count = one.count.max(demand.count);
                // Others may decide only if every rule says so.
                if one.escalation != demand.escalation {
                    one.escalation = None;
                }
            }
            None => groups.push(demand.clone()),
        }
    }
    let expires = demands.filter_map(|one| one.expires_seconds).min();
    (groups, expires)
}

/// Checks the annotation of a rule. `None` if it is another one.
pub(crate) fn check(text: &str, draft: &Draft, key: &str, value: &str) -> Option<PolicyError> {
    let (is_valid, example) = match key {
        "approvers" => (
            group_and_count(value).is_some(),
            "@approvers(\"finance\", 2), with 1 to 16 approvers",
        ),
        "expires" => (
            seconds(value).is_some(),
            "@expires(\"4h\"), in s, m, h or d, at most 30 days",
        ),
        "escalate" => (
            escalation(value).is_some(),
            "@escalate(\"leads\", \"1h\"), in s, m, h or d, at most 30 days",
        ),
        _ => return None,
    };
    let at = draft.find(text, &format!("@{key}"));
    if !is_valid {
        let problem = Problem::InvalidAnnotation(key.to_owned());
        return Some(
            draft
                .error(text, at, problem)
                .hint(format!("write {example}")),
        );
    }
    let has_group = draft.policy.annotation("approvers").is_some();
    (key == "escalate" && !has_group).then(|| {
        let problem = Problem::EscalationWithoutGroup;
        let hint = "say with @approvers who has to approve first; without it every approver may";
        draft.error(text, at, problem).hint(hint)
    })
}

impl Policies {
    /// Checks that the groups of approvers that the rules name exist.
    ///
    /// # Errors
    /// One for each rule that names another group.
    pub fn check_groups(&self, groups: &BTreeSet<&str>) -> Result<(), Vec<PolicyError>> {
        let mut errors = Vec::new();
        for rule in self.rules() {
            let Some(demand) = &rule.demands.approvers else {
                continue;
            };
            let escalated = demand.escalation.as_ref().map(|(group, _)| group);
            for group in std::iter::once(&demand.group).chain(escalated) {
                if !groups.contains(group.as_str()) {
                    let problem = Problem::UnknownGroup(group.clone());
                    let error = PolicyError::new(Some(rule.place), Some(&rule.id), problem);
                    let error = error.near(group, groups.iter().copied());
                    errors.push(error.hint(format!(
                        "name its members in windlass.toml: [approvers.{group}] members = [...]"
                    )));
                }
            }
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(errors),
        }
    }
}

/// `finance` or `finance, 2`.
fn group_and_count(value: &str) -> Option<(String, usize)> {
    let (group, count) = match value.split_once(',') {
        Some((group, count)) => (group.trim(), count.trim().parse().ok()?),
        None => (value.trim(), 1),
    };
    let is_valid = is_group(group) && (1..=MAX_COUNT).contains(&count);
    is_valid.then(|| (group.to_owned(), count))
}

/// `leads, 1h`.
fn escalation(value: &str) -> Option<(String, u64)> {
    let (group, after) = value.split_once(',')?;
    let group = group.trim();
    is_group(group).then(|| Some((group.to_owned(), seconds(after)?)))?
}

fn is_group(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.bytes().all(is_letter)
}

/// A time such as `90s`, `30m`, `4h` or `2d`, in seconds.
fn seconds(value: &str) -> Option<u64> {
    let value = value.trim();
    let unit = value.chars().last()?;
    let number: u64 = value.strip_suffix(unit)?.parse().ok()?;
    let unit = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return None,
    };
    let seconds = number.checked_mul(unit)?;
    (1..=MAX_SECONDS).contains(&seconds).then_some(seconds)
}

/// The text for Cedar's parser: of the annotations with two values, each pair is one text, of the same length.
pub(crate) fn for_parser(text: &str) -> Cow<'_, str> {
    let mut pairs = Vec::new();
    let mut rest = 0;
    while let Some(offset) = text.get(rest..).and_then(|left| left.find(['"', '/', '@'])) {
        let at = rest + offset;
        let left = text.get(at..).unwrap_or_default();
        rest = at
            + match left.as_bytes().first() {
                Some(b'"') => text_length(left),
                Some(b'/') if left.starts_with("//") => left.find('\n').unwrap_or(left.len()),
                Some(b'@') => match pair(left) {
                    Some((start, end)) => {
                        pairs.push((at + start, at + end));
                        end
                    }
                    None => 1,
                },
                _ => 1,
            };
    }
    if pairs.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut read = String::with_capacity(text.len());
    let mut done = 0;
    for (start, end) in pairs {
        read.push_str(text.get(done..start).unwrap_or_default());
        let pair = text.get(start..end).unwrap_or_default();
        let values: String = pair.chars().filter(|letter| *letter != '"').collect();
        let width = pair.len().saturating_sub(2);
        read.push_str(&format!("\"{values:width$}\""));
        done = end;
    }
    read.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(read)
}

/// The length of the text literal at the start, with its quotes.
fn text_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// Where the two values of the annotation at the start are: from the first quote to the end of the second value.
fn pair(text: &str) -> Option<(usize, usize)> {
    let name = PAIRS
        .iter()
        .find(|name| text.get(1..).is_some_and(|rest| rest.starts_with(**name)))?;
    let mut at = skip_blanks(text, 1 + name.len());
    at = skip_blanks(text, expect(text, at, '(')?);
    let start = at;
    at = skip_blanks(text, simple_text(text, at)?);
    at = skip_blanks(text, expect(text, at, ',')?);
    let end = match text.get(at..)?.starts_with('"') {
        true => simple_text(text, at)?,
        false => {
            let digits = text
                .get(at..)?
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count();
            (digits > 0).then_some(at + digits)?
        }
    };
    expect(text, skip_blanks(text, end), ')')?;
    Some((start, end))
}

fn expect(text: &str, at: usize, letter: char) -> Option<usize> {
    text.get(at..)?
        .starts_with(letter)
        .then_some(at + letter.len_utf8())
}

fn skip_blanks(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.bytes().take_while(|byte| *byte == b' ').count()
}

/// The end of a text of letters, digits, `_`, `-` and blanks.
fn simple_text(text: &str, at: usize) -> Option<usize> {
    let start = expect(text, at, '"')?;
    let is_simple = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ');
    let length = text.get(start..)?.bytes().take_while(is_simple).count();
    expect(text, start + length, '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_become_one_text_of_the_same_length() {
        for (written, read) in [
            (r#"@approvers("finance", 2)"#, r#"@approvers("finance, 2")"#),
            (r#"@escalate("leads", "1h")"#, r#"@escalate("leads, 1h  ")"#),
            (r#"@approvers ( "a" ,2 )"#, r#"@approvers ( "a ,2" )"#),
            (r#"@approvers("finance")"#, r#"@approvers("finance")"#),
            (
                r#"// @approvers("finance", 2)"#,
                r#"// @approvers("finance", 2)"#,
            ),
            (r#""@approvers(" , "a", 2)"#, r#""@approvers(" , "a", 2)"#),
            (r#"@reason("é", 2)"#, r#"@reason("é", 2)"#),
            (r#"@approvers("é", 2)"#, r#"@approvers("é", 2)"#),
            (r#"@approvers("a", 2"#, r#"@approvers("a", 2"#),
            (r#"@approvers("\"", 2)"#, r#"@approvers("\"", 2)"#),
        ] {
            assert_eq!(for_parser(written), read);
            assert_eq!(for_parser(written).len(), written.len());
        }
    }

    #[test]
    fn values_are_read_or_refused() {
        assert_eq!(group_and_count("finance"), Some(("finance".to_owned(), 1)));
        assert_eq!(
            group_and_count("finance, 2"),
            Some(("finance".to_owned(), 2))
        );
        for wrong in ["", ",", "a b", "a,0", "a,17", "a,x", "a,2,3"] {
            assert_eq!(group_and_count(wrong), None, "{wrong}");
        }
        assert_eq!(escalation("leads, 1h  "), Some(("leads".to_owned(), 3_600)));
        for wrong in ["", "leads", "leads, 1", ", 1h", "leads, h", "leads, 0s"] {
            assert_eq!(escalation(wrong), None, "{wrong}");
        }
        let times = ["90s", "30m", "4h", "2d", "31d", "1w", "-1h", "é"].map(seconds);
        let expected = [Some(90), Some(1_800), Some(14_400), Some(172_800)];
        assert_eq!(times, [expected.as_slice(), &[None; 4]].concat()[..]);
    }

    #[test]
    fn demands_of_several_rules_add_up() {
        let demand = |group: &str, count, escalation: Option<&str>, expires| Demands {
            approvers: Some(GroupDemand {
                group: group.to_owned(),
                count,
                escalation: escalation.map(|group| (group.to_owned(), 60)),
            }),
            expires_seconds: expires,
        };
        let all = [
            demand("finance", 1, Some("leads"), Some(60)),
            demand("legal", 1, Some("leads"), None),
            demand("finance", 2, None, Some(30)),
        ];
        let (groups, expires) = combine(all.iter());
        let demanded: Vec<_> = groups
            .iter()
            .map(|one| (one.group.as_str(), one.count, one.escalation.is_some()))
            .collect();
        assert_eq!(demanded, [("finance", 2, false), ("legal", 1, true)]);
        assert_eq!(expires, Some(30));
    }
}
