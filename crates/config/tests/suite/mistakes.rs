//! The messages for mistakes: all at once, each with its position and a fix.

use windlass_config::{Layer, load};

use super::{load_errors, project, render, source};

#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
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
    let message = load_errors(text);
    insta::assert_snapshot!(message);
    let lines = message
        .lines()
        .filter(|line| line.starts_with("windlass.toml:"));
    assert_eq!(lines.count(), 10);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let message = load_errors("[gate]\nundo_window = 5");
    assert_eq!(
        message,
        "windlass.toml:2:1: gate.undo_window: there is no such key\n  \
         help: did you mean `undo_window_seconds`? Known keys: `undo_window_seconds`, `confidence_threshold`, `without_confidence`"
    );
}

#[test]
fn a_key_in_the_wrong_table_names_the_right_table() {
    let message = load_errors("[gate]\ntoken_budget = 5");
    assert!(
        message.ends_with("help: `token_budget` belongs in [selection]"),
        "{message}"
    );
    let message = load_errors("[search]\npolicies = \"p.cedar\"");
    assert!(
        message.ends_with("`policies` belongs in the file itself, before the first [table]"),
        "{message}"
    );
}

#[test]
fn a_wrong_type_names_the_expected_and_the_found_type() {
    for (text, expected) in [
        (
            "environment = 5",
            "expected the name of an environment, found the number 5",
        ),
        (
            "environments = \"qa\"",
            "expected a list of strings, found the string \"qa\"\n  help: write a list: [\"qa\"]",
        ),
        (
            "[gate]\nundo_window_seconds = \"5\"",
            "expected a whole number, 0 to 86400 seconds, found the string \"5\"\n  help: write the number without quotes: 5",
        ),
        ("gate = 5", "expected a table, found the number 5"),
        (
            "[http]\nallow_private = \"true\"",
            "expected true or false, found the string \"true\"\n  help: write it without quotes: true",
        ),
        (
            "environments = [5]",
            "environments[0]: expected the name of an environment, found the number 5",
        ),
        ("model = true", "expected a non-empty string, found true"),
        (
            "model = 2020-01-01",
            "a date is not allowed here; write it as a string, in quotes",
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
        let message = load_errors(text);
        assert!(message.ends_with(expected), "{text}: {message}");
    }
}

#[test]
fn a_syntax_error_is_reported_with_its_position() {
    let message = load_errors("model = \"a\"\nenvironment = \n[gate]\nundo_windo_seconds = 5\n");
    let first = message.lines().next().unwrap();
    assert!(first.starts_with("windlass.toml:2:"), "{message}");
    // Mistakes in other lines are reported as well.
    assert!(
        message.contains("windlass.toml:4:1: gate.undo_windo_seconds: there is no such key"),
        "{message}"
    );
    let message = load_errors("model = \"a\"\nmodel = \"b\"");
    assert!(
        message.starts_with("windlass.toml:2:1: duplicate key"),
        "{message}"
    );
}

#[test]
fn consequences_of_a_syntax_error_are_not_reported() {
    let message = load_errors("[gate\nundo_window_seconds = 5\n[search]\nmax_result = 5");
    let lines: Vec<&str> = message.lines().collect();
    assert!(
        lines[0].starts_with("windlass.toml:1:6: unclosed table"),
        "{message}"
    );
    assert!(
        lines[1].starts_with("windlass.toml:4:1: search.max_result: there is no such key"),
        "{message}"
    );
    let message = load_errors("[gate\nundo_window_seconds = 5");
    assert_eq!(message.lines().count(), 1, "{message}");
    // Only the first syntax error of a line is reported.
    let message = load_errors("libraries = [\"a\"\ny = 3\n");
    assert_eq!(message.matches("windlass.toml:2:").count(), 1, "{message}");
}

#[test]
fn a_name_that_an_unreadable_line_may_declare_is_not_unknown() {
    let message = load_errors("environment = \"qa\"\nenvironments = [\"qa\"\n[gate]\n");
    assert!(!message.contains("there is no environment"), "{message}");
}

#[test]
fn columns_count_characters() {
    let message = load_errors("principals = { \"ä\u{20ac}\" = { permissions = [\"x:y\"] } }");
    assert!(
        message.starts_with("windlass.toml:1:40: principals.\"ä€\".permissions[0]"),
        "{message}"
    );
}

#[test]
fn mistakes_are_sorted_by_layer_and_line() {
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
        "`--set y`:0",
    ];
    assert_eq!(places, expected, "{}", render(&mistakes));
}
