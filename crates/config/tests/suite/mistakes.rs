//! How mistakes are told: all of them, each with its place and what to do.

use windlass_config::{Layer, load};

use super::{project, shown, source, wrong};

#[test]
fn ten_mistakes_show_ten() {
    let text = r#"enviroment = "production"
libraries = "builtin"

[gate]
undo_window_seconds = "10"

[risk]
send_email = "dangerous"

[principals.alice]
permissions = ["files:raed"]
rate_limits = { per_minute = 0 }

[categories.web_tools.tools.find_customer]
timeout_seconds = 301

[categories.web_tools.tools.search]
enabled = "yes"

[categories.file_tools.tools.search]

[http]
timeout = 5
"#;
    let told = wrong(text);
    insta::assert_snapshot!(told);
    let lines = told
        .lines()
        .filter(|line| line.starts_with("windlass.toml:"));
    assert_eq!(lines.count(), 10);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let told = wrong("[gate]\nundo_window = 5");
    assert_eq!(
        told,
        "windlass.toml:2:1: gate.undo_window: there is no such key\n  \
         help: did you mean `undo_window_seconds`? Known here are `undo_window_seconds`, `confidence_threshold`, `without_confidence`"
    );
}

#[test]
fn a_key_in_the_wrong_table_is_sent_to_the_right_one() {
    let told = wrong("[gate]\ntoken_budget = 5");
    assert!(
        told.ends_with("help: `token_budget` belongs in [selection]"),
        "{told}"
    );
    let told = wrong("[search]\npolicies = \"p.cedar\"");
    assert!(
        told.ends_with("`policies` belongs in the file itself, before the first [table]"),
        "{told}"
    );
}

#[test]
fn a_wrong_type_says_what_was_found_and_what_fits() {
    for (text, expected) in [
        (
            "environment = 5",
            "expected the name of an environment, found the number 5",
        ),
        (
            "environments = \"qa\"",
            "expected a list of texts, found the text \"qa\"\n  help: a list of one is written [\"qa\"]",
        ),
        (
            "[gate]\nundo_window_seconds = \"5\"",
            "expected a whole number, 0 to 86400 seconds, found the text \"5\"\n  help: numbers have no quotes: 5",
        ),
        ("gate = 5", "expected a table, found the number 5"),
        (
            "[http]\nallow_private = \"true\"",
            "expected true or false, found the text \"true\"\n  help: write it without quotes: true",
        ),
        (
            "environments = [5]",
            "environments[0]: expected the name of an environment, found the number 5",
        ),
        (
            "model = true",
            "expected a text that says something, found true",
        ),
        (
            "model = 2020-01-01",
            "a date cannot stand here; write it as a text, in quotes",
        ),
        (
            "[files]\nmax_bytes = 99999999999999999999",
            "the number is too large",
        ),
        (
            "[[categories]]\nname = \"a\"",
            "expected a table, found a list",
        ),
    ] {
        let told = wrong(text);
        assert!(told.ends_with(expected), "{text}: {told}");
    }
}

#[test]
fn a_text_that_cannot_be_read_is_told_with_its_place() {
    let told = wrong("model = \"a\"\nenvironment = \n[gate]\nundo_windo_seconds = 5\n");
    let first = told.lines().next().unwrap();
    assert!(first.starts_with("windlass.toml:2:"), "{told}");
    // What else can be told is told as well.
    assert!(
        told.contains("windlass.toml:4:1: gate.undo_windo_seconds: there is no such key"),
        "{told}"
    );
    let told = wrong("model = \"a\"\nmodel = \"b\"");
    assert!(
        told.starts_with("windlass.toml:2:1: duplicate key"),
        "{told}"
    );
}

#[test]
fn what_follows_from_a_broken_line_is_not_told() {
    let told = wrong("[gate\nundo_window_seconds = 5\n[search]\nmax_result = 5");
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].starts_with("windlass.toml:1:6: unclosed table"),
        "{told}"
    );
    assert!(
        lines[1].starts_with("windlass.toml:4:1: search.max_result: there is no such key"),
        "{told}"
    );
    let told = wrong("[gate\nundo_window_seconds = 5");
    assert_eq!(told.lines().count(), 1, "{told}");
    // One mistake in a line is enough.
    let told = wrong("libraries = [\"a\"\ny = 3\n");
    assert_eq!(told.matches("windlass.toml:2:").count(), 1, "{told}");
}

#[test]
fn what_a_broken_line_may_declare_is_not_called_unknown() {
    let told = wrong("environment = \"qa\"\nenvironments = [\"qa\"\n[gate]\n");
    assert!(!told.contains("there is no environment"), "{told}");
}

#[test]
fn columns_count_characters() {
    let told = wrong("principals = { \"ä\u{20ac}\" = { permissions = [\"x:y\"] } }");
    assert!(
        told.starts_with("windlass.toml:1:40: principals.\"ä€\".permissions[0]"),
        "{told}"
    );
}

#[test]
fn mistakes_come_in_the_order_of_layers_and_lines() {
    let sources = [
        project("[gate]\nb = 1\na = 1"),
        source(Layer::User, "user.toml", "x = 1"),
    ];
    let variables = [("WINDLASS_ENVIRONMENT".to_owned(), "Q".to_owned())];
    let flags = ["y=1".to_owned()];
    let mistakes = load(&sources, variables, &flags).unwrap_err();
    let places: Vec<_> = mistakes
        .iter()
        .map(|mistake| format!("{}:{}", mistake.source, mistake.line.unwrap_or(0)))
        .collect();
    let expected = [
        "user.toml:1",
        "windlass.toml:2",
        "windlass.toml:3",
        "WINDLASS_ENVIRONMENT:0",
        "the flag `y`:0",
    ];
    assert_eq!(places, expected, "{}", shown(&mistakes));
}
