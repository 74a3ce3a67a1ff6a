//! Explains a decision to people: the part of the floor, the part of the rules, and which changes would
//! lead to a weaker decision. The last is found by trying.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{Confidence, RiskLevel};

use crate::decision::Decision;
use crate::load::{Policies, RuleEffect};
use crate::request::{Request, Session};
use crate::verdict::Verdict;

/// The explanation of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The tool that was called.
    pub tool: String,
    /// The decision.
    pub decision: Decision,
    /// The reason of the floor, with the numbers it depends on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub floor: String,
    /// The rules that decided in the policies.
    pub rules: Vec<RulePart>,
    /// Single changes of the call that would lead to a weaker decision.
    pub changes: Vec<Change>,
}

/// A rule's part in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulePart {
    /// Its id.
    pub id: String,
    /// Whether it permits or forbids.
    pub effect: RuleEffect,
    /// The line of its start.
    pub line: usize,
    /// Its reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A change that would lead to a weaker decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The condition that would have to hold.
    pub condition: String,
    /// The verdict it would lead to.
    pub verdict: Verdict,
}

impl Policies {
    /// Explains which rules decided about a call, and why.
    #[must_use]
    pub fn explain(&self, request: &Request<'_>) -> Explanation {
        let decision = self.decide(request);
        let rules = decision.rules.iter().filter_map(|id| self.rule(id));
        let rules = rules.map(|rule| RulePart {
            id: rule.id.clone(),
            effect: rule.effect,
            line: rule.place.line,
            reason: rule.reason.clone(),
        });
        Explanation {
            tool: request.tool.clone().into_owned(),
            rules: rules.collect(),
            changes: self.changes(request, &decision),
            floor: decision.floor.describe(request.confidence, &self.floor),
            decision,
        }
    }

    fn changes(&self, request: &Request<'_>, decision: &Decision) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut attempt = |condition: &str, change: &dyn Fn(&mut Request<'_>)| {
            let mut changed = request.clone();
            change(&mut changed);
            if changed == *request {
                return;
            }
            let verdict = self.decide(&changed).verdict;
            if verdict < decision.verdict {
                changes.push(Change {
                    condition: condition.to_owned(),
                    verdict,
                });
            }
        };
        for risk in RiskLevel::ALL {
            if risk < request.risk {
                attempt(&format!("the risk were {risk}"), &|call| call.risk = risk);
            }
        }
        attempt("the call were not tainted", &|call| call.tainted = false);
        attempt("the stated confidence were 1", &|call| {
            call.confidence = Some(Confidence::FULL);
        });
        attempt("no sensitive data had been read", &|call| {
            call.session.sensitive_read = false;
        });
        attempt("it were the first call of the run", &|call| {
            call.session = Session {
                sensitive_read: call.session.sensitive_read,
                ..Session::default()
            };
        });
        for environment in self.environments.iter().map(String::as_str) {
            attempt(&format!("the environment were {environment}"), &|call| {
                call.environment = Cow::Owned(environment.to_owned());
            });
        }
        if !self.environments.is_empty() {
            attempt("the environment were one that no rule names", &|call| {
                call.environment = Cow::Borrowed("-");
            });
        }
        changes
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = &self.decision;
        writeln!(f, "{}: {}", self.tool, decision.verdict)?;
        writeln!(f, "  floor: {}, {}", decision.floor.verdict(), self.floor)?;
        write!(f, "  policies: {}", decision.policies)?;
        if decision.rules.is_empty() && decision.faults.is_empty() {
            write!(f, ", no rule permits the call")?;
        }
        writeln!(f)?;
        for rule in &self.rules {
            let effect = match (rule.effect, decision.policies) {
                (RuleEffect::Permit, Verdict::Ask) => "permits it once approved",
                (RuleEffect::Permit, _) => "permits it",
                (RuleEffect::Forbid, Verdict::Ask) => "forbids it until it is approved",
                (RuleEffect::Forbid, _) => "forbids it",
            };
            write!(f, "    rule `{}` (line {}) {effect}", rule.id, rule.line)?;
            match &rule.reason {
                Some(reason) => writeln!(f, ": {reason}")?,
                None => writeln!(f)?,
            }
        }
        for fault in &decision.faults {
            writeln!(f, "    {fault}")?;
        }
        writeln!(f, "  security level: {}", decision.security_level)?;
        for demand in &decision.approvers {
            write!(f, "  approvers: {} of `{}`", demand.count, demand.group)?;
            match &demand.escalation {
                Some((group, after)) => writeln!(f, ", and `{group}` after {after} s")?,
                None => writeln!(f)?,
            }
        }
        if let Some(seconds) = decision.expires_seconds {
            writeln!(f, "  expires after: {seconds} s")?;
        }
        if decision.verdict == Verdict::Deny && decision.faults.is_empty() {
            writeln!(f, "  an approval would not change it")?;
        }
        for change in &self.changes {
            writeln!(f, "  {} if {}", change.verdict, change.condition)?;
        }
        Ok(())
    }
}
