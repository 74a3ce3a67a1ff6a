//! Passes the calls of a run to the gate: builds the context of a call and returns the decision about
//! it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_policy::{Request, Session};
use windlass_spec::registry::Permission;
use windlass_spec::{
    CallId, CallRecord, CallState, ErrorCategory, Failure, Timestamp, ToolName, ToolSpecification,
};

use super::calls::{TurnState, with_set};
use super::event::CallEnd;
use super::history::CallCounts;
use super::outcome::FoldError;
use super::progress::{ApprovalProof, FormReply};
use super::untrusted::{UntrustedContent, visit_content};
use super::{CallKind, Entry, PlanState, Run};
use crate::approval::{StandingCall, TenantPrincipal};
use crate::durable::CallEvidence;
use crate::gate::{
    self, DEFAULT_ENVIRONMENT, Decision, GateContext, OtherCall, Permit, PermitError,
    PriorApproval, Rules, Verdict,
};
use crate::limits::Readiness;
use crate::model::ChatMessage;
use crate::risk::ToolRisk;

impl Run {
    /// Returns the gate's decision about a call now. It depends only on what came before the call, so
    /// later calls do not change it.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn decide(
        &self,
        call: &CallId,
        principal: &TenantPrincipal,
        rules: &Rules,
        readiness: &Readiness,
    ) -> Result<Decision, FoldError> {
        let (record, earlier) = self.call(call)?;
        let tool = self.declared(call)?;
        if earlier.is_some_and(|earlier| earlier.verdict() != Verdict::Deny)
            && let Err(other) = OtherCall::check(record, self.entry(call)?.authorized_digest())
        {
            return Ok(Decision::deny_unauthorized(other.to_string()));
        }
        // Operator arguments are set once: an approver may have approved the call since.
        let set = match earlier {
            None => self.operator_arguments(record, rules),
            Some(_) => BTreeMap::new(),
        };
        let decision = match set.is_empty() {
            true => {
                let decision = self.decide_about(record, tool, principal, rules, readiness);
                self.decide_in_doubt(record, decision)
            }
            false => {
                let record = with_set(record, &set);
                let decision = self.decide_about(&record, tool, principal, rules, readiness);
                self.decide_in_doubt(&record, decision)
                    .with_operator_arguments(set)
            }
        };
        if earlier.is_none() && self.repeats_in_turn(record, &decision) {
            return Ok(Decision::deny_repetition());
        }
        let window = rules.undo_window(Some(tool));
        // An authorization for exactly this call, or one that it used before. A standing approval may
        // have been revoked since.
        let covered = earlier.and_then(Decision::covered_by).cloned();
        let covered = covered.filter(|by| matches!(by, PriorApproval::Request(_)));
        let covered = covered.or_else(|| {
            let (digest, level) = (decision.digest(), decision.security_level());
            let granted = self.grants.covering(digest, level, decision.terms())?;
            Some(PriorApproval::Request(granted.clone()))
        });
        Ok(match covered {
            Some(by) => decision.with_prior_approval(by, window),
            None => decision,
        })
    }

    /// Returns the call whose approval or hold authorizes a call: itself if it was approved or held, or
    /// the call that requested the authorization in advance. `None` if the gate allowed it without a
    /// person.
    #[must_use]
    pub fn authorized_by(&self, call: &CallId) -> Option<CallId> {
        let (_, decision) = self.call(call).ok()?;
        let decision = decision?;
        if self.calls.proof(call).is_some() {
            return Some(call.clone());
        }
        match (decision.verdict(), decision.covered_by()) {
            (Verdict::Ask | Verdict::Hold, _) => Some(call.clone()),
            (Verdict::Allow, Some(PriorApproval::Request(requested))) => Some(requested.clone()),
            (Verdict::Allow | Verdict::Deny, _) => None,
        }
    }

    /// Compares a call that is about to start with what the store knows about it. `authorized` is the
    /// evidence about the call that authorizes it ([`Run::authorized_by`]). Returns the decision that
    /// refuses the call if the journal says something else.
    ///
    /// # Errors
    /// If there is no such call.
    pub fn contradiction(
        &self,
        call: &CallId,
        own: CallEvidence,
        authorized: Option<CallEvidence>,
    ) -> Result<Option<Decision>, FoldError> {
        let (record, _) = self.call(call)?;
        if own.has_run && record.state() == CallState::Pending {
            let reason = format!(
                "the call {call} has run before and its journal does not say so; it does not run again"
            );
            return Ok(Some(Decision::deny_unauthorized(reason)));
        }
        if let Some(reason) = authorized
            .as_ref()
            .and_then(|found| found.unproven.as_ref())
        {
            let reason = format!("the approval of the call {call} does not count: {reason}");
            return Ok(Some(Decision::deny_unauthorized(reason)));
        }
        let other = authorized.and_then(|evidence| {
            let checked = OtherCall::check(record, evidence.authorized);
            checked.err()
        });
        Ok(other.map(|other| Decision::deny_unauthorized(other.to_string())))
    }

    /// Returns the gate's decision about a call of a tool, including one that was not made.
    pub(super) fn decide_about(
        &self,
        record: &CallRecord,
        tool: &ToolSpecification,
        principal: &TenantPrincipal,
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
    pub fn permissions(&self, principal: &TenantPrincipal, rules: &Rules) -> BTreeSet<Permission> {
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
        principal: &'r TenantPrincipal,
        at: Timestamp,
    ) -> Option<StandingCall<'r>> {
        let (record, _) = self.call(call).ok()?;
        // A standing approval was given without knowing of an earlier attempt, and by one approver.
        let can_cover = decision.terms().groups.is_empty() && !self.is_doubtful(record);
        (decision.verdict() == Verdict::Ask && can_cover).then_some(())?;
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
        principal: &TenantPrincipal,
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

    /// The approval that the tool of a call asked for, if it is given. The call is made again with its proof.
    #[must_use]
    pub fn approval_proof(&self, call: &CallId) -> Option<&ApprovalProof> {
        self.calls.proof(call)
    }

    /// How a running call ends now that a person answered the question of its tool.
    #[must_use]
    pub fn answered_end(&self, call: &CallId) -> Option<&CallEnd> {
        self.calls.answered_end(call)
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
        principal: &TenantPrincipal,
        readiness: &Readiness,
        receive: impl FnOnce(&GateContext<'_>) -> T,
    ) -> T {
        let own = self.session(record);
        let session = match &self.task.outside {
            Some(outside) => outside.session_with(own),
            None => own,
        };
        let tainted_arguments = self.tainted_arguments(record);
        let other_calls = self.allowance.calls_of_others_before(record.id().turn);
        let context = GateContext {
            agent: self.agent().name(),
            principal,
            specification: Some(tool),
            inherited: self.inherited.as_ref(),
            readiness,
            calls_allowed: own.calls.saturating_add(other_calls),
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
        let turn = record.id().turn;
        let first = self.history.untrusted().first();
        self.is_task_tainted()
            || first.is_some_and(|first| first < turn)
            || self
                .untrusted_between(self.calls.open_turns(), record)
                .next()
                .is_some()
    }

    /// Whether any untrusted content was read, by this run or by the one that set its task.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        let mut open = self.calls.open_entries();
        self.is_task_tainted()
            || self.history.untrusted().first().is_some()
            || open.any(|entry| self.untrusted_content(entry).is_some())
    }

    /// Whether the task is based on untrusted content, or comes after results with such content.
    fn is_task_tainted(&self) -> bool {
        self.task.tainted || self.task.untrusted_results().next().is_some()
    }

    /// What the run did before a call.
    fn session(&self, record: &CallRecord) -> Session {
        // A call of a turn that has ended is looked at again only when its run is read back.
        let (nothing, has_ended) = (CallCounts::default(), self.calls.has_ended(record.id()));
        let (ended, count) = match has_ended {
            true => (&nothing, 0),
            false => (self.history.counts(), self.calls.ended_turns()),
        };
        let mut later = CallCounts::default();
        for entry in self.calls.entries_between(count, record.id()) {
            later.add(entry);
        }
        ended.session(record.tool_name(), &later)
    }

    /// What the run did, as the policies would see it before another call of a tool.
    #[must_use]
    pub fn session_after(&self, tool: &ToolName) -> Session {
        let mut open = CallCounts::default();
        for entry in self.calls.open_entries() {
            open.add(entry);
        }
        self.history.counts().session(tool, &open)
    }

    /// The untrusted content of these turns, as far as it was read before a call was requested. Results of the
    /// same turn cannot have led to it. The error message of a tool counts like a result.
    fn untrusted_between<'r>(
        &'r self,
        turns: &'r [TurnState],
        record: &CallRecord,
    ) -> impl Iterator<Item = Cow<'r, Value>> {
        let turn = record.id().turn;
        turns
            .iter()
            .take_while(move |earlier| earlier.turn < turn)
            .flat_map(|earlier| &earlier.entries)
            .filter_map(|entry| self.untrusted_content(entry))
    }

    /// The untrusted content that a call returned, if any.
    pub(super) fn untrusted_content<'r>(&'r self, entry: &'r Entry) -> Option<Cow<'r, Value>> {
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
        // A call of a turn that has ended is looked at again only when its run is read back.
        let nothing = UntrustedContent::default();
        let (ended, turns) = match self.calls.has_ended(record.id()) {
            true => (&nothing, self.turns()),
            false => (self.history.untrusted(), self.calls.open_turns()),
        };
        let mut newer = String::new();
        for result in self.untrusted_between(turns, record) {
            visit_content(&result, &mut |text| {
                newer.push_str(text);
                newer.push('\n');
            });
        }
        for result in self.task.untrusted_results() {
            newer.push_str(result);
            newer.push('\n');
        }
        if newer.is_empty() && ended.first().is_none() {
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
        record
            .arguments()
            .iter()
            .filter(|(_, value)| ended.taints(value, &newer, &user_texts))
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
