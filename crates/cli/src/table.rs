//! Text tables: columns as wide as their content, each cell on one line.

use std::io::{self, IsTerminal as _};

use unicode_width::UnicodeWidthStr as _;

use super::rendered::escape_exact;
use super::terminal::{print_line, visible_line, wrap_row};

/// Prints rows under their headings.
pub(super) fn print_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> anyhow::Result<()> {
    for line in table_lines(headings, rows) {
        print_line(&line)?;
    }
    Ok(())
}

/// The lines of a table: the headings, and one for each row.
pub(super) fn table_lines<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| visible_line(cell)).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.max().unwrap_or(0).max(headings[column].width())
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[&str]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| {
                let padding = width.saturating_sub(cell.width());
                format!("{cell}{}", " ".repeat(padding))
            })
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        // Cells may be text of models, tools and servers: the end of a long row must not begin a line.
        wrap_row(&line(&cells))
    });
    [line(&headings)].into_iter().chain(rows).collect()
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
