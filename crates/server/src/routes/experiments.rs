//! Experiments: the same tasks with two libraries. They run in the background and can be polled.

use axum::http::{HeaderName, Method, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_service::types::{Stop, TaskInput};
use windlass_service::{
    ExperimentMetric, ExperimentRequest, ExperimentState, ExperimentStatus, RunOptions, Scope,
    Service,
};

use crate::app::blocking;
use crate::call::{Call, Nothing, Reply};
use crate::page::Page;
use crate::problem::{Problem, without_directories};
use crate::route::Route;
use crate::routes::runs::Limits;
use crate::shapes::Time;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/v1/experiments"),
            (
                "start_experiment",
                "Start an experiment, or continue one with the runs that it has",
            ),
            Scope::Run,
            start_experiment,
        )
        .starting_run(),
        Route::new(
            (Method::GET, "/v1/experiments"),
            (
                "list_experiments",
                "List the experiments that were started at this server since it began, the latest first",
            ),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/experiments/{experiment}"),
            (
                "show_experiment",
                "Show an experiment with its findings and verdicts",
            ),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::POST, "/v1/experiments/{experiment}/stop"),
            (
                "stop_experiment",
                "Stop an experiment after the present steps of its runs",
            ),
            Scope::Run,
            stop,
        )
        .answering(
            StatusCode::ACCEPTED,
            "It stops. It can be continued with `resume`.",
        ),
    ]
}

/// An experiment to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartExperiment {
    /// The name of the agent.
    agent: String,
    /// The library of arm A.
    a: String,
    /// The library of arm B.
    b: String,
    /// The tasks.
    #[schemars(length(min = 1, max = 10_000))]
    tasks: Vec<TaskInput>,
    /// Libraries that both arms use in addition.
    #[serde(default)]
    libraries: Vec<String>,
    /// How often each task runs in each arm, once if absent.
    #[schemars(range(min = 1, max = 100_000))]
    runs: Option<u32>,
    /// What is compared: `success`, `iterations`, `latency`, `cost` or `check:COMMAND`. The first is the primary metric.
    /// `success` and `iterations` if absent.
    #[serde(default)]
    metrics: Vec<String>,
    /// The seed of the order, 1 if absent.
    seed: Option<u64>,
    /// The significance level, 0.05 if absent.
    #[schemars(range(min = 0.0001, max = 0.5))]
    alpha: Option<f64>,
    /// Whether it stops as soon as the first metric is decided.
    #[serde(default)]
    early_stop: bool,
    /// How many pairs run at the same time, one if absent.
    #[schemars(range(min = 1, max = 64))]
    jobs: Option<u16>,
    /// Its name; derived from its parts if absent.
    #[schemars(length(min = 1, max = 100))]
    name: Option<String>,
    /// Whether it continues with the runs that it has. The other fields must be the same as before.
    #[serde(default)]
    resume: bool,
    /// Limits of each run; the defaults of the server if absent.
    #[serde(default)]
    limits: Limits,
}

impl StartExperiment {
    fn request(&self) -> Result<ExperimentRequest, Problem> {
        let invalid = |detail: &str| {
            Problem::new(422, "does_not_fit", "The body does not fit").with_detail(detail)
        };
        let runs = self.runs.unwrap_or(1);
        let jobs = self.jobs.unwrap_or(1);
        let alpha = self.alpha.unwrap_or(0.05);
        let name_length = self.name.as_ref().map_or(1, |name| name.chars().count());
        if !(1..=10_000).contains(&self.tasks.len()) {
            return Err(invalid("`tasks` has 1 to 10000 items"));
        }
        if !(1..=100_000).contains(&runs) {
            return Err(invalid("`runs` is 1 to 100000"));
        }
        if !(1..=64).contains(&jobs) {
            return Err(invalid("`jobs` is 1 to 64"));
        }
        if !(0.000_1..=0.5).contains(&alpha) {
            return Err(invalid("`alpha` is 0.0001 to 0.5"));
        }
        if !(1..=100).contains(&name_length) {
            return Err(invalid("`name` has 1 to 100 characters"));
        }
        Ok(ExperimentRequest {
            name: self.name.clone(),
            a: self.a.clone(),
            b: self.b.clone(),
            tasks: self.tasks.clone(),
            runs,
            metrics: ExperimentMetric::parse_all(&self.metrics)?,
            seed: self.seed.unwrap_or(1),
            alpha,
            is_resumed: self.resume,
            stops_early: self.early_stop,
            jobs: jobs.into(),
            options: RunOptions {
                library: self.libraries.clone(),
                ..RunOptions::default()
            },
            settings: self.limits.settings(),
        })
    }
}

/// Where an experiment is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ExperimentStateName {
    /// Its pairs run.
    Running,
    /// All pairs ran.
    Done,
    /// Some runs wait for a person. Continue it with `resume` when they have ended.
    Waiting,
    /// It was stopped before all pairs ran. It can be continued with `resume`.
    Stopped,
    /// It failed.
    Failed,
}

/// Why an experiment failed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ExperimentProblem {
    /// The reason, for programs.
    code: String,
    /// What happened.
    detail: String,
}

/// An experiment.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ExperimentItem {
    /// Its name.
    experiment: String,
    /// The agent.
    agent: String,
    /// Who started it.
    principal: String,
    /// Where it is.
    state: ExperimentStateName,
    /// When it was started.
    started_at: Time,
    /// When it ended.
    ended_at: Option<Time>,
    /// How many pairs of runs it has.
    pairs: u64,
    /// How many of them were run, or found in the store.
    pairs_done: u64,
    /// Why it failed.
    problem: Option<ExperimentProblem>,
    /// What was found, after its end: `metrics` with their verdicts, `guard_rails`, `pairs` and `results`, as
    /// `windlass ab --json` prints it. Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Map<String, Value>>,
}

impl ExperimentItem {
    fn of(status: &ExperimentStatus) -> Self {
        Self {
            experiment: status.name.clone(),
            agent: status.agent.clone(),
            principal: status.principal.clone(),
            state: match status.state {
                ExperimentState::Running => ExperimentStateName::Running,
                ExperimentState::Done => ExperimentStateName::Done,
                ExperimentState::Waiting => ExperimentStateName::Waiting,
                ExperimentState::Stopped => ExperimentStateName::Stopped,
                ExperimentState::Failed => ExperimentStateName::Failed,
            },
            started_at: Time(status.started_at.to_string()),
            ended_at: status.ended_at.map(|at| Time(at.to_string())),
            pairs: status.pairs as u64,
            pairs_done: status.pairs_done as u64,
            problem: status.error.as_ref().map(|error| ExperimentProblem {
                code: error.code().to_owned(),
                detail: without_directories(error.message()),
            }),
            findings: None,
        }
    }

    fn with_findings(status: &ExperimentStatus) -> Self {
        let findings = match json!(status.findings) {
            Value::Object(findings) => Some(findings),
            _ => None,
        };
        Self {
            findings,
            ..Self::of(status)
        }
    }
}

async fn start_experiment(
    call: Call<Nothing, StartExperiment>,
) -> Result<Reply<ExperimentItem>, Problem> {
    let request = call.body.request()?;
    let (app, identity) = (call.app.clone(), call.identity().clone());
    app.check_open()?;
    let (key, fingerprint) = (call.idempotency_key()?, call.fingerprint.clone());
    let agent = call.body.agent.clone();
    // A task of its own: it is not dropped if the client hangs up.
    let started = tokio::spawn(async move {
        let (service, stop) = (app.service.clone(), app.stop.clone());
        let begun = tokio::task::spawn_blocking(move || {
            let key = match key {
                Some(key) => Some(
                    service
                        .reserve_run(&identity, &key, &fingerprint)?
                        .to_string(),
                ),
                None => None,
            };
            if let Some(key) = &key
                && let Some(known) = service.experiment_of_request(&identity, key)?
            {
                return Ok((known, None));
            }
            let found = service.show_agent(&identity, &agent)?;
            let experiment = service.prepare_experiment(&identity, &found.declared, request)?;
            // Stopping the server does not cancel its runs.
            let stop = Stop {
                after_step: stop.after_step,
                ..Stop::default()
            };
            let begun = service.begin_experiment(&identity, experiment, key, &stop)?;
            Ok((begun.status(), Some(begun)))
        });
        let begun = begun.await.map_err(|error| Problem::internal(&error))?;
        let (status, begun) = begun.map_err(Problem::of_configuration)?;
        let (done, driven) = tokio::sync::oneshot::channel::<()>();
        if let Some(begun) = begun {
            let mut runs = app.runs.lock().await;
            while runs.try_join_next().is_some() {}
            runs.spawn(async move {
                begun.drive().await;
                drop(done);
            });
        }
        Ok::<_, Problem>((status, driven))
    });
    let (mut status, driven) = started.await.map_err(|error| Problem::internal(&error))??;
    if let Some(wait) = call.wait() {
        tokio::select! {
            _ = driven => {}
            () = tokio::time::sleep(wait) => {}
            () = call.app.closing.cancelled() => {}
        }
        let (service, identity, name) = (
            call.app.service.clone(),
            call.identity().clone(),
            status.name.clone(),
        );
        status = blocking(move || service.show_experiment(&identity, &name)).await?;
    }
    let code = match status.state {
        ExperimentState::Running => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    let location = format!("/v1/experiments/{}", status.name);
    let reply = Reply::with(code, ExperimentItem::with_findings(&status));
    let reply = reply.header(header::LOCATION, location);
    Ok(match call.wait() {
        Some(wait) => {
            let applied = HeaderName::from_static("preference-applied");
            reply.header(applied, format!("wait={}", wait.as_secs()))
        }
        None => reply,
    })
}

async fn list(call: Call) -> Result<Reply<Page<ExperimentItem>>, Problem> {
    let listed = call
        .operate(|service, identity, _| service.list_experiments(identity))
        .await?;
    let items = listed.iter().map(ExperimentItem::of);
    Ok(Reply::ok(Page::whole(items.collect())))
}

async fn show(call: Call) -> Result<Reply<ExperimentItem>, Problem> {
    let shown = call.operate(Service::show_experiment).await?;
    Ok(Reply::ok(ExperimentItem::with_findings(&shown)))
}

async fn stop(call: Call) -> Result<Reply<ExperimentItem>, Problem> {
    let stopped = call.operate(Service::stop_experiment).await?;
    let reply = Reply::with(StatusCode::ACCEPTED, ExperimentItem::of(&stopped));
    Ok(reply)
}
