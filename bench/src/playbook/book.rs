//! The arms with a playbook: learned from the training runs by the product's reflector and curator, searched by its
//! index, with its texts.

use std::collections::{BTreeSet, HashMap};

use windlass_core::run::Run;
use windlass_learn::playbook::{
    CurationSettings, GroundedReflector, Playbook, PlaybookEntry, PlaybookIndex, RecallQuery,
    RunVerdict, SemanticCurator, ShownStrategy, StrategyMatch, StrategyStatus,
};
use windlass_runtime::experience;
use windlass_spec::{NonEmptyText, StrategyId, StrategySection, ToolCallingStrategy, ToolName};

use crate::arms::{Advice, Arm, Training, TurnContext, strategy_line};
use crate::random::seeded;

/// The number of true strategies per false one, so that one in five is false.
const TRUE_PER_FALSE: usize = 4;

/// The playbook, with at most `k` strategies for a turn.
pub struct Book {
    /// The most strategies it gives.
    pub k: usize,
}

impl Arm for Book {
    fn name(&self) -> String {
        format!("playbook, k = {}", self.k)
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        Box::new(PlaybookAdvice::new(&logs(training), self.k))
    }
}

/// The log of each domain.
pub type Logs = HashMap<String, Vec<PlaybookEntry>>;

/// The logs after the runs of a training, in order.
pub fn logs(training: &Training<'_>) -> Logs {
    let mut logs = Logs::new();
    for turn in &training.turns {
        record(&mut logs, turn.task.domain(), turn.run, &[]);
    }
    logs
}

/// Adds the evidence of a run to the log, with the strategies that the policy was shown. The verdict depends only
/// on the events of the run.
fn record(logs: &mut Logs, domain: &str, run: &Run, recalled: &[StrategyMatch]) {
    let Some(mut experience) = experience(run, None, windlass_runtime::now()) else {
        return;
    };
    let before = recalled.iter().map(|recalled| ShownStrategy {
        id: recalled.id.clone(),
        section: recalled.section,
        sequence: recalled.sequence.clone(),
    });
    experience.recalled = before.collect();
    if let Some(evidence) = GroundedReflector::default().reflect(&experience, Vec::new()) {
        let log = logs.entry(domain.to_owned()).or_default();
        log.push(PlaybookEntry::Run(Box::new(evidence)));
    }
}

/// The tool sequence that the reflector derives from a run, without calls that had no use; `None` if the run did
/// not succeed.
pub fn useful_sequence(run: &Run) -> Option<Vec<String>> {
    let experience = experience(run, None, windlass_runtime::now())?;
    let evidence = GroundedReflector::default().reflect(&experience, Vec::new())?;
    let sequence = evidence.sequence.iter().map(ToString::to_string).collect();
    (evidence.verdict == RunVerdict::Succeeded).then_some(sequence)
}

fn playbook(domain: &str, entries: &[PlaybookEntry]) -> Playbook {
    SemanticCurator::new(CurationSettings::default()).fold(domain, entries)
}

/// The advice from the playbooks of all domains.
pub struct PlaybookAdvice {
    domains: HashMap<String, PlaybookIndex>,
    /// All domains together, for tasks of a domain without training.
    all: PlaybookIndex,
    k: usize,
}

impl PlaybookAdvice {
    /// Builds the playbooks of the logs.
    pub fn new(logs: &Logs, k: usize) -> Self {
        let index = |domain: &str, entries: &[PlaybookEntry]| {
            PlaybookIndex::build(&playbook(domain, entries))
        };
        let mut names: Vec<&String> = logs.keys().collect();
        names.sort();
        let together: Vec<PlaybookEntry> =
            names.iter().flat_map(|name| logs[*name].clone()).collect();
        let domains = logs
            .iter()
            .map(|(domain, entries)| (domain.clone(), index(domain, entries)));
        Self {
            domains: domains.collect(),
            all: index("all", &together),
            k,
        }
    }

    fn recall(&self, domain: &str, text: &str, tools: Vec<&str>) -> Vec<StrategyMatch> {
        let index = self.domains.get(domain).unwrap_or(&self.all);
        index.recall(&RecallQuery {
            count: self.k,
            tools: Some(tools),
            ..RecallQuery::new(text)
        })
    }

    /// Adds the evidence of a run that was given this advice.
    pub fn record(&self, logs: &mut Logs, domain: &str, run: &Run) {
        let tools = run.allowed_tools().map(|tool| tool.name().as_str());
        let recalled = self.recall(domain, &run.task().description, tools.collect());
        record(logs, domain, run, &recalled);
    }
}

impl Advice for PlaybookAdvice {
    fn lines(&self, turn: &TurnContext<'_>) -> Vec<String> {
        let tools = turn.tools.iter().map(String::as_str).collect();
        let recalled = self.recall(turn.task.domain(), turn.text(), tools);
        recalled.into_iter().map(|found| found.text).collect()
    }
}

/// Adds false strategies to the logs until one in five is false: known tasks with tools of the domain that were not
/// used for them. Their counts are those of a strategy that was just learned.
pub fn pollute(logs: &mut Logs, seed: u64) {
    for (domain, entries) in logs.iter_mut() {
        let playbook = playbook(domain, entries);
        let known: Vec<&ToolCallingStrategy> = playbook
            .active()
            .map(|kept| &kept.strategy)
            .filter(|strategy| strategy.section == StrategySection::Strategies)
            .collect();
        let tools: BTreeSet<&ToolName> = known
            .iter()
            .flat_map(|strategy| strategy.tool_sequence())
            .collect();
        let tools: Vec<&ToolName> = tools.into_iter().collect();
        let mut random = seeded(seed, &format!("false strategies of {domain}"));
        let mut added = Vec::new();
        for number in 0..known.len() / TRUE_PER_FALSE {
            let copied = known[random.below(known.len())];
            let others: Vec<&ToolName> = tools
                .iter()
                .copied()
                .filter(|tool| !copied.tool_sequence().contains(tool))
                .collect();
            let Some(example) = copied.example_task.as_ref().filter(|_| !others.is_empty()) else {
                continue;
            };
            let sequence = copied.tool_sequence().iter();
            let sequence: Vec<ToolName> = sequence
                .map(|_| others[random.below(others.len())].clone())
                .collect();
            let names: Vec<&str> = sequence.iter().map(ToolName::as_str).collect();
            let content = strategy_line(example.as_str(), &names)
                .and_then(|text| NonEmptyText::new(text).ok());
            let made = content.map(|content| {
                ToolCallingStrategy::new(StrategySection::Strategies, content)
                    .with_sequence(sequence)
            });
            if let Some(Ok(mut strategy)) = made {
                strategy.example_task = Some(example.clone());
                strategy.helpful_count = 1;
                strategy.id = StrategyId::new(format!("false-{number}")).ok();
                added.push(PlaybookEntry::Added {
                    strategy: Box::new(strategy),
                    at: windlass_runtime::now(),
                });
            }
        }
        entries.extend(added);
    }
}

/// The number of false strategies, how many of them are retired, and the mean lower bound of the
/// others.
pub fn count_false_strategies(logs: &Logs) -> (usize, usize, f64) {
    let (mut all, mut retired, mut bounds) = (0, 0, 0.0);
    for (domain, entries) in logs {
        for kept in playbook(domain, entries).strategies {
            if !kept.id().as_str().starts_with("false-") {
                continue;
            }
            all += 1;
            match kept.status {
                StrategyStatus::Retired(_) => retired += 1,
                StrategyStatus::Active | StrategyStatus::Disabled => bounds += kept.lower_bound(),
            }
        }
    }
    let left = (all - retired).max(1);
    (all, retired, bounds / left as f64)
}
