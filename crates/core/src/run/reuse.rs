//! Which calls are answered with the result of the same call before. Only reversible calls are, and only while
//! nothing may have changed since: any call that may change something puts all earlier results out of date.

use serde_json::{Map, Value};
use windlass_spec::{CallId, CallRecord, CallState, RiskLevel, ToolName, ToolSpecification};

use super::Run;
use super::calls::{Calls, Entry};
use crate::catalog::CallKind;
use crate::gate::Decision;
use crate::risk::{KnownTool, Source, ToolRisk, words_of};

/// Words of the names of tools whose results differ at each call.
const CLOCKS: [&str; 9] = [
    "clock",
    "date",
    "datetime",
    "now",
    "random",
    "time",
    "timestamp",
    "today",
    "uuid",
];

impl Run {
    /// The earlier call whose result answers this one, so that it need not run.
    #[must_use]
    pub fn reusable(&self, call: &CallId) -> Option<CallId> {
        if !self.settings().reuse_results {
            return None;
        }
        let entry = self.entry(call).ok()?;
        let Entry::Call {
            specification,
            record,
            ..
        } = entry
        else {
            return None;
        };
        let is_due = record.state() == CallState::Pending && entry.risk() == RiskLevel::Reversible;
        if !is_due {
            return None;
        }
        // Results that the model is not shown any more are not kept in every process.
        let left_out = self.transcript.left_out().min(self.calls.ended_turns());
        let known = self
            .calls
            .known_result(specification, record.arguments(), left_out);
        known.cloned()
    }

    /// Whether a call that is not reversible is made twice in one turn.
    pub(super) fn repeats_in_turn(&self, record: &CallRecord, decision: &Decision) -> bool {
        if !self.settings().reuse_results
            || decision
                .risk_level()
                .is_none_or(|risk| risk == RiskLevel::Reversible)
        {
            return false;
        }
        let id = record.id();
        let turn = self
            .calls
            .turns_after(id.turn.number() as usize - 1)
            .first();
        let earlier = turn.filter(|turn| turn.turn == id.turn);
        let earlier = earlier.map(|turn| &turn.entries[..id.index as usize]);
        let mut earlier = earlier.into_iter().flatten();
        earlier.any(|entry| {
            entry.requests(record.tool_name(), record.arguments())
                && !entry.may_be_requested_again()
        })
    }
}

impl Calls {
    /// The latest call of that tool with these arguments whose result is known and not out of date. The first
    /// `left_out` turns do not count.
    pub(super) fn known_result(
        &self,
        tool: &ToolSpecification,
        arguments: &Map<String, Value>,
        left_out: usize,
    ) -> Option<&CallId> {
        if !is_cacheable(tool) {
            return None;
        }
        let turns = self.turns_after(left_out).iter().rev();
        let mut entries = turns.flat_map(|turn| turn.entries.iter().rev());
        let found = entries.find(|entry| {
            entry.is_call_of(tool.name(), arguments)
                && entry.result().is_some()
                && entry.changes_known() == Some(self.changes())
        });
        found?.call().map(CallRecord::id)
    }
}

impl Entry {
    /// Whether the call may change what other calls return.
    pub(super) fn may_change(&self) -> bool {
        let Self::Call {
            kind,
            specification,
            ..
        } = self
        else {
            return false;
        };
        match kind {
            CallKind::Tool => {
                self.risk() != RiskLevel::Reversible || writes_by_its_name(specification)
            }
            CallKind::SubAgent | CallKind::Plan(_) => true,
            CallKind::Question
            | CallKind::Authorization
            | CallKind::ToolSearch
            | CallKind::Finish => false,
        }
    }

    /// The result of a reversible call of a tool, if it may answer the same call.
    fn result(&self) -> Option<&Value> {
        let Self::Call {
            kind: CallKind::Tool,
            specification,
            record,
            progress,
            ..
        } = self
        else {
            return None;
        };
        let may_answer = self.risk() == RiskLevel::Reversible
            && is_cacheable(specification)
            && !progress.is_from_outside();
        record.outcome().filter(|_| may_answer)?.ok()
    }

    /// The result of an earlier call, if it is the same call.
    pub(super) fn result_of_same<'e>(&self, earlier: &'e Self) -> Option<&'e Value> {
        let record = self.call()?;
        let is_same = self.risk() == RiskLevel::Reversible
            && earlier.is_call_of(record.tool_name(), record.arguments());
        earlier.result().filter(|_| is_same)
    }

    fn is_call_of(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        self.call()
            .is_some_and(|record| record.tool_name() == tool && record.arguments() == arguments)
    }

    /// Whether it was requested with that tool and these arguments. An approver may have edited them since.
    pub(super) fn requests(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        let Self::Call {
            record, progress, ..
        } = self
        else {
            return false;
        };
        let requested = progress.before_edit().unwrap_or(record.arguments());
        record.tool_name() == tool && requested == arguments
    }

    fn changes_known(&self) -> Option<u32> {
        match self {
            Self::Call { progress, .. } => progress.changes_known(),
            _ => None,
        }
    }

    /// Whether the same call may be requested again although this one did not fail: its result answers it, or
    /// it runs again. `changes` are the changes known now.
    pub(super) fn may_be_answered_again(&self, changes: u32) -> bool {
        let Self::Call {
            kind: CallKind::Tool,
            specification,
            record,
            decision,
            progress,
        } = self
        else {
            return false;
        };
        let decided = decision.as_deref().and_then(Decision::risk_level);
        // Before the gate has decided, only what is declared is known.
        let risk = decided.unwrap_or_else(|| {
            let declared = ToolRisk::of_specification(specification);
            declared.with_arguments(record.arguments()).level
        });
        if risk != RiskLevel::Reversible {
            return false;
        }
        match record.outcome() {
            None | Some(Ok(_)) => true,
            // What failed for good can succeed after something has changed.
            Some(Err(_)) => progress
                .changes_known()
                .is_some_and(|known| known != changes),
        }
    }
}

/// Whether results of a tool may answer the same call.
fn is_cacheable(tool: &ToolSpecification) -> bool {
    let attributes = tool.attributes();
    let is_clock = || {
        let words = words_of(tool.name().as_str());
        words.iter().any(|word| CLOCKS.contains(&word.as_str()))
    };
    attributes.open_world != Some(true)
        && attributes
            .cacheable
            .unwrap_or_else(|| !is_clock() && !writes_by_its_name(tool))
}

/// Whether a tool changes something by the words of its name, although it can be undone.
fn writes_by_its_name(tool: &ToolSpecification) -> bool {
    if tool.attributes().cacheable == Some(true) {
        return false;
    }
    let named = ToolRisk::of(&KnownTool::named(tool.name().as_str()));
    let base = named.base();
    base.source == Source::Words && base.level != RiskLevel::Reversible
}
