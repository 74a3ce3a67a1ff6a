//! The arms that are told what a playbook says: learned from the runs of the training by the reflector and the
//! curator of the product, searched by its index, and put in its words.

use std::collections::HashMap;

use windlass_learn::playbook::{
    CurationSettings, Evidence, GroundedReflector, Playbook, PlaybookIndex, RecallQuery,
    SemanticCurator,
};
use windlass_runtime::experience;

use crate::arms::{Advice, Arm, Training, TrainingTurn, TurnContext};

/// The playbook, with at most `k` strategies for a turn.
pub struct Book {
    /// How many strategies it gives.
    pub k: usize,
}

impl Arm for Book {
    fn name(&self) -> String {
        format!("playbook, k = {}", self.k)
    }

    fn learn<'t>(&self, training: &Training<'t>) -> Box<dyn Advice + 't> {
        Box::new(Searched::of(&logs(training), self.k))
    }
}

/// The entries of each domain's log after the runs of a training, in order.
pub fn logs(training: &Training<'_>) -> Logs {
    let mut logs = Logs::new();
    for turn in &training.turns {
        if let Some(entry) = learned(turn) {
            let domain = turn.task.domain().to_owned();
            logs.entry(domain).or_default().push(entry);
        }
    }
    logs
}

/// The log of each domain.
pub type Logs = HashMap<String, Vec<Evidence>>;

/// What a run teaches, judged by what happened in it and by nothing else.
fn learned(turn: &TrainingTurn<'_>) -> Option<Evidence> {
    let at = windlass_runtime::now();
    let experience = experience(turn.run, None, at)?;
    let evidence = GroundedReflector::default().reflect(&experience, Vec::new())?;
    Some(Evidence::Run(Box::new(evidence)))
}

/// The playbooks of all domains, to be searched.
pub struct Searched {
    domains: HashMap<String, PlaybookIndex>,
    k: usize,
}

impl Searched {
    /// What the logs come to.
    pub fn of(logs: &Logs, k: usize) -> Self {
        let domains = logs.iter().map(|(domain, entries)| {
            (
                domain.clone(),
                PlaybookIndex::build(&playbook(domain, entries)),
            )
        });
        Self {
            domains: domains.collect(),
            k,
        }
    }
}

fn playbook(domain: &str, entries: &[Evidence]) -> Playbook {
    SemanticCurator::new(CurationSettings::default()).fold(domain, entries)
}

impl Advice for Searched {
    fn lines(&self, turn: &TurnContext<'_>) -> Vec<String> {
        let Some(index) = self.domains.get(turn.task.domain()) else {
            return Vec::new();
        };
        let recalled = index.recall(&RecallQuery {
            count: self.k,
            tools: Some(turn.tools.iter().map(String::as_str).collect()),
            ..RecallQuery::new(turn.text())
        });
        recalled.into_iter().map(|found| found.text).collect()
    }
}
