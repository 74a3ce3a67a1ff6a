//! Compares validity with the reference grammar, `tree-sitter-gram` 0.6.1: a text is valid here if
//! and only if it is valid there.

use super::texts::{Random, Writer, mutate, random_pieces};

/// How many generated texts are compared; `WINDLASS_ORACLE_CASES` asks for more.
fn cases() -> u64 {
    std::env::var("WINDLASS_ORACLE_CASES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(20_000)
}

fn oracle() -> tree_sitter::Parser {
    let mut parser = tree_sitter::Parser::new();
    parser
        .set_language(&tree_sitter_gram::LANGUAGE.into())
        .expect("the grammar fits the library");
    parser
}

fn compare(oracle: &mut tree_sitter::Parser, text: &str) {
    let tree = oracle.parse(text, None).expect("no time limit is set");
    let is_valid_by_oracle = !tree.root_node().has_error();
    let parsed = windlass_gram::parse(text);
    assert_eq!(
        parsed.is_valid(),
        is_valid_by_oracle,
        "{text:?}\nour diagnostics: {:?}\nthe reference tree: {}",
        parsed.diagnostics(),
        tree.root_node()
    );
    assert_eq!(windlass_gram::print(&parsed), text);
    assert_eq!(
        parsed.is_valid(),
        !parsed
            .diagnostics()
            .iter()
            .any(windlass_gram::Diagnostic::is_error),
        "{text:?}"
    );
}

#[test]
fn generated_and_mutated_texts_are_valid_exactly_if_the_reference_grammar_accepts_them() {
    let mut oracle = oracle();
    let mut valid = 0_u64;
    for case in 0..cases() {
        let text = Writer::document(case);
        let mut random = Random::new(case ^ 0xABCD);
        let text = match case % 4 {
            0 => text,
            3 => random_pieces(&mut random),
            _ => mutate(&text, &mut random),
        };
        compare(&mut oracle, &text);
        valid += u64::from(windlass_gram::parse(&text).is_valid());
    }
    // Both valid and invalid texts must occur, or the comparison proves nothing.
    assert!(
        valid > cases() / 5,
        "only {valid} of {} texts are valid",
        cases()
    );
    assert!(
        valid < cases() * 4 / 5,
        "{valid} of {} texts are valid",
        cases()
    );
}

#[test]
fn short_combinations_of_pieces_are_valid_exactly_if_the_reference_grammar_accepts_them() {
    let pieces = [
        "(", ")", "a", "1", ":", "-", ">", "\"", "`", "{", "}", "[", "]", "|", ",", "@", "/", "\n",
        ".",
    ];
    let length = if cases() > 100_000 { 5 } else { 3 };
    let mut oracle = oracle();
    for length in 0..=length {
        for number in 0..pieces.len().pow(length) {
            let mut rest = number;
            let text: String = (0..length)
                .map(|_| {
                    let piece = pieces[rest % pieces.len()];
                    rest /= pieces.len();
                    piece
                })
                .collect();
            compare(&mut oracle, &text);
            compare(&mut oracle, &format!("({{a:{text}}})"));
        }
    }
}

#[test]
fn texts_that_start_like_comments_are_valid_exactly_if_the_reference_grammar_accepts_them() {
    let bodies = [
        "//x",
        " //x",
        "\t/** x",
        "/** x */",
        "/** x */ y",
        "//x\\n",
        "//x\\q",
        "/** \\q */",
        "/**\\*/",
        "//`",
        "//``",
        "/",
        "/*",
        "/** `` */",
        "/***/",
        "/**/",
        "//\\",
        " ",
        "x //y",
        "/**x\n*/",
        "//x\ny",
    ];
    let quotes = ["\"", "'", "`", "t`"];
    let tails = [
        "", "\n", "\n\"", " */\"", "*/`", "\n`", "\n'", "*/ 'b'", "```", "*/```",
    ];
    let mut oracle = oracle();
    for body in bodies {
        for tail in tails {
            for quote in quotes {
                let close = quote.trim_start_matches('t');
                compare(&mut oracle, &format!("({{a:{quote}{body}{close}{tail}}})"));
                compare(
                    &mut oracle,
                    &format!("({{a:{quote}{body}{close}}}) {tail}}})"),
                );
                compare(&mut oracle, &format!("({quote}{body}{close}{tail})"));
            }
            for tag in [
                "",
                "md",
                " // c",
                " /** c\n */",
                "md /** c */",
                " true",
                "a b",
            ] {
                compare(&mut oracle, &format!("({{a:```{tag}\n{body}```{tail}}})"));
                compare(&mut oracle, &format!("({{a:```{tag}\n{body}\n```{tail}}})"));
                compare(&mut oracle, &format!("({{a:```{tag}{body}\n```{tail}}})"));
                compare(
                    &mut oracle,
                    &format!("({{a:```{tag}\n{body}```}}){tail}}})"),
                );
            }
        }
    }
}
