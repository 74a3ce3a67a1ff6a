//! Input that cannot be right: each kind gets a clear error, a place and a non-zero exit code.

use insta::assert_snapshot;

use super::program::Place;

const TOOL: &str = "[t:Tool {description: \"Does what it should\"} | ()==>(::Text)]\n";

fn check(content: &str) -> String {
    Place::new()
        .with("agent.gram", content)
        .run(&["check", "agent.gram"])
}

#[test]
fn a_file_that_is_not_utf8() {
    let place = Place::new().with("agent.gram", b"(a)\n(b \xFF c)\n");
    assert_snapshot!(place.run(&["check", "agent.gram"]));
}

#[test]
fn a_missing_file() {
    assert_snapshot!(Place::new().run(&["check", "missing.gram"]));
}

#[test]
fn a_directory() {
    let place = Place::new();
    std::fs::create_dir(place.path("agents")).unwrap();
    assert_snapshot!(place.run(&["check", "agents/"]));
}

#[test]
fn a_file_of_two_gigabytes() {
    let place = Place::new().with("huge.gram", "");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(place.path("huge.gram"))
        .unwrap();
    file.set_len(2 * 1024 * 1024 * 1024).unwrap();
    assert_snapshot!(place.run(&["check", "huge.gram"]));
}

#[test]
fn a_device_that_never_ends() {
    assert_snapshot!(Place::new().run(&["check", "/dev/zero"]));
}

#[test]
fn a_hundred_thousand_open_brackets() {
    let text = "[".repeat(100_000);
    let told = Place::new()
        .with("deep.gram", text)
        .run(&["check", "deep.gram"]);
    let end: Vec<&str> = told.lines().rev().take(12).collect();
    assert_snapshot!(end.into_iter().rev().collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_hundred_thousand_nested_brackets() {
    let text = "[|".repeat(100_000) + "a" + &"]".repeat(100_000);
    assert_snapshot!(
        Place::new()
            .with("deep.gram", text)
            .run(&["check", "deep.gram"])
    );
}

#[test]
fn a_hundred_thousand_nested_agents() {
    let agent = "[a:Agent {instruction: \"Do.\", model: \"m\"} | ";
    let text = agent.repeat(100_000) + "a" + &"]".repeat(100_000);
    let told = Place::new()
        .with("deep.gram", text)
        .run(&["check", "deep.gram"]);
    assert_snapshot!(told.lines().take(9).collect::<Vec<_>>().join("\n"));
    assert!(told.ends_with("--- exit code 1\n"));
}

#[test]
fn a_cycle_of_references() {
    assert_snapshot!(check(
        "[a:Agent {instruction: \"A.\", model: \"m\"} | b]
[b:Agent {instruction: \"B.\", model: \"m\"} | c]
[c:Agent {instruction: \"C.\", model: \"m\"} | a]
"
    ));
}

#[test]
fn duplicate_identities() {
    assert_snapshot!(check(&format!(
        "{TOOL}[t:Agent {{instruction: \"A.\", model: \"m\"}}]\n"
    )));
}

#[test]
fn a_tool_without_signature() {
    assert_snapshot!(check("[t:Tool {description: \"Does what it should\"}]\n"));
}

#[test]
fn two_tools_of_one_name() {
    assert_snapshot!(check(&format!(
        "[a:Agent {{instruction: \"A.\", model: \"m\"}} |\n  {}, \n  {}]\n",
        TOOL.trim(),
        TOOL.trim()
    )));
}

#[test]
fn text_that_would_steer_the_terminal_is_blotted_out() {
    let told =
        check("[`a\u{1b}[31mb`:Agent {instruction: \"\u{202e}\", modle: \"m\"}] \u{1b}[2J\n");
    assert!(
        !told.contains('\u{1b}') && !told.contains('\u{202e}'),
        "{told:?}"
    );
    assert_snapshot!(told);
}

#[test]
fn names_that_would_steer_the_terminal_are_made_visible() {
    let place = Place::new()
        .with("a\u{1b}[31mb.gram", "(a)->(b)")
        .with("ok.gram", TOOL);
    for arguments in [
        &["check", "a\u{1b}[31mb.gram"][..],
        &["schema", "ok.gram", "\u{1b}[31mq"],
        &["bind", "ok.gram", "--library", "\u{202e}q"],
    ] {
        let told = place.run(arguments);
        assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told:?}");
    }
    assert_snapshot!(check(
        "[`a\u{202e}b`:Agent {instruction: \"A.\", model: \"m\"}]"
    ));
}

#[test]
fn lines_that_end_with_a_carriage_return_are_drawn_without_it() {
    assert_snapshot!(check("(a)\r\n(b)->(c)\r\n"));
}

#[test]
fn standard_input_twice() {
    assert_snapshot!(Place::new().run(&["check", "-", "-"]));
}

#[test]
fn standard_input_that_is_empty() {
    assert_snapshot!(Place::new().run_with_input(&["check", "-"], ""));
}

#[test]
fn no_arguments_and_wrong_arguments_end_with_code_2() {
    let place = Place::new();
    for arguments in [
        &[][..],
        &["chekc", "x"],
        &["check"],
        &["check", "--jsno", "x"],
        &["bind", "x"],
    ] {
        let told = place.run(arguments);
        assert!(told.ends_with("--- exit code 2\n"), "{arguments:?}: {told}");
    }
}
