//! Text tables: columns as wide as their content, each cell on one line.

use unicode_width::UnicodeWidthStr as _;

use super::rendered::escape_exact;
use super::terminal::{print_line, visible_line, wrap_row};

/// Prints rows under their headings.
pub(super) fn print_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> anyhow::Result<()> {
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
    print_line(&line(&headings))?;
    for row in &rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        // Cells may be text of models, tools and servers: the end of a long row must not begin a line.
        print_line(&wrap_row(&line(&cells)))?;
    }
    Ok(())
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
