//! Conversations with an agent, from a pipe and at a terminal.

use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;

use super::program::{Place, example};
use super::session::{Session, without_ids};

const CHAT: [&str; 6] = [
    "chat",
    "hello.gram",
    "--library",
    "hello",
    "--model",
    "scripted:answers.jsonl",
];

/// With a model that greets Ada by a tool and then says what it is told to.
fn place(answers: &[&str]) -> Place {
    let answers: Vec<String> = answers
        .iter()
        .map(|text| format!("{{\"text\": \"{text}\"}}\n"))
        .collect();
    Place::new().with("hello.gram", example("hello.gram")).with(
        "answers.jsonl",
        example("hello.answers.jsonl") + &answers.concat(),
    )
}

/// The task and the conversation that the latest run was begun with.
fn latest_task(place: &Place) -> serde_json::Value {
    let listed = place.run(&["trace", "list", "--json", "--limit", "1"]);
    let line = listed.lines().find(|line| line.starts_with('{')).unwrap();
    let run: serde_json::Value = serde_json::from_str(line).unwrap();
    let exported = place.run(&["trace", "export", run["run"].as_str().unwrap()]);
    let first = exported.lines().find(|line| line.starts_with('{')).unwrap();
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    first["event"]["task"].clone()
}

#[test]
fn answers_go_to_standard_output_and_everything_else_to_standard_error() {
    let said =
        "/help\n/tools\n/trace\n\n Say hello \\\nto Ada\nAnd now?\n/nothing here\n/quit\nnever\n";
    let told = place(&["Now nothing."]).run_with_input(&CHAT, said);
    assert_snapshot!(without_ids(&told));
}

#[test]
fn the_trace_is_that_of_the_last_answer() {
    let place = place(&["Fine."]);
    let told = place.run_with_input(&CHAT, "Say hello to Ada\nHow are you?\n/trace\n");
    let trace = told.split_once("of agent hello_world_agent").unwrap().1;
    assert!(trace.contains("answer (0.50): Fine."), "{told}");
    assert!(!trace.contains("sayHello"), "{told}");
}

#[test]
fn nothing_said_is_nothing_told() {
    let told = place(&[]).run_with_input(&CHAT, "");
    let expected = "--- stderr\nmodel: scripted:answers.jsonl\n\n--- exit code 0\n";
    assert_eq!(told, expected);
}

#[test]
fn what_was_said_before_goes_with_every_line() {
    let place = place(&["Fine."]);
    place.run_with_input(&CHAT, "Say hello to Ada\nHow are you?\n");
    let task = latest_task(&place);
    assert_eq!(task["description"], "How are you?");
    let before = serde_json::json!([
        {"role": "user", "content": "Say hello to Ada"},
        {"role": "assistant", "content": "Hello, Ada! Nice to meet you."},
    ]);
    assert_eq!(task["conversation"], before);
}

#[test]
fn a_conversation_is_taken_up_again() {
    let place = place(&[]);
    let resume = [&CHAT[..], &["--resume"]].concat();
    let first = place.run_with_input(&resume, "Say hello to Ada\n");
    assert!(
        first.contains("there is no conversation with `hello_world_agent` yet"),
        "{first}"
    );
    let place = place.with("answers.jsonl", "{\"text\": \"Ada.\"}\n");
    let second = place.run_with_input(&resume, "Who was it?\n");
    assert!(second.contains("2 messages taken up"), "{second}");
    assert_eq!(
        latest_task(&place)["conversation"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // Without the option, nothing is taken up.
    let place = place.with("answers.jsonl", "{\"text\": \"Who?\"}\n");
    let third = place.run_with_input(&CHAT, "Who was it?\n");
    assert!(!third.contains("taken up"), "{third}");
    assert!(latest_task(&place).get("conversation").is_none());
    // The latest is now the third.
    let last = place.run_with_input(&resume, "/trace\n");
    assert!(
        last.contains("2 messages taken up") && last.contains("answer (0.50): Who?"),
        "{last}"
    );
}

#[test]
fn only_a_hundred_messages_are_kept() {
    let answers = vec!["Yes."; 51];
    let place = place(&answers).with("answers.jsonl", "{\"text\": \"Yes.\"}\n".repeat(51));
    let said: String = (1..=51)
        .map(|number| format!("question {number}\n"))
        .collect();
    place.run_with_input(&CHAT, said);
    let place = place.with("answers.jsonl", "{\"text\": \"Yes.\"}\n");
    let told = place.run_with_input(&[&CHAT[..], &["--resume"]].concat(), "One more\n");
    assert!(told.contains("100 messages taken up"), "{told}");
    assert_eq!(
        latest_task(&place)["conversation"][0]["content"],
        "question 2"
    );
}

#[test]
fn a_run_that_fails_is_explained_and_the_conversation_goes_on() {
    let place = place(&[]);
    let told = place.run_with_input(&CHAT, "Say hello to Ada\nHow are you?\n/help\n");
    assert!(
        told.contains("error: The script has no more than its 2 answers.\nhint: "),
        "{told}"
    );
    assert!(told.contains("/quit"), "{told}");
    assert!(told.ends_with("--- exit code 0\n"), "{told}");
    // What never reached the model was not said.
    let place = place.with("answers.jsonl", "{\"text\": \"Yes.\"}\n");
    place.run_with_input(&[&CHAT[..], &["--resume"]].concat(), "Still there?\n");
    assert_eq!(
        latest_task(&place)["conversation"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn what_keeps_a_conversation_from_beginning_is_explained() {
    let place = place(&[]).with(
        "other.gram",
        "[other:Agent {instruction: \"Talk.\", model: \"m\"}]",
    );
    let mut told = String::new();
    for arguments in [
        &["chat"][..],
        &["chat", "hello.gram"],
        &["chat", "none.gram"],
        &[&CHAT[..], &["--resume=nothing"]].concat(),
    ] {
        let printed = place.run(arguments);
        told += &format!("$ windlass {}\n{printed}\n", arguments.join(" "));
    }
    assert_snapshot!(told);
}

#[test]
fn a_conversation_is_taken_up_with_the_agent_it_was_with() {
    let place = place(&[]).with(
        "other.gram",
        "[other:Agent {instruction: \"Talk.\", model: \"m\"}]",
    );
    let mut session = Session::at_a_terminal(&place.command(&CHAT));
    session.expect("> ");
    session.send("Say hello to Ada\r");
    session.expect("Nice to meet you.");
    session.expect("> ");
    session.send("\x04");
    session.expect("--resume=");
    session.expect("\n");
    let id = session
        .last_line()
        .split_once("--resume=")
        .unwrap()
        .1
        .trim()
        .to_owned();
    assert_eq!(session.end(), 0);
    let resume = format!("--resume={id}");
    let told = place.run(&[&CHAT[..], &[&resume]].concat());
    assert!(told.contains("2 messages taken up"), "{told}");
    let told = place.run(&[
        "chat",
        "other.gram",
        "--model",
        "scripted:answers.jsonl",
        &resume,
    ]);
    assert!(
        told.contains("is with the agent `hello_world_agent`, not with `other`"),
        "{told}"
    );
    assert!(told.ends_with("exit code 1\n"), "{told}");
}

#[test]
fn lines_are_edited_and_remembered_at_a_terminal() {
    let place = place(&["Again."]);
    let mut session = Session::at_a_terminal(&place.command(&CHAT));
    session.expect("hello_world_agent: /help lists the commands");
    session.expect("> ");
    // Tab completes, Ctrl-C forgets what was typed.
    session.send("/to\t\r");
    session.expect("sayHello  reversible");
    session.expect("> ");
    session.send("forget this\x03");
    session.expect("> ");
    session.send("Say helo\x1b[Dl\x05 to Ada\r");
    session.expect("Nice to meet you.");
    session.expect("> ");
    session.send("\x04");
    session.expect("to go on: windlass chat hello.gram --resume=");
    assert_eq!(session.end(), 0);
    assert_eq!(latest_task(&place)["description"], "Say hello to Ada");

    let history = std::fs::metadata(place.path("data/chat_history")).unwrap();
    assert_eq!(history.permissions().mode() & 0o777, 0o600);
    // The arrow up brings it back in the next conversation. What is pasted is one line.
    let place = place.with(
        "answers.jsonl",
        "{\"text\": \"Once.\"}\n{\"text\": \"Twice.\"}\n",
    );
    let mut session = Session::at_a_terminal(&place.command(&CHAT));
    session.expect("> ");
    session.send("\x1b[A!\r");
    session.expect("Once.");
    session.expect("> ");
    assert_eq!(latest_task(&place)["description"], "Say hello to Ada!");
    session.send("\x1b[200~one \\\ntwo\x1b[201~\r");
    session.expect("Twice.");
    session.expect("> ");
    assert_eq!(latest_task(&place)["description"], "one \\\ntwo");
    session.send("/quit\r");
    assert_eq!(session.end(), 0);
}

/// With an agent whose tool goes on until there is a file.
fn slow_place() -> Place {
    let calls = "{\"thought\": \"I wait.\", \"calls\": [{\"tool\": \"wait\", \"arguments\": {\"json\": {}}}]}\n";
    Place::new()
        .with("agent.gram", r#"[waiter:Agent {instruction: "Wait.", model: "m"} |
            [wait:Tool {description: "Waits until there is a file", risk: reversible} | ()==>(::Text)]]"#)
        .with("tools.toml", "name = \"tools\"\n[tools.wait]\ndescription = \"Waits until there is a file\"\nsignature = \"() --> IO Text\"\ncommand = [\"sh\", \"-c\", \"while [ ! -e go -a -e tools.toml ]; do sleep 0.02; done; echo waited\"]\n")
        .with("answers.jsonl", calls.repeat(2) + "{\"text\": \"Here I am.\"}\n")
}

const SLOW_CHAT: [&str; 6] = [
    "chat",
    "agent.gram",
    "--library",
    "tools.toml",
    "--model",
    "scripted:answers.jsonl",
];

#[test]
fn an_interrupt_stops_the_work_and_not_the_conversation() {
    let place = slow_place();
    let mut session = Session::start(place.command(&SLOW_CHAT));
    // Twice stops at once: the tool never ends by itself.
    session.send("wait\n");
    session.expect("1. wait I wait.");
    session.interrupt();
    session.expect("stopping after this step");
    session.interrupt();
    session.expect("\nstopped\n");
    // Once stops after the step.
    session.send("wait again\n");
    session.expect("1. wait I wait.");
    session.interrupt();
    session.expect("stopping after this step");
    std::fs::write(place.path("go"), "").unwrap();
    session.expect("call 0: waited");
    session.expect("go on with: windlass runs resume ");
    session.send("Are you there?\n");
    session.expect("Here I am.");
    assert_eq!(session.end(), 0);
    // The agent knows what it did not come to an end with.
    let told = &latest_task(&place)["conversation"];
    assert_eq!(told[2]["content"], "wait again");
    assert_eq!(told[3]["content"], "(I was stopped before I could answer.)");
}

#[test]
fn the_keys_of_a_terminal_stop_the_work_too() {
    let place = slow_place();
    let mut session = Session::at_a_terminal(&place.command(&SLOW_CHAT));
    session.expect("> ");
    session.send("wait\r");
    session.expect("a tool is at work");
    session.send("\x03");
    session.expect("stopping after this step");
    session.send("\x03");
    session.expect("stopped\r\n");
    session.expect("> ");
    session.send("\x04");
    assert_eq!(session.end(), 0);
}

#[test]
fn an_interrupt_ends_a_conversation_that_waits_for_a_pipe() {
    let place = place(&[]);
    let mut session = Session::start(place.command(&CHAT));
    session.send("/help\n");
    session.expect("/quit");
    assert_eq!(session.interrupt_until_the_end(), 130);
}
