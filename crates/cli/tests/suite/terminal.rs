//! What a user sees at a terminal: answers of models as they arrive, tables, colours, and keys.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::json;

use super::acting::{OfficeProject, call, finish, project_that_deletes, project_that_writes};
use super::program::{TestProject, example};
use super::session::{Screen, Session};

/// A model server that sends each piece of its answer when the test asks for it.
fn slow_model(pieces: &'static [&'static str]) -> (String, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (next, asked): (Sender<()>, Receiver<()>) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 65536];
        let _ = stream.read(&mut request).unwrap();
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for piece in pieces {
            let delta = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
            stream
                .write_all(format!("data: {delta}\n\n").as_bytes())
                .unwrap();
            stream.flush().unwrap();
            let _ = asked.recv();
        }
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        let _ = stream.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes());
    });
    (url, next)
}

/// A command that asks a model at an address, in this directory of project files.
fn ask(project: &TestProject, url: &str) -> Command {
    let mut command = project.command(&[
        "run",
        "hello.gram",
        "What is the capital of France?",
        "--library",
        "hello",
        "--model",
        "my-lab/m",
        "--base-url",
        url,
    ]);
    command.env_remove("CLICOLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn hello_project() -> TestProject {
    TestProject::new().with("hello.gram", example("hello.gram"))
}

const PIECES: &[&str] = &[
    "# Capital\n\nIt is **Par",
    "is**, see [the map](https://maps.example/paris).\n\n- on the Se",
    "ine\n- in France\n",
];

#[test]
fn an_answer_is_rendered_while_it_arrives_and_shown_once() {
    let project = hello_project();
    let (url, next) = slow_model(PIECES);
    let mut session = Session::at_a_terminal(&ask(&project, &url));
    // The first block is complete, and the second is shown as far as it is known.
    session.expect("Capital");
    session.expect("It is");
    next.send(()).unwrap();
    session.expect("maps.example");
    session.expect("on the Se");
    next.send(()).unwrap();
    session.expect("in France");
    next.send(()).unwrap();
    session.expect("details: windlass trace show");
    let screen = Screen::of(session.text(), 80);
    let shown: Vec<&str> = screen.lines();
    let start = shown
        .iter()
        .position(|line| line.ends_with("writes:"))
        .unwrap();
    let expected = [
        "the agent `hello_world_agent` writes:",
        "│ Capital",
        "│",
        "│ It is Paris, see the map (https://maps.example/paris).",
        "│",
        "│ - on the Seine",
        "│ - in France",
    ];
    assert_eq!(
        &shown[start..start + expected.len()],
        expected,
        "{shown:#?}"
    );
    let whole = shown.join("\n");
    assert_eq!(whole.matches("Paris").count(), 1, "{whole}");
    assert!(!whole.contains("answers:"), "{whole}");
    // Bold, and nothing else that a terminal acts on.
    assert!(
        session.text().contains("\u{1b}[1mParis\u{1b}[0m"),
        "{}",
        session.text()
    );
    assert_eq!(session.end(), 0);
}

#[test]
fn without_colours_the_marks_of_an_answer_stay() {
    for (name, value) in [("NO_COLOR", "1"), ("CLICOLOR", "0")] {
        let project = hello_project();
        let (url, next) = slow_model(&["It is **Paris**.\n"]);
        let mut command = ask(&project, &url);
        command.env(name, value);
        let mut session = Session::at_a_terminal(&command);
        next.send(()).unwrap();
        session.expect("│ It is **Paris**.");
        session.expect("details:");
        assert!(
            !session.text().contains("\u{1b}[1m"),
            "{name}: {}",
            session.text()
        );
        assert_eq!(session.end(), 0);
    }
}

#[test]
fn a_piped_answer_is_the_text_of_the_model() {
    let project = hello_project();
    let (url, next) = slow_model(&["# It is\n\n**Paris**.\n"]);
    next.send(()).unwrap();
    let output = ask(&project, &url).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "# It is\n\n**Paris**.\n");
}

#[test]
fn a_rendered_answer_cannot_control_the_terminal() {
    let office = OfficeProject::new(&[finish(
        "&#27;[2J&#x1b;]0;x&#7; **fine** [bank](https://evil.example)\n\n```\n\u{1b}[2J\n```",
    )]);
    let mut session = office.at_a_terminal();
    session.expect("details:");
    let text = session.text().to_owned();
    assert!(
        !text.contains("\u{1b}[2J") && !text.contains("\u{1b}]0"),
        "{text:?}"
    );
    assert!(
        text.contains("bank") && text.contains("(https://evil.example)"),
        "{text}"
    );
    assert_eq!(session.end(), 0);
}

#[test]
fn u_undoes_the_call_that_is_held() {
    let office = project_that_writes();
    let mut session = office.at_a_terminal();
    session.expect("press u to undo it");
    session.send("u");
    session.expect("undone by ann");
    session.expect("details:");
    assert_eq!(session.end(), 0);
    assert!(!office.project.path("files/journal.txt").exists());
}

#[test]
fn other_keys_do_not_undo_a_held_call() {
    let office = project_that_writes();
    let mut session = office.at_a_terminal();
    session.expect("press u to undo it");
    session.send("x\ny");
    session.expect("details:");
    assert!(!session.text().contains("undone"), "{}", session.text());
    assert_eq!(session.end(), 0);
    assert!(office.project.path("files/journal.txt").exists());
}

#[test]
fn words_of_a_table_are_whole_on_a_narrow_terminal() {
    let project = TestProject::new();
    let mut session = Session::at_a_terminal_of(60, &project.command(&["config", "show"]));
    session.expect("KEY");
    let text = {
        let mut session = session;
        session.expect_end();
        session.text().to_owned()
    };
    let plain = Screen::of(&text, 60);
    let wide = project.run(&["config", "show"]);
    let words: Vec<&str> = wide.split_whitespace().collect();
    for line in plain.lines() {
        for word in line.split_whitespace() {
            assert!(words.contains(&word), "`{word}` is no word: {line}");
        }
    }
}

#[test]
fn states_have_colours_only_at_a_terminal_that_wants_them() {
    let office = project_that_deletes();
    assert_eq!(office.run(&[]).code, 4);
    let list = ["runs", "list"];
    let piped = office.run_command(&list);
    assert!(!piped.out.contains('\u{1b}'), "{piped:?}");
    let at_terminal = |variables: &[(&str, &str)]| {
        let mut command = office.command(&list);
        // With `CI` set, colours are used even where the terminal has none.
        for variable in ["CLICOLOR", "CLICOLOR_FORCE", "CI"] {
            command.env_remove(variable);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let mut session = Session::at_a_terminal(&command);
        session.expect_end();
        session.text().to_owned()
    };
    assert!(
        at_terminal(&[]).contains("\u{1b}[33mwaiting\u{1b}[0m"),
        "{}",
        at_terminal(&[])
    );
    for variable in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        let text = at_terminal(&[variable]);
        assert!(
            text.contains("waiting") && !text.contains("\u{1b}["),
            "{variable:?}: {text}"
        );
    }
}

#[test]
fn the_list_of_approvals_fits_on_80_columns_and_the_picker_decides() {
    let long = json!({"file": format!("{}.txt", "a long name ".repeat(20))});
    let office = OfficeProject::new(&[call("deleteFile", long), finish("Done.")]);
    assert_eq!(office.run(&[]).code, 4);
    let listed = office.run_command(&["approvals", "list"]);
    for line in listed.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(
        listed.out.contains("deleteFile (file: a long name"),
        "{listed:?}"
    );
    assert!(!listed.out.contains("than ago"), "{listed:?}");
    let mut session = Session::at_a_terminal(&office.command(&["approvals"]));
    session.expect("Which request?");
    session.expect("deleteFile");
    session.send("\r");
    session.expect("Type `deleteFile` to approve");
    session.send("reject\r");
    session.expect("Reason");
    session.send("not now\r");
    session.expect("no requests are pending");
    assert_eq!(session.end(), 0);
}
