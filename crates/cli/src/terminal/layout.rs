//! Styled text in lines and columns. Lines break between words; a word breaks only if it is longer than a whole
//! line.

use unicode_width::UnicodeWidthChar as _;

use super::quote::columns_of;

/// A character with its style.
pub(crate) type Character = (char, Style);

/// The text of a table's cell.
pub(crate) type Cells = Vec<Character>;

/// The columns between two columns of a table.
const GAP: usize = 2;

/// The margin of the further lines of a row. Windlass begins its lines in the first column, so that no text of
/// others can pass for one.
const MARGIN: usize = 4;

/// How characters look on a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) is_bold: bool,
    pub(crate) is_italic: bool,
    pub(crate) is_underlined: bool,
    pub(crate) is_struck: bool,
    pub(crate) is_code: bool,
    pub(crate) is_link: bool,
    pub(crate) tone: Option<Tone>,
}

/// What a state means for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Attention,
    Bad,
    Faint,
}

impl Style {
    /// The sequence that sets the style; empty without one.
    fn sequence(self) -> String {
        let tone = match self.tone {
            Some(Tone::Good) => "32",
            Some(Tone::Attention) => "33",
            Some(Tone::Bad) => "31",
            Some(Tone::Faint) => "2",
            None => "",
        };
        let codes = [
            (self.is_bold, "1"),
            (self.is_italic, "3"),
            (self.is_underlined, "4"),
            (self.is_struck, "9"),
            (self.is_code, "36"),
            (self.is_link, "34"),
            (self.tone.is_some(), tone),
        ];
        let codes = codes.into_iter().filter(|(is_set, _)| *is_set);
        let codes: Vec<&str> = codes.map(|(_, code)| code).collect();
        match codes.is_empty() {
            true => String::new(),
            false => format!("\u{1b}[{}m", codes.join(";")),
        }
    }
}

/// A text in one style.
pub(crate) fn styled_text(text: &str, style: Style) -> Cells {
    text.chars().map(|c| (c, style)).collect()
}

/// The text of characters, with the sequences that set their styles if `is_styled`.
pub(crate) fn paint(characters: &[Character], is_styled: bool) -> String {
    let mut painted = String::with_capacity(characters.len());
    let mut current = Style::default();
    for &(character, style) in characters {
        if is_styled && style != current {
            if current != Style::default() {
                painted.push_str("\u{1b}[0m");
            }
            painted.push_str(&style.sequence());
            current = style;
        }
        painted.push(character);
    }
    if current != Style::default() {
        painted.push_str("\u{1b}[0m");
    }
    painted
}

/// The columns of a text.
pub(crate) fn width_of(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The columns of characters.
fn columns(characters: &[Character]) -> usize {
    characters.iter().map(|(c, _)| columns_of(*c)).sum()
}

/// Breaks a text into lines of at most `width` columns, between words.
pub(crate) fn wrap(characters: &[Character], width: usize) -> Vec<Cells> {
    let mut lines = Vec::new();
    for paragraph in characters.split(|(c, _)| *c == '\n') {
        let mut line: Cells = Vec::new();
        for word in paragraph.split_inclusive(|(c, _)| *c == ' ') {
            let bare = match word.last() {
                Some((' ', _)) => &word[..word.len() - 1],
                _ => word,
            };
            if !line.is_empty() && columns(&line) + columns(bare) > width {
                lines.push(trimmed(std::mem::take(&mut line)));
            }
            if columns(bare) > width {
                let mut pieces = split(bare, width);
                line = pieces.pop().unwrap_or_default();
                lines.append(&mut pieces);
                line.extend(word.iter().skip(bare.len()));
            } else {
                line.extend_from_slice(word);
            }
        }
        lines.push(trimmed(line));
    }
    while lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn trimmed(mut line: Cells) -> Cells {
    while line.last().is_some_and(|(c, _)| *c == ' ') {
        line.pop();
    }
    line
}

/// Breaks a text into pieces of at most `width` columns, wherever they end.
pub(crate) fn split(characters: &[Character], width: usize) -> Vec<Cells> {
    let mut pieces = vec![Vec::new()];
    let mut taken = 0;
    for &character in characters {
        let more = columns_of(character.0);
        if taken + more > width && taken > 0 {
            pieces.push(Vec::new());
            taken = 0;
        }
        taken += more;
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// A list of Windlass. Its first column is not wrapped, so that only Windlass begins lines.
    List,
    /// Within a quoted text, with a rule below the headings.
    Quoted,
}

/// Lays out the rows of a table, the first with its headings, in lines of at most `width` columns. Returns the
/// lines of each row. The columns become narrower if they have to, but not narrower than their words. Rows that do
/// not fit in this way become paragraphs, with the heading before each cell; all do if many do not fit.
pub(crate) fn lay_out(rows: &[Vec<Cells>], width: usize, kind: TableKind) -> Vec<Vec<Cells>> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let room = width.saturating_sub(GAP * count.saturating_sub(1));
    let least = |row: &[Cells], column: usize| match (row.get(column), column, kind) {
        (None, ..) => 0,
        (Some(cell), 0, TableKind::List) => columns(cell),
        (Some(cell), ..) => longest_word(cell),
    };
    let total = |row: &[Cells]| (0..count).map(|column| least(row, column)).sum::<usize>();
    // The rows with the longest words are left out if the others fit without them.
    let mut longest_first: Vec<usize> = (1..rows.len()).collect();
    longest_first.sort_by_key(|&row| std::cmp::Reverse(total(&rows[row])));
    let widths_without = |left_out: &[usize]| -> Option<Vec<usize>> {
        let mut is_kept = vec![true; rows.len()];
        left_out.iter().for_each(|&row| is_kept[row] = false);
        let kept = || rows.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept);
        let widest = |measure: &dyn Fn(&[Cells], usize) -> usize| -> Vec<usize> {
            let column = |column| kept().map(|(row, _)| measure(row, column)).max();
            (0..count).map(|index| column(index).unwrap_or(0)).collect()
        };
        let natural = widest(&|row, column| row.get(column).map_or(0, |cell| columns(cell)));
        fit(&natural, &widest(&|row, column| least(row, column)), room)
    };
    let counts: Vec<usize> = (0..=longest_first.len() / 2).collect();
    let fewest = counts.partition_point(|&count| widths_without(&longest_first[..count]).is_none());
    let left_out = counts.get(fewest).map(|&count| &longest_first[..count]);
    let (Some(left_out), Some(widths)) = (left_out, left_out.and_then(widths_without)) else {
        return paragraphs(rows, width);
    };
    let headings = rows.first().map_or(&[][..], Vec::as_slice);
    let mut lines: Vec<Vec<Cells>> = (0..rows.len())
        .map(|index| match left_out.contains(&index) {
            true => paragraph(headings, &rows[index], width),
            false => row_lines(&rows[index], &widths),
        })
        .collect();
    if let (Some(headings), TableKind::Quoted) = (lines.first_mut(), kind) {
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        headings.push(styled_text(&rules.join(&" ".repeat(GAP)), Style::default()));
    }
    lines
}

/// The lines of a row whose cells are wrapped in their columns.
fn row_lines(row: &[Cells], widths: &[usize]) -> Vec<Cells> {
    let wrapped: Vec<Vec<Cells>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap(cell, *width))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let blank = |count: usize| std::iter::repeat_n((' ', Style::default()), count);
    let mut lines = Vec::new();
    for index in 0..height {
        let mut line: Cells = Vec::new();
        for (lines, width) in wrapped.iter().zip(widths) {
            let cell = lines.get(index).map_or(&[][..], Vec::as_slice);
            line.extend_from_slice(cell);
            // Characters that some terminals draw wide are counted as wide, but seldom are.
            let drawn: usize = cell.iter().map(|(c, _)| c.width().unwrap_or(0)).sum();
            line.extend(blank(width.saturating_sub(drawn) + GAP));
        }
        lines.push(trimmed(line));
    }
    lines
}

/// The widths of columns that together have at most `room`; `None` if their words do not fit.
fn fit(natural: &[usize], least: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut widths = natural.to_vec();
    let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
    // The widest column is made narrower first, to the width of the next.
    while excess > 0 {
        let shrinkable = (0..widths.len()).filter(|&column| widths[column] > least[column]);
        let widest = shrinkable.max_by_key(|&column| widths[column])?;
        let others = (0..widths.len()).filter(|&column| column != widest);
        let next = others.map(|column| widths[column]).max().unwrap_or(0);
        let target = next.min(widths[widest] - 1).max(least[widest]);
        let less = (widths[widest] - target).min(excess);
        widths[widest] -= less;
        excess -= less;
    }
    Some(widths)
}

fn longest_word(cell: &[Character]) -> usize {
    let words = cell.split(|(c, _)| matches!(c, ' ' | '\n'));
    words.map(columns).max().unwrap_or(0)
}

/// Each row as a paragraph: its first cell, and below it the others, each after its heading.
fn paragraphs(rows: &[Vec<Cells>], width: usize) -> Vec<Vec<Cells>> {
    let Some((headings, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let rows = rows.iter().map(|row| paragraph(headings, row, width));
    std::iter::once(Vec::new()).chain(rows).collect()
}

fn paragraph(headings: &[Cells], row: &[Cells], width: usize) -> Vec<Cells> {
    let mut lines = Vec::new();
    for (index, cell) in row.iter().enumerate() {
        let mut line: Cells = Vec::new();
        if let Some(heading) = headings.get(index).filter(|_| index > 0) {
            line.extend_from_slice(heading);
            line.push((' ', Style::default()));
        }
        line.extend_from_slice(cell);
        let room = width.saturating_sub(MARGIN).max(1);
        for (number, part) in wrap(&line, room).into_iter().enumerate() {
            let margin = if index == 0 && number == 0 { 0 } else { MARGIN };
            let margin = styled_text(&" ".repeat(margin), Style::default());
            lines.push([margin, part].concat());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Cells {
        styled_text(text, Style::default())
    }

    fn table(rows: &[&[&str]], width: usize) -> Vec<String> {
        let rows = rows.iter().map(|row| row.iter().map(|cell| cells(cell)));
        let rows: Vec<Vec<Cells>> = rows.map(Iterator::collect).collect();
        let lines = lay_out(&rows, width, TableKind::List);
        lines
            .iter()
            .flatten()
            .map(|line| paint(line, true))
            .collect()
    }

    #[test]
    fn words_are_kept_and_columns_become_narrower() {
        let rows: [&[&str]; 2] = [
            &["TOOL", "STATE", "DESCRIPTION"],
            &["search", "available", "Searches the web for pages about it"],
        ];
        assert_eq!(
            table(&rows, 40),
            [
                "TOOL    STATE      DESCRIPTION",
                "search  available  Searches the web for",
                "                   pages about it",
            ]
        );
        assert_eq!(table(&rows, 80).len(), 2);
    }

    #[test]
    fn rows_that_do_not_fit_become_paragraphs() {
        let rows: [&[&str]; 2] = [
            &["RUN", "SIGNATURE"],
            &["01a1f1ef34bd71349781", "(first::Text)==>(second::Text)"],
        ];
        assert_eq!(
            table(&rows, 36),
            [
                "01a1f1ef34bd71349781",
                "    SIGNATURE",
                "    (first::Text)==>(second::Text)",
            ]
        );
    }

    #[test]
    fn a_row_that_does_not_fit_does_not_change_the_others() {
        let rows: [&[&str]; 4] = [
            &["KEY", "VALUE"],
            &["limit", "10"],
            &["directory", "/a/path/that/is/longer/than/the/others"],
            &["mode", "strict"],
        ];
        assert_eq!(
            table(&rows, 40),
            [
                "KEY    VALUE",
                "limit  10",
                "directory",
                "    VALUE",
                "    /a/path/that/is/longer/than/the/othe",
                "    rs",
                "mode   strict",
            ]
        );
    }

    #[test]
    fn only_a_word_longer_than_the_line_is_broken() {
        let lines = wrap(&cells("an abcdefghijkl word"), 8);
        let lines: Vec<String> = lines.iter().map(|line| paint(line, false)).collect();
        assert_eq!(lines, ["an", "abcdefgh", "ijkl", "word"]);
    }

    #[test]
    fn styles_end_with_their_text() {
        let good = Style {
            tone: Some(Tone::Good),
            ..Style::default()
        };
        let text = [styled_text("ok", good), cells(" x")].concat();
        assert_eq!(paint(&text, true), "\u{1b}[32mok\u{1b}[0m x");
        assert_eq!(paint(&text, false), "ok x");
    }
}
