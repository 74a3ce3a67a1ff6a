//! Measures what a decision costs, with the default policies and with 200 rules: for new calls, each of another
//! principal, and for a repeated call.
//!
//! `cargo xtask bench gate`

#![allow(clippy::print_stdout, reason = "a program that reports figures")]

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use windlass_policy::{DEFAULT_POLICIES, Policies, Request, Session, Verdict};
use windlass_spec::{
    Confidence, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName, ToolSpecification,
};

/// How many tools there are.
const TOOLS: usize = 20;
/// How many decisions are measured.
const ROUNDS: usize = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let tools = tools()?;
    let defaults = DEFAULT_POLICIES.to_owned();
    let spread = format!("{DEFAULT_POLICIES}{}", spread_rules(200 - 4)?);
    let crowded = format!("{DEFAULT_POLICIES}{}", crowded_rules(200 - 4)?);
    println!(
        "{:<42} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "policies, call", "p5", "p50", "p95", "mean", "again p50"
    );
    for (key, name, text) in [
        ("default", "default", &defaults),
        ("spread", "200 rules over 20 tools", &spread),
        ("crowded", "200 rules on every tool", &crowded),
    ] {
        let start = Instant::now();
        let policies = load(text, &tools)?;
        let loaded = start.elapsed();
        for (kind, risk, verdict) in [
            ("read", RiskLevel::Reversible, Verdict::Allow),
            ("send", RiskLevel::ReversibleWithDelay, Verdict::Hold),
            ("delete", RiskLevel::Irreversible, Verdict::Ask),
        ] {
            let input = input()?;
            let request = request(&input, risk)?;
            let decision = policies.decide(&request);
            if decision.verdict != verdict {
                return Err(format!("expected {verdict}, got {decision}").into());
            }
            let timed = |request: &Request<'_>| {
                let start = Instant::now();
                black_box(policies.decide(black_box(request)));
                start.elapsed()
            };
            let mut again: Vec<Duration> = (0..ROUNDS).map(|_| timed(&request)).collect();
            again.sort_unstable();
            let mut times: Vec<Duration> = (0..ROUNDS)
                .map(|number| {
                    let mut request = request.clone();
                    request.principal = Cow::Owned(format!("ann {number}"));
                    timed(&request)
                })
                .collect();
            times.sort_unstable();
            let at = |share: usize| micros(times[times.len() * share / 100]);
            let total: Duration = times.iter().sum();
            let mean = total.as_secs_f64() * 1e6 / times.len() as f64;
            println!(
                "{:<42} {:>6.1} us {:>6.1} us {:>6.1} us {mean:>6.1} us {:>6.1} us",
                format!("{name}, {kind}: {verdict}"),
                at(5),
                at(50),
                at(95),
                micros(again[again.len() / 2]),
            );
            println!("= gate_{key}_{kind}_us {:.2}", at(50));
        }
        println!(
            "{:<42} {:>6.1} ms",
            format!("{name}, loading"),
            loaded.as_secs_f64() * 1e3
        );
        println!("= gate_{key}_load_ms {:.3}", loaded.as_secs_f64() * 1e3);
    }
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn load(text: &str, tools: &[ToolSpecification]) -> Result<Policies, String> {
    Policies::load(text, tools).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.join("\n")
    })
}

fn tools() -> Result<Vec<ToolSpecification>, Box<dyn Error>> {
    (0..TOOLS)
        .map(|number| {
            let signature = Signature::parse(
                "(to: Text, subject: Text, body: Text, amount: Number, count: Int, labels: [Text], urgent: Maybe Bool)
                 --> IO Text",
            )
            .map_err(|_| "the signature does not parse")?;
            let tool = ToolSpecification::new(
                ToolName::new(format!("tool_{number}"))?,
                NonEmptyText::new("A tool")?,
                signature,
            );
            let attributes = ToolAttributes {
                open_world: Some(true),
                ..ToolAttributes::default()
            };
            Ok(tool.with_attributes(attributes)?)
        })
        .collect()
}

fn input() -> Result<Map<String, Value>, Box<dyn Error>> {
    let input = json!({
        "to": "bob@example.org", "subject": "Hello", "body": "A text of some length. ".repeat(100),
        "amount": 12.5, "count": 3, "labels": ["a", "b", "c"],
    });
    Ok(input.as_object().ok_or("no object")?.clone())
}

fn request(input: &Map<String, Value>, risk: RiskLevel) -> Result<Request<'_>, Box<dyn Error>> {
    Ok(Request {
        principal: Cow::Borrowed("ann"),
        tenant: Cow::Borrowed("acme"),
        agent: Cow::Borrowed("clerk"),
        tool: Cow::Borrowed("tool_7"),
        input: Cow::Borrowed(input),
        risk,
        confidence: Some(Confidence::try_from(0.9)?),
        environment: Cow::Borrowed("production"),
        tainted: false,
        session: Session::default(),
    })
}

/// Conditions on different arguments; none of them holds for the measured call.
fn condition(number: usize) -> String {
    match number % 5 {
        0 => format!("when {{ context.input.to like \"*@blocked-{number}.example\" }}"),
        1 => format!("when {{ context.input.amount.greaterThan(decimal(\"{number}000.5\")) }}"),
        2 => format!("when {{ context.input.count > {number}000 && context.tainted }}"),
        3 => format!("when {{ context.input.labels.contains(\"secret-{number}\") }}"),
        _ => format!(
            "when {{ context.session.calls > {number}000 && context.risk != \"reversible\" }}"
        ),
    }
}

/// Rules that each apply to one tool.
fn spread_rules(count: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for number in 0..count {
        let (tool, condition) = (number % TOOLS, condition(number / TOOLS));
        let action = format!("action == Action::\"tool_{tool}\"");
        let approval = approval(number);
        writeln!(
            text,
            "@id(\"rule-{number}\") forbid (principal, {action}, resource) {condition}{approval};"
        )?;
    }
    Ok(text)
}

/// Rules that each apply to all tools: the worst case, in which no rule can be skipped.
fn crowded_rules(count: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for number in 0..count {
        let (condition, approval) = (condition(number + 1), approval(number));
        writeln!(
            text,
            "@id(\"rule-{number}\") forbid (principal, action, resource) {condition}{approval};"
        )?;
    }
    Ok(text)
}

/// Every third rule requires approval, the others deny.
fn approval(number: usize) -> &'static str {
    if number.is_multiple_of(3) {
        " unless { context.approved }"
    } else {
        ""
    }
}
