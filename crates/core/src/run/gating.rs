//! Passes the calls of a run to the gate: builds the context of a call and returns the decision about
//! it.

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
use super::progress::FormReply;
use super::{CallKind, Entry, PlanState, Run};
use crate::approval::{Identity, StandingCall};
use crate::gate::{
    self, DEFAULT_ENVIRONMENT, Decision, GateContext, Permit, PermitError, PriorApproval, Rules,
    Verdict,
};
use crate::limits::Readiness;
use crate::model::ChatMessage;
use crate::risk::ToolRisk;

/// The shortest text that can count as tainted. Shorter ones occur by chance.
const MIN_TAINTED_LENGTH: usize = 4;

impl Run {
    /// Returns the gate's decision about a call now. It depends only on what came before the call, so
    /// later calls do not change it.
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
        // Operator arguments are set once: an approver may have approved the call since.
        let set = match earlier {
            None => self.operator_arguments(record, rules),
            Some(_) => BTreeMap::new(),
        };
        let decision = match set.is_empty() {
            true => self.decide_about(record, tool, principal, rules, readiness),
            false => {
                let record = with_set(record, &set);
                self.decide_about(&record, tool, principal, rules, readiness)
                    .with_operator_arguments(set)
            }
        };
        let window = rules.undo_window(Some(tool));
        // An authorization for exactly this call, or one that it used before. A standing approval may
        // have been revoked since.
        let covered = earlier.and_then(Decision::covered_by).cloned();
        let covered = covered.filter(|by| matches!(by, PriorApproval::Request(_)));
        let covered = covered.or_else(|| {
            let (digest, level) = (decision.digest(), decision.security_level());
            let granted = self.grants.covering(digest, level)?;
            Some(PriorApproval::Request(granted.clone()))
        });
        Ok(match covered {
            Some(by) => decision.with_prior_approval(by, window),
            None => decision,
        })
    }

    /// Returns the gate's decision about a call of a tool, including one that was not made.
    pub(super) fn decide_about(
        &self,
        record: &CallRecord,
        tool: &ToolSpecification,
        principal: &Identity,
        rules: &Rules,
        readiness: &Readiness,
    ) -> Decision {
        self.with_gate_context(record, tool, principal, readiness, |context| {
            gate::decide(record, context, rules)
        })
    }

    /// The arguments that the call omits and the operator sets.
    fn operator_arguments(&self, record: &CallRecord, rules: &Rules) -> BTreeMap<String, Value> {
        let set = rules.parameters(record.tool_name().as_str());
        let is_left_out = |(name, _): &(&String, &Value)| !record.arguments().contains_key(*name);
        set.into_iter()
            .flatten()
            .filter(is_left_out)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The permissions that calls of the run may use.
    #[must_use]
    pub fn permissions(&self, principal: &Identity, rules: &Rules) -> BTreeSet<Permission> {
        rules.permissions(principal, self.agent().name(), self.inherited.as_ref())
    }

    /// The same decision, given that a standing approval covers the call.
    #[must_use]
    pub fn decide_with_standing(
        &self,
        call: &CallId,
        decision: Decision,
        standing: i64,
        rules: &Rules,
    ) -> Decision {
        let window = rules.undo_window(self.declared(call).ok());
        decision.with_prior_approval(PriorApproval::Standing(standing), window)
    }

    /// The call as standing approvals are matched against it. `None` if there is no such call, or it
    /// needs no approval.
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

    /// Whether a decision is stricter than an earlier one about the same call, given the approvals
    /// since.
    #[must_use]
    pub fn is_stricter(&self, call: &CallId, earlier: &Decision, decision: &Decision) -> bool {
        match self.entry(call) {
            Ok(Entry::Call { progress, .. }) => progress.is_stricter(earlier, decision),
            _ => decision.verdict() > earlier.verdict(),
        }
    }

    /// A call as the policies saw it, or would have seen it, for comparing other policies. What was not
    /// recorded is determined again.
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
            self.with_gate_context(record, tool, principal, &Readiness::Ready, |context| {
                gate::request(record, context, environment, risk).into_owned()
            }),
        )
    }

    /// Issues the permit to run a call whose start is applied; once for each call.
    ///
    /// # Errors
    /// If the call is not about to run, or already has its permit.
    pub fn permit(&mut self, call: &CallId) -> Result<Permit, PermitError> {
        self.calls.permit(call)
    }

    /// The reply to the form that a call asked for when it last ran, for the process that resumes it.
    pub fn take_reply(&mut self, call: &CallId) -> Option<FormReply> {
        self.calls.take_reply(call)
    }

    /// The specification of the tool of a call.
    fn declared(&self, call: &CallId) -> Result<&ToolSpecification, FoldError> {
        match self.entry(call)? {
            Entry::Call { specification, .. } => Ok(specification),
            _ => Err(FoldError::UnknownCall(call.clone())),
        }
    }

    /// Passes `receive` the context in which the gate decides about a call: what came before the call, not
    /// what happened since.
    fn with_gate_context<T>(
        &self,
        record: &CallRecord,
        tool: &ToolSpecification,
        principal: &Identity,
        readiness: &Readiness,
        receive: impl FnOnce(&GateContext<'_>) -> T,
    ) -> T {
        let session = self.session(record);
        let tainted_arguments = self.tainted_arguments(record);
        let other_calls = self.allowance.calls_of_others_before(record.id().turn);
        let context = GateContext {
            agent: self.agent().name(),
            principal,
            specification: Some(tool),
            inherited: self.inherited.as_ref(),
            readiness,
            calls_allowed: session.calls.saturating_add(other_calls),
            max_calls: self.settings().max_calls,
            session,
            is_tainted: self.is_tainted_before(record),
            tainted_arguments: &tainted_arguments,
        };
        receive(&context)
    }

    /// Whether untrusted content was read before a call was requested, by this run or by the one that
    /// set its task.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn is_tainted_at(&self, call: &CallId) -> Result<bool, FoldError> {
        let (record, _) = self.call(call)?;
        Ok(self.is_tainted_before(record))
    }

    fn is_tainted_before(&self, record: &CallRecord) -> bool {
        self.task.tainted || self.untrusted_before(record).next().is_some()
    }

    /// Whether any untrusted content was read, by this run or by the one that set its task.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        let mut entries = self.calls.entries();
        self.task.tainted || entries.any(|entry| self.untrusted_content(entry).is_some())
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
            // A call that was rejected, undone or expired has not run and will not.
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

    /// The untrusted content read before a call was requested. Results of the same turn cannot have led
    /// to it. The error message of a tool counts like a result.
    fn untrusted_before(&self, record: &CallRecord) -> impl Iterator<Item = Cow<'_, Value>> {
        let turn = record.id().turn;
        self.turns()
            .iter()
            .take_while(move |earlier| earlier.turn < turn)
            .flat_map(|earlier| &earlier.entries)
            .filter_map(|entry| self.untrusted_content(entry))
    }

    /// The untrusted content that a call returned, if any.
    fn untrusted_content<'r>(&'r self, entry: &'r Entry) -> Option<Cow<'r, Value>> {
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
            Err(failure) => has_untrusted_message(record, failure)
                .then(|| Cow::Owned(Value::String(failure.model_message.clone()))),
        }
    }

    /// Whether the plan that a call refers to has untrusted results.
    fn is_plan_tainted(&self, record: &CallRecord) -> bool {
        let name = record.arguments().get("plan_id").and_then(Value::as_str);
        let plan = self.plan(record.id()).or_else(|| self.plan_named(name));
        plan.is_some_and(PlanState::is_tainted)
    }

    /// The arguments of a call that occur in untrusted content and not in what the user wrote.
    fn tainted_arguments(&self, record: &CallRecord) -> Vec<String> {
        let mut untrusted = String::new();
        for result in self.untrusted_before(record) {
            visit_texts(&result, &mut |text| {
                untrusted.push_str(text);
                untrusted.push('\n');
            });
        }
        if untrusted.is_empty() {
            return Vec::new();
        }
        let earlier_messages = self
            .task
            .conversation
            .iter()
            .filter_map(|message| match message {
                ChatMessage::User { content } => Some(content.as_str()),
                _ => None,
            });
        let user_texts: Vec<&str> = earlier_messages
            .chain([self.task.description.as_str()])
            .collect();
        let is_tainted_text = |text: &str| {
            text.len() >= MIN_TAINTED_LENGTH
                && memmem::find(untrusted.as_bytes(), text.as_bytes()).is_some()
                && !user_texts.iter().any(|written| written.contains(text))
        };
        let is_tainted_value = |value: &Value| {
            let mut found = false;
            visit_texts(value, &mut |text| found |= is_tainted_text(text.trim()));
            found
        };
        record
            .arguments()
            .iter()
            .filter(|(_, value)| is_tainted_value(value))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// Whether the model was shown an error message that may contain untrusted content: that of a tool that
/// failed. A generic message states only the category, and a call that never ran or was stopped by the
/// runtime returned nothing.
fn has_untrusted_message(record: &CallRecord, failure: &Failure) -> bool {
    let plain = Failure::foreign(failure.category, failure.effect, "").model_message;
    let is_shown = record.was_permitted()
        && record.state() == CallState::Error
        && failure.model_message != plain;
    is_shown || failure.category == ErrorCategory::ToolFailure
}

/// Calls `receive` with all visit_texts and numbers in a value.
fn visit_texts(value: &Value, receive: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => receive(text),
        Value::Number(number) => receive(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, receive)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| visit_texts(field, receive)),
        Value::Null | Value::Bool(_) => {}
    }
}
