//! Measures runs: success, effort, and guard rails.

use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::ChildStderr;
use windlass_core::model::Cost;
use windlass_core::run::{Entry, Event, Run, RunEnd};
use windlass_learn::ab::Measure;
use windlass_policy::Verdict;
use windlass_runtime::answer_matches;
use windlass_spawn::Isolation;
use windlass_spec::{ErrorCategory, IsolationLevel, Money, ProgramAccess, TaskInput};
use windlass_store::Store;

use crate::error::ServiceError;
use crate::libraries::unknown_name_message;
use crate::options::Notice;
use crate::service::Service;

/// The timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// How long to wait for its standard error after it ended.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

const CHECK: &str = "check:";

/// A metric that arms are compared by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExperimentMetric {
    /// Whether a run did what it was asked.
    Success,
    /// How many turns it took.
    Iterations,
    /// How long it took.
    Latency,
    /// What it cost, in money if all prices are known, else in tokens.
    Cost,
    /// The exit code of a shell command that gets the run on its standard input.
    Check(String),
}

impl ExperimentMetric {
    /// The metrics of these names, or the default ones if there are none.
    ///
    /// # Errors
    /// If there is no such metric, or one is named twice.
    pub fn parse_all(named: &[String]) -> Result<Vec<Self>, ServiceError> {
        if named.is_empty() {
            return Ok(vec![Self::Success, Self::Iterations]);
        }
        let mut all = Vec::new();
        for name in named {
            let metric = Self::parse(name)?;
            if all.contains(&metric) {
                let message = format!("the metric `{name}` is named twice");
                return Err(ServiceError::invalid("named_twice", message));
            }
            all.push(metric);
        }
        Ok(all)
    }

    fn parse(name: &str) -> Result<Self, ServiceError> {
        if let Some(command) = name.strip_prefix(CHECK) {
            if command.trim().is_empty() {
                return Err(
                    ServiceError::invalid("no_command", "the check has no command")
                        .with_hint("--metric 'check:jq -e .response.answer'"),
                );
            }
            return Ok(Self::Check(command.to_owned()));
        }
        Ok(match name {
            "success" => Self::Success,
            "iterations" => Self::Iterations,
            "latency" => Self::Latency,
            "cost" => Self::Cost,
            other => {
                let known = ["success", "iterations", "latency", "cost"];
                let message = unknown_name_message("metric", other, &known, "this program");
                return Err(ServiceError::invalid("unknown_metric", message)
                    .with_hint("use `check:COMMAND` for a command that checks runs"));
            }
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Success => "success".to_owned(),
            Self::Iterations => "iterations".to_owned(),
            Self::Latency => "latency".to_owned(),
            Self::Cost => "cost".to_owned(),
            Self::Check(command) => format!("{CHECK}{command}"),
        }
    }

    /// How it is analysed.
    pub(super) fn measure(&self) -> Measure {
        match self {
            Self::Success | Self::Check(_) => Measure::SUCCESS,
            Self::Iterations | Self::Latency | Self::Cost => Measure::EXPENSE,
        }
    }

    /// Its value for a run.
    pub(super) fn of(&self, measured: &RunMeasurements, cost_in: CostIn) -> Option<f64> {
        Some(match self {
            Self::Success => f64::from(u8::from(measured.success)),
            Self::Iterations => measured.iterations as f64,
            Self::Latency => measured.latency_ms as f64,
            Self::Cost => match cost_in {
                CostIn::Tokens => measured.tokens as f64,
                CostIn::Microdollars => measured.microdollars? as f64,
            },
            Self::Check(command) => {
                let (_, is_good) = measured.checks.iter().find(|(name, _)| name == command)?;
                f64::from(u8::from(*is_good))
            }
        })
    }
}

/// The unit of cost: money only if the price of every run is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CostIn {
    Tokens,
    Microdollars,
}

/// An event that should not happen more often in an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardRail {
    Errors,
    Denials,
    Undos,
    Approvals,
}

impl GuardRail {
    pub(super) const ALL: [Self; 4] = [Self::Errors, Self::Denials, Self::Undos, Self::Approvals];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Errors => "errors",
            Self::Denials => "denials",
            Self::Undos => "undos",
            Self::Approvals => "approvals",
        }
    }

    pub(super) fn of(self, measured: &RunMeasurements) -> f64 {
        let count = match self {
            Self::Errors => measured.errors,
            Self::Denials => measured.denials,
            Self::Undos => measured.undos,
            Self::Approvals => measured.approvals,
        };
        count as f64
    }
}

/// The measurements of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunMeasurements {
    /// The run.
    pub run: String,
    /// Whether it did what it was asked.
    pub success: bool,
    /// How many turns it took.
    pub iterations: u64,
    /// How long it worked, in milliseconds.
    pub latency_ms: u64,
    /// How many tokens it used.
    pub tokens: u64,
    /// What it cost in millionths of a dollar, if it cost money and all prices are known. Free answers are compared
    /// by their tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microdollars: Option<u64>,
    /// The result of each check, by its command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<(String, bool)>,
    /// How many calls failed.
    pub errors: u64,
    /// How many calls were denied.
    pub denials: u64,
    /// How many calls were undone.
    pub undos: u64,
    /// How many approvals were asked for.
    pub approvals: u64,
}

/// Whether an end counts for the arm. A run that a provider or a person interrupted does not.
pub(super) fn is_outcome(end: &RunEnd) -> bool {
    match end {
        RunEnd::Completed | RunEnd::IterationLimit | RunEnd::Budget { .. } => true,
        RunEnd::Cancelled | RunEnd::WaitingForPerson | RunEnd::WaitingForCaller { .. } => false,
        RunEnd::Failed { category, .. } => !matches!(
            category,
            ErrorCategory::RateLimited
                | ErrorCategory::Unavailable
                | ErrorCategory::Authentication
                | ErrorCategory::Timeout
                | ErrorCategory::Cancelled
        ),
    }
}

/// Measures a run that has ended.
///
/// # Errors
/// If its journal cannot be read, or a check cannot be made.
pub(super) async fn measure(
    run: &Run,
    task: &TaskInput,
    metrics: &[ExperimentMetric],
    service: &Service,
    store: &Store,
) -> Result<RunMeasurements, ServiceError> {
    let usage = run.usage();
    let mut checks = Vec::new();
    for metric in metrics {
        if let ExperimentMetric::Check(command) = metric {
            checks.push((command.clone(), check(command, run, task, service).await?));
        }
    }
    let permitted = || run.calls().filter(|call| call.was_permitted());
    let errors = permitted().filter(|call| matches!(call.outcome(), Some(Err(_))));
    let entries = run.turns().iter().flat_map(|turn| &turn.entries);
    let denials = entries.filter(|entry| match entry {
        Entry::Call { decision, .. } => decision
            .as_ref()
            .is_some_and(|decision| decision.verdict() == Verdict::Deny),
        Entry::Mistake { .. } | Entry::Finish => false,
    });
    let (errors, denials) = (errors.count() as u64, denials.count() as u64);
    let (mut undos, mut approvals) = (0, 0);
    for (_, event) in store.events(run.id())? {
        match event {
            Event::Undone { .. } => undos += 1,
            Event::Asked { .. } => approvals += 1,
            _ => {}
        }
    }
    Ok(RunMeasurements {
        run: run.id().to_string(),
        success: is_success(run, task),
        iterations: run.turns().len() as u64,
        latency_ms: u64::try_from(run.working_time().as_millis())?,
        tokens: usage.tokens(),
        microdollars: match usage.cost() {
            Cost::Known(money) if money > Money::ZERO => Some(money.as_microdollars()),
            _ => None,
        },
        checks,
        errors,
        denials,
        undos,
        approvals,
    })
}

/// Whether a run succeeded: it completed, its last permitted call succeeded, and its answer is the expected one,
/// if there is one.
fn is_success(run: &Run, task: &TaskInput) -> bool {
    let last = run.calls().filter(|call| call.was_permitted()).last();
    let has_succeeded = last.is_none_or(|call| matches!(call.outcome(), Some(Ok(_))));
    run.end() == Some(&RunEnd::Completed)
        && has_succeeded
        && task
            .metadata
            .get("expected")
            .is_none_or(|expected| answer_matches(expected, run.response().answer().as_str()))
}

/// The result of a check of a run: good if the command exits with 0, bad if it exits with another code.
async fn check(
    command: &str,
    run: &Run,
    task: &TaskInput,
    service: &Service,
) -> Result<bool, ServiceError> {
    let input = json!({
        "run": run.id(),
        "task": {
            "task_id": task.task_id,
            "description": task.description,
            "metadata": task.metadata,
        },
        "end": run.end(),
        "response": run.response(),
    });
    let failed = |why: String| {
        ServiceError::failed(format!(
            "the check `{command}` of the run {} {why}",
            run.id()
        ))
    };
    // It is the user's own command line, so it may read what the user may read.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Isolation::new(IsolationLevel::Off)
        .confine(&mut shell, &ProgramAccess::default())
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let mut child = tokio::process::Command::from(shell)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let messages = child
        .stderr
        .take()
        .map(|stderr| tokio::spawn(report(stderr, service.clone())));
    if let Some(mut pipe) = child.stdin.take() {
        // A check need not read all of its input.
        let _ = pipe.write_all(input.to_string().as_bytes()).await;
    }
    let ended = tokio::time::timeout(CHECK_TIMEOUT, child.wait()).await;
    let status =
        ended.map_err(|elapsed| failed(format!("exceeds its time limit: {elapsed}")))??;
    if let Some(messages) = messages {
        // Its child processes may keep standard error open.
        let _ = tokio::time::timeout(STDERR_TIMEOUT, messages).await;
    }
    result_of(status).ok_or_else(|| failed(format!("gives no result: {status}")))
}

/// Reports the standard error of a check as warnings. It may quote a model, so it is not written to the terminal
/// directly.
async fn report(stderr: ChildStderr, service: Service) {
    let mut lines = BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line).into_owned();
        service.notify(&Notice::Warning(line));
    }
}

/// The result for an exit code. A command that was not found or was killed has none.
fn result_of(status: ExitStatus) -> Option<bool> {
    match status.code()? {
        0 => Some(true),
        126.. => None,
        _ => Some(false),
    }
}
