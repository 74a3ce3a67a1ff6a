//! What models and tools cost, and the budgets of tokens and money, as a user meets them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::program::TestProject;
use super::seeded::CommandOutput;

const AGENT: &str = r#"[helper:Agent {instruction: "Look things up.", model: "OpenAI/gpt-4.1"} |
  [look_up:Tool {description: "Looks something up in a paid register", risk: reversible} | (name::Text)==>(::Object)]]"#;

const LIBRARY: &str = r#"
name = "tools"

[tools.look_up]
description = "Looks something up in a paid register"
signature = "(name: Text) --> IO Object"
command = ["cat", "answer.json"]
"#;

const ANSWER: &str = r#"{"status": "success", "action": "look_up", "data": {"found": 1}, "timestamp": "2026-05-01T10:00:00Z", "cost_usd": "0.0015"}"#;

/// Two dollars for a million input tokens, half a dollar if they are cached, and eight for output.
const CONFIGURATION: &str = r#"
libraries = ["tools.toml"]

[prices.scripted]
input = 2
cached_input = 0.5
output = "8"
"#;

fn project(configuration: &str) -> TestProject {
    let turn = |calls: Value, usage: Value| json!({"calls": calls, "usage": usage}).to_string();
    let look_up = json!([{"tool": "look_up", "arguments": {"json": {"name": "Ada"}}}]);
    let finish = json!([{"tool": "finish", "arguments": {"json": {
        "answer": "Found.", "reasoning": "I looked.", "confidence": 0.9,
    }}}]);
    let first = turn(
        look_up,
        json!({"input_tokens": 1000, "cached_tokens": 600, "output_tokens": 50}),
    );
    let second = turn(finish, json!({"input_tokens": 500, "output_tokens": 10}));
    TestProject::new()
        .with("agent.gram", AGENT)
        .with("tools.toml", LIBRARY)
        .with("answer.json", ANSWER)
        .with("script.jsonl", format!("{first}\n{second}\n"))
        .with("windlass.toml", configuration)
}

fn run(project: &TestProject, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(&mut project.command(arguments))
}

fn task<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let task = [
        "run",
        "agent.gram",
        "Look up Ada",
        "--model",
        "scripted:script.jsonl",
        "--trust-project",
    ];
    [&task[..], more].concat()
}

/// A server of models that answers every request, and counts its tokens.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let chunk = json!({
                "choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 2},
            });
            let mut stream = stream;
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                 data: {chunk}\n\ndata: [DONE]\n\n"
            );
        }
    });
    url
}

#[test]
fn a_run_states_what_models_and_tools_cost_and_the_sums_agree_everywhere() {
    let project = project(CONFIGURATION);
    let text = run(&project, &task(&[]));
    assert_eq!(text.code, 0, "{text:?}");
    // (400 * 2 + 600 * 0.5 + 50 * 8) + (500 * 2 + 10 * 8) millionths, and the tool's 1500.
    assert!(
        text.err
            .contains("used: $0.00408, 1500 input tokens, 60 output tokens"),
        "{text:?}"
    );
    assert!(text.err.contains("cost $0.0015"), "{text:?}");

    let object = run(&project, &task(&["--json"])).json();
    assert_eq!(object["usage"]["cost_usd"], "0.00408", "{object}");
    assert_eq!(object["usage"]["cached_tokens"], 600);
    let id = object["run"].as_str().unwrap();
    let shown = run(&project, &["runs", "show", id, "--json"]).json();
    assert_eq!(shown["usage"]["cost_usd"], "0.00408", "{shown}");
    assert_eq!(shown["usage"]["tools_usd"], "0.0015");
    assert_eq!(shown["usage"]["answers"], 2);
    assert!(
        run(&project, &["runs", "show", id])
            .out
            .contains("$0.00408")
    );

    for by in ["agent", "principal", "day", "model"] {
        let report = run(&project, &["usage", "--by", by, "--json"]).json();
        assert_eq!(report["total"]["cost_usd"], "0.00816", "{report}");
        assert_eq!(report["total"]["is_cost_complete"], true);
        let groups = report["groups"].as_array().unwrap();
        let tokens: u64 = groups
            .iter()
            .map(|of| of["input_tokens"].as_u64().unwrap())
            .sum();
        assert_eq!(tokens, 3000, "{report}");
    }
    let report = run(&project, &["usage", "--by", "model", "--json"]).json();
    let of_model = report["groups"].as_array().unwrap();
    let of_model = of_model.iter().find(|of| of["name"] == "scripted");
    assert_eq!(of_model.unwrap()["cost_usd"], "0.00516", "{report}");
    let none = run(&project, &["usage", "--agent", "nobody"]);
    assert_eq!(none.out, "nothing was used\n");
    assert!(run(&project, &["usage"]).out.contains("$0.00816"));
}

#[test]
fn a_budget_of_money_refuses_the_request_that_would_exceed_it() {
    let project = project(CONFIGURATION);
    // The first answer and the tool cost 0.003; the second request costs more than what is left.
    let output = run(&project, &task(&["--max-dollars", "0.00301", "--json"]));
    assert_eq!(output.code, 1, "{output:?}");
    let end = &output.json()["end"];
    assert_eq!(end["end"], "budget", "{output:?}");
    assert_eq!(end["budget"], "money");
    let message = end["message"].as_str().unwrap();
    assert!(
        message.contains("$0.00301") && message.contains("$0.003 "),
        "{message}"
    );
    let spent = &output.json()["usage"];
    assert_eq!(
        spent["cost_usd"], "0.003",
        "the second request was not made"
    );

    let output = run(&project, &task(&["--max-tokens", "1060"]));
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.err.contains("budget of this run of 1060 tokens"),
        "{output:?}"
    );
}

#[test]
fn budgets_of_a_day_count_all_runs_of_their_agent_and_principal() {
    for budget in [
        "[budgets.day]\ndollars = 0.005",
        "[agents.helper.budgets.day]\ndollars = 0.005",
        "[principals.\"*\".budgets.day]\ntokens = 2000",
        "[budgets.day]\ntokens = 2000",
    ] {
        let project = project(&format!("{CONFIGURATION}\n{budget}\n"));
        let first = run(&project, &task(&["--json"]));
        assert_eq!(first.code, 0, "{budget}: {first:?}");
        let second = run(&project, &task(&["--json"]));
        assert_eq!(second.code, 1, "{budget}: {second:?}");
        assert_eq!(second.json()["end"]["end"], "budget", "{second:?}");
        let message = second.json()["end"]["message"].to_string();
        assert!(message.contains("a day"), "{message}");
    }
    let other = project(&format!(
        "{CONFIGURATION}\n[agents.another.budgets.day]\ndollars = 0.000001\n"
    ));
    assert_eq!(run(&other, &task(&[])).code, 0);
}

#[test]
fn a_model_without_a_price_has_an_unknown_cost_and_is_not_asked_under_a_budget_of_money() {
    let url = serve();
    let project = TestProject::new().with(
        "agent.gram",
        r#"[helper:Agent {instruction: "Answer.", model: "Local/unheard-of"}]"#,
    );
    let ask = |more: &[&str]| {
        let arguments = [
            &[
                "run",
                "agent.gram",
                "Say hello",
                "--base-url",
                &url,
                "--json",
            ][..],
            more,
        ];
        run(&project, &arguments.concat())
    };
    let output = ask(&[]);
    assert_eq!(output.code, 0, "{output:?}");
    let usage = &output.json()["usage"];
    assert_eq!(usage["cost_usd"], Value::Null, "{usage}");
    assert_eq!(usage["is_cost_complete"], false);
    let output = ask(&["--max-dollars", "1"]);
    assert_eq!(output.json()["end"]["end"], "budget", "{output:?}");
    let message = output.json()["end"]["message"].to_string();
    assert!(
        message.contains("Local/unheard-of") && message.contains("prices"),
        "{message}"
    );
    assert!(
        run(&project, &["usage", "--by", "model"])
            .out
            .contains("unknown")
    );
}
