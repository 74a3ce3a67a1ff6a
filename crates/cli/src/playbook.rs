//! `windlass playbook`: what runs taught, and what people make of it.

mod change;
mod difference;
mod stats;

use serde_json::{Value, json};
use windlass_learn::playbook::{KeptStrategy, Standing};
use windlass_service::{Identity, Service, StrategyFilter};
use windlass_spec::{AgentFile, ToolName};

use super::Outcome;
use super::arguments::{Playbook, PlaybookCommand, PlaybookList, PlaybookShow};
use super::program::Program;
use super::report::Reporter;
use super::schema::read_file;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};

pub(super) fn run(
    program: &Program,
    command: &Playbook,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let books = Books {
        service: program.service(command.data.as_deref()),
        identity: program.identity()?,
        domain: command.domain.as_deref(),
    };
    match &command.command {
        PlaybookCommand::List(list) => self::list(&books, list, reporter),
        PlaybookCommand::Show(show) => self::show(&books, show),
        PlaybookCommand::Diff(diff) => difference::diff(&books, diff),
        PlaybookCommand::Revert(revert) => change::revert(&books, revert),
        PlaybookCommand::Pin(one) => change::pin(&books, one),
        PlaybookCommand::Disable(one) => change::disable(&books, one),
        PlaybookCommand::Import(import) => change::import(&books, import, reporter),
        PlaybookCommand::Export(export) => change::export(&books, export),
        PlaybookCommand::Stats(stats) => stats::run(&books, stats),
    }
}

/// The playbooks that a command is about.
struct Books<'b> {
    service: Service,
    identity: Identity,
    /// The domain that was named.
    domain: Option<&'b str>,
}

/// Which strategies are meant.
fn filter(all: bool) -> StrategyFilter {
    match all {
        true => StrategyFilter::All,
        false => StrategyFilter::InUse,
    }
}

/// The names of the tools that a file declares.
fn tool_names(agents: &AgentFile) -> Vec<&str> {
    let tools = agents.tools().iter();
    tools.map(|tool| tool.name().as_str()).collect()
}

fn list(books: &Books<'_>, command: &PlaybookList, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let agents = match &command.agent {
        None => None,
        Some(file) => match read_file(file, reporter)? {
            None => return Ok(Outcome::Failed),
            Some(file) => Some(file),
        },
    };
    let playbooks = books
        .service
        .list_playbooks(&books.identity, books.domain)?;
    if playbooks.is_empty() && !command.json {
        say("nothing was learned yet: the first run that succeeds begins the playbook")?;
    }
    for found in playbooks {
        let mut strategies: Vec<&KeptStrategy> = found.strategies(filter(command.all)).collect();
        strategies.sort_by(|one, two| {
            let section = one.strategy.section.cmp(&two.strategy.section);
            section.then(two.lower_bound().total_cmp(&one.lower_bound()))
        });
        if let Some(agents) = &agents {
            for missing in found.missing_tools(&tool_names(agents)) {
                complain(&format!("warning: {missing}"))?;
            }
        }
        let domain = &found.domain;
        if command.json {
            for kept in strategies {
                put(&format!("{}\n", as_object(domain, kept)))?;
            }
            continue;
        }
        let playbook = &found.stored.playbook;
        say(&format!(
            "{domain}: {} strategies in use of {}, from {} runs (revision {})",
            playbook.active().count(),
            playbook.strategies.len(),
            playbook.runs,
            playbook.revision,
        ))?;
        let rows: Vec<[String; 5]> = strategies.iter().map(|kept| row(kept)).collect();
        say_table(["ID", "SECTION", "WORKED", "AT LEAST", "STRATEGY"], &rows)?;
    }
    Ok(Outcome::Done)
}

fn row(kept: &KeptStrategy) -> [String; 5] {
    let (helpful, harmful) = (kept.tally.helpful(), kept.tally.harmful());
    let pinned = if kept.strategy.pinned {
        " (pinned)"
    } else {
        ""
    };
    let standing = match &kept.standing {
        Standing::Active => String::new(),
        Standing::Disabled => "switched off: ".to_owned(),
        Standing::Retired(why) => format!("retired, {why}: "),
    };
    [
        kept.id().to_string(),
        format!("{}{pinned}", kept.strategy.section),
        format!("{helpful} of {}", helpful + harmful),
        format!("{:.2}", kept.lower_bound()),
        one_line(&format!("{standing}{}", kept.strategy.content), 100),
    ]
}

/// A strategy as a program reads it.
fn as_object(domain: &str, kept: &KeptStrategy) -> Value {
    let mut object = json!(kept.strategy);
    object["domain"] = json!(domain);
    object["standing"] = json!(match &kept.standing {
        Standing::Active => "active",
        Standing::Disabled => "disabled",
        Standing::Retired(_) => "retired",
    });
    object["lower_bound"] = json!((kept.lower_bound() * 1e4).round() / 1e4);
    object["recalled"] = json!(kept.tally.recalled());
    object
}

fn show(books: &Books<'_>, command: &PlaybookShow) -> anyhow::Result<Outcome> {
    let (domain, kept) =
        books
            .service
            .show_strategy(&books.identity, books.domain, &command.strategy)?;
    let votes = || kept.tally.votes().rev();
    if command.json {
        let mut object = as_object(&domain, &kept);
        object["votes"] = votes()
            .map(|(run, vote)| json!({"run": run, "vote": vote}))
            .collect();
        put(&format!("{object}\n"))?;
        return Ok(Outcome::Done);
    }
    let strategy = &kept.strategy;
    say(&format!(
        "{} ({}, domain {domain})",
        kept.id(),
        strategy.section
    ))?;
    say(strategy.content.as_str())?;
    let names: Vec<&str> = strategy
        .tool_sequence()
        .iter()
        .map(ToolName::as_str)
        .collect();
    if !names.is_empty() {
        say(&format!("tools: {}", names.join(" > ")))?;
    }
    let (helpful, harmful) = (kept.tally.helpful(), kept.tally.harmful());
    say(&format!(
        "helpful in {helpful} runs, harmful in {harmful}; can be relied on in at least {:.0} %; recalled {} times",
        kept.lower_bound() * 100.0,
        kept.tally.recalled()
    ))?;
    if let Some(iterations) = strategy.avg_iterations() {
        say(&format!(
            "turns where it succeeded: {iterations:.1} on average"
        ))?;
    }
    match &kept.standing {
        Standing::Active if strategy.pinned => say("in use, pinned")?,
        Standing::Active => say("in use")?,
        Standing::Disabled => say("switched off by hand")?,
        Standing::Retired(why) => say(&format!("retired: {why}"))?,
    }
    if let Some(warning) = strategy.warning() {
        say(&format!("warning: {warning}"))?;
    }
    for example in strategy.example_task.iter().chain(&strategy.examples) {
        say(&format!("for: {}", one_line(example.as_str(), 120)))?;
    }
    for (run, vote) in votes().take(20) {
        let vote = json!(vote);
        say(&format!("run {run}: {}", vote.as_str().unwrap_or_default()))?;
    }
    Ok(Outcome::Done)
}
