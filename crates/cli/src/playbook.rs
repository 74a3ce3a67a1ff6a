//! `windlass playbook`: shows and edits the strategies learned from runs.

mod change;
mod difference;
mod stats;

use serde_json::json;
use windlass_learn::playbook::{KeptStrategy, StrategyStatus};
use windlass_service::{Identity, Service, StrategyChange, StrategyFilter, strategy_to_json};
use windlass_spec::{AgentFile, ToolName};

use super::CommandOutcome;
use super::arguments::{Playbook, PlaybookCommand, PlaybookList, PlaybookShow};
use super::plural::counted;
use super::program::Program;
use super::report::Reporter;
use super::source::read_agent_file;
use super::table::{one_line, print_table};
use super::terminal::{Quote, eprint_line, print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &Playbook,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let session = PlaybookSession {
        service: program.service(command.data.as_deref()),
        identity: program.identity()?,
        domain: command.domain.as_deref(),
    };
    match &command.command {
        PlaybookCommand::List(list) => self::list(&session, list, reporter),
        PlaybookCommand::Show(show) => self::show(&session, show),
        PlaybookCommand::Diff(diff) => difference::diff(&session, diff),
        PlaybookCommand::Revert(revert) => change::revert(&session, revert),
        PlaybookCommand::Pin(one) => {
            change::change(&session, one, StrategyChange::Pin, StrategyChange::Unpin)
        }
        PlaybookCommand::Disable(one) => change::change(
            &session,
            one,
            StrategyChange::Disable,
            StrategyChange::Enable,
        ),
        PlaybookCommand::Import(import) => change::import(&session, import, reporter),
        PlaybookCommand::Export(export) => change::export(&session, export),
        PlaybookCommand::Stats(stats) => stats::run(&session, stats),
    }
}

/// The service, the identity and the domain of a command.
struct PlaybookSession<'b> {
    service: Service,
    identity: Identity,
    /// The domain of `--domain`.
    domain: Option<&'b str>,
}

/// Returns the filter for `--all`.
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

fn list(
    session: &PlaybookSession<'_>,
    command: &PlaybookList,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let agents = match &command.agent {
        None => None,
        Some(file) => match read_agent_file(file, reporter)? {
            None => return Ok(CommandOutcome::Failed),
            Some(file) => Some(file),
        },
    };
    let playbooks = session
        .service
        .list_playbooks(&session.identity, session.domain)?;
    if playbooks.is_empty() && !command.json {
        print_line("the playbook is empty: the first successful run starts it")?;
    }
    for found in playbooks {
        let strategies = found.ranked_strategies(filter(command.all));
        if let Some(agents) = &agents {
            for missing in found.missing_tools(&tool_names(agents)) {
                eprint_line(&format!("warning: {missing}"))?;
            }
        }
        let domain = &found.domain;
        if command.json {
            for kept in strategies {
                print_json(&format!("{}\n", strategy_to_json(domain, kept)))?;
            }
            continue;
        }
        let playbook = &found.stored.playbook;
        print_line(&format!(
            "{domain}: {} of {} strategies in use, from {} (revision {})",
            playbook.active().count(),
            playbook.strategies.len(),
            counted(playbook.runs, "run", "runs"),
            playbook.revision,
        ))?;
        let rows: Vec<[String; 5]> = strategies.iter().map(|kept| row(kept)).collect();
        print_table(["ID", "SECTION", "WORKED", "AT LEAST", "STRATEGY"], &rows)?;
    }
    Ok(CommandOutcome::Done)
}

fn row(kept: &KeptStrategy) -> [String; 5] {
    let (helpful, harmful) = (kept.tally.helpful(), kept.tally.harmful());
    let pinned = if kept.strategy.pinned {
        " (pinned)"
    } else {
        ""
    };
    let standing = match &kept.status {
        StrategyStatus::Active => String::new(),
        StrategyStatus::Disabled => "disabled: ".to_owned(),
        StrategyStatus::Retired(why) => format!("retired, {why}: "),
    };
    [
        kept.id().to_string(),
        format!("{}{pinned}", kept.strategy.section),
        format!("{helpful} of {}", helpful + harmful),
        format!("{:.2}", kept.lower_bound()),
        one_line(&format!("{standing}{}", kept.strategy.content), 100),
    ]
}

fn show(session: &PlaybookSession<'_>, command: &PlaybookShow) -> anyhow::Result<CommandOutcome> {
    let (domain, kept) =
        session
            .service
            .show_strategy(&session.identity, session.domain, &command.strategy)?;
    let votes = || kept.tally.votes().rev();
    if command.json {
        let mut object = strategy_to_json(&domain, &kept);
        object["votes"] = votes()
            .map(|(run, vote)| json!({"run": run, "vote": vote}))
            .collect();
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let strategy = &kept.strategy;
    print_line(&format!(
        "{} ({}, domain {domain})",
        kept.id(),
        strategy.section
    ))?;
    print_line(&Quote::of(strategy.content.as_str()).block("  "))?;
    let names: Vec<&str> = strategy
        .tool_sequence()
        .iter()
        .map(ToolName::as_str)
        .collect();
    if !names.is_empty() {
        print_line(&format!("tools: {}", names.join(" > ")))?;
    }
    let (helpful, harmful) = (kept.tally.helpful(), kept.tally.harmful());
    print_line(&format!(
        "helpful in {helpful} runs, harmful in {harmful}; success rate at least {:.0} %; used {} times",
        kept.lower_bound() * 100.0,
        kept.tally.recalled()
    ))?;
    if let Some(iterations) = strategy.avg_iterations() {
        print_line(&format!(
            "average turns of successful runs: {iterations:.1}"
        ))?;
    }
    match &kept.status {
        StrategyStatus::Active if strategy.pinned => print_line("in use, pinned")?,
        StrategyStatus::Active => print_line("in use")?,
        StrategyStatus::Disabled => print_line("disabled by an operator")?,
        StrategyStatus::Retired(why) => print_line(&format!("retired: {why}"))?,
    }
    if let Some(warning) = strategy.warning() {
        print_line(&format!("warning: {warning}"))?;
    }
    for example in strategy.example_task.iter().chain(&strategy.examples) {
        print_line(&format!("for: {}", one_line(example.as_str(), 120)))?;
    }
    for (run, vote) in votes().take(20) {
        let vote = json!(vote);
        print_line(&format!("run {run}: {}", vote.as_str().unwrap_or_default()))?;
    }
    Ok(CommandOutcome::Done)
}
