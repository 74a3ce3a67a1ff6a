//! `windlass playbook`: what runs taught, and what people make of it.

mod change;
mod difference;
mod stats;

use std::path::Path;

use serde_json::{Value, json};
use windlass_learn::playbook::{CurationSettings, KeptStrategy, Standing};
use windlass_runtime::{KeptPlaybook, Learning, Playbooks, local_identity, now};
use windlass_spec::{AgentFile, DEFAULT_DOMAIN, ToolName};

use super::Outcome;
use super::arguments::{Playbook, PlaybookCommand, PlaybookList, PlaybookShow};
use super::report::Reporter;
use super::schema::read_file;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};
use super::{data, settings};

pub(super) fn run(command: &Playbook, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let books = Books::open(command)?;
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
struct Books {
    playbooks: Playbooks,
    curation: CurationSettings,
    domain: Option<String>,
}

impl Books {
    fn open(command: &Playbook) -> anyhow::Result<Self> {
        let directory = data::directory(command.data.as_deref())?;
        let learning = settings::configured()?.learning();
        Ok(Self {
            playbooks: Playbooks::of(&directory, local_identity()?.tenant.as_str()),
            // What is laid down holds for looking at a playbook also where nothing is learned.
            curation: learning.unwrap_or_else(Learning::default).curation,
            domain: command.domain.clone(),
        })
    }

    /// The domains that are meant.
    fn domains(&self) -> anyhow::Result<Vec<String>> {
        let all = self.playbooks.domains()?;
        match &self.domain {
            None => Ok(all),
            Some(domain) if all.contains(domain) => Ok(vec![domain.clone()]),
            Some(domain) => {
                let known: Vec<&str> = all.iter().map(String::as_str).collect();
                anyhow::bail!(super::schema::unknown(
                    "domain",
                    domain,
                    &known,
                    "the playbook"
                ))
            }
        }
    }

    /// The one domain that is meant where only one can be.
    fn one_domain(&self) -> anyhow::Result<String> {
        if let Some(domain) = &self.domain {
            return Ok(domain.clone());
        }
        match &self.playbooks.domains()?[..] {
            [] => Ok(DEFAULT_DOMAIN.to_owned()),
            [only] => Ok(only.clone()),
            several => anyhow::bail!(
                "there are several playbooks\nhint: choose one with `--domain`: {}",
                several.join(", ")
            ),
        }
    }

    /// Reads a playbook and names what of it cannot be used.
    fn read(&self, domain: &str) -> anyhow::Result<KeptPlaybook> {
        let kept = self.playbooks.read(domain, self.curation, now())?;
        for problem in &kept.problems {
            complain(&format!("warning: {problem}"))?;
        }
        Ok(kept)
    }

    /// The one strategy whose id begins like this, and its domain.
    fn find(&self, start: &str) -> anyhow::Result<(String, KeptStrategy)> {
        let mut found = Vec::new();
        for domain in self.domains()? {
            let kept = self.read(&domain)?;
            let like = kept.playbook.find(start).cloned();
            found.extend(like.map(|kept| (domain.clone(), kept)));
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => anyhow::bail!(
                "there is no strategy `{start}`\nhint: `windlass playbook list --all` lists them"
            ),
            _ => {
                let ids: Vec<&str> = found.iter().map(|(_, kept)| kept.id().as_str()).collect();
                anyhow::bail!(
                    "several strategies begin with `{start}`: {}",
                    ids.join(", ")
                )
            }
        }
    }
}

fn list(books: &Books, command: &PlaybookList, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let agents = match &command.agent {
        None => None,
        Some(file) => match read_file(file, reporter)? {
            None => return Ok(Outcome::Failed),
            Some(file) => Some(file),
        },
    };
    let domains = books.domains()?;
    if domains.is_empty() && !command.json {
        say("nothing was learned yet: the first run that succeeds begins the playbook")?;
    }
    for domain in domains {
        let kept = books.read(&domain)?;
        let is_wanted = |kept: &&KeptStrategy| command.all || kept.standing == Standing::Active;
        let mut strategies: Vec<&KeptStrategy> =
            kept.playbook.strategies.iter().filter(is_wanted).collect();
        strategies.sort_by(|one, two| {
            let section = one.strategy.section.cmp(&two.strategy.section);
            section.then(two.lower_bound().total_cmp(&one.lower_bound()))
        });
        if let Some(agents) = &agents {
            name_missing(&books.playbooks.file(&domain), agents)?;
        }
        if command.json {
            for kept in strategies {
                put(&format!("{}\n", as_object(&domain, kept)))?;
            }
            continue;
        }
        say(&format!(
            "{domain}: {} strategies in use of {}, from {} runs (revision {})",
            kept.playbook.active().count(),
            kept.playbook.strategies.len(),
            kept.playbook.runs,
            kept.playbook.revision,
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

/// Names the strategies, by file and line, whose tools no agent of a file has.
fn name_missing(file: &Path, agents: &AgentFile) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let tools: Vec<&str> = agents
        .tools()
        .iter()
        .map(|tool| tool.name().as_str())
        .collect();
    for line in windlass_spec::read_strategies(&text).strategies {
        for missing in line
            .strategy
            .check_tools(tools.iter().copied())
            .err()
            .into_iter()
            .flatten()
        {
            complain(&format!(
                "warning: {}:{}: {missing}",
                file.display(),
                line.line
            ))?;
        }
    }
    Ok(())
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

fn show(books: &Books, command: &PlaybookShow) -> anyhow::Result<Outcome> {
    let (domain, kept) = books.find(&command.strategy)?;
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
