//! Invalid input: each kind gives a clear error with a location and a non-zero exit code.

use insta::assert_snapshot;

use super::program::TestProject;

const TOOL: &str = "[t:Tool {description: \"Does what it should\"} | ()==>(::Text)]\n";

fn check(content: &str) -> String {
    TestProject::new()
        .with("agent.gram", content)
        .run(&["check", "agent.gram"])
}

#[test]
fn a_file_that_is_not_utf8() {
    let project = TestProject::new().with("agent.gram", b"(a)\n(b \xFF c)\n");
    assert_snapshot!(project.run(&["check", "agent.gram"]));
}

#[test]
fn a_missing_file() {
    assert_snapshot!(TestProject::new().run(&["check", "missing.gram"]));
}

#[test]
fn a_directory() {
    let project = TestProject::new();
    std::fs::create_dir(project.path("agents")).unwrap();
    assert_snapshot!(project.run(&["check", "agents/"]));
}

#[test]
fn a_file_of_two_gigabytes() {
    let project = TestProject::new().with("huge.gram", "");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(project.path("huge.gram"))
        .unwrap();
    file.set_len(2 * 1024 * 1024 * 1024).unwrap();
    assert_snapshot!(project.run(&["check", "huge.gram"]));
}

#[test]
fn a_device_that_never_ends() {
    assert_snapshot!(TestProject::new().run(&["check", "/dev/zero"]));
}

#[test]
fn a_hundred_thousand_open_brackets() {
    let text = "[".repeat(100_000);
    let output = TestProject::new()
        .with("deep.gram", text)
        .run(&["check", "deep.gram"]);
    let end: Vec<&str> = output.lines().rev().take(12).collect();
    assert_snapshot!(end.into_iter().rev().collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_hundred_thousand_nested_brackets() {
    let text = "[|".repeat(100_000) + "a" + &"]".repeat(100_000);
    assert_snapshot!(
        TestProject::new()
            .with("deep.gram", text)
            .run(&["check", "deep.gram"])
    );
}

#[test]
fn a_hundred_thousand_nested_agents() {
    let agent = "[a:Agent {instruction: \"Do.\", model: \"m\"} | ";
    let text = agent.repeat(100_000) + "a" + &"]".repeat(100_000);
    let output = TestProject::new()
        .with("deep.gram", text)
        .run(&["check", "deep.gram"]);
    assert_snapshot!(output.lines().take(9).collect::<Vec<_>>().join("\n"));
    assert!(output.ends_with("--- exit code 1\n"));
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
fn control_characters_in_source_lines_are_replaced() {
    let output =
        check("[`a\u{1b}[31mb`:Agent {instruction: \"\u{202e}\", modle: \"m\"}] \u{1b}[2J\n");
    assert!(
        !output.contains('\u{1b}') && !output.contains('\u{202e}'),
        "{output:?}"
    );
    assert_snapshot!(output);
}

#[test]
fn control_characters_in_names_are_escaped() {
    let project = TestProject::new()
        .with("a\u{1b}[31mb.gram", "(a)->(b)")
        .with("ok.gram", TOOL);
    for arguments in [
        &["check", "a\u{1b}[31mb.gram"][..],
        &["schema", "ok.gram", "\u{1b}[31mq"],
        &["bind", "ok.gram", "--library", "\u{202e}q"],
    ] {
        let output = project.run(arguments);
        assert!(!output.contains(['\u{1b}', '\u{202e}']), "{output:?}");
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
    assert_snapshot!(TestProject::new().run(&["check", "-", "-"]));
}

#[test]
fn standard_input_that_is_empty() {
    assert_snapshot!(TestProject::new().run_with_input(&["check", "-"], ""));
}

#[test]
fn no_arguments_and_wrong_arguments_end_with_code_2() {
    let project = TestProject::new();
    for arguments in [
        &[][..],
        &["chekc", "x"],
        &["check"],
        &["check", "--jsno", "x"],
        &["bind"],
    ] {
        let output = project.run(arguments);
        assert!(
            output.ends_with("--- exit code 2\n"),
            "{arguments:?}: {output}"
        );
    }
}
