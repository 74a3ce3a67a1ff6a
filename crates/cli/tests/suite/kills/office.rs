//! The project of the kill tests: an agent with tools of every risk, a scripted model, and the files that tools
//! write.

use serde_json::{Value, json};

use super::super::program::TestProject;

const AGENT: &str = r#"
[clerk:Agent {instruction: "Do the office's work.", model: "m"} |
  [note:Tool {description: "Does what `note` says", risk: reversible} | ()==>(::Text)],
  [stamp:Tool {description: "Does what `stamp` says", risk: reversible_with_delay, idempotent: true, undo_window_seconds: 0} | ()==>(::Text)],
  [post:Tool {description: "Does what `post` says", risk: reversible_with_delay, undo_window_seconds: 1} | ()==>(::Text)],
  [recall:Tool {description: "Does what `recall` says", risk: reversible_with_delay, undo_window_seconds: 120} | ()==>(::Text)],
  [later:Tool {description: "Does what `later` says", risk: reversible_with_delay, undo_window_seconds: 1, deferred: true} | ()==>(::Text)],
  [pay:Tool {description: "Does what `pay` says", risk: irreversible} | (amount::Int)==>(::Text)],
  [fire:Tool {description: "Does what `fire` says", risk: irreversible} | ()==>(::Text)],
  [helper:Agent {description: "Wires money", instruction: "Wire it.", model: "m"} |
    [wire:Tool {description: "Does what `wire` says", risk: irreversible} | ()==>(::Text)]]]
"#;

/// The tools. All of them are one program that records its name and its arguments.
const TOOLS: [(&str, &str); 8] = [
    ("note", "()"),
    ("stamp", "()"),
    ("post", "()"),
    ("recall", "()"),
    ("later", "()"),
    ("pay", "(amount: Int)"),
    ("fire", "()"),
    ("wire", "()"),
];

/// Kills its parent process once, if a file exists.
const TOOL: &str = r#"
arguments=$(cat)
die() {
  if [ -e "die.$1" ]; then rm "die.$1"; kill -KILL $PPID; fi
}
die "before.$1"
sleep 0.02
echo "$1 $arguments" >> effects
sleep 0.02
die "after.$1"
echo done
"#;

/// The id suffix of the call that is undone: the third of the first turn.
pub(super) const UNDONE: &str = ":1:2";

/// The answer to the clerk's question.
pub(super) const ANSWER: &str = "the blue one";

/// The edited arguments of `pay {"amount": 70}`.
pub(super) const EDITED: &str = r#"{"amount":7}"#;

/// A new project.
pub(super) fn office_project() -> TestProject {
    let mut library = "name = \"office\"\n".to_owned();
    for (tool, parameters) in TOOLS {
        library += &format!(
            "[tools.{tool}]\ndescription = \"Does what `{tool}` says\"\n\
             signature = \"{parameters} --> IO Text\"\ncommand = [\"sh\", \"tool.sh\", \"{tool}\"]\n"
        );
    }
    let none = || json!({});
    let script = [
        calls(&[
            ("note", none()),
            ("post", none()),
            ("recall", none()),
            ("stamp", none()),
        ]),
        calls(&[
            ("later", none()),
            ("pay", json!({"amount": 70})),
            ("fire", none()),
            ("ask_human", json!({"question": "Which folder?"})),
        ]),
        calls(&[("helper", json!({"task": "Wire it."}))]),
        calls(&[("wire", none())]),
        json!({"text": "wired"}),
        json!({"text": "all done"}),
    ];
    let script: String = script.iter().map(|line| format!("{line}\n")).collect();
    TestProject::new()
        .with("agent.gram", AGENT)
        .with("office.toml", library)
        .with("tool.sh", TOOL)
        .with("script.jsonl", script)
        .with("effects", "")
        .with_approvers(&["operator"])
}

fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| json!({"tool": tool, "arguments": {"json": arguments}}))
        .collect();
    json!({"calls": calls})
}

pub(super) const RUN: [&str; 7] = [
    "run",
    "agent.gram",
    "Do it all",
    "--library",
    "office.toml",
    "--model",
    "scripted:script.jsonl",
];
