//! Starts runs for requests. A request may be repeated with its key, and a client may hang up at any moment: a run that
//! was begun is driven all the same.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, StatusCode, header};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use windlass_service::types::{RunId, RunState, Stop};
use windlass_service::{Attachment, BoundAgent, Identity, NewRun, Service, ServiceError};

use crate::app::{App, blocking};
use crate::call::{Call, Reply};
use crate::problem::Problem;
use crate::shapes::{RunDetails, Shape, run_details};

/// How often a run is checked that another process drives.
pub(crate) const CHECK_PERIOD: Duration = Duration::from_millis(100);

/// How often a run is checked that another request starts, and for how long.
const START_CHECK_PERIOD: Duration = Duration::from_millis(10);
const LONGEST_START: Duration = Duration::from_secs(10);

/// A run that a request wants to start.
pub(crate) struct Prepared {
    pub(crate) bound: BoundAgent,
    pub(crate) new: NewRun,
}

/// A run that a request started, or had started before.
pub(crate) struct StartedRun {
    pub(crate) run: RunId,
    /// Ends when this process does not drive the run any more.
    driven: Option<Shared<BoxFuture<'static, ()>>>,
}

/// Starts the run that `prepare` binds, unless a request with the same key did before.
pub(crate) async fn start<Q, B>(
    call: &Call<Q, B>,
    prepare: impl FnOnce(&Service, &Identity) -> Result<Prepared, ServiceError> + Send + 'static,
) -> Result<StartedRun, Problem> {
    let (app, identity) = (Arc::clone(&call.app), call.identity().clone());
    let (key, fingerprint) = (call.idempotency_key()?, call.fingerprint.clone());
    app.check_open()?;
    // A task of its own: it is not dropped if the client hangs up.
    let started = tokio::spawn(async move {
        let reserved = match key {
            Some(key) => {
                let (service, identity) = (app.service.clone(), identity.clone());
                let reserved = move || {
                    let run = service.reserve_run(&identity, &key, &fingerprint)?;
                    let is_known = service.show_run(&identity, run.as_str()).is_ok();
                    Ok((run, is_known))
                };
                Some(blocking(reserved).await?)
            }
            None => None,
        };
        match reserved {
            Some((run, true)) => Ok(StartedRun::existing(run)),
            Some((run, false)) => begin(&app, &identity, Some(run), prepare).await,
            None => begin(&app, &identity, None, prepare).await,
        }
    });
    started.await.map_err(|error| Problem::internal(&error))?
}

/// Starts the run that `prepare` binds, with this id if it is given one. If another request starts it, waits for that one.
pub(crate) async fn begin(
    app: &Arc<App>,
    identity: &Identity,
    reserved: Option<RunId>,
    prepare: impl FnOnce(&Service, &Identity) -> Result<Prepared, ServiceError> + Send + 'static,
) -> Result<StartedRun, Problem> {
    let (service, caller) = (app.service.clone(), identity.clone());
    let prepared = tokio::task::spawn_blocking(move || prepare(&service, &caller)).await;
    let prepared = prepared.map_err(|error| Problem::internal(&error))?;
    let Prepared { bound, mut new } = prepared.map_err(Problem::of_configuration)?;
    new.run.clone_from(&reserved);
    let attachment = Attachment {
        // Stopping the server does not cancel its runs.
        stop: Stop {
            after_step: app.stop.after_step.clone(),
            ..Stop::default()
        },
        watch: Some(app.watch()),
        ..Attachment::default()
    };
    let begun = match (bound.begin(identity, new, attachment).await, reserved) {
        (Ok(begun), _) => begun,
        // The same request is being answered elsewhere.
        (Err(error), Some(run)) if ["run_exists", "owned_elsewhere"].contains(&error.code()) => {
            until_stored(app, identity, &run).await?;
            return Ok(StartedRun::existing(run));
        }
        (Err(error), _) => return Err(error.into()),
    };
    let run = begun.id().clone();
    let Ok(permit) = Arc::clone(&app.run_permits).try_acquire_owned() else {
        blocking(move || begun.leave_to_worker()).await?;
        return Ok(StartedRun::existing(run));
    };
    let (done, driven) = tokio::sync::oneshot::channel::<()>();
    let id = run.clone();
    let mut runs = app.runs.lock().await;
    while runs.try_join_next().is_some() {}
    runs.spawn(async move {
        // The worker resumes it.
        if let Err(error) = begun.drive_or_leave().await {
            tracing::warn!(run.id = %id, error.type = error.code(), "a run was not driven on");
            tracing::trace!(run.id = %id, %error, "a run was not driven on");
        }
        drop(permit);
        drop(done);
    });
    let driven = driven.map(drop).boxed().shared();
    Ok(StartedRun {
        run,
        driven: Some(driven),
    })
}

/// Waits until the start of a run is stored that another request with the same key begins.
async fn until_stored(app: &App, identity: &Identity, run: &RunId) -> Result<(), Problem> {
    let stored = async {
        loop {
            let (service, identity, run) = (app.service.clone(), identity.clone(), run.clone());
            let is_known = move || Ok(service.show_run(&identity, run.as_str()).is_ok());
            if blocking(is_known).await? {
                return Ok(());
            }
            tokio::time::sleep(START_CHECK_PERIOD).await;
        }
    };
    match tokio::time::timeout(LONGEST_START, stored).await {
        Ok(stored) => stored,
        Err(_) => {
            let title = "A request with the same key is still starting the run";
            Err(Problem::new(409, "being_started", title)
                .with_hint("repeat the request with its key")
                .retry_after(1))
        }
    }
}

impl StartedRun {
    /// A run that this request did not start.
    pub(crate) const fn existing(run: RunId) -> Self {
        Self { run, driven: None }
    }

    /// Waits until this process does not drive the run any more. Returns at once if it never did.
    pub(crate) fn driven(&self) -> impl Future<Output = ()> + Send + use<> {
        let driven = self.driven.clone();
        async move {
            if let Some(driven) = driven {
                driven.await;
            }
        }
    }

    /// Waits as long as the caller prefers, and answers with the run as it is then.
    pub(crate) async fn reply<Q, B>(
        self,
        call: &Call<Q, B>,
    ) -> Result<Reply<Shape<RunDetails>>, Problem> {
        let is_over = match call.wait() {
            Some(wait) => tokio::time::timeout(wait, self.wait(&call.app, call.identity()))
                .await
                .is_ok_and(|over| over),
            None => false,
        };
        let location = format!("/v1/runs/{}", self.run);
        let run = self.run.to_string();
        let details = call
            .operate(move |service, identity, _| run_details(&service.show_run(identity, &run)?))
            .await?;
        let status = match is_over {
            true => StatusCode::OK,
            false => StatusCode::ACCEPTED,
        };
        let reply = Reply::with(status, details).header(header::LOCATION, location);
        Ok(match call.wait() {
            Some(wait) => {
                let applied = HeaderName::from_static("preference-applied");
                reply.header(applied, format!("wait={}", wait.as_secs()))
            }
            None => reply,
        })
    }

    /// Waits until the run has ended or needs a person. Returns false if the server stops before.
    async fn wait(&self, app: &Arc<App>, identity: &Identity) -> bool {
        loop {
            tokio::select! {
                () = self.driven() => {}
                () = app.closing.cancelled() => return false,
            }
            let (service, identity) = (app.service.clone(), identity.clone());
            let run = self.run.to_string();
            let state = blocking(move || Ok(service.show_run(&identity, &run)?.summary.state));
            if matches!(state.await, Ok(RunState::Ended | RunState::Waiting)) {
                return true;
            }
            tokio::select! {
                () = tokio::time::sleep(CHECK_PERIOD) => {}
                () = app.closing.cancelled() => return false,
            }
        }
    }
}
