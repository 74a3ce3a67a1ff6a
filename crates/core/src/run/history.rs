//! What a run remembers of the turns that have ended, so that nothing has to look through them again: the
//! counts that the gate sees, the calls that must not be made twice, the tools that were found, and the
//! untrusted content. It grows only with the calls that had an effect.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};
use windlass_policy::Session;
use windlass_spec::{CallId, CallRecord, CallState, ErrorCategory, RiskLevel, ToolName, Turn};

use super::calls::Entry;
use super::mistake::Mistake;
use super::untrusted::UntrustedContent;
use crate::approval::Digest;
use crate::catalog::CallKind;
use crate::gate::{Decision, Verdict};

/// How many tools are remembered that do not exist: a model can make up any number of names.
const MAX_MISSING_TOOLS: usize = 100;

/// What is known about the turns that have ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct History {
    counts: CallCounts,
    used_calls: u32,
    /// The first calls, by tool and arguments, that are not reversible and must not be made again.
    effects: HashMap<Digest, CallId>,
    /// The calls whose approval expired.
    expired: HashSet<Digest>,
    found_tools: Vec<ToolName>,
    environment: Option<String>,
    /// The first call of each tool that does not exist or is not configured.
    missing_tools: Vec<Entry>,
    rejection: Rejection,
    untrusted: UntrustedContent,
}

impl History {
    /// Takes an entry of a turn that has ended, in order, and the untrusted content that it returned. It never
    /// fails: the calls have checked the events that the entry was made of.
    pub(super) fn apply(&mut self, turn: Turn, entry: &Entry, untrusted: Option<&Value>) {
        self.counts.add(entry);
        self.used_calls += u32::from(entry.is_used());
        add_found_tools(&mut self.found_tools, entry);
        self.add_missing_tool(entry);
        self.rejection.add(entry);
        if let Some(content) = untrusted {
            self.untrusted.add(turn, content);
        }
        let Entry::Call {
            record,
            decision,
            progress,
            ..
        } = entry
        else {
            return;
        };
        if self.environment.is_none() {
            let environment = decision.as_deref().and_then(Decision::environment);
            self.environment = environment.map(str::to_owned);
        }
        if has_expired(record) {
            let digest = Digest::of_call(record.tool_name(), record.arguments());
            self.expired.insert(digest);
        }
        if entry.risk() != RiskLevel::Reversible && !entry.may_be_requested_again() {
            let requested = progress.before_edit().unwrap_or(record.arguments());
            let digest = Digest::of_call(record.tool_name(), requested);
            let first = self.effects.entry(digest);
            first.or_insert_with(|| record.id().clone());
        }
    }

    fn add_missing_tool(&mut self, entry: &Entry) {
        let known = &mut self.missing_tools;
        if let Some(name) = missing_tool(entry)
            && known.len() < MAX_MISSING_TOOLS
            && !known.iter().any(|known| missing_tool(known) == Some(name))
        {
            known.push(entry.clone());
        }
    }

    /// The first call of each tool that does not exist or is not configured.
    pub(super) fn missing_tools(&self) -> &[Entry] {
        &self.missing_tools
    }

    /// The rejected call that no later call has made up for.
    pub(super) fn rejection(&self) -> &Rejection {
        &self.rejection
    }

    /// How many calls have run.
    pub(super) fn used_calls(&self) -> u32 {
        self.used_calls
    }

    pub(super) fn counts(&self) -> &CallCounts {
        &self.counts
    }

    /// The earlier call of that tool with these arguments, if it must not be made again.
    pub(super) fn effect_of(
        &self,
        tool: &ToolName,
        arguments: &Map<String, Value>,
    ) -> Option<&CallId> {
        if self.effects.is_empty() {
            return None;
        }
        self.effects.get(&Digest::of_call(tool, arguments))
    }

    /// Whether the approval of such a call has expired.
    pub(super) fn has_expired(&self, record: &CallRecord) -> bool {
        let digest = || Digest::of_call(record.tool_name(), record.arguments());
        !self.expired.is_empty() && self.expired.contains(&digest())
    }

    /// The tools that searches have found, in order.
    pub(super) fn found_tools(&self) -> &[ToolName] {
        &self.found_tools
    }

    /// The environment that the first decision records.
    pub(super) fn environment(&self) -> Option<&str> {
        self.environment.as_deref()
    }

    pub(super) fn untrusted(&self) -> &UntrustedContent {
        &self.untrusted
    }
}

#[cfg(test)]
mod tests;

/// The latest call that an approver rejected, until a call of a later turn succeeds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rejection {
    /// The turn of the call, and what became of it.
    rejected: Option<(Turn, String)>,
}

impl Rejection {
    /// Adds the next entry, in order.
    pub(super) fn add(&mut self, entry: &Entry) {
        let Some(call) = entry.call() else {
            return;
        };
        let turn = call.id().turn;
        // A sub-agent fails like this if a call of its own was rejected.
        let is_sub_agent = entry.kind() == Some(CallKind::SubAgent);
        match call.outcome() {
            Some(Ok(_)) if self.rejected.as_ref().is_some_and(|(of, _)| *of < turn) => {
                self.rejected = None;
            }
            Some(Err(failure))
                if failure.category == ErrorCategory::Rejected
                    && (!call.was_permitted() || is_sub_agent) =>
            {
                let name = call.tool_name();
                let message = match is_sub_agent {
                    true => format!("`{name}` did not do its task: {}", failure.operator_message),
                    false => format!("`{name}` was not made: {}", failure.operator_message),
                };
                self.rejected = Some((turn, message));
            }
            _ => {}
        }
    }

    pub(super) fn message(self) -> Option<String> {
        self.rejected.map(|(_, message)| message)
    }
}

/// The counts of calls that policies see.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct CallCounts {
    /// Without the count of one tool.
    session: Session,
    by_tool: BTreeMap<ToolName, u32>,
}

impl CallCounts {
    /// Counts one more entry.
    pub(super) fn add(&mut self, entry: &Entry) {
        let Entry::Call {
            record,
            specification,
            decision: Some(decision),
            ..
        } = entry
        else {
            return;
        };
        let session = &mut self.session;
        if decision.verdict() == Verdict::Deny {
            session.denied_calls += 1;
            return;
        }
        // A call that was rejected, undone or expired has not run and will not.
        if !record.was_permitted() && record.state() != CallState::Pending {
            return;
        }
        session.calls += 1;
        session.irreversible_calls += u32::from(entry.risk() == RiskLevel::Irreversible);
        let is_sensitive = specification.attributes().sensitive == Some(true);
        session.sensitive_read |= is_sensitive && matches!(record.outcome(), Some(Ok(_)));
        match self.by_tool.get_mut(record.tool_name()) {
            Some(count) => *count += 1,
            None => drop(self.by_tool.insert(record.tool_name().clone(), 1)),
        }
    }

    /// What a call of that tool sees, if these calls were made before it, and `later` after them.
    pub(super) fn session(&self, tool: &ToolName, later: &Self) -> Session {
        let of_tool = |counts: &Self| counts.by_tool.get(tool).copied().unwrap_or(0);
        let (ended, open) = (self.session, later.session);
        Session {
            calls: ended.calls + open.calls,
            tool_calls: of_tool(self) + of_tool(later),
            irreversible_calls: ended.irreversible_calls + open.irreversible_calls,
            denied_calls: ended.denied_calls + open.denied_calls,
            sensitive_read: ended.sensitive_read || open.sensitive_read,
        }
    }
}

/// The name of the tool that a call could not use because it does not exist or is not configured.
pub(super) fn missing_tool(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Mistake {
            mistake: Mistake::UnknownTool { name, .. },
            ..
        } => Some(name),
        Entry::Call { record, .. } if record.was_permitted() => {
            let failure = record.outcome()?.err()?;
            let is_unknown = failure.category == ErrorCategory::UnknownTool;
            is_unknown.then(|| record.tool_name().as_str())
        }
        _ => None,
    }
}

/// Whether the approval of a call has expired.
pub(super) fn has_expired(record: &CallRecord) -> bool {
    matches!(record.outcome(), Some(Err(failure)) if failure.category == ErrorCategory::Expired)
}

/// Adds the tools that a search found, each once.
pub(super) fn add_found_tools(names: &mut Vec<ToolName>, entry: &Entry) {
    if entry.kind() != Some(CallKind::ToolSearch) {
        return;
    }
    let outcome = entry.call().and_then(CallRecord::outcome);
    let found = outcome.and_then(Result::ok).and_then(Value::as_array);
    let found = found.into_iter().flatten();
    for name in found.filter_map(|tool| tool.get("name")?.as_str()) {
        if let Ok(name) = ToolName::new(name)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
}
