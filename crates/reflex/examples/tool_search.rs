//! Measures tool search: `cargo run --release -p windlass-reflex --example tool_search -- [COUNT] [FILE...]`.
//! Without files, COUNT made-up tools (5000 by default) are indexed and searched: what building, updating
//! and searching take, and whether every search agrees with sorting all tools by their scores. With files
//! of cases, all their tools go into one index, and how often the right tool is among the first is printed.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its findings"
)]

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_reflex::evaluate::{Case, CaseTool, read_cases};
use windlass_reflex::{ToolIndex, ToolView};

const VERBS: [&str; 20] = [
    "get",
    "list",
    "create",
    "delete",
    "update",
    "search",
    "send",
    "convert",
    "book",
    "cancel",
    "export",
    "import",
    "approve",
    "schedule",
    "archive",
    "share",
    "translate",
    "count",
    "rename",
    "verify",
];
const THINGS: [&str; 25] = [
    "invoice",
    "customer",
    "flight",
    "hotel room",
    "email message",
    "calendar event",
    "database table",
    "stock price",
    "weather forecast",
    "support ticket",
    "git branch",
    "pull request",
    "photo",
    "song",
    "recipe",
    "bank account",
    "shipment",
    "contract",
    "password",
    "sensor reading",
    "map route",
    "news article",
    "chat channel",
    "virtual machine",
    "patient record",
];
const PLACES: [&str; 10] = [
    "in the archive",
    "of a team",
    "for a date",
    "by name",
    "in the warehouse",
    "of a project",
    "on the server",
    "in the cloud",
    "for a customer",
    "of the current user",
];

struct Tool {
    name: String,
    description: String,
    schema: Value,
}

fn tool(number: usize) -> Tool {
    let verb = VERBS[number % VERBS.len()];
    let thing = THINGS[number / VERBS.len() % THINGS.len()];
    let place = PLACES[number / (VERBS.len() * THINGS.len()) % PLACES.len()];
    let round = number / (VERBS.len() * THINGS.len() * PLACES.len());
    Tool {
        name: format!("{verb}_{}_{number}", thing.replace(' ', "_")),
        description: format!(
            "{verb} a {thing} {place}, variant {round}. Returns what was found or changed."
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "id": { "type": "string", "description": format!("which {thing}") },
                "limit": { "type": "integer", "description": "how many at most" },
                "when": { "type": "string", "description": "a date" },
            },
            "required": ["id"],
        }),
    }
}

fn view(tool: &Tool) -> ToolView<'_> {
    ToolView {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.schema,
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.first().map(|first| first.parse::<usize>());
    let result = match count {
        Some(Err(_)) => quality(&arguments),
        count => {
            speed(count.and_then(Result::ok).unwrap_or(5_000));
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn speed(count: usize) {
    let mut tools: Vec<Tool> = (0..count).map(tool).collect();
    let started = Instant::now();
    let mut index = ToolIndex::build(tools.iter().map(view));
    println!("tools          {count}");
    println!("build_ms       {:.1}", milliseconds(started.elapsed()));
    if let Some(first) = tools.first_mut() {
        first.description = "Ring the bell of the ship".to_owned();
    }
    let started = Instant::now();
    index.update(tools.iter().map(view));
    println!("update_one_ms  {:.1}", milliseconds(started.elapsed()));

    let queries: Vec<String> = (0..1_000)
        .map(|number| {
            let (verb, thing) = (VERBS[number * 7 % 20], THINGS[number * 11 % 25]);
            format!(
                "please {verb} the {thing} number {number} of Ada {}",
                PLACES[number % 10]
            )
        })
        .collect();
    let mut times = Vec::new();
    let mut agreed = 0;
    for query in &queries {
        let started = Instant::now();
        let hits = index.search(query, 10);
        times.push(milliseconds(started.elapsed()));
        let all = index.search(query, count);
        agreed += usize::from(hits[..] == all[..hits.len()]);
    }
    times.sort_by(f64::total_cmp);
    println!("search_p50_ms  {:.3}", times[times.len() / 2]);
    println!("search_p99_ms  {:.3}", times[times.len() * 99 / 100]);
    println!(
        "agreement      {:.4} with all tools sorted by score",
        agreed as f64 / 1_000.0
    );
    let started = Instant::now();
    let selection = index.select(&queries[0], 4_000, &["get_invoice_0"]);
    println!(
        "select_ms      {:.3} for {} of {count} tools in {} tokens",
        milliseconds(started.elapsed()),
        selection.offered.len(),
        selection.tokens
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// One index of the distinct tools of all cases, searched with each task.
fn quality(paths: &[String]) -> Result<(), String> {
    let mut cases: Vec<Case> = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        cases.extend(read_cases(&text).map_err(|error| format!("{path}: {error}"))?);
    }
    let mut seen = HashSet::new();
    let whole =
        |tool: &CaseTool| format!("{} {} {}", tool.name, tool.description, tool.input_schema);
    let tools: Vec<&CaseTool> = cases
        .iter()
        .flat_map(|case| &case.tools)
        .filter(|tool| seen.insert(whole(tool)))
        .collect();
    let index = ToolIndex::build(tools.iter().map(|tool| ToolView::from(*tool)));
    let (mut counts, mut scored) = ([0_usize; 3], 0);
    for case in &cases {
        let Some(call) = case.expected.calls.first() else {
            continue;
        };
        // Tools of one name differ between cases; only the case's own is right.
        let right: Vec<String> = case
            .tools
            .iter()
            .filter(|tool| tool.name == call.name)
            .map(whole)
            .collect();
        let hits = index.search(&case.task, 10);
        let place = hits
            .iter()
            .position(|hit| right.contains(&whole(tools[hit.index])));
        scored += 1;
        for (count, first) in counts.iter_mut().zip([1, 5, 10]) {
            *count += usize::from(place.is_some_and(|place| place < first));
        }
    }
    println!("tasks       {scored}");
    println!("tools       {}", tools.len());
    for (count, first) in counts.iter().zip([1, 5, 10]) {
        println!(
            "recall@{first:<3}  {:.4}",
            *count as f64 / scored.max(1) as f64
        );
    }
    Ok(())
}
