//! Quotes text of models, tools and servers, so that no line of it can pass for a line of Windlass.

use unicode_width::UnicodeWidthChar as _;

use super::{visible, visible_line, width};

/// Begins every line of quoted text. No line of Windlass begins with it.
const BAR: &str = "│ ";

/// The most columns of a label of Windlass before a quoted text.
const LABEL: usize = 24;

/// The fewest columns of a quoted line, even if the terminal is narrower.
const LEAST_WIDTH: usize = 10;

/// A text of a model, a tool or a server.
pub(crate) struct Quote<'t> {
    text: &'t str,
    /// The width of the terminal; `None` without one.
    width: Option<usize>,
}

impl<'t> Quote<'t> {
    /// Quotes a text for the terminal of this process.
    pub(crate) fn of(text: &'t str) -> Self {
        Self::for_width(text, width())
    }

    pub(super) fn for_width(text: &'t str, width: Option<usize>) -> Self {
        Self { text, width }
    }

    /// The text on lines of its own. Each begins with the margin and a bar.
    pub(crate) fn block(&self, margin: &str) -> String {
        let text = visible(self.text.trim_end());
        let rows = self.rows(&text, margin.len());
        let rows: Vec<String> = rows.map(|row| format!("{margin}{BAR}{row}")).collect();
        rows.join("\n")
    }

    /// The text after a label of Windlass. Further lines begin with the margin and a bar.
    pub(crate) fn after_label(&self, margin: &str) -> String {
        let text = visible(self.text.trim_end());
        // On a narrow terminal, the text begins on the next line.
        if self
            .width
            .is_some_and(|width| width < LABEL + 4 + LEAST_WIDTH)
        {
            return format!("\n{}", self.block(margin));
        }
        let mut rows = self.rows(&text, margin.len().max(LABEL));
        let mut quoted = rows.next().unwrap_or_default().to_owned();
        for row in rows {
            quoted.push_str(&format!("\n{margin}{BAR}{row}"));
        }
        quoted
    }

    /// The text on the line of a label, behind a bar. The caller cuts the line to the terminal.
    pub(crate) fn on_line(&self) -> String {
        match self.text.is_empty() {
            true => String::new(),
            false => format!(" {BAR}{}", visible_line(self.text)),
        }
    }

    /// Splits a text into lines that fit on the terminal behind `taken` columns and a bar.
    fn rows<'r>(&self, text: &'r str, taken: usize) -> impl Iterator<Item = &'r str> + use<'r> {
        // Two columns for the bar, which some terminals draw wide, one for its space, and one that stays free,
        // because terminals differ in what they do after the last column.
        let most = self.width.map_or(usize::MAX, |width| {
            width.saturating_sub(taken + 4).max(LEAST_WIDTH)
        });
        text.split('\n').flat_map(move |line| {
            let mut rest = Some(line);
            std::iter::from_fn(move || {
                let line = rest?;
                let (row, after) = match end_of_row(line, most) {
                    Some(end) => (&line[..end], Some(&line[end..])),
                    None => (line, None),
                };
                rest = after;
                Some(row)
            })
        })
    }
}

/// Cuts a line so that it fits on the terminal.
pub(crate) fn cut_to_terminal(line: String) -> String {
    match width() {
        Some(width) => cut(line, width),
        None => line,
    }
}

/// Lines that are rendered and escaped, each behind a bar.
pub(crate) fn behind_bar(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| format!("{BAR}{line}"));
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The columns for text behind a bar on a terminal with that many columns.
pub(crate) fn room_behind_bar(width: usize) -> usize {
    width.saturating_sub(4).max(LEAST_WIDTH)
}

fn cut(line: String, width: usize) -> String {
    match end_of_row(&line, width.saturating_sub(2).max(LEAST_WIDTH)) {
        Some(end) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// Where the first row of a line ends: after the last space that fits, or in the middle of a long word. `None`
/// if the whole line fits.
fn end_of_row(line: &str, most: usize) -> Option<usize> {
    let mut columns = 0;
    let mut space = None;
    for (at, c) in line.char_indices() {
        columns += columns_of(c);
        if columns > most {
            // A row has at least one character.
            let at = if at == 0 { c.len_utf8() } else { at };
            return Some(space.filter(|&space| space > at / 2).unwrap_or(at));
        }
        if c == ' ' {
            space = Some(at + 1);
        }
    }
    None
}

/// The most columns that a terminal may use for a character.
pub(super) fn columns_of(c: char) -> usize {
    match c {
        '\t' => 8,
        c => c.width_cjk().unwrap_or(0).max(c.width().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests;
