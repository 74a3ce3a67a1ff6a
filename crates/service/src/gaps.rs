//! Tool gaps: the capabilities that agents of a tenant lacked, counted, with proposed specifications of tools
//! that would have them.

mod missing;

use windlass_core::run::{DisabledTool, Run};
use windlass_learn::gap::ToolGapDetector;
use windlass_runtime::gap_during_run;
use windlass_spec::{AgentFile, MissingCapability, ToolGapReport, ToolSpecification};
use windlass_store::GapFilter;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

pub use missing::{GapOccurrence, MissingTool};

/// The proposed specification of a missing tool.
#[derive(Debug, Clone)]
pub struct ToolProposal {
    /// The missing tool.
    pub missing: MissingTool,
    /// The specification, as text of an agent file.
    pub specification: String,
}

impl ToolProposal {
    /// The text of an agent file with the specification added. `declared` is the parsed text, and `place` the
    /// name of the file in messages.
    ///
    /// # Errors
    /// If a name of the specification is taken there, or it does not fit.
    pub fn added_to(
        &self,
        text: &str,
        declared: &AgentFile,
        place: &str,
    ) -> Result<String, ServiceError> {
        let proposed = windlass_spec::read(&self.specification).file;
        let proposed = proposed
            .ok_or_else(|| ServiceError::failed("the proposed specification cannot be read"))?;
        for tool in proposed.tools() {
            let name = tool.name().as_str();
            if declared.tool(name).is_some() || declared.agent(name).is_some() {
                let message = format!("`{place}` already declares `{name}`; nothing was written");
                return Err(ServiceError::conflict("name_taken", message));
            }
        }
        let blank = match text.is_empty() || text.ends_with("\n\n") {
            true => "",
            false => "\n",
        };
        let end = match text.is_empty() || text.ends_with('\n') {
            true => "",
            false => "\n",
        };
        let after = format!("{text}{end}{blank}{}\n", self.specification.trim_end());
        match windlass_spec::read(&after).file {
            Some(_) => Ok(after),
            None => {
                let message =
                    format!("the specification does not fit `{place}`; nothing was written");
                Err(ServiceError::conflict("does_not_fit", message))
            }
        }
    }
}

/// The result of checking whether the tools of an agent file do what a task asks.
#[derive(Debug, Clone)]
pub struct GapCheck {
    /// The missing tools, if a gap is more likely than not.
    pub report: Option<ToolGapReport>,
    /// The probability of a gap.
    pub probability: f64,
    /// The probability from which a check reports a gap.
    pub threshold: f64,
    /// The probability from which a run reports a gap before it starts.
    pub run_threshold: f64,
    /// Whether a run would report it before it starts.
    pub is_reported_before_run: bool,
    /// The tools that do what the task asks and are switched off.
    pub disabled: Vec<DisabledTool>,
}

impl Service {
    /// The tools that agents of the identity's tenant lacked, the most frequent first. `agent` and `days`
    /// restrict them to an agent and to the last days.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_missing_tools(
        &self,
        identity: &Identity,
        agent: Option<&str>,
        days: Option<u32>,
    ) -> Result<Vec<MissingTool>, ServiceError> {
        identity.require(Scope::Read)?;
        let gaps = self.store()?.gaps(&GapFilter {
            tenant: Some(identity.tenant().to_string()),
            agent: agent.map(str::to_owned),
            ..GapFilter::default()
        })?;
        let all = missing::missing_tools(&gaps);
        Ok(match days {
            Some(days) => {
                let now = self.now();
                let recent = all.into_iter();
                recent
                    .filter_map(|missing| missing.within(days, now))
                    .collect()
            }
            None => all,
        })
    }

    /// A missing tool, by its name or a prefix of it.
    ///
    /// # Errors
    /// If the identity may not read, or the name matches none or several.
    pub fn show_missing_tool(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<MissingTool, ServiceError> {
        let all = self.list_missing_tools(identity, None, None)?;
        missing::find(&all, name).cloned()
    }

    /// Proposes the specification of a missing tool, by its name or a prefix of it.
    ///
    /// # Errors
    /// If the identity may not read, the name matches none or several, there is a tool for it, or no
    /// specification can be made.
    pub fn propose_tool(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ToolProposal, ServiceError> {
        let missing = self.show_missing_tool(identity, name)?;
        if let Some(reason) = missing.reason() {
            let message = format!("the agent has a tool for this: {reason}");
            return Err(ServiceError::conflict("not_missing", message));
        }
        match missing.proposal() {
            Some(specification) => Ok(ToolProposal {
                missing,
                specification,
            }),
            None => {
                let message = format!("no specification can be made for `{}`", missing.name);
                Err(ServiceError::conflict("nothing_to_propose", message))
            }
        }
    }

    /// Checks whether the tools of an agent file do what a task asks, without a run.
    ///
    /// # Errors
    /// If the identity may not read, or the configuration cannot be used.
    pub fn check_gaps(
        &self,
        identity: &Identity,
        file: &AgentFile,
        task: &str,
    ) -> Result<GapCheck, ServiceError> {
        identity.require(Scope::Read)?;
        let project = self.project()?;
        let configuration = project.configuration();
        let mut usable: Vec<&ToolSpecification> = Vec::new();
        let mut off: Vec<(&ToolSpecification, String)> = Vec::new();
        for tool in file.tools() {
            let settings = configuration.tool(tool.name(), Some(&**tool));
            match settings.switched_off {
                Some(because) => off.push((&**tool, because.cause())),
                None => usable.push(&**tool),
            }
        }
        let detector = ToolGapDetector::from_specifications(usable);
        let probability = detector.assess(task).probability;
        let found = detector.detect_missing_tools(task);
        // What a switched-off tool does is not missing.
        let disabled_detector =
            ToolGapDetector::from_specifications(off.iter().map(|(tool, _)| *tool));
        let disabled_for = |missing: &MissingCapability| {
            let does = disabled_detector.tool_for(missing.words().as_str())?.name;
            let (tool, because) = off.iter().find(|(tool, _)| tool.name().as_str() == does)?;
            Some(DisabledTool {
                tool: tool.name().clone(),
                because: because.clone(),
                request: missing.words().clone(),
            })
        };
        let missing = found.iter().flat_map(ToolGapReport::capabilities);
        let disabled: Vec<DisabledTool> = missing.filter_map(disabled_for).collect();
        let report =
            found.and_then(|found| found.retain(|missing| disabled_for(missing).is_none()));
        // A run has a higher threshold; a check reports what is more likely than not.
        let gaps = configuration.gaps();
        let run_threshold = gaps.threshold.get();
        Ok(GapCheck {
            is_reported_before_run: gaps.check && report.is_some() && probability >= run_threshold,
            report,
            probability,
            threshold: detector.threshold(),
            run_threshold,
            disabled,
        })
    }
}

/// The gaps of a run, before and during it.
#[must_use]
pub fn gaps_of_run(run: &Run) -> Vec<ToolGapReport> {
    let before = run.offer().and_then(|offer| offer.gap.clone());
    before.into_iter().chain(gap_during_run(run)).collect()
}

/// The gap of a run that was not reported yet. A gap that was reported before the run started is not
/// reported again in other words.
#[must_use]
pub fn unreported_gap(run: &Run) -> Option<ToolGapReport> {
    let is_reported = run.offer().is_some_and(|offer| offer.gap.is_some());
    gap_during_run(run).filter(|_| !is_reported)
}

#[cfg(test)]
mod tests {
    use windlass_core::approval::Principal;
    use windlass_spec::{AgentName, GapMoment, NonEmptyText};
    use windlass_store::NewGap;

    use super::*;
    use crate::error::ErrorKind;
    use crate::options::Overrides;

    fn identity(tenant: &str, scopes: &[Scope]) -> Identity {
        let tenant = NonEmptyText::new(tenant).unwrap();
        Identity::new(
            tenant,
            Principal::new("ada").unwrap(),
            scopes.iter().copied(),
        )
    }

    #[test]
    fn a_tenant_sees_only_its_own_gaps() {
        let data = tempfile::tempdir().unwrap();
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        let service = Service::open(None, overrides);
        let reader = identity("acme", &[Scope::Read]);
        let detector = ToolGapDetector::new([]);
        let report = detector.report_whole_task("Book a flight to Rome").unwrap();
        let new = NewGap {
            run: None,
            who: reader.person(),
            agent: &AgentName::new("clerk").unwrap(),
            moment: GapMoment::AtLoad,
            at: service.now(),
            report: &report,
        };
        assert!(service.store().unwrap().record_gap(&new).unwrap());
        let listed = service.list_missing_tools(&reader, None, None).unwrap();
        assert_eq!(listed.len(), 1);
        let name = &listed[0].name;
        assert!(service.propose_tool(&reader, name).is_ok());

        let other = identity("other", &[Scope::Admin]);
        assert!(
            service
                .list_missing_tools(&other, None, None)
                .unwrap()
                .is_empty()
        );
        let error = service.show_missing_tool(&other, name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let without_scopes = identity("acme", &[]);
        let error = service
            .list_missing_tools(&without_scopes, None, None)
            .unwrap_err();
        assert_eq!(error.code(), "scope_missing");
    }
}
