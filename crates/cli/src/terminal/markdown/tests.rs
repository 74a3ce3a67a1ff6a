use proptest::prelude::*;

use super::super::layout::width_of;
use super::super::tests::{any_text, is_harmless, without_colors};
use super::*;

const PLAIN: Page = Page {
    width: 40,
    is_styled: false,
};

const STYLED: Page = Page {
    width: 40,
    is_styled: true,
};

fn plain_lines(markdown: &str) -> String {
    PLAIN.render(markdown).join("\n")
}

#[test]
fn blocks_are_rendered_for_a_terminal() {
    let markdown = "# Plan\n\nSome *small* and **big** `words` in a line that is long.\n\n\
                    - one\n- two\n  1. first\n  2. second\n\n> quoted\n\n```rust\nfn main() {\n    x\n}\n```\n\n\
                    | tool | state |\n|---|---|\n| a | ok |\n\n---\n\n- [x] done\n";
    let expected = "# Plan\n\nSome *small* and **big** `words` in a\nline that is long.\n\n\
                    - one\n- two\n  1. first\n  2. second\n\n> quoted\n\n  fn main() {\n      x\n  }\n\n\
                    tool  state\n----  -----\na     ok\n\n------------------------\n\n- [x] done";
    assert_eq!(plain_lines(markdown), expected);
}

#[test]
fn links_are_shown_with_their_addresses() {
    assert_eq!(
        plain_lines("See [the docs](https://a.example/b) and <https://c.example/>."),
        "See the docs (https://a.example/b) and\nhttps://c.example/."
    );
    // The text of a link cannot hide where it leads.
    assert!(
        plain_lines("[https://bank.example](https://evil.example)")
            .contains("(https://evil.example)")
    );
    assert_eq!(plain_lines("![a chart](chart.png)"), "a chart (chart.png)");
}

#[test]
fn styles_replace_the_marks() {
    let lines = STYLED.render("**big** and `code`");
    assert_eq!(lines, ["\u{1b}[1mbig\u{1b}[0m and \u{1b}[36mcode\u{1b}[0m"]);
    assert_eq!(STYLED.render("## Title"), ["\u{1b}[1mTitle\u{1b}[0m"]);
}

#[test]
fn escapes_are_shown_however_they_are_written() {
    for text in ["\u{1b}[2Jx", "&#27;[2Jx", "`\u{1b}[2Jx`", "    \u{1b}[2Jx"] {
        let line = plain_lines(text);
        assert!(line.contains("\\u{1b}[2Jx"), "{line:?}");
    }
    let line = plain_lines("[a](<x\u{202e}y>)");
    assert!(line.contains("\\u{202e}"), "{line:?}");
}

#[test]
fn a_block_is_printed_once_it_is_complete() {
    let mut stream = MarkdownStream::new(PLAIN);
    assert!(stream.push("One li").is_empty());
    assert_eq!(stream.unfinished(), ["One li"]);
    assert!(stream.push("ne.\n\n").is_empty());
    assert!(stream.push("- a").is_empty());
    assert_eq!(stream.push("\n- b\n"), ["One line."]);
    assert_eq!(stream.unfinished(), ["", "- a", "- b"]);
    assert_eq!(stream.finish(), ["", "- a", "- b"]);
    assert!(stream.finish().is_empty());
}

proptest! {
    /// However the text is cut into pieces, it is shown whole, once and in order.
    #[test]
    fn pieces_render_like_the_whole(blocks in prop::collection::vec(
        prop::sample::select(vec![
            "A line of words.\n\n", "# Head\n\n", "- a\n- b\n\n", "```\ncode\n\nmore\n```\n\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "> quoted\n\n", "    indented\n\nEnd.\n\n", "1. one\n2. two\n\n",
        ]), 0..6), size in 1_usize..9)
    {
        let text = blocks.concat();
        let mut stream = MarkdownStream::new(PLAIN);
        let mut lines = Vec::new();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            lines.extend(stream.push(&piece.iter().collect::<String>()));
        }
        lines.extend(stream.finish());
        prop_assert_eq!(lines, PLAIN.render(&text));
    }

    #[test]
    fn no_line_is_wider_than_the_page_or_controls_the_terminal(
        marks in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "# ", "- ", "1. ", "> ", "`", "```\n", "**", "*", "[", "](", ")", "| ", "|\n|-|-|\n", "\n", "\n\n",
                "    ", "&#27;[2J", "&#x202e;", "<b>", "word ", "宽宽宽", "https://a.example/",
            ]).prop_map(str::to_owned),
            any_text(),
        ], 0..30),
        width in 10_usize..100,
        is_styled: bool,
    ) {
        let text = marks.concat();
        for line in (Page { width, is_styled }).render(&text) {
            let plain = without_colors(&line);
            prop_assert!(is_harmless(&plain) && !plain.contains(['\n', '\t']), "{text:?}: {line:?}");
            prop_assert!(width_of(&plain) <= width.max(11), "{width}: {text:?}: {line:?}");
        }
    }
}
