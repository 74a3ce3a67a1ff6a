//! Text tables: columns as wide as their content, and on a terminal no wider than it. Words are not broken.

use std::io::{self, IsTerminal as _};

use super::rendered::escape_exact;
use super::terminal::{
    Cells, Style, TableKind, Tone, is_styled, lay_out, output_width, paint, print_styled_line,
    styled_text, visible_line,
};

/// The columns whose cells are states.
const STATES: [&str; 6] = ["STATUS", "STATE", "END", "RISK", "LEVEL", "TRUST"];

/// Prints rows under their headings.
pub(super) fn print_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> anyhow::Result<()> {
    for line in table_lines(headings, rows).iter().flatten() {
        print_styled_line(line)?;
    }
    Ok(())
}

/// The lines of a table: those of the headings, and of each row. On a terminal, they fit on it, and states have
/// colours.
pub(super) fn table_lines<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> Vec<Vec<String>> {
    let cell = |heading: &str, text: &str| {
        let tone = STATES.contains(&heading).then(|| tone_of(text)).flatten();
        let style = Style {
            tone,
            ..Style::default()
        };
        styled_text(&visible_line(text), style)
    };
    let first = headings.map(|heading| styled_text(heading, Style::default()));
    let rows = rows.iter().map(|row| {
        let cells = headings.iter().zip(row);
        cells.map(|(heading, text)| cell(heading, text)).collect()
    });
    let rows: Vec<Vec<Cells>> = std::iter::once(first.to_vec()).chain(rows).collect();
    // One column stays free, because terminals differ in what they do after the last one.
    let width = output_width().map_or(usize::MAX, |width| width.saturating_sub(1));
    let is_styled = is_styled();
    let rows = lay_out(&rows, width, TableKind::List).into_iter();
    rows.map(|lines| lines.iter().map(|line| paint(line, is_styled)).collect())
        .collect()
}

/// What a state means for the reader.
fn tone_of(state: &str) -> Option<Tone> {
    let is_end = |c: char| !c.is_alphanumeric() && c != '_';
    let word = state.split(is_end).next().unwrap_or_default();
    Some(match word.to_lowercase().as_str() {
        "completed" | "success" | "approved" | "answered" | "done" | "available" | "accepted"
        | "trusted" | "active" | "registered" | "valid" | "unchanged" | "reversible" | "low" => {
            Tone::Good
        }
        "failed" | "error" | "timeout" | "rejected" | "expired" | "unknown" | "denied"
        | "changed" | "refused" | "invalid" | "revoked" | "damaged" | "irreversible" | "high"
        | "critical" => Tone::Bad,
        "waiting"
        | "pending"
        | "held"
        | "open"
        | "running"
        | "in_progress"
        | "interrupted"
        | "new"
        | "iteration_limit"
        | "budget"
        | "reversible_with_delay"
        | "medium"
        | "untrusted" => Tone::Attention,
        "cancelled" | "undone" | "deprecated" | "disabled" | "missing" | "removed" => Tone::Faint,
        _ => return None,
    })
}

/// The fewest characters of a shortened id. Commands take the end of an id from 4 characters on.
const SHORT_ID: usize = 6;

/// The ids of a list: at a terminal only their ends, in a pipe all of them, for programs.
pub(super) fn listed_ids(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    let ids: Vec<String> = ids.into_iter().collect();
    match io::stdout().is_terminal() {
        true => short_ids(&ids),
        false => ids,
    }
}

/// The ends of ids that distinguish them. Ids of the same day begin with the same characters.
pub(super) fn short_ids(ids: &[String]) -> Vec<String> {
    let end = |id: &str, length: usize| {
        let start = id.char_indices().rev().nth(length.saturating_sub(1));
        id[start.map_or(0, |(start, _)| start)..].to_owned()
    };
    let longest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0);
    // What follows the id of a run, such as `:2:0`, is shown as well.
    let own = |id: &str| id.len() - id.find([':', '.']).unwrap_or(id.len());
    let least = SHORT_ID + ids.iter().map(|id| own(id)).max().unwrap_or(0);
    let is_distinct = |length: usize| {
        let mut seen = std::collections::HashSet::new();
        ids.iter().all(|id| seen.insert(end(id, length)))
    };
    let length = (least..longest).find(|length| is_distinct(*length));
    let length = length.unwrap_or(longest);
    ids.iter().map(|id| end(id, length)).collect()
}

/// Returns the start of a text on one line, with invisible characters escaped.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = escape_exact(&words.join(" "));
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::short_ids;

    #[test]
    fn ids_are_shortened_to_the_part_that_tells_them_apart() {
        let short = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            short_ids(&ids)
        };
        assert_eq!(
            short(&[
                "01a1f1ef34bd71349781aacc39993397",
                "01a1f1ef33ad7786a3318477470b1744"
            ]),
            ["993397", "0b1744"]
        );
        assert_eq!(
            short(&["01a1f1aa0b1744", "01a1f1bb0b1744"]),
            ["a0b1744", "b0b1744"]
        );
        assert_eq!(
            short(&["01a1f1ef34bd71349781aacc39993397:2:0"]),
            ["993397:2:0"]
        );
        assert_eq!(short(&["r1:1:0"]), ["r1:1:0"]);
        assert!(short(&[]).is_empty());
    }
}
