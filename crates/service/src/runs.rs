//! Runs: list, show, resume and cancel them, and follow their events. New ones are started by a
//! [`BoundAgent`](crate::BoundAgent).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_core::approval::{Approval, Hold};
use windlass_core::run::{Event, Run, RunEnd};
use windlass_core::stop::StopOrder;
use windlass_runtime::{DriveError, DurableError, RunMonitor as _, Stored, cancel_unowned};
use windlass_spec::{RunId, Timestamp};
use windlass_store::{
    ApprovalFilter, ApprovalSummary, Error, HoldFilter, RunFilter, RunState, RunSummary, Store,
    UsageSum,
};

use crate::assembly::BoundAgent;
use crate::binding::StoredBinding;
use crate::error::ServiceError;
use crate::file_changes::ResumedFiles;
use crate::identity::{Identity, Scope};
use crate::options::{Attachment, Notice, RunOptions};
use crate::outermost::{self, is_part_of};
use crate::service::{Service, blocking};

/// How long to wait until a process has stopped its run.
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// How often its run is checked meanwhile.
const CANCEL_PERIOD: Duration = Duration::from_millis(100);

/// How often a run that is followed is checked.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);

/// Which runs are listed.
///
/// To list page by page, set `limit`, and for the next page `after` to the id of the last run of the page.
/// A page with fewer runs than `limit` is the last one. New runs are listed first, so they do not shift the
/// following pages.
#[derive(Debug, Clone, Default)]
pub struct RunQuery {
    /// At most this many.
    pub limit: Option<u32>,
    /// Only those after the run with this id in the list.
    pub after: Option<String>,
    /// Only those of the agent of that name.
    pub agent: Option<String>,
    /// Only those in that state.
    pub state: Option<RunState>,
    /// Only those of the task of that id.
    pub task_id: Option<String>,
    /// Only those of the principal of that name.
    pub principal: Option<String>,
    /// Only those that began at this time or later.
    pub since: Option<Timestamp>,
}

/// A run in a list.
#[derive(Debug, Clone)]
pub struct ListedRun {
    /// The summary of the run.
    pub summary: RunSummary,
    /// See [`RunStatus::waits_for_program`]; `None` while the run waits for an approval or answer.
    pub waits_for_program: Option<ProgramWait>,
}

/// The status of a run: its events, what it waits for, and what can be done about it.
#[derive(Debug, Clone)]
pub struct RunStatus {
    /// The summary of the run.
    pub summary: RunSummary,
    /// The run itself, unless its events were purged.
    pub run: Option<Run>,
    /// The outermost run, which a person or program started; itself if it is that one.
    pub outermost: RunId,
    /// The pending questions of the run and its child runs.
    pub questions: Vec<Approval>,
    /// The open holds of the run and its child runs.
    pub holds: Vec<Hold>,
    /// Why no worker resumes it, also while it waits for a person. `None` after its end.
    pub waits_for_program: Option<ProgramWait>,
    /// Whether a process drives it now.
    pub has_process: bool,
    /// The stop that keeps it from going on, if one does.
    pub stopped: Option<StopOrder>,
    /// What it and its child runs used up.
    pub usage: UsageSum,
}

/// Why a run waits for its program: a worker resumes only runs that it can bind identically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramWait {
    /// Its tools are functions of that program, which alone can resume it. The name may be unknown.
    Functions(Option<String>),
    /// What it was bound to is different now, such as a file that changed. A person can resume it all the
    /// same.
    Changed(Vec<String>),
    /// A worker tried and could not resume it, for this reason.
    Refused(String),
}

impl fmt::Display for ProgramWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Functions(Some(program)) => {
                write!(f, "its tools are functions of the program `{program}`")
            }
            Self::Functions(None) => {
                f.write_str("its tools are functions of the program that started it")
            }
            Self::Changed(differences) => f.write_str(&differences.join(", ")),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Replacements for the options a run was started with.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// Another library.
    pub library: Option<String>,
    /// Another model.
    pub model: Option<String>,
}

/// The result of cancelling a run.
#[derive(Debug, Clone)]
pub struct Cancellation {
    /// The run as it is now. It has not ended if its process did not stop it in time.
    pub summary: RunSummary,
    /// Whether another process had the run and stopped it.
    pub was_owned: bool,
}

impl Service {
    /// The runs of the identity's tenant, the latest first.
    ///
    /// # Errors
    /// If the identity may not read, or there is no run to list after.
    pub fn list_runs(
        &self,
        identity: &Identity,
        query: &RunQuery,
    ) -> Result<Vec<ListedRun>, ServiceError> {
        identity.require(Scope::Read)?;
        let filter = RunFilter {
            tenant: Some(identity.tenant().to_string()),
            limit: query.limit,
            agent: query.agent.clone(),
            state: query.state,
            task_id: query.task_id.clone(),
            principal: query.principal.clone(),
            since: query.since,
            after: match &query.after {
                Some(id) => Some(self.find_run(identity, id)?.0.run),
                None => None,
            },
        };
        let store = self.store()?;
        let pending = store.approval_summaries(&ApprovalFilter::pending(), self.now())?;
        let listed = store.runs(&filter)?.into_iter().map(|summary| {
            let is_asked = |asked: &ApprovalSummary| is_part_of(&asked.call.run, &summary.run);
            let waits_for_program = match pending.iter().any(is_asked) {
                true => None,
                false => waits_for_program(&store, &summary)?,
            };
            Ok(ListedRun {
                summary,
                waits_for_program,
            })
        });
        listed.collect()
    }

    /// The status of a run, by its id or a prefix of it.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no run or several.
    pub fn show_run(&self, identity: &Identity, id: &str) -> Result<RunStatus, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, id)?;
        let run = match store.fold(&summary.run) {
            Ok(run) => Some(run),
            Err(Error::Purged(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let (questions, holds) = self.pending_of(&store, &summary.run)?;
        let mut status = RunStatus {
            outermost: outermost::of(&store, &summary.run)?,
            waits_for_program: waits_for_program(&store, &summary)?,
            has_process: summary.state != RunState::Ended && store.is_owned(&summary.run)?,
            usage: store.usage_of_run(&summary.run)?,
            summary,
            run,
            questions,
            holds,
            stopped: None,
        };
        // A list of stops that cannot be read keeps runs from going on, not from being shown.
        status.stopped = self.stop_of(&status).unwrap_or_default();
        Ok(status)
    }

    /// A run, folded from its journal.
    ///
    /// # Errors
    /// If the identity may not read, the id matches no run or several, or its events were purged.
    pub fn run(&self, identity: &Identity, id: &str) -> Result<Run, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, id)?;
        Ok(store.fold(&summary.run)?)
    }

    /// The journal of a run as JSON Lines.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no run or several.
    pub fn export_run(&self, identity: &Identity, id: &str) -> Result<String, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, id)?;
        let mut lines = Vec::new();
        store.export(&summary.run, &mut lines)?;
        Ok(String::from_utf8_lossy(&lines).into_owned())
    }

    /// The id of the outermost run of the identity's tenant that started last.
    ///
    /// # Errors
    /// If the identity may not read, or there is no run.
    pub fn latest_run(&self, identity: &Identity) -> Result<RunId, ServiceError> {
        identity.require(Scope::Read)?;
        let latest = self.store()?.latest_run(identity.tenant().as_str())?;
        latest.ok_or_else(|| ServiceError::not_found("no_such_run", "there are no runs"))
    }

    /// The pending questions and the open holds of a run and its child runs.
    fn pending_of(
        &self,
        store: &Store,
        run: &RunId,
    ) -> Result<(Vec<Approval>, Vec<Hold>), ServiceError> {
        let mut questions = store.approvals(&ApprovalFilter::pending(), self.now())?;
        questions.retain(|question| is_part_of(question.run(), run));
        let mut holds = store.holds(&HoldFilter::default())?;
        holds.retain(|hold| hold.status().is_open() && is_part_of(hold.run(), run));
        Ok((questions, holds))
    }

    /// Resumes a run that was stopped, waits, or whose process ended, and drives it. A run that has ended is
    /// only read back.
    ///
    /// # Errors
    /// If the identity may not run agents, the id matches no run or several, it is a child run, it
    /// cannot be bound, or another process has it.
    pub async fn resume(
        &self,
        identity: &Identity,
        id: &str,
        options: &ResumeOptions,
        attachment: Attachment,
    ) -> Result<Run, ServiceError> {
        identity.require(Scope::Run)?;
        let (service, caller) = (self.clone(), identity.clone());
        let (id, options) = (id.to_owned(), options.clone());
        let ready = blocking(move || service.prepare_resume(&caller, &id, &options)).await?;
        let run = match ready {
            Resumption::Ended(run) => *run,
            Resumption::Bound(run, bound, accepted) => {
                let driver = bound.driver(identity, attachment)?;
                driver.resume_accepting(&run, accepted).await?
            }
        };
        self.keep_answer_of(run).await
    }

    fn prepare_resume(
        &self,
        identity: &Identity,
        id: &str,
        options: &ResumeOptions,
    ) -> Result<Resumption, ServiceError> {
        let instead = RunOptions {
            library: options.library.iter().cloned().collect(),
            model: options.model.clone(),
            ..RunOptions::default()
        };
        self.require_for_options(identity, &instead)?;
        let (summary, store) = self.find_run(identity, id)?;
        let id = summary.run;
        let run = store.fold(&id)?;
        if let Some(parent) = run.parent() {
            return Err(
                ServiceError::failed(format!("the run {id} is a child of another run")).with_hint(
                    format!("resume the parent: `windlass runs resume {}`", parent.run),
                ),
            );
        }
        // A process may have died after the last event and before it marked the run as ended.
        if summary.state == RunState::Ended {
            return Ok(Resumption::Ended(Box::new(run)));
        }
        let mut stored = self.stored_options(&run)?;
        stored.answered = answered(&store, &run)?;
        if let Some(library) = &options.library {
            stored.library = vec![library.clone()];
        }
        if let Some(model) = &options.model {
            stored.model = Some(model.clone());
        }
        let project = self.project_of(&stored)?;
        let binding = stored.binding.clone();
        let files = binding.as_ref().map(|binding| ResumedFiles {
            run: &run,
            binding,
            started_at: summary.started_at,
            has_other_library: options.library.is_some(),
        });
        let accepted = match &files {
            Some(files) => self.accept_changed_files(&project, files, &stored)?,
            None => BTreeMap::new(),
        };
        let bound = self.bind_again(identity, &run, &stored)?;
        // The files are compared before and after binding, so that a change in between is detected.
        let changed = files.map(|files| files.changed(&stored, &project, &accepted));
        if let Some(path) = changed.iter().flat_map(|changed| changed.keys()).next() {
            let message = format!(
                "`{}` changed while the run was being resumed",
                path.display()
            );
            let hint = "resume the run again";
            return Err(ServiceError::conflict("changed_files", message).with_hint(hint));
        }
        if run.task().call.is_none() {
            self.notify(&Notice::Model(bound.model().to_owned()));
        }
        Ok(Resumption::Bound(id, Box::new(bound), accepted))
    }

    /// Leaves a run that was stopped to the next worker, which resumes it. Nothing happens to a run that waits for a person
    /// or that another process drives. Returns the id of the run.
    ///
    /// # Errors
    /// If the identity may not run agents, the id matches no run or several, it has ended, or it is a child run.
    pub fn leave_to_worker(&self, identity: &Identity, id: &str) -> Result<RunId, ServiceError> {
        identity.require(Scope::Run)?;
        let (summary, store) = self.find_run(identity, id)?;
        let outermost = outermost::of(&store, &summary.run)?;
        if outermost != summary.run {
            let message = format!("the run {} is a child of another run", summary.run);
            return Err(ServiceError::conflict("child_run", message)
                .with_hint(format!("resume the run `{outermost}`")));
        }
        match summary.state {
            RunState::Ended => Err(Error::Ended(summary.run).into()),
            RunState::Waiting => Ok(summary.run),
            RunState::Open => {
                if !store.is_owned(&summary.run)? {
                    store.mark_abandoned(&summary.run)?;
                }
                Ok(summary.run)
            }
        }
    }

    /// Cancels a run and its child runs. A process that owns it gets a command and has [`CANCEL_TIMEOUT`] to
    /// stop; a run without an owner is ended here.
    ///
    /// # Errors
    /// If the identity may not run agents, the id matches no run or several, or it has already ended or ends by
    /// itself.
    pub async fn cancel_run(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<Cancellation, ServiceError> {
        identity.require(Scope::Run)?;
        let (service, caller, id) = (self.clone(), identity.clone(), id.to_owned());
        let requested = blocking(move || service.request_cancel(&caller, &id)).await?;
        let (id, inner, store) = requested;
        // The child runs first: while the outer run is open, cancelling can be repeated.
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        for run in &inner {
            self.end_run(run, identity, deadline).await?;
        }
        let ended = self.end_run(&id, identity, deadline).await?;
        let summary = store.summary(&id)?;
        let has_ended = summary.state == RunState::Ended;
        let end = summary.end.as_ref().filter(|_| has_ended);
        if let Some(end) = end.filter(|end| **end != RunEnd::Cancelled) {
            let end = json!(end);
            let end = end["end"].as_str().unwrap_or_default();
            let message = format!("the run `{id}` ended before it could be cancelled: {end}");
            return Err(ServiceError::conflict("ended", message));
        }
        Ok(Cancellation {
            summary,
            was_owned: ended == Ended::Elsewhere,
        })
    }

    /// Sends a cancel command to the owners of a run and its child runs.
    fn request_cancel(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<(RunId, Vec<RunId>, Arc<Store>), ServiceError> {
        let (summary, store) = self.find_run(identity, id)?;
        let (id, person) = (summary.run, identity.person());
        store.request_cancel(&id, person, self.now())?;
        let inner = inner_runs(&store, &id)?;
        for run in &inner {
            match store.request_cancel(run, person, self.now()) {
                // The owner of the outer run may have stopped it already.
                Ok(()) | Err(Error::Ended(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((id, inner, store))
    }

    /// Ends a run without an owner; else waits for its owner.
    async fn end_run(
        &self,
        run: &RunId,
        identity: &Identity,
        deadline: Instant,
    ) -> Result<Ended, ServiceError> {
        let stored = self.stored_for(identity)?;
        loop {
            match cancel_unowned(&stored, run, identity.principal()).await {
                Ok(_) => {
                    let (service, run) = (self.clone(), run.clone());
                    blocking(move || service.keep_stored_answer(&run)).await?;
                    return Ok(Ended::Here);
                }
                Err(DriveError::Durable(DurableError::RunEnded(_))) => return Ok(Ended::Elsewhere),
                Err(DriveError::Durable(DurableError::OwnedElsewhere(_))) => {
                    if Instant::now() >= deadline {
                        return Ok(Ended::Elsewhere);
                    }
                    tokio::time::sleep(CANCEL_PERIOD).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The events of a run from a position on (0 for all), live, until the run ends.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no run or several.
    pub fn events(
        &self,
        identity: &Identity,
        id: &str,
        from: u64,
    ) -> Result<RunEvents, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, _) = self.find_run(identity, id)?;
        Ok(RunEvents {
            stored: self.stored_for(identity)?,
            run: summary.run,
            next: from,
            ready: Vec::new().into_iter(),
        })
    }
}

/// The live events of a run. No event is lost or repeated: each has a position, and a reader continues after
/// the last one it had.
pub struct RunEvents {
    stored: Stored,
    run: RunId,
    next: u64,
    ready: std::vec::IntoIter<(u64, Event)>,
}

impl fmt::Debug for RunEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunEvents")
            .field("run", &self.run)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl RunEvents {
    /// The next event with its position; `None` after the last event of a run that has ended. Waits while
    /// there is none.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn next(&mut self) -> Result<Option<(u64, Event)>, ServiceError> {
        loop {
            if let Some((position, event)) = self.ready.next() {
                self.next = position + 1;
                return Ok(Some((position, event)));
            }
            // The state is read before the events, so that the last events are read after the end is known.
            let (store, run) = (Arc::clone(self.stored.store()), self.run.clone());
            let summary = blocking(move || Ok(store.summary(&run)?)).await?;
            let has_ended = summary.state == RunState::Ended;
            let events = self.stored.events_from(&self.run, self.next).await?;
            match (events.is_empty(), has_ended) {
                (true, true) => return Ok(None),
                (true, false) => tokio::time::sleep(FOLLOW_PERIOD).await,
                (false, _) => self.ready = events.into_iter(),
            }
        }
    }
}

/// A run that is prepared to be resumed.
enum Resumption {
    /// It has ended; there is nothing to resume.
    Ended(Box<Run>),
    /// It is bound, on these changed files that the user accepted.
    Bound(RunId, Box<BoundAgent>, BTreeMap<String, String>),
}

/// Why a run waits for its program, if it does.
pub(crate) fn waits_for_program(
    store: &Store,
    summary: &RunSummary,
) -> Result<Option<ProgramWait>, ServiceError> {
    if summary.state == RunState::Ended || store.is_owned(&summary.run)? {
        return Ok(None);
    }
    let first = match store.first_event(&summary.run) {
        Ok(first) => first,
        // The run can be listed, and is not resumed.
        Err(error @ (Error::Altered { .. } | Error::KeyUnusable(_))) => {
            return Ok(Some(ProgramWait::Refused(error.to_string())));
        }
        Err(error) => return Err(error.into()),
    };
    // A child run is resumed with its parent.
    let Some(Event::Started {
        assembly,
        parent: None,
        ..
    }) = first
    else {
        return Ok(None);
    };
    Ok(match StoredBinding::of_assembly(&assembly) {
        StoredBinding::Program(program) => Some(ProgramWait::Functions(program)),
        StoredBinding::Options(options) => {
            let changed = options.binding.map(|binding| binding.changed_files());
            let changed = changed.filter(|changed| !changed.is_empty());
            match changed.map(ProgramWait::Changed) {
                Some(changed) => Some(changed),
                None => store.refusal(&summary.run)?.map(ProgramWait::Refused),
            }
        }
    })
}

/// Which process ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Here,
    /// Its owner, or none yet.
    Elsewhere,
}

/// The child runs of a run that are not over, the innermost first.
fn inner_runs(store: &Store, outer: &RunId) -> Result<Vec<RunId>, ServiceError> {
    let mut inner = Vec::new();
    for state in [RunState::Open, RunState::Waiting] {
        let filter = RunFilter {
            state: Some(state),
            ..RunFilter::default()
        };
        let runs = store.runs(&filter)?.into_iter().map(|run| run.run);
        inner.extend(runs.filter(|run| run != outer && is_part_of(run, outer)));
    }
    inner.sort_by_key(|run| std::cmp::Reverse(run.as_str().len()));
    Ok(inner)
}

/// How often models answered in a run and its child runs. All of them share a script, so this many of its
/// answers were used.
pub(crate) fn answered(store: &Store, run: &Run) -> Result<usize, Error> {
    let mut answered = match run.task().call {
        Some(_) => 0,
        None => run.turns().len(),
    };
    let children = run.calls().filter_map(|call| run.child_run(call));
    for child in children.chain(run.all_task_runs()) {
        match store.fold(&child) {
            Ok(child) => answered += self::answered(store, &child)?,
            // The process died before the child run started.
            Err(Error::NoSuchRun(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answered)
}
