//! The diagnostics of invalid texts: every text below is invalid, and its diagnostics are a snapshot.

use std::fmt::Write as _;
use windlass_gram::{LineIndex, parse};

const INVALID_TEXTS: &[&str] = &[
    "(a)->(b)",
    "(a)<->(b)",
    "(a)=>(b)",
    "(a)-(b)",
    "(a)-[r]=>(b)",
    "(a)<>(b)",
    "(a)-->",
    "(a)-->b",
    "(a)-->[b]",
    "[a]-->(b)",
    "(a),(b)",
    "(a b)",
    "(\"x\")",
    "(é)",
    "(12kg)",
    "(a {k: 1} :L)",
    "(a:)",
    "(a:1)",
    "(name: Text, age: Int)",
    "(a",
    "[a",
    "[a | [b | [c",
    "[a |]",
    "[a | b,]",
    "[a | b c]",
    "[a, b]",
    "[a (b)]",
    "[a | \"b\"]",
    "[a | b:L]",
    "[a | @k(1) (b)]",
    "]",
    "hello",
    "({a: []})",
    "({a: [1,]})",
    "({a: 1,})",
    "({a: [[1]]})",
    "({a: {b: {c: 1}}})",
    "({a: {b:: 1}})",
    "({a: [1 2]})",
    "({a: 1 b: 2})",
    "({a = 1})",
    "({'a': 1})",
    "({1: 1})",
    "({a: })",
    "({a: 2.5kg})",
    "({a: 1e5})",
    "({a: 08})",
    "({a: 1.})",
    "({a: .5})",
    "({a: +5})",
    "({a: 2024-01-15})",
    "({a: ..5})",
    "({a: 1...5})",
    "({a: 1..x})",
    "({a: true`x`})",
    "({a: \"open})",
    "({a: \"bad \\u0041\"})",
    "({a: \"//path\"})",
    "({a: ```text```})",
    "({a: ```\nopen})",
    "({a: “x”})",
    "(a) {b: 1}",
    "@k() (x)",
    "@k(1)",
    "@@ (x)",
    "(a /* note */)",
    "(a) # note",
    "(a) \0 (b)",
    "(x\n",
    "[a | b,\n\n",
    "[t | (name: Text) --> IO Text]",
    "(x::Text?)",
    "(x::[Text])",
    "(a)–>(b)",
    "({a: \"one\ntwo\", b: 2, c: 08})",
    "\u{feff}(a)->(b)",
    "({a: [1, {b: 2}], c: 2.5kg, d: 'x\\q'}) (e)->(f) [g | ]",
];

#[test]
fn invalid_texts_get_diagnostics() {
    let mut report = String::new();
    for text in INVALID_TEXTS {
        let tree = parse(text);
        assert!(!tree.is_valid(), "{text}");
        assert_eq!(windlass_gram::print(&tree), *text);
        let lines = LineIndex::new(text);
        writeln!(report, "{text:?}").unwrap();
        for diagnostic in tree.diagnostics() {
            let start = lines.position(diagnostic.span.start);
            let end = lines.position(diagnostic.span.end);
            writeln!(
                report,
                "  {}:{}-{}:{} [{}] {}",
                start.line, start.column, end.line, end.column, diagnostic.code, diagnostic.message
            )
            .unwrap();
            if let Some(hint) = &diagnostic.hint {
                writeln!(report, "      hint: {hint}").unwrap();
            }
        }
    }
    insta::assert_snapshot!(report);
}

#[test]
fn errors_are_kept_after_the_limit_of_warnings() {
    let warned: Vec<String> = (0..150).map(|index| format!("k{index}: \"x\n\"")).collect();
    let text = format!("(a {{{}}}) (a)->(b)", warned.join(", "));
    let tree = parse(&text);
    assert!(!tree.is_valid());
    assert!(
        tree.diagnostics()
            .iter()
            .any(windlass_gram::Diagnostic::is_error)
    );
}

#[test]
fn suspicious_valid_texts_get_warnings() {
    for (text, code) in [
        ("({a: \"text\n\"})", "string-runs-on"),
        ("({a: \"//x\"\n\"})", "comment-in-string"),
        ("({a: ```\n// x```\n```})", "comment-in-string"),
    ] {
        let tree = parse(text);
        assert!(tree.is_valid(), "{text}");
        let codes: Vec<_> = tree
            .diagnostics()
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect();
        assert_eq!(codes, [code], "{text}");
    }
}
