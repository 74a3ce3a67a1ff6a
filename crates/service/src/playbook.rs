//! Playbooks: the strategies learned from runs, and people's changes of them. Each change is an entry of the
//! playbook's log, so that it can be reverted. Each tenant has its own playbooks.

use std::path::PathBuf;

use serde::Serialize;
use windlass_learn::playbook::{
    CurationSettings, KeptStrategy, Playbook, PlaybookEntry, RunEvidence, RunVerdict,
    SemanticCurator, StrategyStatus, id_of,
};
use windlass_runtime::{KeptPlaybook, Learning, PlaybookProblem, Playbooks};
use windlass_spec::{
    DEFAULT_DOMAIN, StrategyId, StrategyLine, StrategySection, Timestamp, read_strategies,
};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::libraries::unknown_name_message;
use crate::options::Notice;
use crate::service::Service;

/// The playbook of a domain.
#[derive(Debug, Clone)]
pub struct DomainPlaybook {
    /// The domain.
    pub domain: String,
    /// The file with its strategies.
    pub file: PathBuf,
    /// Its strategies, its log, and the problems of its files.
    pub stored: KeptPlaybook,
}

/// Selects strategies of a playbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrategyFilter {
    /// Those in use.
    InUse,
    /// All, also those that are disabled or retired.
    All,
}

impl DomainPlaybook {
    /// Its strategies.
    pub fn strategies(&self, filter: StrategyFilter) -> impl Iterator<Item = &KeptStrategy> {
        let all = self.stored.playbook.strategies.iter();
        all.filter(move |kept| {
            filter == StrategyFilter::All || kept.status == StrategyStatus::Active
        })
    }

    /// Its strategies by section, the one that worked most reliably first.
    #[must_use]
    pub fn ranked_strategies(&self, filter: StrategyFilter) -> Vec<&KeptStrategy> {
        let mut strategies: Vec<&KeptStrategy> = self.strategies(filter).collect();
        strategies.sort_by(|one, two| {
            let section = one.strategy.section.cmp(&two.strategy.section);
            section.then(two.lower_bound().total_cmp(&one.lower_bound()))
        });
        strategies
    }

    /// The strategies of its file that name other tools than these.
    #[must_use]
    pub fn missing_tools(&self, tools: &[&str]) -> Vec<PlaybookProblem> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let mut problems = Vec::new();
        for line in read_strategies(&text).strategies {
            let missing = line.strategy.check_tools(tools.iter().copied()).err();
            let missing = missing.into_iter().flatten();
            problems.extend(missing.map(|missing| PlaybookProblem {
                file: self.file.clone(),
                line: line.line,
                reason: missing.to_string(),
            }));
        }
        problems
    }
}

/// A person's change of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrategyChange {
    /// It is never retired.
    Pin,
    /// It may be retired again.
    Unpin,
    /// It is not recalled any more.
    Disable,
    /// It is recalled again.
    Enable,
}

impl StrategyChange {
    fn evidence(self, strategy: StrategyId, at: Timestamp) -> PlaybookEntry {
        match self {
            Self::Pin | Self::Unpin => PlaybookEntry::Pinned {
                strategy,
                pinned: self == Self::Pin,
                at,
            },
            Self::Disable | Self::Enable => PlaybookEntry::Disabled {
                strategy,
                disabled: self == Self::Disable,
                at,
            },
        }
    }
}

/// A strategy that was changed.
#[derive(Debug, Clone)]
pub struct ChangedStrategy {
    /// Its id.
    pub id: StrategyId,
    /// The strategy as it is now, unless it is gone.
    pub strategy: Option<KeptStrategy>,
    /// The revision of its playbook now.
    pub revision: usize,
}

/// A playbook that was reverted.
#[derive(Debug, Clone)]
pub struct RevertedPlaybook {
    /// The domain.
    pub domain: String,
    /// The revision before, which can be reverted to.
    pub previous_revision: usize,
    /// The playbook now.
    pub playbook: Playbook,
}

/// A line of an import that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedStrategy {
    /// Its line.
    pub line: usize,
    /// Why.
    pub reasons: Vec<String>,
}

/// Strategies that were imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedStrategies {
    /// The domain they were added to.
    pub domain: String,
    /// How many were added.
    pub count: usize,
    /// The lines that were refused.
    pub refused: Vec<RefusedStrategy>,
    /// Warnings about lines that were added: the line, and why.
    pub warnings: Vec<(usize, String)>,
    /// The revision of the playbook now.
    pub revision: usize,
}

/// A strategy before and after a change. One of both is missing if it was added or removed.
#[derive(Debug, Clone)]
pub struct StrategyDifference {
    /// Before.
    pub before: Option<KeptStrategy>,
    /// After.
    pub after: Option<KeptStrategy>,
}

/// The differences of a playbook between two revisions.
#[derive(Debug, Clone)]
pub struct PlaybookDifference {
    /// The domain.
    pub domain: String,
    /// The earlier revision.
    pub from: usize,
    /// The later revision.
    pub to: usize,
    /// The strategies that differ, those that were removed last.
    pub strategies: Vec<StrategyDifference>,
}

/// Statistics of the playbook of a domain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaybookStatistics {
    /// The domain.
    pub domain: String,
    /// The file with its strategies.
    #[serde(skip)]
    pub file: PathBuf,
    /// The revision of its playbook.
    pub revision: usize,
    /// The runs it was learned from.
    pub runs: LearnedRuns,
    /// The strategies in use.
    pub active: ActiveStrategies,
    /// How many strategies are retired.
    pub retired: usize,
    /// The runs that succeeded, by what was recalled in them.
    pub successes: SuccessStatistics,
}

/// How many runs a playbook was learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LearnedRuns {
    /// Those that succeeded.
    pub succeeded: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those whose result is unknown.
    pub unclear: usize,
}

/// How many strategies are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ActiveStrategies {
    /// What worked.
    pub strategies: usize,
    /// What to avoid.
    pub pitfalls: usize,
    /// What was observed.
    pub observations: usize,
    /// An estimate of their tokens.
    pub tokens: usize,
}

/// The runs that succeeded, by what was recalled in them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SuccessStatistics {
    /// A recalled strategy was followed.
    pub followed: SuccessfulRuns,
    /// Strategies were recalled and none was followed.
    pub not_followed: SuccessfulRuns,
    /// No strategy was recalled.
    pub nothing_recalled: SuccessfulRuns,
}

/// Runs that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SuccessfulRuns {
    /// How many.
    pub runs: usize,
    /// How many turns they took on average, if there are any.
    pub avg_iterations: Option<f64>,
}

impl Service {
    /// The playbook of a domain, or those of all domains in order.
    ///
    /// # Errors
    /// If the identity may not read, there is no such domain, or its files cannot be read.
    pub fn list_playbooks(
        &self,
        identity: &Identity,
        domain: Option<&str>,
    ) -> Result<Vec<DomainPlaybook>, ServiceError> {
        identity.require(Scope::Read)?;
        let playbooks = TenantPlaybooks::open(self, identity)?;
        let domains = playbooks.domains(domain)?;
        domains
            .iter()
            .map(|domain| playbooks.read(domain))
            .collect()
    }

    /// The strategy with that id or prefix of an id, with its domain.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no strategy or several.
    pub fn show_strategy(
        &self,
        identity: &Identity,
        domain: Option<&str>,
        id: &str,
    ) -> Result<(String, KeptStrategy), ServiceError> {
        identity.require(Scope::Read)?;
        TenantPlaybooks::open(self, identity)?.find(domain, id)
    }

    /// Changes the strategy with that id or prefix of an id.
    ///
    /// # Errors
    /// If the identity may not change playbooks, the id matches no strategy or several, or the playbook cannot
    /// be written.
    pub fn change_strategy(
        &self,
        identity: &Identity,
        domain: Option<&str>,
        id: &str,
        change: StrategyChange,
    ) -> Result<ChangedStrategy, ServiceError> {
        identity.require(Scope::Operate)?;
        let playbooks = TenantPlaybooks::open(self, identity)?;
        let (domain, found) = playbooks.find(domain, id)?;
        let id = found.id().clone();
        let entry = change.evidence(id.clone(), self.now());
        let playbook = playbooks.update(&domain, vec![entry])?.playbook;
        let strategy = playbook
            .strategies
            .into_iter()
            .find(|kept| *kept.id() == id);
        Ok(ChangedStrategy {
            id,
            strategy,
            revision: playbook.revision,
        })
    }

    /// Reverts a playbook to an earlier revision. `domain` is needed if there are several.
    ///
    /// # Errors
    /// If the identity may not change playbooks, the domain must be named, there is no such revision, or
    /// the playbook cannot be written.
    pub fn revert_playbook(
        &self,
        identity: &Identity,
        domain: Option<&str>,
        revision: usize,
    ) -> Result<RevertedPlaybook, ServiceError> {
        identity.require(Scope::Operate)?;
        let playbooks = TenantPlaybooks::open(self, identity)?;
        let domain = playbooks.one_domain(domain)?;
        let present = playbooks.read(&domain)?.stored.playbook.revision;
        if revision > present {
            let message = format!(
                "there is no revision {revision}; the playbook of `{domain}` is at revision {present}"
            );
            return Err(ServiceError::not_found("no_such_revision", message)
                .with_hint("`windlass playbook diff` shows the changes"));
        }
        let (to, at) = (revision, self.now());
        let after = playbooks.update(&domain, vec![PlaybookEntry::Reverted { to, at }])?;
        Ok(RevertedPlaybook {
            domain,
            previous_revision: present,
            playbook: after.playbook,
        })
    }

    /// The strategies of a domain, or of all, as a text (JSON Lines) that [`Service::import_strategies`] reads.
    ///
    /// # Errors
    /// If the identity may not read, or a playbook cannot be read.
    pub fn export_strategies(
        &self,
        identity: &Identity,
        domain: Option<&str>,
        filter: StrategyFilter,
    ) -> Result<String, ServiceError> {
        let mut text = String::new();
        for playbook in self.list_playbooks(identity, domain)? {
            for kept in playbook.strategies(filter) {
                text.push_str(&serde_json::to_string(&kept.strategy)?);
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// Adds the strategies in a text (JSON Lines) to a playbook. Invalid lines are refused, and so are
    /// strategies that name other tools than `tools`, if these are given.
    ///
    /// # Errors
    /// If the identity may not change playbooks, the domain must be named, or the playbook cannot be
    /// written.
    pub fn import_strategies(
        &self,
        identity: &Identity,
        domain: Option<&str>,
        text: &str,
        tools: Option<&[&str]>,
    ) -> Result<ImportedStrategies, ServiceError> {
        identity.require(Scope::Operate)?;
        let playbooks = TenantPlaybooks::open(self, identity)?;
        let domain = playbooks.one_domain(domain)?;
        let read = read_strategies(text);
        let errors = read.errors.into_iter().map(|error| RefusedStrategy {
            line: error.line,
            reasons: vec![error.reason],
        });
        let mut refused: Vec<RefusedStrategy> = errors.collect();
        let mut fitting: Vec<StrategyLine> = Vec::new();
        for line in read.strategies {
            let checked = tools.map(|tools| line.strategy.check_tools(tools.iter().copied()));
            match checked.and_then(Result::err) {
                None => fitting.push(line),
                Some(missing) => refused.push(RefusedStrategy {
                    line: line.line,
                    reasons: missing.iter().map(ToString::to_string).collect(),
                }),
            }
        }
        let warnings = fitting
            .iter()
            .filter_map(|line| Some((line.line, line.strategy.warning()?.to_string())))
            .collect();
        let (at, count) = (self.now(), fitting.len());
        let entries = fitting.into_iter().map(|line| {
            let mut strategy = line.strategy;
            strategy.id = Some(id_of(&strategy));
            PlaybookEntry::Added {
                strategy: Box::new(strategy),
                at,
            }
        });
        let after = playbooks.update(&domain, entries.collect())?;
        Ok(ImportedStrategies {
            domain,
            count,
            refused,
            warnings,
            revision: after.playbook.revision,
        })
    }

    /// The differences of a playbook between two revisions: by default the last one and the one before.
    ///
    /// # Errors
    /// If the identity may not read, the domain must be named, or there are no such revisions.
    pub fn playbook_difference(
        &self,
        identity: &Identity,
        domain: Option<&str>,
        from: Option<usize>,
        to: Option<usize>,
    ) -> Result<PlaybookDifference, ServiceError> {
        identity.require(Scope::Read)?;
        let playbooks = TenantPlaybooks::open(self, identity)?;
        let domain = playbooks.one_domain(domain)?;
        let entries = playbooks.read(&domain)?.stored.entries;
        let present = entries.len();
        let to = to.unwrap_or(present);
        let from = from.unwrap_or_else(|| to.saturating_sub(1));
        let (Some(earlier), Some(later), true) =
            (entries.get(..from), entries.get(..to), from <= to)
        else {
            let message = format!(
                "the playbook of `{domain}` has revisions 0 to {present}; give the earlier one first"
            );
            return Err(ServiceError::invalid("no_such_revision", message));
        };
        let curator = SemanticCurator::new(playbooks.curation);
        let strategies = differences(
            &curator.fold(&domain, earlier),
            &curator.fold(&domain, later),
        );
        Ok(PlaybookDifference {
            domain,
            from,
            to,
            strategies,
        })
    }

    /// Statistics of the playbook of a domain, or of all domains in order.
    ///
    /// # Errors
    /// If the identity may not read, there is no such domain, or its files cannot be read.
    pub fn playbook_statistics(
        &self,
        identity: &Identity,
        domain: Option<&str>,
    ) -> Result<Vec<PlaybookStatistics>, ServiceError> {
        let playbooks = self.list_playbooks(identity, domain)?;
        Ok(playbooks.into_iter().map(PlaybookStatistics::of).collect())
    }
}

impl PlaybookStatistics {
    fn of(domain: DomainPlaybook) -> Self {
        let playbook = &domain.stored.playbook;
        let runs: Vec<&RunEvidence> = domain
            .stored
            .entries
            .iter()
            .filter_map(|entry| match entry {
                PlaybookEntry::Run(run) => Some(&**run),
                _ => None,
            })
            .collect();
        let ended = |verdict| runs.iter().filter(|run| run.verdict == verdict).count();
        let of = |section| {
            let active = playbook.active();
            active
                .filter(|kept| kept.strategy.section == section)
                .count()
        };
        let retired = playbook.strategies.iter();
        let retired = retired.filter(|kept| matches!(kept.status, StrategyStatus::Retired(_)));
        let has_followed = |run: &RunEvidence| run.recalled.iter().any(|voted| voted.followed);
        Self {
            revision: playbook.revision,
            runs: LearnedRuns {
                succeeded: ended(RunVerdict::Succeeded),
                failed: ended(RunVerdict::Failed),
                unclear: ended(RunVerdict::Unclear),
            },
            active: ActiveStrategies {
                strategies: of(StrategySection::Strategies),
                pitfalls: of(StrategySection::Pitfalls),
                observations: of(StrategySection::Observations),
                tokens: playbook
                    .active()
                    .map(|kept| kept.strategy.content.as_str().len().div_ceil(4))
                    .sum(),
            },
            retired: retired.count(),
            successes: SuccessStatistics {
                followed: SuccessfulRuns::of(&runs, has_followed),
                not_followed: SuccessfulRuns::of(&runs, |run| {
                    !run.recalled.is_empty() && !has_followed(run)
                }),
                nothing_recalled: SuccessfulRuns::of(&runs, |run| run.recalled.is_empty()),
            },
            domain: domain.domain,
            file: domain.file,
        }
    }
}

impl SuccessfulRuns {
    fn of(runs: &[&RunEvidence], is_wanted: impl Fn(&RunEvidence) -> bool) -> Self {
        let turns: Vec<f64> = runs
            .iter()
            .filter(|run| run.verdict == RunVerdict::Succeeded && is_wanted(run))
            .map(|run| f64::from(run.iterations))
            .collect();
        let count = turns.len();
        Self {
            runs: count,
            avg_iterations: (count > 0).then(|| turns.iter().sum::<f64>() / count as f64),
        }
    }
}

/// The strategies that differ between two playbooks.
fn differences(earlier: &Playbook, later: &Playbook) -> Vec<StrategyDifference> {
    let of = |playbook: &Playbook, kept: &KeptStrategy| -> Option<KeptStrategy> {
        let mut all = playbook.strategies.iter();
        all.find(|other| other.id() == kept.id()).cloned()
    };
    let mut all = Vec::new();
    for new in &later.strategies {
        let before = of(earlier, new);
        if before.as_ref() != Some(new) {
            let after = Some(new.clone());
            all.push(StrategyDifference { before, after });
        }
    }
    for old in &earlier.strategies {
        if of(later, old).is_none() {
            let before = Some(old.clone());
            all.push(StrategyDifference {
                before,
                after: None,
            });
        }
    }
    all
}

/// The playbooks of a tenant.
struct TenantPlaybooks<'s> {
    service: &'s Service,
    playbooks: Playbooks,
    curation: CurationSettings,
}

impl<'s> TenantPlaybooks<'s> {
    fn open(service: &'s Service, identity: &Identity) -> Result<Self, ServiceError> {
        let directory = service.data_directory()?;
        let learning = service.configured()?.learning();
        Ok(Self {
            service,
            playbooks: Playbooks::of(&directory, identity.tenant().as_str()),
            // The default settings apply to reading a playbook even if learning is disabled.
            curation: learning.unwrap_or_else(Learning::default).curation,
        })
    }

    /// The domain that is named, or all.
    fn domains(&self, named: Option<&str>) -> Result<Vec<String>, ServiceError> {
        let all = self.playbooks.domains()?;
        match named {
            None => Ok(all),
            Some(domain) if all.iter().any(|known| known == domain) => Ok(vec![domain.to_owned()]),
            Some(domain) => {
                let known: Vec<&str> = all.iter().map(String::as_str).collect();
                let message = unknown_name_message("domain", domain, &known, "the playbook");
                Err(ServiceError::not_found("no_such_domain", message))
            }
        }
    }

    /// The domain that is named, or the only one.
    fn one_domain(&self, named: Option<&str>) -> Result<String, ServiceError> {
        if let Some(domain) = named {
            return Ok(domain.to_owned());
        }
        match &self.playbooks.domains()?[..] {
            [] => Ok(DEFAULT_DOMAIN.to_owned()),
            [only] => Ok(only.clone()),
            several => {
                let hint = format!("choose one with `--domain`: {}", several.join(", "));
                let message = "there are several playbooks";
                Err(ServiceError::invalid("ambiguous", message).with_hint(hint))
            }
        }
    }

    /// Reads a playbook, and notifies the operator of its problems.
    fn read(&self, domain: &str) -> Result<DomainPlaybook, ServiceError> {
        let now = self.service.now();
        let stored = self.playbooks.read(domain, self.curation, now)?;
        for problem in &stored.problems {
            let warning = Notice::Warning(format!("warning: {problem}"));
            self.service.notify(&warning);
        }
        Ok(DomainPlaybook {
            domain: domain.to_owned(),
            file: self.playbooks.file(domain),
            stored,
        })
    }

    fn update(
        &self,
        domain: &str,
        entries: Vec<PlaybookEntry>,
    ) -> Result<KeptPlaybook, ServiceError> {
        let (playbooks, now) = (&self.playbooks, self.service.now());
        Ok(playbooks.update(domain, self.curation, now, |_, _| entries)?)
    }

    /// The only strategy whose id has this prefix, and its domain.
    fn find(
        &self,
        domain: Option<&str>,
        start: &str,
    ) -> Result<(String, KeptStrategy), ServiceError> {
        let mut found = Vec::new();
        for domain in self.domains(domain)? {
            let stored = self.read(&domain)?.stored;
            let like = stored.playbook.find(start).cloned();
            found.extend(like.map(|kept| (domain.clone(), kept)));
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => {
                let message = format!("there is no strategy `{start}`");
                Err(ServiceError::not_found("no_such_strategy", message)
                    .with_hint("`windlass playbook list --all` lists them"))
            }
            _ => {
                let ids: Vec<&str> = found.iter().map(|(_, kept)| kept.id().as_str()).collect();
                let ids = ids.join(", ");
                let message = format!("several strategies begin with `{start}`: {ids}");
                Err(ServiceError::invalid("ambiguous", message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::approval::Principal;
    use windlass_spec::NonEmptyText;

    use super::*;
    use crate::error::ErrorKind;
    use crate::options::Overrides;

    const LINE: &str =
        r#"{"content": "Look the price up before the order.", "section": "strategies"}"#;

    fn identity(tenant: &str, scope: Scope) -> Identity {
        let tenant = NonEmptyText::new(tenant).unwrap();
        Identity::new(tenant, Principal::new("ada").unwrap(), [scope])
    }

    #[test]
    fn a_tenant_has_its_own_playbooks_and_changing_them_needs_the_operate_scope() {
        let data = tempfile::tempdir().unwrap();
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        let service = Service::open(None, overrides);
        let operator = identity("acme", Scope::Operate);
        let imported = service
            .import_strategies(&operator, None, LINE, None)
            .unwrap();
        assert_eq!((imported.count, imported.refused), (1, Vec::new()));
        let [book] = &service.list_playbooks(&operator, None).unwrap()[..] else {
            panic!("one playbook is expected");
        };
        let strategies: Vec<_> = book.strategies(StrategyFilter::InUse).collect();
        let id = strategies[0].id().as_str();

        let other = identity("other", Scope::Admin);
        assert!(service.list_playbooks(&other, None).unwrap().is_empty());
        let error = service.show_strategy(&other, None, id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);

        let reader = identity("acme", Scope::Read);
        let pinned = service.change_strategy(&reader, None, id, StrategyChange::Pin);
        assert_eq!(pinned.unwrap_err().code(), "scope_missing");
        let pinned = service.change_strategy(&operator, None, id, StrategyChange::Pin);
        assert!(pinned.unwrap().strategy.unwrap().strategy.pinned);
        let error = service.revert_playbook(&reader, None, 0).unwrap_err();
        assert_eq!(error.code(), "scope_missing");
        let difference = service.playbook_difference(&reader, None, None, None);
        assert_eq!(difference.unwrap().strategies.len(), 1);
    }
}
