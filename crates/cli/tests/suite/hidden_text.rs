//! Text that hides something, with the real program: whatever its source, nothing of it reaches a terminal
//! as it is, and JSON keeps the same data.

use serde_json::{Value, json};
use windlass_spec::text::{TextUse, is_clean};

use super::acting::{Office, call, finish};
use super::program::Place;
use super::seeded::{Told, run_as};
use super::session::Session;

/// A character of every class, and what it is shown as.
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

/// An office whose model says this.
fn office(turns: &[Value]) -> Place {
    Office::new(turns).place
}

const RUN: [&str; 7] = [
    "run",
    "agent.gram",
    "Keep order.",
    "--library",
    "tools.toml",
    "--model",
    "scripted:answers.jsonl",
];

fn told(place: &Place, arguments: &[&str]) -> Told {
    let told = run_as(place, "ann", arguments);
    for printed in [&told.out, &told.err] {
        assert!(is_clean(printed, TextUse::Display), "{printed:?}");
    }
    told
}

fn run(place: &Place, more: &[&str]) -> Told {
    told(place, &[&RUN[..], more].concat())
}

#[test]
fn a_final_answer_is_printed_with_nothing_hidden_in_it() {
    let place = office(&[finish(&hostile())]);
    let printed = run(&place, &[]);
    assert_eq!((printed.code, printed.out), (0, format!("{}\n", shown())));
}

#[test]
fn a_final_answer_at_a_terminal_is_the_same() {
    let place = office(&[finish(&hostile())]);
    let mut command = place.command(&RUN);
    command.env("WINDLASS_TEST_PRINCIPAL", "ann");
    let mut session = Session::at_a_terminal(&command);
    session.expect(&shown());
    assert_eq!(session.end(), 0);
}

#[test]
fn json_holds_the_same_answer_in_escapes() {
    let place = office(&[finish(&hostile())]);
    let printed = run(&place, &["--json"]);
    assert_eq!(
        printed.json()["response"]["answer"],
        json!(hostile()),
        "{printed:?}"
    );
    assert!(printed.out.contains("\\u202e"), "{printed:?}");
}

#[test]
fn pictographs_and_scripts_stay_readable() {
    let answer =
        "A family 👨\u{200D}👩\u{200D}👧, ❤\u{FE0F}, می\u{200C}خواهم, 10\u{202F}€.\n\tIndented.";
    let place = office(&[finish(answer)]);
    assert_eq!(run(&place, &[]).out, format!("{answer}\n"));
}

#[test]
fn a_task_and_a_result_are_shown_with_nothing_hidden_in_them() {
    let place = office(&[call("listFiles", json!({})), finish(&hostile())]);
    std::fs::write(place.path("files").join("a\u{202e}txt.exe"), "").unwrap();
    let task = hostile().replace(['\u{2028}', '\u{2029}'], "");
    let mut arguments = RUN.to_vec();
    arguments[2] = &task;
    assert_eq!(told(&place, &arguments).code, 0);
    let list = told(&place, &["runs", "list", "--json"]);
    let id = list.json()["run"].as_str().unwrap().to_owned();
    for command in [["runs", "show"], ["trace", "show"]] {
        let [group, verb] = command;
        let printed = told(&place, &[group, verb, &id]);
        assert!(printed.out.contains("\\u{202e}"), "{printed:?}");
        let printed = told(&place, &[group, verb, &id, "--json"]);
        assert!(
            printed.json().to_string().contains('\u{202e}'),
            "{printed:?}"
        );
    }
    told(&place, &["runs", "list"]);
    told(&place, &["trace", "list"]);
    let exported = told(&place, &["trace", "export", &id]);
    assert!(exported.out.lines().count() > 3, "{exported:?}");
    for line in exported.out.lines() {
        let _: Value = serde_json::from_str(line).unwrap();
    }
}

#[test]
fn an_approval_shows_every_character_of_what_is_approved() {
    let file = format!("draft{}\u{a0}.txt", hostile());
    let place = office(&[call("deleteFile", json!({ "file": file })), finish("Gone.")]);
    assert_eq!(run(&place, &[]).code, 4);
    let list = told(&place, &["approvals", "list", "--json"]);
    let id = list.json()["id"].as_str().unwrap().to_owned();
    let printed = told(&place, &["approvals", "show", &id]);
    let text = &printed.out;
    assert!(is_clean(text, TextUse::Exact), "{text:?}");
    for escape in ["\\u202e", "\\u061c", "\\udb40\\udc41", "\\u00a0", "\\u001b"] {
        assert!(text.contains(escape), "{escape}: {text}");
    }
    let printed = told(&place, &["approvals", "show", &id, "--json"]);
    assert!(
        printed.json().to_string().contains('\u{202e}'),
        "{printed:?}"
    );
    told(&place, &["approvals", "list"]);
}

#[test]
fn an_error_that_quotes_a_file_name_hides_nothing() {
    let place = Place::new();
    let name = hostile();
    let missing = told(&place, &["check", &name]);
    assert_eq!(missing.code, 1);
    assert!(missing.err.contains("\\u{202e}"), "{missing:?}");
    let as_json = told(&place, &["check", &name, "--json"]);
    assert_eq!(as_json.json()["file"], json!(name));
    let place = place.with(
        "a.gram",
        format!("[t:Tool {{description: \"{}\"]\n", hostile()),
    );
    let wrong = told(&place, &["check", "a.gram"]);
    assert_eq!(wrong.code, 1);
}

#[test]
fn a_usage_error_quotes_what_was_typed_with_nothing_hidden_in_it() {
    let place = Place::new();
    let option = format!("--{}", hostile());
    let color = format!("--color={}", hostile());
    for arguments in [
        &["run", &option][..],
        &[&color, "check"],
        &["\u{202e}check"],
    ] {
        let wrong = told(&place, arguments);
        assert_eq!(wrong.code, 2, "{wrong:?}");
        assert!(wrong.err.contains("\\u{202e}"), "{wrong:?}");
    }
}

#[test]
fn formatted_text_is_kept_byte_for_byte_for_programs() {
    let text = "[t:Tool {description: \"a\u{202e}b\"} | ()==>(::Text)]\n";
    let place = Place::new();
    let printed = place.run_with_input(&["fmt", "-"], text);
    assert!(printed.contains('\u{202e}'), "{printed:?}");
}
