//! What is measured of a run: whether it was a success, what it took, and what else happened in it.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, Command};
use windlass_core::run::{Entry, Event, Run, RunEnd};
use windlass_learn::ab::Measure;
use windlass_policy::Verdict;
use windlass_runtime::answer_matches;
use windlass_spec::{ErrorCategory, TaskInput};
use windlass_store::Store;

use crate::schema::unknown;
use crate::terminal::complain;

/// How long a check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// How long to wait for what it complains of, once it ended.
const COMPLAINTS_TIMEOUT: Duration = Duration::from_secs(1);

const CHECK: &str = "check:";

/// What arms are compared by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Metric {
    Success,
    Iterations,
    Latency,
    Cost,
    /// What a command says of a run.
    Check(String),
}

impl Metric {
    /// The metrics that were named, or the usual ones.
    pub(super) fn read(named: &[String]) -> anyhow::Result<Vec<Self>> {
        if named.is_empty() {
            return Ok(vec![Self::Success, Self::Iterations]);
        }
        let mut all = Vec::new();
        for name in named {
            let metric = Self::named(name)?;
            anyhow::ensure!(!all.contains(&metric), "the metric `{name}` is named twice");
            all.push(metric);
        }
        Ok(all)
    }

    fn named(name: &str) -> anyhow::Result<Self> {
        if let Some(command) = name.strip_prefix(CHECK) {
            anyhow::ensure!(
                !command.trim().is_empty(),
                "a check is a command\nhint: --metric 'check:jq -e .response.answer'"
            );
            return Ok(Self::Check(command.to_owned()));
        }
        Ok(match name {
            "success" => Self::Success,
            "iterations" => Self::Iterations,
            "latency" => Self::Latency,
            "cost" => Self::Cost,
            other => {
                let known = ["success", "iterations", "latency", "cost"];
                let told = unknown("metric", other, &known, "this program");
                anyhow::bail!("{told}\nhint: a command that judges runs is named check:COMMAND")
            }
        })
    }

    /// As it is written.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Success => "success".to_owned(),
            Self::Iterations => "iterations".to_owned(),
            Self::Latency => "latency".to_owned(),
            Self::Cost => "cost".to_owned(),
            Self::Check(command) => format!("{CHECK}{command}"),
        }
    }

    /// How it is judged.
    pub(super) fn measure(&self) -> Measure {
        match self {
            Self::Success | Self::Check(_) => Measure::SUCCESS,
            Self::Iterations | Self::Latency | Self::Cost => Measure::EXPENSE,
        }
    }

    /// What was measured of a run by it.
    pub(super) fn of(&self, measured: &Measured, cost_in: CostIn) -> Option<f64> {
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

/// In what cost is counted: in money only where the price of every run is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CostIn {
    Tokens,
    Microdollars,
}

/// What else happened, and should not happen more often.
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

    pub(super) fn of(self, measured: &Measured) -> f64 {
        let count = match self {
            Self::Errors => measured.errors,
            Self::Denials => measured.denials,
            Self::Undos => measured.undos,
            Self::Approvals => measured.approvals,
        };
        count as f64
    }
}

/// What was measured of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Measured {
    pub(super) run: String,
    pub(super) success: bool,
    pub(super) iterations: u64,
    pub(super) latency_ms: u64,
    pub(super) tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) microdollars: Option<u64>,
    /// What each command said of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) checks: Vec<(String, bool)>,
    pub(super) errors: u64,
    pub(super) denials: u64,
    pub(super) undos: u64,
    pub(super) approvals: u64,
}

/// Whether an end says something about the arm. What a provider or a person broke off does not.
pub(super) fn is_outcome(end: &RunEnd) -> bool {
    match end {
        RunEnd::Completed | RunEnd::IterationLimit | RunEnd::Budget { .. } => true,
        RunEnd::Cancelled | RunEnd::WaitingForPerson => false,
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
pub(super) async fn measured(
    run: &Run,
    task: &TaskInput,
    metrics: &[Metric],
    store: &Store,
) -> anyhow::Result<Measured> {
    let usage = run.usage();
    let mut checks = Vec::new();
    for metric in metrics {
        if let Metric::Check(command) = metric {
            checks.push((command.clone(), check(command, run, task).await?));
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
    Ok(Measured {
        run: run.id().to_string(),
        success: is_success(run, task),
        iterations: run.turns().len() as u64,
        latency_ms: u64::try_from(run.working_time().as_millis())?,
        tokens: usage.input_tokens + usage.output_tokens,
        microdollars: usage.microdollars,
        checks,
        errors,
        denials,
        undos,
        approvals,
    })
}

/// Whether a run did what it was asked, by what happened: it completed, its last call that was permitted
/// succeeded, and its answer is the expected one, if one is.
fn is_success(run: &Run, task: &TaskInput) -> bool {
    let last = run.calls().filter(|call| call.was_permitted()).last();
    let has_succeeded = last.is_none_or(|call| matches!(call.outcome(), Some(Ok(_))));
    run.end() == Some(&RunEnd::Completed)
        && has_succeeded
        && task
            .metadata
            .get("expected")
            .is_none_or(|expected| answer_matches(expected, run.response().answer.as_str()))
}

/// What a command says of a run: good if it ends with 0, not if it ends with anything else.
async fn check(command: &str, run: &Run, task: &TaskInput) -> anyhow::Result<bool> {
    let told = json!({
        "run": run.id(),
        "task": {
            "task_id": task.task_id,
            "description": task.description,
            "metadata": task.metadata,
        },
        "end": run.end(),
        "response": run.response(),
    });
    let what = || format!("the check `{command}` of the run {}", run.id());
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} cannot be started", what()))?;
    let complaints = child
        .stderr
        .take()
        .map(|stderr| tokio::spawn(pass_on(stderr)));
    if let Some(mut input) = child.stdin.take() {
        // A check need not read all it is told.
        let _ = input.write_all(told.to_string().as_bytes()).await;
    }
    let ended = tokio::time::timeout(CHECK_TIMEOUT, child.wait()).await;
    let status = ended.with_context(|| format!("{} takes too long", what()))??;
    if let Some(complaints) = complaints {
        // What it left running may keep its standard error open.
        let _ = tokio::time::timeout(COMPLAINTS_TIMEOUT, complaints).await;
    }
    said(status).with_context(|| format!("{} says neither good nor bad: {status}", what()))
}

/// Prints what a check complains of: it may quote what a model said.
async fn pass_on(stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let _ = complain(&String::from_utf8_lossy(&line));
    }
}

/// What an exit code says. A shell that did not find the command says nothing, nor does one that was
/// killed.
fn said(status: ExitStatus) -> Option<bool> {
    match status.code()? {
        0 => Some(true),
        126.. => None,
        _ => Some(false),
    }
}
