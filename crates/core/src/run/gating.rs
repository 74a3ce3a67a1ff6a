//! A run at the gate: what the gate is told of it, and what it decides about a call.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use serde_json::Value;
use windlass_policy::{Request, Session};
use windlass_spec::registry::Permission;
use windlass_spec::{
    CallId, CallRecord, CallState, ErrorCategory, Failure, RiskLevel, Timestamp, ToolSpecification,
};

use super::calls::with_set;
use super::outcome::FoldError;
use super::progress::Reply;
use super::{CallKind, Entry, PlanState, Run};
use crate::approval::{Identity, StandingCall};
use crate::gate::{
    self, Covered, DEFAULT_ENVIRONMENT, Decision, GateContext, Permit, PermitError, Rules, Verdict,
};
use crate::limits::Readiness;
use crate::model::ChatMessage;
use crate::risk::ToolRisk;

/// Shorter texts are found in anything.
const LEAST_MARKED: usize = 4;

impl Run {
    /// What the gate decides about a call now. The same run gets the same decision about it, also
    /// when other calls were made since.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn decide(
        &self,
        call: &CallId,
        principal: &Identity,
        rules: &Rules,
        readiness: &Readiness,
    ) -> Result<Decision, FoldError> {
        let (record, earlier) = self.call(call)?;
        let tool = self.declared(call)?;
        // What the operator sets is set once: a person may have agreed to the call since.
        let set = match earlier {
            None => self.set_by_operator(record, rules),
            Some(_) => BTreeMap::new(),
        };
        let decision = match set.is_empty() {
            true => self.decide_about(record, tool, principal, rules, readiness),
            false => {
                let record = with_set(record, &set);
                self.decide_about(&record, tool, principal, rules, readiness)
                    .setting(set)
            }
        };
        let window = rules.undo_window(Some(tool));
        // Leave that was given for exactly this call, or was used by it before. A standing one may
        // have been taken back since.
        let covered = earlier.and_then(Decision::covered_by).cloned();
        let covered = covered.filter(|by| matches!(by, Covered::Request(_)));
        let covered = covered.or_else(|| {
            let (digest, level) = (decision.digest(), decision.security_level());
            let granted = self.grants.covering(digest, level)?;
            Some(Covered::Request(granted.clone()))
        });
        Ok(match covered {
            Some(by) => decision.covered(by, window),
            None => decision,
        })
    }

    /// What the gate decides about a call of a tool, also one that was not made.
    pub(super) fn decide_about(
        &self,
        record: &CallRecord,
        tool: &ToolSpecification,
        principal: &Identity,
        rules: &Rules,
        readiness: &Readiness,
    ) -> Decision {
        self.at_position(record, tool, principal, readiness, |context| {
            gate::decide(record, context, rules)
        })
    }

    /// The arguments that a call leaves out and the operator sets.
    fn set_by_operator(&self, record: &CallRecord, rules: &Rules) -> BTreeMap<String, Value> {
        let set = rules.parameters(record.tool_name().as_str());
        let is_left_out = |(name, _): &(&String, &Value)| !record.arguments().contains_key(*name);
        set.into_iter()
            .flatten()
            .filter(is_left_out)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// What the run holds that its calls may be made with.
    #[must_use]
    pub fn held(&self, principal: &Identity, rules: &Rules) -> BTreeSet<Permission> {
        rules.held(principal, self.agent().name(), self.inherited.as_ref())
    }

    /// The same decision if a standing approval covers the call.
    #[must_use]
    pub fn decide_with_standing(
        &self,
        call: &CallId,
        decision: Decision,
        standing: i64,
        rules: &Rules,
    ) -> Decision {
        let window = rules.undo_window(self.declared(call).ok());
        decision.covered(Covered::Standing(standing), window)
    }

    /// The call as standing approvals are asked about it. `None` if there is no such call, or nobody
    /// would be asked about it.
    #[must_use]
    pub fn standing_call<'r>(
        &'r self,
        call: &'r CallId,
        decision: &Decision,
        principal: &'r Identity,
        at: Timestamp,
    ) -> Option<StandingCall<'r>> {
        let (record, _) = self.call(call).ok()?;
        (decision.verdict() == Verdict::Ask).then_some(())?;
        Some(StandingCall {
            principal,
            run: &self.id,
            tool: record.tool_name(),
            digest: decision.digest()?,
            risk: decision.risk_level()?,
            security_level: decision.security_level(),
            at,
        })
    }

    /// Whether a decision asks for more than an earlier one about the same call, given what people
    /// have said since.
    #[must_use]
    pub fn is_stricter(&self, call: &CallId, earlier: &Decision, decision: &Decision) -> bool {
        match self.entry(call) {
            Ok(Entry::Call { progress, .. }) => progress.is_stricter(earlier, decision),
            _ => decision.verdict() > earlier.verdict(),
        }
    }

    /// A call as the policies saw it, or would have: for holding other policies against it. What was
    /// not recorded is found anew.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn policy_request(
        &self,
        call: &CallId,
        principal: &Identity,
    ) -> Result<Request<'static>, FoldError> {
        let (record, decision) = self.call(call)?;
        let tool = self.declared(call)?;
        let recorded = decision.and_then(Decision::risk_level);
        let risk = recorded.unwrap_or_else(|| {
            let risk = ToolRisk::of_specification(tool);
            risk.with_arguments(record.arguments()).level
        });
        let environment = decision.and_then(Decision::environment);
        let environment = environment.unwrap_or(DEFAULT_ENVIRONMENT);
        Ok(
            self.at_position(record, tool, principal, &Readiness::Ready, |context| {
                gate::request(record, context, environment, risk).into_owned()
            }),
        )
    }

    /// The permit to run a call whose start has been applied: each gets one.
    ///
    /// # Errors
    /// If the call is not about to run, or had its permit.
    pub fn permit(&mut self, call: &CallId) -> Result<Permit, PermitError> {
        self.calls.permit(call)
    }

    /// The outcome of the form that a call wanted filled in when it last ran, for the process that resumes
    /// it.
    pub fn take_reply(&mut self, call: &CallId) -> Option<Reply> {
        self.calls.take_reply(call)
    }

    /// What is declared of the tool of a call.
    fn declared(&self, call: &CallId) -> Result<&ToolSpecification, FoldError> {
        match self.entry(call)? {
            Entry::Call { specification, .. } => Ok(specification),
            _ => Err(FoldError::UnknownCall(call.clone())),
        }
    }

    /// Tells what the gate knows of the run when it decides about a call: what came before the call,
    /// not what has happened since.
    fn at_position<T>(
        &self,
        record: &CallRecord,
        tool: &ToolSpecification,
        principal: &Identity,
        readiness: &Readiness,
        take: impl FnOnce(&GateContext<'_>) -> T,
    ) -> T {
        let session = self.session(record);
        let marked = self.marked(record);
        let of_others = self.allowance.calls_of_others_before(record.id().turn);
        let context = GateContext {
            agent: self.agent().name(),
            principal,
            specification: Some(tool),
            inherited: self.inherited.as_ref(),
            readiness,
            calls_allowed: session.calls.saturating_add(of_others),
            max_calls: self.settings().max_calls,
            session,
            is_tainted: self.is_tainted_before(record),
            marked: &marked,
        };
        take(&context)
    }

    /// Whether something was read from outside before a call was asked for, by this run or by whoever
    /// set its task.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn is_tainted_at(&self, call: &CallId) -> Result<bool, FoldError> {
        let (record, _) = self.call(call)?;
        Ok(self.is_tainted_before(record))
    }

    fn is_tainted_before(&self, record: &CallRecord) -> bool {
        self.task.tainted || self.read_from_outside(record).next().is_some()
    }

    /// Whether anything was read from outside, by this run or by whoever set its task.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        let mut entries = self.calls.entries();
        self.task.tainted || entries.any(|entry| self.brought_from_outside(entry).is_some())
    }

    /// What the run did before a call.
    fn session(&self, record: &CallRecord) -> Session {
        let mut session = Session::default();
        for entry in self.calls.entries_before(record.id()) {
            let Entry::Call {
                record: earlier,
                specification: tool,
                decision: Some(decision),
                ..
            } = entry
            else {
                continue;
            };
            if decision.verdict() == Verdict::Deny {
                session.denied_calls += 1;
                continue;
            }
            // What was rejected, undone or too late has not run and will not.
            if !earlier.was_permitted() && earlier.state() != CallState::Pending {
                continue;
            }
            session.calls += 1;
            session.tool_calls += u32::from(earlier.tool_name() == record.tool_name());
            let is_irreversible = entry.risk() == RiskLevel::Irreversible;
            session.irreversible_calls += u32::from(is_irreversible);
            let is_sensitive = tool.attributes().sensitive == Some(true);
            session.sensitive_read |= is_sensitive && matches!(earlier.outcome(), Some(Ok(_)));
        }
        session
    }

    /// What was read from outside before a call was asked for. What comes back in the same turn
    /// cannot have led to it. What a tool tells of its own failure is read like a result.
    fn read_from_outside(&self, record: &CallRecord) -> impl Iterator<Item = Cow<'_, Value>> {
        let turn = record.id().turn;
        self.turns()
            .iter()
            .take_while(move |earlier| earlier.turn < turn)
            .flat_map(|earlier| &earlier.entries)
            .filter_map(|entry| self.brought_from_outside(entry))
    }

    /// What a call brought in from outside, if it did.
    fn brought_from_outside<'r>(&'r self, entry: &'r Entry) -> Option<Cow<'r, Value>> {
        let Entry::Call {
            kind,
            specification: tool,
            record,
            progress,
            ..
        } = entry
        else {
            return None;
        };
        let is_from_outside = progress.is_from_outside()
            || tool.attributes().open_world == Some(true)
            || matches!(kind, CallKind::Plan(_)) && self.is_plan_tainted(record);
        if !is_from_outside {
            return None;
        }
        match record.outcome()? {
            Ok(result) => Some(Cow::Borrowed(result)),
            Err(failure) => tells_of_outside(record, failure)
                .then(|| Cow::Owned(Value::String(failure.model_message.clone()))),
        }
    }

    /// Whether the plan that a call is about has results from outside.
    fn is_plan_tainted(&self, record: &CallRecord) -> bool {
        let name = record.arguments().get("plan_id").and_then(Value::as_str);
        let plan = self.plan(record.id()).or_else(|| self.plan_named(name));
        plan.is_some_and(PlanState::is_tainted)
    }

    /// The arguments of a call that occur in what was read from outside, and not in what people said.
    fn marked(&self, record: &CallRecord) -> Vec<String> {
        let mut outside = String::new();
        for result in self.read_from_outside(record) {
            texts(&result, &mut |text| {
                outside.push_str(text);
                outside.push('\n');
            });
        }
        if outside.is_empty() {
            return Vec::new();
        }
        let said_before = self
            .task
            .conversation
            .iter()
            .filter_map(|message| match message {
                ChatMessage::User { content } => Some(content.as_str()),
                _ => None,
            });
        let said: Vec<&str> = said_before
            .chain([self.task.description.as_str()])
            .collect();
        let comes_from_outside = |text: &str| {
            text.len() >= LEAST_MARKED
                && memmem::find(outside.as_bytes(), text.as_bytes()).is_some()
                && !said.iter().any(|said| said.contains(text))
        };
        let is_marked = |value: &Value| {
            let mut found = false;
            texts(value, &mut |text| found |= comes_from_outside(text.trim()));
            found
        };
        record
            .arguments()
            .iter()
            .filter(|(_, value)| is_marked(value))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// Whether the model was told of a failure in words that may come from outside: those of a tool that
/// failed, whatever kind of failure it says that was. What the model hears instead of foreign words says
/// nothing but the category, and what never ran or was stopped from here brought nothing.
fn tells_of_outside(record: &CallRecord, failure: &Failure) -> bool {
    let plain = Failure::foreign(failure.category, failure.effect, "").model_message;
    let is_told = record.was_permitted()
        && record.state() == CallState::Error
        && failure.model_message != plain;
    is_told || failure.category == ErrorCategory::ToolFailure
}

/// All texts and numbers in a value.
fn texts(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Number(number) => take(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, take)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, take)),
        Value::Null | Value::Bool(_) => {}
    }
}
