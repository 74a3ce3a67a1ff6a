//! Hidden characters: from every source they are escaped on a terminal, and JSON keeps the same data.

use serde_json::{Value, json};
use windlass_spec::text::{TextUse, is_clean};

use super::acting::{OfficeProject, call, finish};
use super::program::TestProject;
use super::seeded::{CommandOutput, run_as};
use super::session::Session;

/// A character of every class, and its escaped form.
const HIDDEN: [(&str, &str); 9] = [
    ("\u{61c}", "\\u{61c}"),
    ("\u{2028}", "\\u{2028}"),
    ("\u{2029}", "\\u{2029}"),
    ("\u{e0041}", "\\u{e0041}"),
    ("\u{202e}", "\\u{202e}"),
    ("\u{1b}[2J", "\\u{1b}[2J"),
    ("\u{ad}", "\\u{ad}"),
    ("\u{e000}", "\\u{e000}"),
    ("\u{9b}", "\\u{9b}"),
];

fn hostile() -> String {
    let pieces: Vec<&str> = HIDDEN.iter().map(|(hidden, _)| *hidden).collect();
    format!("x{}y", pieces.join("-"))
}

fn shown() -> String {
    let pieces: Vec<&str> = HIDDEN.iter().map(|(_, shown)| *shown).collect();
    format!("x{}y", pieces.join("-"))
}

/// An office project whose model gives these answers.
fn office_project(turns: &[Value]) -> TestProject {
    OfficeProject::new(turns).project
}

fn run_clean(project: &TestProject, arguments: &[&str]) -> CommandOutput {
    let output = run_as(project, "ann", arguments);
    for printed in [&output.out, &output.err] {
        assert!(is_clean(printed, TextUse::Display), "{printed:?}");
    }
    output
}

fn run(project: &TestProject, more: &[&str]) -> CommandOutput {
    run_clean(project, &[&OfficeProject::RUN[..], more].concat())
}

#[test]
fn final_answer_is_printed_with_hidden_characters_escaped() {
    let project = office_project(&[finish(&hostile())]);
    let printed = run(&project, &[]);
    assert_eq!((printed.code, printed.out), (0, format!("{}\n", shown())));
}

#[test]
fn final_answer_at_a_terminal_is_escaped_too() {
    let project = office_project(&[finish(&hostile())]);
    let mut command = project.command(&OfficeProject::RUN);
    command.env("WINDLASS_TEST_PRINCIPAL", "ann");
    let mut session = Session::at_a_terminal(&command);
    // The terminal has 80 columns, so that a longer text is wrapped.
    session.expect(&shown()[..60]);
    assert_eq!(session.end(), 0);
}

#[test]
fn json_output_escapes_hidden_characters_without_changing_the_value() {
    let project = office_project(&[finish(&hostile())]);
    let printed = run(&project, &["--json"]);
    assert_eq!(
        printed.json()["response"]["answer"],
        json!(hostile()),
        "{printed:?}"
    );
    assert!(printed.out.contains("\\u202e"), "{printed:?}");
}

#[test]
fn emoji_and_scripts_are_not_escaped() {
    let answer =
        "A family 👨\u{200D}👩\u{200D}👧, ❤\u{FE0F}, می\u{200C}خواهم, 10\u{202F}€.\n\tIndented.";
    let project = office_project(&[finish(answer)]);
    assert_eq!(run(&project, &[]).out, format!("{answer}\n"));
}

#[test]
fn tasks_and_results_are_shown_with_hidden_characters_escaped() {
    let project = office_project(&[call("listFiles", json!({})), finish(&hostile())]);
    std::fs::write(project.path("files").join("a\u{202e}txt.exe"), "").unwrap();
    let task = hostile().replace(['\u{2028}', '\u{2029}'], "");
    let mut arguments = OfficeProject::RUN.to_vec();
    arguments[2] = &task;
    assert_eq!(run_clean(&project, &arguments).code, 0);
    let list = run_clean(&project, &["runs", "list", "--json"]);
    let id = list.json()["run"].as_str().unwrap().to_owned();
    for command in [["runs", "show"], ["trace", "show"]] {
        let [group, verb] = command;
        let printed = run_clean(&project, &[group, verb, &id]);
        assert!(printed.out.contains("\\u{202e}"), "{printed:?}");
        let printed = run_clean(&project, &[group, verb, &id, "--json"]);
        assert!(
            printed.json().to_string().contains('\u{202e}'),
            "{printed:?}"
        );
    }
    run_clean(&project, &["runs", "list"]);
    run_clean(&project, &["trace", "list"]);
    let exported = run_clean(&project, &["trace", "export", &id]);
    assert!(exported.out.lines().count() > 3, "{exported:?}");
    for line in exported.out.lines() {
        let _: Value = serde_json::from_str(line).unwrap();
    }
}

#[test]
fn an_approval_shows_every_character_of_what_is_approved() {
    let file = format!("draft{}\u{a0}.txt", hostile());
    let project = office_project(&[call("deleteFile", json!({ "file": file })), finish("Gone.")]);
    assert_eq!(run(&project, &[]).code, 4);
    let list = run_clean(&project, &["approvals", "list", "--json"]);
    let id = list.json()["id"].as_str().unwrap().to_owned();
    let printed = run_clean(&project, &["approvals", "show", &id]);
    let text = &printed.out;
    assert!(is_clean(text, TextUse::Exact), "{text:?}");
    for escape in ["\\u202e", "\\u061c", "\\udb40\\udc41", "\\u00a0", "\\u001b"] {
        assert!(text.contains(escape), "{escape}: {text}");
    }
    let printed = run_clean(&project, &["approvals", "show", &id, "--json"]);
    assert!(
        printed.json().to_string().contains('\u{202e}'),
        "{printed:?}"
    );
    run_clean(&project, &["approvals", "list"]);
}

#[test]
fn file_names_in_errors_are_escaped() {
    let project = TestProject::new();
    let name = hostile();
    let missing = run_clean(&project, &["check", &name]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("\\u{202e}"), "{missing:?}");
    let as_json = run_clean(&project, &["check", &name, "--json"]);
    assert_eq!(as_json.json()["file"], json!(name));
    let project = project.with(
        "a.gram",
        format!("[t:Tool {{description: \"{}\"]\n", hostile()),
    );
    let wrong = run_clean(&project, &["check", "a.gram"]);
    assert_eq!(wrong.code, 1);
}

#[test]
fn arguments_in_usage_errors_are_escaped() {
    let project = TestProject::new();
    let option = format!("--{}", hostile());
    let color = format!("--color={}", hostile());
    for arguments in [
        &["run", &option][..],
        &[&color, "check"],
        &["\u{202e}check"],
    ] {
        let wrong = run_clean(&project, arguments);
        assert_eq!(wrong.code, 2, "{wrong:?}");
        assert!(wrong.err.contains("\\u{202e}"), "{wrong:?}");
    }
}

#[test]
fn fmt_keeps_text_byte_for_byte_in_a_pipe() {
    let text = "[t:Tool {description: \"a\u{202e}b\"} | ()==>(::Text)]\n";
    let project = TestProject::new();
    let printed = project.run_with_input(&["fmt", "-"], text);
    assert!(printed.contains('\u{202e}'), "{printed:?}");
}
