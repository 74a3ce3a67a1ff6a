//! What the gate decided about a call, which of its stages did, and by what.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_policy::FloorReason;
use windlass_spec::{CallId, Effect, ErrorCategory, Failure, RiskLevel, SecurityLevel, Timestamp};

pub use windlass_policy::Verdict;

use crate::approval::Digest;
use crate::risk::Assessment;

/// A decision about one call: one record that explains it to everyone. Earlier versions recorded
/// less, so everything but verdict and stage may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub(super) verdict: Verdict,
    pub(super) stage: Stage,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<ErrorCategory>,
    /// How reversible the call is, and how that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) risk: Option<Assessment>,
    /// How much care a person's decision needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) security_level: Option<SecurityLevel>,
    /// What the built-in floor went by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) floor: Option<FloorReason>,
    /// The rules by which the policies decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<String>,
    /// The tool and its arguments, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Digest>,
    /// Whether what others wrote may have led to the call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) is_tainted: bool,
    /// The arguments that come from what others wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) marked: Vec<String>,
    /// Where the run takes place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) environment: Option<String>,
    /// How long the call is held, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undo_window_seconds: Option<u64>,
    /// The leave given beforehand because of which nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) covered_by: Option<Covered>,
    /// When the same call may be made again, if it was refused for a while only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_at: Option<Timestamp>,
    /// The arguments that the call left out and the operator sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) set: BTreeMap<String, Value>,
    /// The digest of the configuration under which it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) configuration: Option<Box<str>>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "this is how serde asks whether to skip a field"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Leave that a person gave before the call was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covered {
    /// By the answer to an earlier `request_authorization` for exactly this call.
    Request(CallId),
    /// By the standing approval of that number.
    Standing(i64),
}

/// A stage of the gate, in the order calls pass them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Is there such a tool?
    KnownTool,
    /// Is it switched on?
    Enabled,
    /// Do the arguments fit its schema?
    Arguments,
    /// Does whoever it acts for hold what the tool demands?
    Permission,
    /// Is it called too often?
    RateLimit,
    /// Does the tool keep failing?
    Health,
    /// Does the run have calls left?
    Budget,
    /// What follows from how reversible the call is?
    Risk,
    /// What do the operator's rules say?
    Policy,
    /// Nothing stood in the way.
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
            marked: Vec::new(),
            environment: None,
            undo_window_seconds: None,
            covered_by: None,
            retry_at: None,
            set: BTreeMap::new(),
            configuration: None,
        }
    }

    /// What floor and policies decided, with what the decision is recorded with. A call that need
    /// not be held for any time may run at once.
    pub(super) fn by_policy(
        judged: &windlass_policy::Decision,
        risk: Assessment,
        undo_window: Duration,
    ) -> Self {
        let is_by_floor = judged.floor.verdict() > judged.policies;
        let stage = match (judged.verdict, is_by_floor) {
            (Verdict::Allow, _) => Stage::Passed,
            (_, true) => Stage::Risk,
            (_, false) => Stage::Policy,
        };
        let reason = match judged.verdict {
            Verdict::Allow => String::new(),
            _ if is_by_floor => judged.floor.to_string(),
            _ => reason_of_rules(judged),
        };
        let (verdict, window) = match judged.verdict {
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
            security_level: Some(judged.security_level),
            floor: Some(judged.floor),
            rules: judged.rules.clone(),
            digest: None,
            is_tainted: false,
            marked: Vec::new(),
            environment: None,
            undo_window_seconds: window,
            covered_by: None,
            retry_at: None,
            set: BTreeMap::new(),
            configuration: None,
        }
    }

    /// The same decision for a call that a person gave leave for beforehand: nobody is asked. What
    /// can be undone for a while is still held unless the leave was for this very call.
    pub(crate) fn covered(mut self, by: Covered, undo_window: Duration) -> Self {
        if self.verdict != Verdict::Ask {
            return self;
        }
        let can_be_undone = self.risk_level() == Some(RiskLevel::ReversibleWithDelay);
        let is_held = matches!(by, Covered::Standing(_)) && can_be_undone && !undo_window.is_zero();
        self.verdict = if is_held {
            Verdict::Hold
        } else {
            Verdict::Allow
        };
        self.undo_window_seconds = is_held.then_some(undo_window.as_secs());
        self.covered_by = Some(by);
        self
    }

    /// The same decision about a call of which the operator sets these arguments.
    pub(crate) fn setting(mut self, set: BTreeMap<String, Value>) -> Self {
        self.set = set;
        self
    }

    /// What is to happen.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Which stage decided.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Why; empty if nothing stood in the way.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// How reversible the call is, and how that was found out.
    #[must_use]
    pub fn risk(&self) -> Option<&Assessment> {
        self.risk.as_ref()
    }

    /// How reversible the call is.
    #[must_use]
    pub fn risk_level(&self) -> Option<RiskLevel> {
        self.risk.as_ref().map(|risk| risk.level)
    }

    /// How much care a person's decision needs. Where nothing is recorded, the most one person can
    /// give.
    #[must_use]
    pub fn security_level(&self) -> SecurityLevel {
        self.security_level.unwrap_or(SecurityLevel::High)
    }

    /// The rules by which the policies decided.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// The tool and its arguments, exactly.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Whether what others wrote may have led to the call.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.is_tainted
    }

    /// The arguments that come from what others wrote.
    #[must_use]
    pub fn marked(&self) -> &[String] {
        &self.marked
    }

    /// Where the run takes place.
    #[must_use]
    pub fn environment(&self) -> Option<&str> {
        self.environment.as_deref()
    }

    /// How long the call is held, if it is.
    #[must_use]
    pub fn undo_window(&self) -> Option<Duration> {
        self.undo_window_seconds.map(Duration::from_secs)
    }

    /// The leave given beforehand because of which nobody is asked.
    #[must_use]
    pub fn covered_by(&self) -> Option<&Covered> {
        self.covered_by.as_ref()
    }

    /// When the same call may be made again, if it was refused for a while only.
    #[must_use]
    pub fn retry_at(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// The arguments that the call left out and the operator sets.
    #[must_use]
    pub fn set(&self) -> &BTreeMap<String, Value> {
        &self.set
    }

    /// The digest of the configuration under which it was decided.
    #[must_use]
    pub fn configuration(&self) -> Option<&str> {
        self.configuration.as_deref()
    }

    /// The failure a denied call ends with; `None` if it was not denied.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        (self.verdict == Verdict::Deny).then(|| {
            // A denial without a category can only come from a damaged journal. It stays a denial.
            let category = self.category.unwrap_or(ErrorCategory::PermissionDenied);
            let failure = Failure::new(category, Effect::None, self.reason.clone());
            match (self.stage, self.reason.split_once(" (")) {
                // Where the operator wrote it is no business of a model.
                (Stage::Enabled, Some((what, _))) => Failure {
                    model_message: format!("{what}; go on without it"),
                    ..failure
                },
                _ => failure,
            }
        })
    }
}

/// What people are told of the rules that decided.
fn reason_of_rules(judged: &windlass_policy::Decision) -> String {
    let told: Vec<String> = match judged.faults.as_slice() {
        [] => judged.reasons.clone(),
        faults => faults.iter().map(ToString::to_string).collect(),
    };
    match (told.as_slice(), judged.rules.as_slice()) {
        ([], []) => "no rule permits the call".to_owned(),
        ([], rules) => format!("by rule `{}`", rules.join("`, `")),
        (told, _) => told.join("; "),
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.verdict, &self.covered_by) {
            (Verdict::Allow, None) => f.write_str("allowed"),
            (Verdict::Allow, Some(_)) => f.write_str("allowed beforehand by a person"),
            (Verdict::Hold, _) => {
                let seconds = self.undo_window_seconds.unwrap_or_default();
                write!(f, "held for {seconds} s: {}", self.reason)
            }
            (Verdict::Ask, _) => write!(f, "waits for a person: {}", self.reason),
            (Verdict::Deny, _) => write!(f, "denied: {}", self.reason),
        }
    }
}
