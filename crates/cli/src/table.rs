//! Rows for people: columns as wide as they must be, each cell on one line.

use super::rendered::seen;
use super::terminal::{say, visible_line};

/// Writes rows under their headings. The last column may be as long as it likes.
pub(super) fn say_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| visible_line(cell)).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .max()
            .unwrap_or(0)
            .max(headings[column].chars().count())
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[&str]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    say(&line(&headings))?;
    for row in &rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        say(&line(&cells))?;
    }
    Ok(())
}

/// The start of a text on one line, with nothing in it that cannot be seen.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = seen(&words.join(" "));
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
