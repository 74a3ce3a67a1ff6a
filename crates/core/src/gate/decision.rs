//! The gate's decision about a call: the verdict, the stage that decided, and the reasons.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_policy::{FloorReason, default_security_level};
use windlass_spec::{CallId, Effect, ErrorCategory, Failure, RiskLevel, SecurityLevel, Timestamp};

pub use windlass_policy::Verdict;

use super::terms::ApprovalTerms;
use crate::approval::Digest;
use crate::risk::Assessment;

/// The decision about one call, as it is recorded. Earlier versions recorded less, so everything but
/// verdict and stage may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub(super) verdict: Verdict,
    pub(super) stage: Stage,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<ErrorCategory>,
    /// The risk assessment of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) risk: Option<Assessment>,
    /// The security level that an approval needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) security_level: Option<SecurityLevel>,
    /// The reason of the built-in floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) floor: Option<FloorReason>,
    /// The rules that decided in the policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<String>,
    /// The digest of the tool and its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Digest>,
    /// Whether untrusted content may have led to the call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) is_tainted: bool,
    /// The arguments that come from untrusted content.
    #[serde(rename = "marked", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tainted_arguments: Vec<String>,
    /// The environment of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) environment: Option<String>,
    /// The undo window, if the call is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undo_window_seconds: Option<u64>,
    /// The approval given in advance that makes another one unnecessary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) covered_by: Option<PriorApproval>,
    /// When the same call may be made again, if the refusal is temporary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_at: Option<Timestamp>,
    /// The arguments that the call omits and the operator sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) set: BTreeMap<String, Value>,
    /// The digest of the configuration of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) configuration: Option<Box<str>>,
    /// What the policies demand of an approval.
    #[serde(default, skip_serializing_if = "ApprovalTerms::is_empty")]
    pub(super) terms: ApprovalTerms,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "this is how serde asks whether to skip a field"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// An approval that was given before the call was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorApproval {
    /// By the answer to an earlier `request_authorization` for exactly this call.
    Request(CallId),
    /// By the standing approval with this id.
    Standing(i64),
}

impl Stage {
    /// What the stage checks, in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KnownTool => "known tool",
            Self::Enabled => "enabled",
            Self::Arguments => "arguments",
            Self::Permission => "permission",
            Self::RateLimit => "rate limit",
            Self::Health => "health",
            Self::Budget => "budget",
            Self::Risk => "risk",
            Self::Policy => "policy",
            Self::Authorization => "authorization",
            Self::Passed => "passed",
        }
    }
}

/// A stage of the gate, in the order in which calls pass them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Whether there is such a tool.
    KnownTool,
    /// Whether it is enabled.
    Enabled,
    /// Whether the arguments fit its schema.
    Arguments,
    /// Whether the run holds the permissions that the tool requires.
    Permission,
    /// Whether its rate limits are exhausted.
    RateLimit,
    /// Whether the tool keeps failing.
    Health,
    /// Whether the run has calls left.
    Budget,
    /// What follows from the risk of the call.
    Risk,
    /// What the operator's policies decide.
    Policy,
    /// Whether the call is still the one that was decided and approved.
    Authorization,
    /// No stage refused.
    Passed,
}

impl Decision {
    pub(super) fn deny(stage: Stage, category: ErrorCategory, reason: String) -> Self {
        Self {
            verdict: Verdict::Deny,
            stage,
            reason,
            category: Some(category),
            risk: None,
            security_level: None,
            floor: None,
            rules: Vec::new(),
            digest: None,
            is_tainted: false,
            tainted_arguments: Vec::new(),
            environment: None,
            undo_window_seconds: None,
            covered_by: None,
            retry_at: None,
            set: BTreeMap::new(),
            configuration: None,
            terms: ApprovalTerms::default(),
        }
    }

    /// The decision of floor and policies, with the recorded data. A call with an empty undo window may
    /// run at once.
    pub(super) fn by_policy(
        decided: &windlass_policy::Decision,
        floor: String,
        risk: Assessment,
        undo_window: Duration,
    ) -> Self {
        let is_by_floor = decided.floor.verdict() > decided.policies;
        let stage = match (decided.verdict, is_by_floor) {
            (Verdict::Allow, _) => Stage::Passed,
            (_, true) => Stage::Risk,
            (_, false) => Stage::Policy,
        };
        let reason = match decided.verdict {
            Verdict::Allow => String::new(),
            _ if is_by_floor => floor,
            // Both ask.
            Verdict::Ask
                if matches!(decided.floor, FloorReason::Unsure | FloorReason::Unstated) =>
            {
                format!("{}; {floor}", describe_rules(decided))
            }
            _ => describe_rules(decided),
        };
        let (verdict, window) = match decided.verdict {
            Verdict::Hold if undo_window.is_zero() => (Verdict::Allow, None),
            Verdict::Hold => (Verdict::Hold, Some(undo_window.as_secs())),
            verdict => (verdict, None),
        };
        Self {
            verdict,
            stage,
            reason,
            category: (verdict == Verdict::Deny).then_some(ErrorCategory::PermissionDenied),
            risk: Some(risk),
            security_level: Some(decided.security_level),
            floor: Some(decided.floor),
            rules: decided.rules.clone(),
            digest: None,
            is_tainted: false,
            tainted_arguments: Vec::new(),
            environment: None,
            undo_window_seconds: window,
            covered_by: None,
            retry_at: None,
            set: BTreeMap::new(),
            configuration: None,
            terms: ApprovalTerms::default(),
        }
    }

    /// The same decision for a call that was approved in advance, so that no one is asked. A call with
    /// an undo window is still held unless the approval was for this exact call.
    pub(crate) fn with_prior_approval(mut self, by: PriorApproval, undo_window: Duration) -> Self {
        if self.verdict != Verdict::Ask {
            return self;
        }
        let can_be_undone = self.risk_level() == Some(RiskLevel::ReversibleWithDelay);
        let is_held =
            matches!(by, PriorApproval::Standing(_)) && can_be_undone && !undo_window.is_zero();
        self.verdict = if is_held {
            Verdict::Hold
        } else {
            Verdict::Allow
        };
        self.undo_window_seconds = is_held.then_some(undo_window.as_secs());
        self.covered_by = Some(by);
        self
    }

    /// The refusal of a call that is not the one that was decided and approved.
    pub(crate) fn deny_unauthorized(reason: String) -> Self {
        let category = ErrorCategory::PermissionDenied;
        Self::deny(Stage::Authorization, category, reason)
    }

    /// The refusal of a call with an effect that its turn makes already.
    pub(crate) fn deny_repetition() -> Self {
        let reason =
            "this turn makes exactly this call already, and it has an effect; it is made once";
        Self::deny(
            Stage::Risk,
            ErrorCategory::InvalidArguments,
            reason.to_owned(),
        )
    }

    /// The same decision, which needs approval because of a doubt.
    pub(crate) fn with_doubt(self, doubt: String) -> Self {
        Self {
            verdict: Verdict::Ask,
            stage: Stage::Risk,
            reason: doubt,
            undo_window_seconds: None,
            ..self
        }
    }

    /// The same decision about a call with these operator arguments.
    pub(crate) fn with_operator_arguments(mut self, set: BTreeMap<String, Value>) -> Self {
        self.set = set;
        self
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The stage that decided.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The reason; empty if no stage refused.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The risk assessment of the call.
    #[must_use]
    pub fn risk(&self) -> Option<&Assessment> {
        self.risk.as_ref()
    }

    /// How reversible the call is.
    #[must_use]
    pub fn risk_level(&self) -> Option<RiskLevel> {
        self.risk.as_ref().map(|risk| risk.level)
    }

    /// The decision of the policies that this one is based on, as far as it is recorded. `None` if the call
    /// was refused before the policies were asked.
    #[must_use]
    pub fn of_policies(&self) -> Option<windlass_policy::Decision> {
        let (risk, floor) = (self.risk.as_ref()?, self.floor?);
        if !matches!(self.stage, Stage::Risk | Stage::Policy | Stage::Passed) {
            return None;
        }
        let verdict = match (self.verdict, &self.covered_by) {
            // Approved in advance.
            (_, Some(_)) => Verdict::Ask,
            // Without an undo window it ran at once.
            (Verdict::Allow, None) => floor.verdict(),
            (verdict, None) => verdict,
        };
        let policies = match self.stage {
            Stage::Policy => verdict,
            _ => Verdict::Allow,
        };
        let usual = default_security_level(risk.level);
        Some(windlass_policy::Decision {
            verdict,
            floor,
            policies,
            security_level: self.security_level.unwrap_or(usual),
            rules: self.rules.clone(),
            reasons: match self.reason.is_empty() {
                true => Vec::new(),
                false => vec![self.reason.clone()],
            },
            faults: Vec::new(),
            // Replays compare verdicts and security levels.
            approvers: Vec::new(),
            expires_seconds: None,
        })
    }

    /// The security level that an approval needs. If none is recorded, the highest that needs only one
    /// approver.
    #[must_use]
    pub fn security_level(&self) -> SecurityLevel {
        self.security_level.unwrap_or(SecurityLevel::High)
    }

    /// The rules that decided in the policies.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// The digest of the tool and its arguments.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Whether untrusted content may have led to the call.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.is_tainted
    }

    /// The arguments that come from untrusted content.
    #[must_use]
    pub fn tainted_arguments(&self) -> &[String] {
        &self.tainted_arguments
    }

    /// The environment of the run.
    #[must_use]
    pub fn environment(&self) -> Option<&str> {
        self.environment.as_deref()
    }

    /// The undo window, if the call is held.
    #[must_use]
    pub fn undo_window(&self) -> Option<Duration> {
        self.undo_window_seconds.map(Duration::from_secs)
    }

    /// The approval given in advance that makes another one unnecessary.
    #[must_use]
    pub fn covered_by(&self) -> Option<&PriorApproval> {
        self.covered_by.as_ref()
    }

    /// When the same call may be made again, if the refusal is temporary.
    #[must_use]
    pub fn retry_at(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// The arguments that the call omits and the operator sets.
    #[must_use]
    pub fn set(&self) -> &BTreeMap<String, Value> {
        &self.set
    }

    /// The digest of the configuration of the decision.
    #[must_use]
    pub fn configuration(&self) -> Option<&str> {
        self.configuration.as_deref()
    }

    /// What the policies demand of an approval.
    #[must_use]
    pub fn terms(&self) -> &ApprovalTerms {
        &self.terms
    }

    /// The failure a denied call ends with; `None` if it was not denied.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        (self.verdict == Verdict::Deny).then(|| {
            // A denial without a category can only come from a damaged journal. It stays a denial.
            let category = self.category.unwrap_or(ErrorCategory::PermissionDenied);
            let failure = Failure::new(category, Effect::None, self.reason.clone());
            match (self.stage, self.reason.split_once(" (")) {
                // A model need not know where the operator disabled the tool. The text after the
                // parentheses stays, which earlier versions worded differently.
                (Stage::Enabled, Some((what, rest))) => {
                    let advice = rest.rsplit_once("); ").map(|(_, advice)| advice);
                    let advice = advice.unwrap_or("continue without it");
                    Failure {
                        model_message: format!("{what}; {advice}"),
                        ..failure
                    }
                }
                _ => failure,
            }
        })
    }
}

/// Describes the rules that decided, for people.
fn describe_rules(decided: &windlass_policy::Decision) -> String {
    let reasons: Vec<String> = match decided.faults.as_slice() {
        [] => decided.reasons.clone(),
        faults => faults.iter().map(ToString::to_string).collect(),
    };
    match (reasons.as_slice(), decided.rules.as_slice()) {
        ([], []) => "no rule permits the call".to_owned(),
        ([], rules) => format!("by rule `{}`", rules.join("`, `")),
        (reasons, _) => reasons.join("; "),
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.verdict, &self.covered_by) {
            (Verdict::Allow, None) => f.write_str("allowed"),
            (Verdict::Allow, Some(_)) => f.write_str("allowed, approved in advance"),
            (Verdict::Hold, _) => {
                let seconds = self.undo_window_seconds.unwrap_or_default();
                write!(f, "held for {seconds} s: {}", self.reason)
            }
            (Verdict::Ask, _) => write!(f, "needs approval: {}", self.reason),
            (Verdict::Deny, _) => write!(f, "denied: {}", self.reason),
        }
    }
}
