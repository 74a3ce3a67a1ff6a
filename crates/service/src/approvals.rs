//! Approvals: the questions of agents to people, and the decisions of people. All front ends decide with the
//! same operation.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    self, Approval, ApprovalStatus, Ask, Authorize, Digest, PersonDecision, Principal, Question,
    Reach, StandingApproval, least_security_level,
};
use windlass_core::risk::{Assessment, ToolRisk};
use windlass_core::run::Run;
use windlass_spec::number::{read_json, read_json_or_text};
use windlass_spec::{
    CallId, NonEmptyText, RiskLevel, RunId, SecurityLevel, Timestamp, ToolResponse,
    ToolSpecification,
};
use windlass_store::{ApprovalFilter, Error, NewDecision, StandingId, Store};

use crate::call_ids::{Candidate, Sought, pick};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::outermost::is_part_of;
use crate::service::Service;

/// Which approvals are listed.
///
/// To list page by page, set `limit`, and for the next page `after` to the [`QuestionId`] of the last one of
/// the page.
#[derive(Debug, Clone, Default)]
pub struct ApprovalQuery {
    /// Only those with that status.
    pub status: Option<ApprovalStatus>,
    /// Only those of the run with this id and its sub-agents.
    pub run: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
    /// Only those after this one in the list.
    pub after: Option<QuestionId>,
}

/// What identifies a question: its call and the time it was asked. A call can be asked about again after its
/// first question expired.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuestionId {
    /// The call.
    pub call: CallId,
    /// When it was asked.
    pub asked_at: Timestamp,
}

impl QuestionId {
    /// The id of a question.
    #[must_use]
    pub fn of(question: &Approval) -> Self {
        Self {
            call: question.call().clone(),
            asked_at: question.request().asked_at,
        }
    }
}

/// A question with the run it is about.
#[derive(Debug, Clone)]
pub struct ApprovalDetails {
    /// The question.
    pub approval: Approval,
    /// The run that asks it, if its journal can be read.
    pub run: Option<Run>,
}

impl ApprovalDetails {
    /// The specification of the tool that would run.
    #[must_use]
    pub fn specification(&self) -> Option<&Arc<ToolSpecification>> {
        let call = self.approval.question().authorize()?;
        self.run.as_ref()?.specification(call.tool_name.as_str())
    }

    /// The risk assessment of the call.
    #[must_use]
    pub fn assessment(&self) -> Option<Assessment> {
        let tool = ToolRisk::of_specification(self.specification()?);
        Some(tool.with_arguments(self.approval.arguments()?))
    }

    /// The risk and the security level of the call with these arguments instead of the requested
    /// ones. Arguments can only raise them.
    #[must_use]
    pub fn gravity_with(
        &self,
        arguments: &Map<String, Value>,
    ) -> Option<(RiskLevel, SecurityLevel)> {
        let call = self.approval.question().authorize()?;
        let edited = self.specification().map(|tool| {
            ToolRisk::of_specification(tool)
                .with_arguments(arguments)
                .level
        });
        let risk = edited.map_or(call.risk, |edited| edited.max(call.risk));
        Some((risk, call.security_level.max(least_security_level(risk))))
    }

    /// The security level of the call with edited arguments, or with the requested ones. `None` if the
    /// question is not about a call.
    #[must_use]
    pub fn level_with(&self, edited: Option<&Map<String, Value>>) -> Option<SecurityLevel> {
        let call = self.approval.question().authorize()?;
        let arguments = edited
            .or_else(|| self.approval.arguments())
            .unwrap_or(&call.tool_args);
        let gravity = self.gravity_with(arguments);
        Some(gravity.map_or(call.security_level, |(_, level)| level))
    }

    fn required_confirmation(
        &self,
        edited: Option<&Map<String, Value>>,
    ) -> Option<RequiredConfirmation> {
        self.level_with(edited).map(RequiredConfirmation::at)
    }

    /// The declared defaults of the arguments that the call leaves out.
    #[must_use]
    pub fn defaults(&self) -> Map<String, Value> {
        let (Some(given), Some(tool)) = (self.approval.arguments(), self.specification()) else {
            return Map::new();
        };
        match tool
            .signature()
            .with_defaults(&Value::Object(given.clone()))
        {
            Value::Object(all) => all
                .into_iter()
                .filter(|(name, _)| !given.contains_key(name))
                .collect(),
            _ => Map::new(),
        }
    }

    /// Checks edited arguments against the tool's signature.
    ///
    /// # Errors
    /// If the question is about no call, or its tool does not take them.
    pub fn check_arguments(&self, arguments: &Value) -> Result<(), ServiceError> {
        let Some(call) = self.approval.question().authorize() else {
            let message = format!(
                "`{}` does not ask for the approval of a call",
                self.approval.call()
            );
            return Err(ServiceError::invalid("does_not_fit", message));
        };
        self.check_against(call, arguments)
    }

    /// Reads edited arguments: all arguments of the call as the text of one JSON object.
    ///
    /// # Errors
    /// If the text is not such an object, or the tool does not take the arguments.
    pub fn read_arguments(&self, text: &str) -> Result<Map<String, Value>, ServiceError> {
        let not_json = |message: String| {
            let error = ServiceError::invalid("not_json", message);
            match self.approval.question().authorize() {
                Some(call) => error.with_hint(format!(
                    "write all arguments as one object: {}",
                    json!(call.tool_args)
                )),
                None => error,
            }
        };
        let arguments: Value =
            read_json(text).map_err(|error: serde_json::Error| match error.is_data() {
                // A number that cannot be kept.
                true => not_json(error.to_string()),
                false => not_json(format!("the arguments are not JSON: {error}")),
            })?;
        self.check_arguments(&arguments)?;
        match arguments {
            Value::Object(arguments) => Ok(arguments),
            _ => Err(not_json("the arguments are not an object".to_owned())),
        }
    }

    /// Reads the reply of a person who does not just approve or reject: the result in place of the tool, the
    /// content of a form (JSON), the answer to a question, or a note that manual work is done, whichever the
    /// question asks for.
    ///
    /// # Errors
    /// If a text is missing, or does not fit the question.
    pub fn read_reply(&self, text: Option<&str>) -> Result<PersonDecision, ServiceError> {
        let required = |what: &str| {
            let message = format!("{what} is missing");
            text.ok_or_else(|| ServiceError::invalid("value_missing", message))
        };
        match self.approval.question() {
            Question::Authorize(_) => {
                let text = required("the result for the model")?;
                let value = read_json_or_text(text)
                    .map_err(|error| ServiceError::invalid("inexact_number", error.to_string()))?;
                Ok(PersonDecision::Respond { value })
            }
            Question::Ask(Ask {
                form: Some(form), ..
            }) => {
                let text = required("the content of the form")?;
                let value: Value = read_json(text).map_err(|error| {
                    let message = format!("the content of the form is not JSON: {error}");
                    ServiceError::invalid("not_json", message)
                })?;
                let misfits = form.misfits(&value);
                let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
                match misfits.is_empty() {
                    true => Ok(PersonDecision::Respond { value }),
                    false => Err(ServiceError::invalid("does_not_fit", misfits.join("; "))),
                }
            }
            Question::Ask(ask) => {
                let text = filled("answer", required("the answer")?, "write a text")?;
                if ask.free_text || ask.options.contains(&text) {
                    return Ok(PersonDecision::Answer { text });
                }
                let options: Vec<&str> = ask.options.iter().map(NonEmptyText::as_str).collect();
                let message = format!("`{}` is not one of the options", text.as_str());
                let hint = format!("answer with one of: {}", options.join(", "));
                Err(ServiceError::invalid("does_not_fit", message).with_hint(hint))
            }
            Question::Intervene(_) => {
                let note = text.map(|text| filled("note", text, "write a text or omit it"));
                Ok(PersonDecision::Done {
                    note: note.transpose()?,
                })
            }
        }
    }

    fn check_against(&self, call: &Authorize, arguments: &Value) -> Result<(), ServiceError> {
        let tool = &call.tool_name;
        let specification = self.specification().ok_or_else(|| {
            let message = format!(
                "the journal has no specification of `{tool}`, so its arguments cannot be edited"
            );
            ServiceError::conflict("no_schema", message)
        })?;
        let misfits = specification.signature().misfits(arguments);
        if misfits.is_empty() {
            return Ok(());
        }
        let misfits: Vec<String> = misfits.iter().map(|misfit| format!("  {misfit}")).collect();
        let message = format!("the arguments do not fit `{tool}`:\n{}", misfits.join("\n"));
        let hint = format!("it takes {}", specification.signature());
        Err(ServiceError::invalid("arguments_do_not_fit", message).with_hint(hint))
    }

    /// Checks whether the approval may also cover later calls: only for calls that can be undone and need
    /// only one approver.
    ///
    /// # Errors
    /// If a standing approval is not allowed.
    pub fn check_standing(
        &self,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<(), ServiceError> {
        let asked = self.approval.arguments();
        let gravity = arguments
            .or(asked)
            .and_then(|arguments| self.gravity_with(arguments));
        let (Some((risk, level)), Some(call)) = (gravity, self.approval.question().authorize())
        else {
            let message = "only the approval of a call can cover later calls";
            return Err(ServiceError::invalid("never_always", message));
        };
        let refused = |why: &str| {
            let message = format!("a standing approval is not possible here: {why}");
            Err(ServiceError::invalid("never_always", message)
                .with_hint("approve this one call, without `--always`"))
        };
        if risk == RiskLevel::Irreversible {
            return refused(&format!(
                "this call of `{}` cannot be undone, and such calls need approval every time",
                call.tool_name
            ));
        }
        if level == SecurityLevel::Critical {
            return refused("every CRITICAL call needs two approvers");
        }
        Ok(())
    }
}

/// The question with its sealed texts in clear, if the identity may decide.
fn opened(store: &Store, identity: &Identity, question: Approval) -> Approval {
    match identity.require(Scope::Approve) {
        Ok(()) => store.opened(&question),
        Err(_) => question,
    }
}

/// The text of a field. `advice` is what to do if it is empty.
fn filled(field: &str, text: &str, advice: &str) -> Result<NonEmptyText, ServiceError> {
    NonEmptyText::new(text).map_err(|_| {
        let message = format!("the {field} is empty; {advice}");
        ServiceError::invalid("empty_text", message)
    })
}

/// Which later calls of the same run an approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Always {
    /// The same tool with the same arguments.
    Call,
    /// The same tool.
    Tool,
}

/// A person's decision about a question.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRequest {
    /// The decision.
    pub decision: PersonDecision,
    /// The digest of what the person was shown; it must be that of the current question.
    pub digest: Option<Digest>,
    /// How the approver confirms it.
    pub confirmation: Confirmation,
    /// The approver who delegated their decisions, if this one is made for somebody else.
    pub on_behalf_of: Option<Principal>,
    /// Whether the approval covers later calls of the run.
    pub always: Option<Always>,
}

/// How an approver confirms a decision. A call of the security level HIGH or CRITICAL is approved only with the digest
/// of what the approver was shown, unless the key of the approver may decide unattended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confirmation {
    /// Only by stating the digest, if at all.
    #[default]
    Stated,
    /// At a terminal, where the approver was shown the call.
    AtTerminal,
    /// The approver need not have looked at the call. The key must permit it.
    Unattended,
    /// The approver makes the call themselves. It does not count for calls that need two approvers.
    OwnCall,
}

/// What an approver has to do so that an approval counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequiredConfirmation {
    /// The security level of the call with the arguments that are approved. Edited arguments can raise it.
    pub level: SecurityLevel,
    /// Whether the approval states the digest of what the approver was shown.
    pub needs_digest: bool,
    /// Whether a key that may decide unattended needs no digest.
    pub unattended_suffices: bool,
}

impl RequiredConfirmation {
    /// What a call of a security level requires.
    fn at(level: SecurityLevel) -> Self {
        Self {
            level,
            needs_digest: level >= SecurityLevel::High,
            // Also a key that decides unattended must know which call two people agree to.
            unattended_suffices: level < SecurityLevel::Critical,
        }
    }

    /// Whether a decision is confirmed as required.
    #[must_use]
    pub fn is_met_by(&self, request: &DecisionRequest) -> bool {
        let is_unattended = request.confirmation == Confirmation::Unattended;
        !self.needs_digest
            || request.digest.is_some()
            || (is_unattended && self.unattended_suffices)
    }
}

impl From<PersonDecision> for DecisionRequest {
    fn from(decision: PersonDecision) -> Self {
        Self {
            decision,
            digest: None,
            confirmation: Confirmation::default(),
            on_behalf_of: None,
            always: None,
        }
    }
}

/// A decision that was taken.
#[derive(Debug, Clone)]
pub struct DecisionTaken {
    /// The question as it is now. It may need a second person.
    pub approval: Approval,
    /// The resulting standing approval.
    pub standing: Option<StandingId>,
}

impl Service {
    /// The questions of the identity's tenant, the oldest first.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such run.
    pub fn list_approvals(
        &self,
        identity: &Identity,
        query: &ApprovalQuery,
    ) -> Result<Vec<Approval>, ServiceError> {
        identity.require(Scope::Read)?;
        let run = match &query.run {
            Some(id) => Some(self.find_run(identity, id)?.0.run),
            None => None,
        };
        let filter = ApprovalFilter {
            tenant: Some(identity.tenant().as_str().to_owned()),
            status: query.status,
            ..ApprovalFilter::default()
        };
        let mut approvals = self.store()?.approvals(&filter, self.now())?;
        // A question that was listed and settled since is not in the list any more, so its place is found by
        // its time.
        let key = |question: &QuestionId| {
            let QuestionId { call, asked_at } = question;
            (*asked_at, call.run.to_string(), call.to_string())
        };
        let after = query.after.as_ref().map(key);
        approvals.retain(|approval| {
            let is_of_run = run
                .as_ref()
                .is_none_or(|run| is_part_of(approval.run(), run));
            let is_later = after
                .as_ref()
                .is_none_or(|after| key(&QuestionId::of(approval)) > *after);
            is_of_run && is_later
        });
        approvals.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(approvals)
    }

    /// The question with an id: of a call, of its run, or a part of either that matches only one.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no question or several.
    pub fn show_approval(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<ApprovalDetails, ServiceError> {
        let sought = Sought {
            word: "no_such_approval",
            what: "request",
            listed_by: "`windlass approvals list --all` lists all requests",
        };
        let all = self.list_approvals(identity, &ApprovalQuery::default())?;
        let candidates = all.into_iter().map(|approval| Candidate {
            call: approval.call().clone(),
            is_open: approval.status() == ApprovalStatus::Pending,
        });
        let call = pick(id, candidates, &sought)?;
        let store = self.store()?;
        let approval = store.approval(&call, self.now())?;
        let run = store.fold(approval.run()).ok();
        let approval = opened(&store, identity, approval);
        Ok(ApprovalDetails { approval, run })
    }

    /// The open questions of a run and its sub-agents, as the responses that report them.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such run.
    pub fn pending_responses(
        &self,
        identity: &Identity,
        run: &RunId,
    ) -> Result<Vec<ToolResponse>, ServiceError> {
        let pending = ApprovalQuery {
            status: Some(ApprovalStatus::Pending),
            run: Some(run.to_string()),
            ..ApprovalQuery::default()
        };
        let store = self.store()?;
        let questions = self.list_approvals(identity, &pending)?.into_iter();
        let response = |question| opened(&store, identity, question).response();
        Ok(questions.map(response).collect())
    }

    /// What the identity has to do to approve a call, with edited arguments or the requested ones. `None` if the
    /// question is not about a call. [`Service::decide`] checks it.
    ///
    /// # Errors
    /// If the identity may not approve, or the clock is behind the time of the question.
    pub fn required_confirmation(
        &self,
        identity: &Identity,
        details: &ApprovalDetails,
        edited: Option<&Map<String, Value>>,
    ) -> Result<Option<RequiredConfirmation>, ServiceError> {
        identity.require(Scope::Approve)?;
        self.check_clock(&details.approval)?;
        Ok(details.required_confirmation(edited))
    }

    /// Decides a question. A rejection needs no key of an approver, because nothing runs.
    ///
    /// # Errors
    /// If the identity may not approve or this question is not theirs to decide; if the question is
    /// unknown, decided already or expired, or another digest is asked about; or if edited arguments or an
    /// answer do not fit. Nothing is decided then.
    pub fn decide(
        &self,
        identity: &Identity,
        call: &CallId,
        request: DecisionRequest,
    ) -> Result<DecisionTaken, ServiceError> {
        identity.require(Scope::Approve)?;
        let (store, now) = (self.store()?, self.now());
        let details = details(&store, identity, call, self)?;
        check_open(&details.approval)?;
        // A rejection is safe at any time.
        if !matches!(request.decision, PersonDecision::Reject { .. }) {
            self.check_clock(&details.approval)?;
        }
        let edited = match &request.decision {
            PersonDecision::ApproveEdited { arguments } => {
                details.check_arguments(&Value::Object(arguments.clone()))?;
                Some(arguments.clone())
            }
            _ => None,
        };
        let is_approval = matches!(
            request.decision,
            PersonDecision::Approve | PersonDecision::ApproveEdited { .. }
        );
        let required = details.required_confirmation(edited.as_ref());
        if is_approval && required.is_some_and(|required| !required.is_met_by(&request)) {
            let message = "a call of the security level HIGH or CRITICAL is approved with the digest \
                           of what the approver was shown; nothing was decided";
            return Err(ServiceError::conflict("digest_needed", message));
        }
        let standing = match request.always {
            Some(always) => {
                details.check_standing(edited.as_ref())?;
                Some(standing(
                    &details.approval,
                    identity,
                    always,
                    edited.as_ref(),
                    now,
                )?)
            }
            None => None,
        };
        let signer = self.decision_signer(identity, &request)?;
        let new = NewDecision {
            call: call.clone(),
            digest: request.digest,
            decision: request.decision,
        };
        let decided = store.decide_signed(new, identity.person(), signer, now);
        let approval = decided.map_err(|error| match error {
            Error::SecretInStructure => ServiceError::invalid(
                "secret",
                "the arguments contain the value of a secret environment variable",
            )
            .with_hint(
                "values of variables that end in _KEY, _TOKEN, _SECRET or _PASSWORD are not stored in the journal",
            ),
            other => other.into(),
        })?;
        let standing = match standing {
            Some(standing) => Some(store.grant_standing(&standing)?),
            None => None,
        };
        Ok(DecisionTaken { approval, standing })
    }

    /// Refuses a decision while the clock is behind the time of the question, because every time limit would
    /// be too long.
    fn check_clock(&self, approval: &Approval) -> Result<(), ServiceError> {
        let (now, asked_at) = (self.now(), approval.request().asked_at);
        if now >= asked_at {
            return Ok(());
        }
        let message = format!(
            "the clock went backwards: it is {now} here, but the question was asked at {asked_at}"
        );
        Err(ServiceError::conflict("clock", message)
            .with_hint("correct the clock, then decide; `reject` is possible at any time"))
    }
}

fn details(
    store: &Arc<Store>,
    identity: &Identity,
    call: &CallId,
    service: &Service,
) -> Result<ApprovalDetails, ServiceError> {
    let approval = store.approval(call, service.now())?;
    if approval.request().principal.tenant != *identity.tenant() {
        return Err(Error::NoSuchApproval(call.clone()).into());
    }
    let run = store.fold(approval.run()).ok();
    Ok(ApprovalDetails { approval, run })
}

fn standing(
    approval: &Approval,
    identity: &Identity,
    always: Always,
    edited: Option<&Map<String, Value>>,
    now: Timestamp,
) -> Result<StandingApproval, ServiceError> {
    let Some(call) = approval.question().authorize() else {
        let message = "only the approval of a call can cover later calls";
        return Err(ServiceError::invalid("never_always", message));
    };
    let arguments = edited.or(approval.arguments()).unwrap_or(&call.tool_args);
    let scope = match always {
        Always::Tool => approval::StandingScope::Tool,
        Always::Call => approval::StandingScope::ToolWithArguments {
            digest: Digest::of_call(&call.tool_name, arguments),
        },
    };
    let reach = Reach::Run {
        run: approval.run().clone(),
    };
    let principal = approval.request().principal.clone();
    let by = identity.principal().clone();
    StandingApproval::new(principal, call.tool_name.clone(), scope, reach, by, now)
        .map_err(|error| ServiceError::invalid("never_always", error.to_string()))
}

/// Refuses a question that can no longer be decided. The store detects a concurrent decision.
///
/// # Errors
/// If it is not pending.
pub fn check_open(approval: &Approval) -> Result<(), ServiceError> {
    let call = approval.call().clone();
    match approval.status() {
        ApprovalStatus::Pending => Ok(()),
        ApprovalStatus::Expired => {
            let at = approval.request().expires_at;
            Err(Error::Expired { call, at }.into())
        }
        status => Err(Error::AlreadyDecided { call, status }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_high_call_needs_the_digest_or_an_unattended_key_and_a_critical_one_the_digest() {
        let required = |level| RequiredConfirmation::at(level);
        let with = |confirmation, digest: Option<&str>| DecisionRequest {
            confirmation,
            digest: digest.map(|digest| digest.parse().unwrap()),
            ..PersonDecision::Approve.into()
        };
        let digest = Digest::of_json(&json!({})).to_string();
        let shown = with(Confirmation::Stated, Some(&digest));
        let unattended = with(Confirmation::Unattended, None);
        let at_terminal = with(Confirmation::AtTerminal, None);
        for (level, met) in [
            (SecurityLevel::Low, [true, true, true]),
            (SecurityLevel::Medium, [true, true, true]),
            (SecurityLevel::High, [true, true, false]),
            (SecurityLevel::Critical, [true, false, false]),
        ] {
            let requests = [&shown, &unattended, &at_terminal];
            assert_eq!(
                requests.map(|request| required(level).is_met_by(request)),
                met
            );
        }
    }
}
