//! Calls that were interrupted after they began, so that it is unknown whether they took effect, and what
//! follows for later calls: an approver sees them, and an idempotent call gets the key of the earlier
//! attempt.

use serde_json::{Map, Value};
use windlass_spec::{CallId, CallRecord, CallState, Effect, RiskLevel};

use super::progress::CallProgress;
use super::{CallKind, Entry, Run};
use crate::approval::sorted_json;
use crate::gate::{Decision, Verdict};

/// An earlier call whose outcome is unknown.
struct Attempt<'r> {
    kind: CallKind,
    record: &'r CallRecord,
    progress: &'r CallProgress,
}

impl Run {
    /// The key that a tool gets with a call. It is the same for each attempt: a call of an idempotent tool
    /// that repeats an interrupted one has the key of that.
    #[must_use]
    pub fn idempotency_key(&self, call: &CallId) -> CallId {
        let Ok(Entry::Call {
            record,
            specification,
            ..
        }) = self.entry(call)
        else {
            return call.clone();
        };
        let is_idempotent = specification.attributes().idempotent == Some(true);
        let mut attempts = self.interrupted_before(record);
        attempts
            .find(|attempt| {
                is_idempotent
                    && attempt.record.tool_name() == record.tool_name()
                    && attempt.record.arguments() == record.arguments()
            })
            .map_or_else(|| call.clone(), |attempt| attempt.record.id().clone())
    }

    /// Whether a call was interrupted and no person was asked yet whether it took effect.
    #[must_use]
    pub fn has_unreported_outcome(&self) -> bool {
        self.unreported_outcomes().next().is_some()
    }

    /// The calls that were interrupted, and about which no person was asked yet whether they took effect.
    pub fn unreported_outcomes(&self) -> impl Iterator<Item = &CallRecord> {
        self.interrupted()
            .filter(|attempt| {
                attempt.record.state() == CallState::Unknown && attempt.progress.report().is_none()
            })
            .map(|attempt| attempt.record)
    }

    /// The effect of a failed call: what a person reported, else what was recorded.
    #[must_use]
    pub fn effect_of_failure(&self, call: &CallId) -> Option<Effect> {
        let Ok(Entry::Call {
            record, progress, ..
        }) = self.entry(call)
        else {
            return None;
        };
        let failure = record.outcome()?.err()?;
        Some(match () {
            () if progress.did_nothing() => Effect::None,
            () if progress.did_happen() => Effect::Applied,
            () => failure.effect,
        })
    }

    /// Describes the similar earlier calls that may have taken effect, and the damage of the journal, for the approver
    /// of a call.
    pub(super) fn doubt_about(&self, record: &CallRecord) -> Option<String> {
        let mut similar: Vec<Attempt<'_>> = self.similar_before(record).collect();
        // Those with an argument in common first: they are the most likely to be the same effect again.
        similar.sort_by_key(|attempt| !overlap(attempt.record.arguments(), record.arguments()));
        let similar = similar.iter().map(Attempt::describe);
        let doubts: Vec<String> = self.damage_message().into_iter().chain(similar).collect();
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }

    /// Whether an earlier call with an argument in common may have taken effect, and no person knows; or the call
    /// itself, if the journal lost entries.
    pub(super) fn is_doubtful(&self, record: &CallRecord) -> bool {
        let mut similar = self.similar_before(record);
        self.damage().is_some()
            || similar.any(|attempt| {
                !attempt.progress.did_happen()
                    && (attempt.has_own_calls()
                        || overlap(attempt.record.arguments(), record.arguments()))
            })
    }

    /// The same decision, which needs approval if a similar earlier call may have taken effect.
    pub(super) fn decide_in_doubt(&self, record: &CallRecord, decision: Decision) -> Decision {
        let has_effect = decision.risk_level() != Some(RiskLevel::Reversible);
        let runs = matches!(decision.verdict(), Verdict::Allow | Verdict::Hold);
        match self.doubt_about(record) {
            Some(doubt) if has_effect && runs && self.is_doubtful(record) => {
                decision.with_doubt(doubt)
            }
            _ => decision,
        }
    }

    /// The earlier calls that were interrupted and may be similar: those of the same tool, whatever their arguments,
    /// since `pay Bob` and `Pay Bob` are the same effect; and sub-agents and plans, whose calls are not known here.
    /// Without those that a person says did nothing. Calls of one turn were requested together, so one of them is no
    /// second attempt at another unless they have an argument in common.
    fn similar_before<'r>(
        &'r self,
        record: &'r CallRecord,
    ) -> impl Iterator<Item = Attempt<'r>> + 'r {
        self.interrupted_before(record).filter(|attempt| {
            let is_later = attempt.record.id().turn < record.id().turn;
            let is_similar = attempt.record.tool_name() == record.tool_name()
                && (is_later || overlap(attempt.record.arguments(), record.arguments()));
            (attempt.has_own_calls() || is_similar) && !attempt.progress.did_nothing()
        })
    }

    fn interrupted_before<'r>(
        &'r self,
        record: &'r CallRecord,
    ) -> impl Iterator<Item = Attempt<'r>> + 'r {
        let position = |call: &CallId| (call.turn, call.index);
        self.interrupted()
            .filter(move |attempt| position(attempt.record.id()) < position(record.id()))
    }

    fn interrupted(&self) -> impl Iterator<Item = Attempt<'_>> {
        let calls = self.calls.interrupted().iter();
        calls.filter_map(|call| match self.entry(call).ok()? {
            Entry::Call {
                kind,
                record,
                progress,
                ..
            } => Some(Attempt {
                kind: *kind,
                record,
                progress,
            }),
            Entry::Mistake { .. } | Entry::Finish => None,
        })
    }
}

impl Attempt<'_> {
    /// Whether it made calls that are not known here.
    fn has_own_calls(&self) -> bool {
        matches!(self.kind, CallKind::SubAgent | CallKind::Plan(_))
    }

    fn describe(&self) -> String {
        let Self {
            record, progress, ..
        } = self;
        let started = record.started_at();
        let started = started.map_or(String::new(), |at| format!(", started at {at}"));
        let doubt = match progress.did_happen() {
            true => "took effect, as a person reported",
            false => "may have taken effect: its outcome is unknown",
        };
        format!(
            "an earlier call of `{}` ({}{started}, with {}) {doubt}",
            record.tool_name(),
            record.id(),
            sorted_json(&Value::Object(record.arguments().clone())),
        )
    }
}

/// Whether two calls have an argument in common, or one of them has none. Texts that differ only in case, spaces and
/// punctuation are in common.
fn overlap(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let is_common = |(name, value): (&String, &Value)| match (value, other.get(name)) {
        (Value::String(one), Some(Value::String(other))) => {
            one == other || (words(one).next().is_some() && words(one).eq(words(other)))
        }
        (one, other) => other == Some(one),
    };
    one.is_empty() || other.is_empty() || one.iter().any(is_common)
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|symbol: char| !symbol.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}
