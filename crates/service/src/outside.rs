//! Calls that other programs make: judged here like any other call, journaled as a run of one call, begun once, and ended by
//! the outcome that the program reports.

mod programs;
mod status;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use windlass_core::approval::Digest;
use windlass_core::gate::Verdict;
use windlass_core::model::{ChatMessage, RequestedArguments, RequestedCall};
use windlass_core::run::{CallEnd, Entry, OutsideCall, Run, Task};
use windlass_keys::{hex, sha256};
use windlass_policy::Session;
use windlass_runtime::Durable as _;
use windlass_spec::{
    Agent, AgentName, Confidence, Effect, ErrorCategory, Failure, NonEmptyText, RiskLevel, RunId,
    ToolName, ToolSpecification,
};
use windlass_store::{RequestKey, RunFilter, RunSummary};
use windlass_tools::{Tool, ToolError, ToolLibrary};

use crate::assembly::{BoundAgent, NO_MODEL, NewRun};
use crate::error::{ServiceError, with_sources};
use crate::identity::{Identity, Scope};
use crate::options::{Attachment, RunOptions};
use crate::service::{Service, blocking};

pub use programs::{outside_programs, outside_tools};
pub use status::{OutsideDecision, OutsideState};

/// The library of tools that other programs execute. Its implementations are never called.
pub(crate) const OUTSIDE: &str = "outside";

/// How long an allowed call may wait for its beginning: an hour.
pub const BEGIN_SECONDS: u32 = 3_600;

/// How long a call may take from its beginning to its outcome, if the request does not say it.
pub const OUTCOME_SECONDS: u32 = 900;

/// How long a request may say it.
pub const MAX_OUTCOME_SECONDS: u32 = 86_400;

/// How many earlier calls of a session are looked at.
const SESSION_CALLS: u32 = 100;

/// How often a decision that is waited for is looked at.
const PERIOD: Duration = Duration::from_millis(100);

/// How long to wait for another process that has the run for a moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest name of a program, a session or a call of a program, in bytes.
const MAX_NAME: usize = 200;

/// A call that another program is about to make.
#[derive(Debug, Clone)]
pub struct OutsideCallRequest {
    /// The tool.
    pub tool: OutsideTool,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The program. Its name is that of the agent of the run.
    pub program: Option<String>,
    /// The session of the program: what earlier calls of the session read and did counts for this one.
    pub session: Option<String>,
    /// The program's own id of the call. The same id again is the same call.
    pub call_id: Option<String>,
    /// What the user asked for. Arguments that occur in it are not tainted.
    pub task: Option<String>,
    /// How sure the model is that requested the call.
    pub confidence: Option<Confidence>,
    /// Untrusted texts that the program read before the call.
    pub read: Vec<String>,
    /// Whether untrusted content may have led to the call, whatever it was.
    pub is_tainted: bool,
    /// How many seconds after its beginning the outcome of the call counts as unknown; [`OUTCOME_SECONDS`] if absent.
    pub outcome_seconds: Option<u32>,
}

/// The tool of a call that another program makes.
#[derive(Debug, Clone)]
pub enum OutsideTool {
    /// The tool of that name: of an agent of the project, of a library, or of a well-known program.
    Named {
        /// Its name.
        name: String,
        /// The agent that declares it.
        agent: Option<String>,
        /// The library that has it.
        library: Option<String>,
    },
    /// A tool with this specification.
    Specified(Box<ToolSpecification>),
}

/// How a call ended that another program made.
#[derive(Debug, Clone, PartialEq)]
pub enum OutsideOutcome {
    /// With a result.
    Success(Value),
    /// With an error. Whether a call that is not reversible had an effect is not known then.
    Error(String),
    /// It was not made.
    NotMade(String),
    /// It is not known how it ended.
    Unknown(String),
}

impl Service {
    /// Judges a call that another program is about to make, and journals it as a run of one call. The same call id of the
    /// same session gives the same decision.
    ///
    /// # Errors
    /// If the identity may not run tools, there is no such tool, or the configuration or the journal cannot be used.
    pub async fn judge_outside_call(
        &self,
        identity: &Identity,
        request: OutsideCallRequest,
        attachment: Attachment,
    ) -> Result<OutsideDecision, ServiceError> {
        identity.require(Scope::Run)?;
        let (service, caller) = (self.clone(), identity.clone());
        let prepared = blocking(move || service.prepare_outside(&caller, &request)).await?;
        let run = match prepared {
            Prepared::Known(run) => run,
            Prepared::New(bound, new) => {
                let begun = bound.begin(identity, *new, attachment).await?;
                let run = begun.id().clone();
                begun.drive_or_leave().await?;
                run
            }
        };
        let (service, caller) = (self.clone(), identity.clone());
        blocking(move || service.outside_decision(&caller, run.as_str())).await
    }

    /// The decision about a call of another program, by its id or a prefix of it.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such decision.
    pub fn outside_decision(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<OutsideDecision, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, run) = self.find_outside(identity, id)?;
        Ok(self.decision_of_run(&summary, &run))
    }

    /// The decision about the call with the program's own id.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such decision of this principal.
    pub fn outside_decision_of(
        &self,
        identity: &Identity,
        program: Option<&str>,
        session: Option<&str>,
        call_id: &str,
    ) -> Result<OutsideDecision, ServiceError> {
        identity.require(Scope::Read)?;
        let key = call_key(program, session, call_id);
        let known = self.store()?.request_key(identity.person(), &key)?;
        let known = known.ok_or_else(|| no_such_decision(call_id))?;
        self.outside_decision(identity, known.run.as_str())
    }

    /// The decisions about calls of a session, the latest first.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn outside_decisions(
        &self,
        identity: &Identity,
        session: &str,
        limit: u32,
    ) -> Result<Vec<OutsideDecision>, ServiceError> {
        identity.require(Scope::Read)?;
        let runs = self.session_runs(identity, session, limit)?;
        let decisions = runs
            .iter()
            .map(|(summary, run)| self.decision_of_run(summary, run));
        Ok(decisions.collect())
    }

    /// Waits until a call of another program can begin or will not, at most this long. Returns the decision as it is then.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such decision.
    pub async fn wait_for_outside_call(
        &self,
        identity: &Identity,
        id: &str,
        wait: Duration,
    ) -> Result<OutsideDecision, ServiceError> {
        let deadline = Instant::now() + wait;
        loop {
            let (service, caller, id) = (self.clone(), identity.clone(), id.to_owned());
            let looked = move || {
                let decision = service.outside_decision(&caller, &id)?;
                let is_due = decision.is_waiting() && service.can_go_on(&decision.run)?;
                Ok((decision, is_due))
            };
            let (decision, is_due) = blocking(looked).await?;
            if !decision.is_waiting() || Instant::now() >= deadline {
                return Ok(decision);
            }
            if is_due && identity.has(Scope::Run) {
                // A worker may be faster, or there may be none.
                match self.advance_outside(identity, &decision.run).await {
                    Ok(()) => continue,
                    Err(error) if ["owned_elsewhere", "ended"].contains(&error.code()) => {}
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Begins a call that was allowed, once: of two requests at the same time, one succeeds. It is decided again, and only
    /// a stricter decision counts. Returns the decision with the arguments to make the call with. `expected` is the digest
    /// of the call that the program is about to make.
    ///
    /// # Errors
    /// If the identity is not the one that the call was judged for, the call may not begin now, has begun, or is another
    /// one than expected.
    pub async fn begin_outside_call(
        &self,
        identity: &Identity,
        id: &str,
        expected: Option<Digest>,
    ) -> Result<OutsideDecision, ServiceError> {
        identity.require(Scope::Run)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (service, caller, name) = (self.clone(), identity.clone(), id.to_owned());
            let bound = move || {
                let (summary, run) = service.own_outside(&caller, &name)?;
                let decision = service.decision_of_run(&summary, &run);
                if let Some(expected) = expected
                    && decision.digest != Some(expected)
                {
                    let message = "the digest is not that of the call that was decided";
                    return Err(ServiceError::conflict("digest_differs", message)
                        .with_hint("request a decision about the changed call"));
                }
                decision.check_can_begin()?;
                let bound = service.bind_outside(&caller, &run)?;
                Ok((summary.run, bound))
            };
            let (run, bound) = blocking(bound).await?;
            let driver = bound.driver(identity, Attachment::default())?;
            match driver.begin_outside(&run).await {
                Ok(answer) => {
                    let is_begun = answer.begun.is_some();
                    let (service, caller) = (self.clone(), identity.clone());
                    let shown = move || service.outside_decision(&caller, run.as_str());
                    let decision = blocking(shown).await?;
                    if !is_begun {
                        decision.check_can_begin()?;
                        let message = "the call could not begin";
                        return Err(
                            ServiceError::conflict("not_allowed", message).with_hint("try again")
                        );
                    }
                    return Ok(decision);
                }
                Err(error) => {
                    let error = ServiceError::from(error);
                    if error.code() != "owned_elsewhere" || Instant::now() >= deadline {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends a call that began, with the outcome that the program reports.
    ///
    /// # Errors
    /// If the identity is not the one that the call was judged for, or the call has not begun or has ended.
    pub async fn end_outside_call(
        &self,
        identity: &Identity,
        id: &str,
        outcome: OutsideOutcome,
    ) -> Result<OutsideDecision, ServiceError> {
        identity.require(Scope::Run)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (service, caller, name) = (self.clone(), identity.clone(), id.to_owned());
            let bound = move || {
                let (summary, run) = service.own_outside(&caller, &name)?;
                let decision = service.decision_of_run(&summary, &run);
                decision.check_can_end()?;
                let risk = decision.call.as_ref().map(|call| run.risk(call));
                let bound = service.bind_outside(&caller, &run)?;
                Ok((summary.run, risk.unwrap_or(RiskLevel::Irreversible), bound))
            };
            let (run, risk, bound) = blocking(bound).await?;
            let driver = bound.driver(identity, Attachment::default())?;
            match driver
                .end_outside(&run, end_of(outcome.clone(), risk))
                .await
            {
                Ok(answer) => {
                    let is_ended = answer.is_ended;
                    let (service, caller) = (self.clone(), identity.clone());
                    let shown = move || service.outside_decision(&caller, run.as_str());
                    let decision = blocking(shown).await?;
                    if !is_ended {
                        decision.check_can_end()?;
                    }
                    return Ok(decision);
                }
                Err(error) => {
                    let error = ServiceError::from(error);
                    if error.code() != "owned_elsewhere" || Instant::now() >= deadline {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Resumes the run of a call of another program, which takes it through the gate or ends it.
    async fn advance_outside(&self, identity: &Identity, run: &RunId) -> Result<(), ServiceError> {
        let (service, caller, id) = (self.clone(), identity.clone(), run.clone());
        let bound = move || {
            let (summary, run) = service.find_outside(&caller, id.as_str())?;
            let owner = crate::worker::owner(&summary)?;
            Ok((service.bind_outside(&owner, &run)?, owner))
        };
        let (bound, owner) = blocking(bound).await?;
        let driver = bound.driver(&owner, Attachment::default())?;
        driver.resume(run).await?;
        Ok(())
    }

    /// Whether a run of one call has something to do now.
    fn can_go_on(&self, run: &RunId) -> Result<bool, ServiceError> {
        let store = self.store()?;
        if !store.inbox(run)?.is_empty() {
            return Ok(true);
        }
        let resumable = store.resumable(self.now())?;
        Ok(resumable.iter().any(|found| found.run == *run))
    }

    /// Binds the run of a call that another program makes. Nothing of it is executed here, so the binding need not be
    /// identical; policies and limits are those of now.
    pub(crate) fn bind_outside(
        &self,
        identity: &Identity,
        run: &Run,
    ) -> Result<BoundAgent, ServiceError> {
        self.bind_again(identity, run, &self.stored_options(run)?)
    }

    fn find_outside(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<(RunSummary, Run), ServiceError> {
        let (summary, store) = self.find_run(identity, id)?;
        let run = store.fold(&summary.run)?;
        match run.outside() {
            Some(_) => Ok((summary, run)),
            None => Err(no_such_decision(id)),
        }
    }

    /// The run of a call that was judged for this principal.
    fn own_outside(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<(RunSummary, Run), ServiceError> {
        let (summary, run) = self.find_outside(identity, id)?;
        match summary.principal == identity.principal().as_str() {
            true => Ok((summary, run)),
            false => {
                let message = "the call was judged for another principal";
                Err(ServiceError::denied("not_your_call", message))
            }
        }
    }

    fn prepare_outside(
        &self,
        identity: &Identity,
        request: &OutsideCallRequest,
    ) -> Result<Prepared, ServiceError> {
        let names = [&request.program, &request.session, &request.call_id];
        for name in names.into_iter().flatten() {
            let is_usable = !name.trim().is_empty()
                && name.len() <= MAX_NAME
                && !name.chars().any(char::is_control);
            if !is_usable {
                let message =
                    format!("a program, session or call id has 1 to {MAX_NAME} visible characters");
                return Err(ServiceError::invalid("invalid_call", message));
            }
        }
        let outcome_seconds = request.outcome_seconds.unwrap_or(OUTCOME_SECONDS);
        if !(1..=MAX_OUTCOME_SECONDS).contains(&outcome_seconds) {
            let message = format!("`outcome_seconds` is 1 to {MAX_OUTCOME_SECONDS}");
            return Err(ServiceError::invalid("invalid_call", message));
        }
        let specification = self.outside_specification(identity, request)?;
        let tool = specification.name().clone();
        let digest = Digest::of_call(&tool, &request.arguments);
        let session = match &request.session {
            Some(session) => self.session_runs(identity, session, SESSION_CALLS)?,
            None => Vec::new(),
        };
        let run = match &request.call_id {
            Some(call_id) => {
                let store = self.store()?;
                let attached = self.waiting_for_person(&session, digest);
                let new = RequestKey {
                    run: match attached {
                        Some(run) => run,
                        None => self.stored()?.new_id()?,
                    },
                    digest: sha256(digest.to_string().as_bytes()),
                };
                let (program, session) = (request.program.as_deref(), request.session.as_deref());
                let key = call_key(program, session, call_id);
                let known = store.reserve_request_key(identity.person(), &key, &new, self.now())?;
                if known.digest != new.digest {
                    let message = "the call id was used for another call of the session";
                    return Err(ServiceError::conflict("digest_differs", message)
                        .with_hint("use a new id for each call"));
                }
                match store.summary(&known.run) {
                    Ok(_) => return Ok(Prepared::Known(known.run)),
                    Err(windlass_store::Error::NoSuchRun(_)) => Some(known.run),
                    Err(error) => return Err(error.into()),
                }
            }
            None => None,
        };
        let (before, has_read) = session_before(&session, &tool);
        let agent = outside_agent(request, specification)
            .map_err(|error| ServiceError::failed(with_sources(error.as_ref())))?;
        let options = RunOptions {
            library: vec![OUTSIDE.to_owned()],
            model: Some(NO_MODEL.to_owned()),
            ..RunOptions::default()
        };
        let bound = self.bind_tool(identity, &agent, &options)?;
        let program = request.program.as_deref().unwrap_or(OUTSIDE);
        let task = Task {
            description: match &request.task {
                Some(task) => task.clone(),
                None => format!("Decide about a call of `{tool}` by {program}."),
            },
            conversation: request
                .read
                .iter()
                .enumerate()
                .map(|(index, text)| ChatMessage::Tool {
                    call_id: format!("read-{}", index + 1),
                    tool: "read".to_owned(),
                    content: text.clone(),
                    untrusted: true,
                })
                .collect(),
            call: Some(Box::new(RequestedCall {
                tool: tool.to_string(),
                arguments: RequestedArguments::Json(Value::Object(request.arguments.clone())),
                confidence: request.confidence.map(Confidence::get),
            })),
            tainted: request.is_tainted || has_read,
            outside: Some(Box::new(OutsideCall {
                program: request.program.clone(),
                session: request.session.clone(),
                begin_seconds: BEGIN_SECONDS,
                outcome_seconds,
                before,
            })),
            ..Task::default()
        };
        let new = NewRun {
            run,
            task_id: request.session.clone(),
            task,
            ..NewRun::default()
        };
        Ok(Prepared::New(Box::new(bound), Box::new(new)))
    }

    /// The specification of the tool of a call.
    fn outside_specification(
        &self,
        identity: &Identity,
        request: &OutsideCallRequest,
    ) -> Result<Arc<ToolSpecification>, ServiceError> {
        let (name, agent, library) = match &request.tool {
            OutsideTool::Specified(specification) => {
                return Ok(Arc::new((**specification).clone()));
            }
            OutsideTool::Named {
                name,
                agent,
                library,
            } => (name, agent, library),
        };
        if let Some(agent) = agent {
            let declared = self.show_agent(identity, agent)?;
            let tool = declared.agent().tool(name).cloned();
            return tool.ok_or_else(|| {
                let message = format!("the agent `{agent}` has no tool `{name}`");
                ServiceError::not_found("no_such_tool", message)
            });
        }
        let program = request.program.as_deref().unwrap_or_default();
        if library.is_none()
            && let Some(specification) = programs::specification(program, name, &request.arguments)
        {
            return specification
                .map(Arc::new)
                .map_err(|reason| ServiceError::invalid("invalid_call", reason));
        }
        let library = library.as_deref().unwrap_or(windlass_tools::BUILTIN);
        self.describe_tool(identity, Some(library), name, None)?
            .callable()
    }

    /// The runs of the latest calls of a session of this principal, the latest first.
    fn session_runs(
        &self,
        identity: &Identity,
        session: &str,
        limit: u32,
    ) -> Result<Vec<(RunSummary, Run)>, ServiceError> {
        let store = self.store()?;
        let filter = RunFilter {
            tenant: Some(identity.tenant().to_string()),
            principal: Some(identity.principal().to_string()),
            task_id: Some(session.to_owned()),
            limit: Some(limit),
            ..RunFilter::default()
        };
        let mut found = Vec::new();
        for summary in store.runs(&filter)? {
            if summary.purged.is_some() {
                continue;
            }
            let run = store.fold(&summary.run)?;
            if run.outside().is_some() {
                found.push((summary, run));
            }
        }
        Ok(found)
    }

    /// The run of the same call of the session that waits, or waited, for a person and has not begun: the program tries
    /// again.
    fn waiting_for_person(&self, session: &[(RunSummary, Run)], digest: Digest) -> Option<RunId> {
        let found = session.iter().find(|(summary, run)| {
            let Some((
                _,
                Entry::Call {
                    record, decision, ..
                },
            )) = run.outside_call()
            else {
                return false;
            };
            let asked = decision
                .as_deref()
                .is_some_and(|decision| matches!(decision.verdict(), Verdict::Ask | Verdict::Hold));
            let requested = match run.task().call.as_deref().map(|call| &call.arguments) {
                Some(RequestedArguments::Json(Value::Object(arguments))) => {
                    Digest::of_call(record.tool_name(), arguments)
                }
                _ => return false,
            };
            let state = self.decision_of_run(summary, run).state;
            asked
                && requested == digest
                && matches!(
                    state,
                    OutsideState::Ready | OutsideState::Waiting | OutsideState::Held
                )
        });
        found.map(|(summary, _)| summary.run.clone())
    }

    fn decision_of_run(&self, summary: &RunSummary, run: &Run) -> OutsideDecision {
        let stop = || {
            let stops = self.stored().ok()?.store().stops().ok()?;
            let (_, entry) = run.outside_call().unzip();
            let mut work = crate::stops::work_of(summary)?;
            work.tool = entry.and_then(|entry| match entry {
                Entry::Call { record, .. } => Some(record.tool_name().clone()),
                _ => None,
            });
            work.tool = work.tool.or_else(|| {
                let call = run.task().call.as_deref()?;
                ToolName::new(call.tool.clone()).ok()
            });
            stops.covering(&work).map(ToString::to_string)
        };
        OutsideDecision::of(summary, run, self.now(), stop())
    }
}

/// What is prepared for a request.
enum Prepared {
    /// There is a decision about the call.
    Known(RunId),
    /// The run to start.
    New(Box<BoundAgent>, Box<NewRun>),
}

fn no_such_decision(id: &str) -> ServiceError {
    let message = format!("there is no decision `{id}`");
    ServiceError::not_found("no_such_decision", message)
}

/// The key of a program's own id of a call, among the keys of repeatable requests.
fn call_key(program: Option<&str>, session: Option<&str>, call_id: &str) -> String {
    let named = format!("{program:?} {session:?} {call_id:?}");
    format!("outside-{}", hex::encode(&sha256(named.as_bytes())))
}

/// What a session did before a call of a tool, and whether it read untrusted content.
fn session_before(session: &[(RunSummary, Run)], tool: &ToolName) -> (Session, bool) {
    let mut before = Session::default();
    let mut has_read = false;
    let add = |sum: &mut Session, more: Session| {
        sum.calls = sum.calls.saturating_add(more.calls);
        sum.tool_calls = sum.tool_calls.saturating_add(more.tool_calls);
        sum.irreversible_calls = sum
            .irreversible_calls
            .saturating_add(more.irreversible_calls);
        sum.denied_calls = sum.denied_calls.saturating_add(more.denied_calls);
        sum.sensitive_read |= more.sensitive_read;
    };
    for (_, run) in session {
        add(&mut before, run.session_after(tool));
        has_read |= run.is_tainted();
    }
    // What came before the calls that are looked at.
    let is_full = session.len() >= SESSION_CALLS as usize;
    if let Some((_, oldest)) = session.last().filter(|_| is_full)
        && let Some(outside) = oldest.outside()
    {
        add(&mut before, outside.before);
    }
    (before, has_read)
}

/// An agent that has only the tool of a call, named like the program.
fn outside_agent(
    request: &OutsideCallRequest,
    specification: Arc<ToolSpecification>,
) -> Result<Agent, Box<dyn std::error::Error>> {
    let declared = match &request.tool {
        OutsideTool::Named { agent, .. } => agent.as_deref(),
        OutsideTool::Specified(_) => None,
    };
    let name = declared.or(request.program.as_deref()).unwrap_or(OUTSIDE);
    let instruction = NonEmptyText::new("Make the call that another program asks for.")?;
    let agent = Agent::new(AgentName::new(name)?, "outside/none".parse()?, instruction);
    Ok(agent.with_tool(specification)?)
}

/// The library of the tools of these agents, which other programs execute.
pub(crate) fn outside_library(agents: &[Agent]) -> Result<ToolLibrary, ServiceError> {
    let mut library = ToolLibrary::new(OUTSIDE);
    for tool in agents.iter().flat_map(Agent::tools) {
        let built = Tool::builder(tool.name().to_string())
            .description(tool.description())
            .signature(tool.signature().clone())
            .handler(|_| async {
                let message = "the program that asked for the decision makes this call";
                Err(ToolError::new(message).without_effect())
            })
            .build()
            .map_err(|error| ServiceError::failed(with_sources(&error)))?;
        library.register(built);
    }
    Ok(library)
}

/// How a call ends with an outcome that its program reports.
fn end_of(outcome: OutsideOutcome, risk: RiskLevel) -> CallEnd {
    let effect = match risk {
        RiskLevel::Reversible => Effect::None,
        RiskLevel::ReversibleWithDelay | RiskLevel::Irreversible => Effect::Unknown,
    };
    match outcome {
        OutsideOutcome::Success(result) => CallEnd::Success(result),
        OutsideOutcome::Error(message) => CallEnd::Error(Failure::foreign(
            ErrorCategory::ToolFailure,
            effect,
            message,
        )),
        OutsideOutcome::NotMade(message) => CallEnd::Cancelled(Failure::foreign(
            ErrorCategory::Cancelled,
            Effect::None,
            message,
        )),
        OutsideOutcome::Unknown(message) => match risk {
            RiskLevel::Reversible => CallEnd::Error(Failure::foreign(
                ErrorCategory::ToolFailure,
                effect,
                message,
            )),
            _ => CallEnd::Unknown(Failure::foreign(
                ErrorCategory::ToolFailure,
                effect,
                message,
            )),
        },
    }
}
