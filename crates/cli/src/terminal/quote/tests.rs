use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::terminal::tests::any_text;

/// The rows on which a terminal of that width draws a text.
fn drawn_rows(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut columns) = (String::new(), 0);
        for c in line.chars() {
            let more = columns_of(c);
            if columns + more > width {
                rows.push(std::mem::take(&mut row));
                columns = 0;
            }
            row.push(c);
            columns += more;
        }
        rows.push(row);
    }
    rows
}

#[test]
fn every_line_of_a_quoted_block_begins_with_a_bar() {
    let quote = Quote::for_width("yes\nApproved by ann\r\n> ", None);
    assert_eq!(
        quote.block("  "),
        "  │ yes\n  │ Approved by ann\\u{d}\n  │ >"
    );
}

#[test]
fn further_lines_after_a_label_begin_with_a_bar() {
    let quote = Quote::for_width("no\nhint: run this", None);
    assert_eq!(
        format!("error: {}", quote.after_label("  ")),
        "error: no\n  │ hint: run this"
    );
    assert_eq!(Quote::for_width("no", None).after_label("  "), "no");
}

#[test]
fn long_lines_are_wrapped_between_words() {
    let text = "a line that is longer than the terminal is wide, by some words";
    let quote = Quote::for_width(text, Some(40));
    assert_eq!(
        quote.block(""),
        "│ a line that is longer than the \n│ terminal is wide, by some words"
    );
}

#[test]
fn a_line_is_cut_to_the_terminal() {
    assert_eq!(cut("short".to_owned(), 40), "short");
    let cut = cut(format!("{}error: forged", "x ".repeat(40)), 40);
    assert!(cut.width() < 40, "{cut}");
    assert!(cut.ends_with('…'), "{cut}");
}

proptest! {
    /// Whatever the text is, and however narrow the terminal, no row of it begins in the first column.
    #[test]
    fn no_row_of_a_quoted_text_begins_without_a_bar(text in any_text(), width in 24_usize..200) {
        for width in [None, Some(width)] {
            let quote = Quote::for_width(&text, width);
            let rows = |text: &str| drawn_rows(text, width.unwrap_or(usize::MAX));
            let block = quote.block("");
            prop_assert!(rows(&block).iter().all(|row| row.starts_with(BAR)), "{block:?}");
            let labelled = format!("{:LABEL$}{}", "label:", quote.after_label("  "));
            let mut rows = rows(&labelled).into_iter();
            prop_assert!(rows.next().is_some_and(|row| row.starts_with("label:")));
            prop_assert!(rows.all(|row| row.starts_with("  │ ")), "{labelled:?}");
        }
    }

    #[test]
    fn a_cut_line_is_one_row(text in any_text(), width in 24_usize..200) {
        let line = format!("   call 0{}", Quote::for_width(&text, None).on_line());
        let cut = cut(visible_line(&line), width);
        prop_assert_eq!(drawn_rows(&cut, width).len(), 1, "{:?}", cut);
    }

    #[test]
    fn a_wrapped_text_keeps_its_characters(text in any_text(), width in 24_usize..200) {
        let quote = Quote::for_width(&text, Some(width));
        let without_margins: String = quote.block("").split('\n').map(|row| &row[BAR.len()..]).collect();
        let whole = visible(text.trim_end()).replace('\n', "");
        prop_assert_eq!(without_margins, whole);
    }
}
