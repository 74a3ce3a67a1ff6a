//! The diagnostics of invalid text forms.

use std::time::Duration;

use windlass_gram::Diagnostic;

use crate::signature::{Signature, Type};

fn errors(text: &str) -> Vec<Diagnostic> {
    match Signature::parse(text) {
        Ok(signature) => panic!("{text} was read as {signature}"),
        Err(diagnostics) => diagnostics,
    }
}

/// Code, text under the span, message and hint of the only error.
fn only(text: &str) -> (&'static str, &str, String, String) {
    let found = errors(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let Diagnostic {
        code,
        message,
        span,
        hint,
        ..
    } = found[0].clone();
    (code, span.text(text), message, hint.unwrap_or_default())
}

fn with_type(ty: &str) -> (&'static str, String, String) {
    let text = format!("(a: {ty}) --> IO Text");
    let (code, _, message, hint) = only(&text);
    (code, message, hint)
}

#[test]
fn an_unknown_type_gets_the_nearest_type_suggested() {
    for (written, meant) in [
        ("text", "Text"),
        ("Strng", "String"),
        ("TEXT", "Text"),
        ("str", "Text"),
        ("int", "Int"),
        ("Intger", "Integer"),
        ("f64", "Double"),
        ("dict", "Object"),
        ("boolean", "Boolean"),
    ] {
        let (code, message, hint) = with_type(written);
        assert_eq!(
            (code, message),
            ("unknown-type", format!("there is no type `{written}`"))
        );
        assert!(
            hint.starts_with(&format!("did you mean `{meant}`?")),
            "{written}: {hint}"
        );
        assert!(hint.contains("the types are Text, String, Int,"), "{hint}");
    }
    assert!(
        with_type("Void")
            .2
            .starts_with("there is no type for an empty result")
    );
    assert!(with_type("Dynamic").2.starts_with("did you mean `Any`?"));
    assert!(with_type("Quux").2.starts_with("the types are"));
}

#[test]
fn types_in_other_notations_get_a_suggestion() {
    for (written, hint) in [
        ("List Text", "a list is written `[Text]`"),
        ("List<Maybe Int>", "a list is written `[Maybe Int]`"),
        ("Array {x: Int}", "a list is written `[{x: Int}]`"),
        ("Optional Int", "write `Maybe Int`"),
        ("Option<Int>", "write `Maybe Int`"),
        ("maybe Int", "write `Maybe Int`"),
        ("Maybe<Int>", "write `Maybe T`"),
        ("Text[]", "a list is written `[Text]`"),
        (
            "[]",
            "a list needs the type of its items, `[Text]`; `Array` allows any",
        ),
        ("[Text, Int]", "a list has one type for all its items"),
        (
            "Text <Int>",
            "a list is written `[T]`, an optional value `Maybe T`",
        ),
    ] {
        assert_eq!(with_type(written).2, hint, "{written}");
    }
}

#[test]
fn a_choice_between_types_is_rejected() {
    for written in ["Int or Text", "Int | Text", "\"a\" | Text"] {
        let (code, message, hint) = with_type(written);
        assert_eq!(code, "type-union", "{written}");
        assert!(
            message.starts_with("a type cannot be a choice between types"),
            "{message}"
        );
        assert!(
            hint.starts_with("only string literals can be joined"),
            "{hint}"
        );
    }
    for written in ["Int | null", "\"a\" | null"] {
        assert!(
            with_type(written).2.starts_with("write `Maybe T`"),
            "{written}"
        );
    }
}

#[test]
fn a_wrong_arrow_is_recognised() {
    for arrow in ["->", "=>", "==>", "--->", "→", "–>"] {
        let text = format!("(a: Text) {arrow} IO Text");
        let (code, at, message, hint) = only(&text);
        assert_eq!(
            (code, at, hint.as_str()),
            ("signature-arrow", arrow, "did you mean `-->`?")
        );
        assert_eq!(
            message,
            format!("expected `-->` before the return type, found `{arrow}`")
        );
    }
}

#[test]
fn a_missing_return_type_is_reported() {
    for text in ["(a: Text)", "(a: Text) -->", "(a: Text) --> IO", "() --> "] {
        let (code, at, _, hint) = only(text);
        assert_eq!((code, at), ("missing-return-type", ""), "{text}");
        assert!(hint.contains("`--> IO Text`"));
    }
    assert!(
        only("() --> IO ()")
            .3
            .starts_with("there is no type for an empty result")
    );
    assert_eq!(only("() --> io Text").3, "did you mean `IO`?");
}

#[test]
fn several_errors_are_reported_in_one_pass_in_order() {
    let text = "(a: Txt, b: {c: Nmber, c: Int}, a: Int = \"x\", : Int, d Int) -> IO Objct";
    let found: Vec<(&str, &str)> = errors(text)
        .iter()
        .map(|diagnostic| (diagnostic.code, diagnostic.span.text(text)))
        .collect();
    assert_eq!(
        found,
        [
            ("unknown-type", "Txt"),
            ("unknown-type", "Nmber"),
            ("duplicate-field", "c"),
            ("duplicate-parameter", "a"),
            ("default-type", "\"x\""),
            ("signature-syntax", ":"),
            ("signature-syntax", "Int"),
            ("signature-arrow", "->"),
            ("unknown-type", "Objct"),
        ]
    );
}

#[test]
fn a_default_must_be_json_of_the_right_type() {
    let (code, message, _) = with_type("Int = \"x\"");
    assert_eq!(code, "default-type");
    assert_eq!(
        message,
        "the default does not fit its type: expected Int, found \"x\""
    );
    let (code, message, hint) = with_type("Maybe Int = null");
    assert_eq!(
        (code, message.as_str()),
        ("default-type", "a default cannot be null")
    );
    assert!(hint.contains("without a default"));
    assert_eq!(
        with_type("Text = hello").2,
        "put a string in quotes: \"hello\""
    );
    assert_eq!(with_type("Bool = True").2, "write `true`");
    assert_eq!(with_type("Int = 007").1, "`007` is not a JSON number");
    assert_eq!(
        with_type("Double = 1e999").1,
        "`1e999` is not a JSON number"
    );
    assert_eq!(
        with_type("Object = {\"x\": 1, \"x\": 2}").0,
        "duplicate-key"
    );
    assert_eq!(
        with_type("Text \"what\" = \"x\"").2,
        "write the default after the type, before the description"
    );
}

#[test]
fn a_type_marked_optional_twice_is_rejected() {
    for written in [
        "Maybe Maybe Int",
        "Maybe Int?",
        "Int??",
        "Maybe (Maybe Int)",
        "(Int?)?",
    ] {
        assert_eq!(with_type(written).0, "double-maybe", "{written}");
    }
}

#[test]
fn errors_in_names_and_strings_are_reported() {
    assert_eq!(only("(a?: Int) --> IO Text").3, "write `a: Maybe T`");
    assert_eq!(only("(größe: Int) --> IO Text").3, "quote it: \"größe\"");
    assert_eq!(only("(\"\": Int) --> IO Text").0, "empty-name");
    assert_eq!(
        only("(a: Int b: Int) --> IO Text").3,
        "separate them with `,`"
    );
    assert_eq!(only("(a: \"x\" | \"x\") --> IO Text").0, "duplicate-option");
    assert_eq!(only("(a: Int \"\\q\") --> IO Text").0, "string-escape");
    assert_eq!(only("(a: Int \"\\ud800\") --> IO Text").0, "string-escape");
    let open = errors("(a: Int \"what) --> IO Text");
    assert_eq!(
        open[0].message,
        "this string is not closed before the end of the line"
    );
}

#[test]
fn messages_name_the_expected_and_the_found_token() {
    let (code, at, message, hint) = only("Text --> Text");
    assert_eq!((code, at), ("signature-syntax", "Text"));
    assert_eq!(message, "expected `(`, found `Text`");
    assert!(hint.starts_with("a signature begins with its parameters"));
    assert_eq!(
        only("(a: Int --> IO Text").2,
        "expected `,` or `)`, found `-->`"
    );
    assert_eq!(
        only("(a: Int").2,
        "expected `,` or `)`, found the end of the text"
    );
    assert_eq!(
        only("(a: {b: Int) --> IO Text").2,
        "expected `,` or `}`, found `)`"
    );
    assert_eq!(
        only("(a: Int) --> IO Text Text").2,
        "expected the end of the signature, found `Text`"
    );
    assert_eq!(
        only("(").2,
        "expected a parameter's name or `)`, found the end of the text"
    );
    assert_eq!(only("").2, "expected `(`, found the end of the text");
    assert_eq!(
        Type::parse("").unwrap_err()[0].message,
        "expected a type, found the end of the text"
    );
}

#[test]
fn nesting_too_deep_is_an_error_without_stack_overflow() {
    for (open, close) in [
        ("[", "]"),
        ("{a: ", "}"),
        ("(", ")"),
        ("List ", ""),
        ("[{a: (", ")}]"),
    ] {
        for depth in [40, 100_000] {
            let ty = format!("{}Int{}", open.repeat(depth), close.repeat(depth));
            let found = Type::parse(&ty).unwrap_err();
            assert!(
                found
                    .iter()
                    .any(|diagnostic| diagnostic.code == "type-depth"),
                "{open}"
            );
            let found = errors(&format!("(a: {ty}) --> IO Text"));
            assert!(
                found
                    .iter()
                    .any(|diagnostic| diagnostic.code == "type-depth"),
                "{open}"
            );
        }
    }
    let deep = format!("Array = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(with_type(&deep).0, "type-depth");
    assert!(Type::parse(&"Maybe ".repeat(100_000)).is_err());
}

/// The CPU time of this thread. Wall-clock time would also count other processes on a busy machine.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn parsing_time_is_linear_in_the_length() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    let started = thread_cpu_time();
    let name = "n".repeat(200_000);
    for text in [
        many("(a: Strng, ", 20_000),
        format!("({}) --> IO Text", many("a: Txt, ", 50_000)),
        many("-", 200_000),
        many("=", 200_000),
        many("\"", 200_001),
        many("(a=", 50_000),
        many("a: Int = [1, ", 30_000),
        many("`", 100_001),
        many("\\u", 100_000),
        format!("(a: {}\"\"", many("\"x\" | ", 50_000)),
        format!("({name}: {{{}}}) --> IO Text", many("a: Int, ", 20_000)),
        many("List<", 50_000),
    ] {
        assert!(Signature::parse(&text).is_err());
        assert!(Type::parse(&text).is_err());
    }
    let options: Vec<String> = (0..20_000).map(|index| format!("\"o{index}\"")).collect();
    let items = many("\"o19999\",", 20_000);
    let text = format!("(a: [{}] = [{items}]) --> IO Text", options.join(" | "));
    assert!(Signature::parse(&text).is_ok());
    let fields: Vec<String> = (0..10_000).map(|index| format!("f{index}: Int?")).collect();
    let text = format!(
        "(a: [{{{}}}] = [{}]) --> IO Text",
        fields.join(","),
        many("{},", 10_000)
    );
    assert!(Signature::parse(&text).is_ok());
    let took = thread_cpu_time() - started;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn the_number_of_reported_errors_is_bounded() {
    assert_eq!(errors(&format!("({})", "a: Txt, ".repeat(1000))).len(), 100);
}
