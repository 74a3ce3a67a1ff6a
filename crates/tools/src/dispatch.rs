//! Dispatch: runs one permitted call and returns how it ended. It always returns one of the ends that
//! a journal can record, also after the time limit, a cancellation or a panic. Whether a
//! call may run is decided before; whether it is retried is decided after.

use std::any::Any;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass_core::gate::Permit;
use windlass_core::run::{CallEnd, ToolQuestion};
use windlass_spec::envelope::Progress;
use windlass_spec::text::{TextUse, escape_line};
use windlass_spec::{
    Deprecation, Effect, EnvelopeUse, ErrorCategory, Failure, Money, RiskLevel, ToolSpecification,
};

use crate::bind::BoundTool;
use crate::envelope::{self, Opened};
use crate::error::ToolError;
use crate::output::too_large;
use crate::tool::{CallContext, OnProgress, ToolProgress};

/// The time limit of a call whose specification has none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of a result as JSON. How much of it a model is shown is decided elsewhere.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// How long a stopped tool may take to clean up. A program gets two seconds between TERM and KILL, so
/// this is longer.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(4);

/// How long to wait for an aborted tool. It ends at its next `await`. One that never
/// reaches it blocks a thread, but not the run.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// How often the running time of a call is measured.
const TICK: Duration = Duration::from_millis(250);

/// A measurement that is later than this did not wait for a busy processor: the process was stopped, or the
/// machine was suspended.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// How many characters of what a tool said last are kept.
const MAX_LAST_WORDS: usize = 500;

/// The options of a call besides its permit.
#[derive(Debug, Clone, Default)]
pub struct DispatchOptions {
    /// What the implementation is given. Cancelling its `stop` cancels the call.
    pub context: CallContext,
    /// The time limit, if it differs from that of the specification.
    pub timeout: Option<Duration>,
    /// The assessed risk of the call, if it differs from that of the specification.
    pub risk: Option<RiskLevel>,
    /// Receives what the tool states in its answer besides the result.
    pub notices: EnvelopeNotices,
}

/// What a tool should write differently in its answer, and what it states that the call cost. All clones are the same.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeNotices(Arc<Mutex<(Vec<Deprecation>, Option<Money>)>>);

impl EnvelopeNotices {
    fn add(&self, notices: Vec<Deprecation>, cost: Option<Money>) {
        let mut stated = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stated.0.extend(notices);
        stated.1 = cost.or(stated.1);
    }

    /// The notices so far, which are removed.
    #[must_use]
    pub fn take(&self) -> Vec<Deprecation> {
        let mut stated = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut stated.0)
    }

    /// What the call cost, if the tool states it.
    #[must_use]
    pub fn cost(&self) -> Option<Money> {
        let stated = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stated.1
    }
}

/// The outcome of dispatching a call.
#[derive(Debug, Clone, PartialEq)]
pub enum DispatchOutcome {
    /// It ended.
    Ended(CallEnd),
    /// The tool did nothing yet: a person must answer this question first.
    Question(Box<ToolQuestion>),
}

impl From<CallEnd> for DispatchOutcome {
    fn from(end: CallEnd) -> Self {
        Self::Ended(end)
    }
}

/// Runs the call that `permit` allows.
///
/// The time limit is that of `options`, of the specification, or [`DEFAULT_TIMEOUT`]. The tool is stopped after
/// the limit, when `options.context.stop` is cancelled, or when the future of this call is dropped. Must
/// be called within a tokio runtime with time and IO.
pub async fn dispatch(
    tool: &BoundTool,
    permit: Permit,
    options: DispatchOptions,
) -> DispatchOutcome {
    // Servers are programs too, and work during a call.
    let is_program = !tool.programs().is_empty() || tool.tool().annotations.is_some();
    let watch = options.context.watch.clone().filter(|_| is_program);
    let run = options.context.caller.as_ref();
    let watched = watch.zip(run.map(|caller| caller.run.clone()));
    if let Some((watch, _)) = &watched {
        watch.begin().await;
    }
    let outcome = dispatch_call(tool, permit, options).await;
    if let Some((watch, run)) = watched {
        watch.end(run).await;
    }
    outcome
}

async fn dispatch_call(
    tool: &BoundTool,
    permit: Permit,
    options: DispatchOptions,
) -> DispatchOutcome {
    let DispatchOptions {
        mut context,
        timeout,
        risk,
        notices,
    } = options;
    // The tool is also stopped when its time is up.
    let stop = CancellationToken::new();
    let cancel = std::mem::replace(&mut context.stop, stop.clone());
    if cancel.is_cancelled() {
        let message = "the call was cancelled before it started";
        let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
        return CallEnd::Cancelled(failure).into();
    }
    // The tool refuses a permit for another tool. Here the arguments are compared: what was authorized,
    // and nothing but the defaults of this specification.
    let specification = tool.specification();
    if permit.tool() == specification.name() && !permit.is_for(specification) {
        let message = format!(
            "the permit of `{}` is for other arguments than those to run with; nothing was done",
            permit.tool()
        );
        let failure = Failure::new(ErrorCategory::Internal, Effect::None, message);
        return CallEnd::Error(failure).into();
    }
    if let Some(changed) = changed_program(tool).await {
        let message = format!(
            "`{}` was not started: its program `{}` changed since the run began; a person has to review the file and \
             start or resume the run again",
            tool.name(),
            escape_line(&changed.to_string_lossy(), TextUse::Exact)
        );
        let failure = Failure::new(ErrorCategory::PermissionDenied, Effect::None, message);
        return CallEnd::Error(failure).into();
    }
    let declared = specification.attributes().risk;
    let is_idempotent = specification.attributes().idempotent == Some(true);
    let effect = Effects::of(risk.or(declared), is_idempotent);
    let timeout = timeout.unwrap_or_else(|| time_limit(tool.specification()));
    let last_words = LastWords::default();
    let progress = last_words.recording(context.progress);
    context.progress = Some(Arc::clone(&progress));
    let report = Report {
        last_words: last_words.clone(),
        progress,
        notices,
    };
    let max_output_bytes = context.max_output_bytes;
    let implementation = tool.shared_tool();
    let cleans_up = implementation.cleans_up;
    // The client of a server is Windlass code, which never blocks its thread.
    let is_own_code = implementation.annotations.is_some();
    let work = async move { implementation.start(permit, context).await };
    let mut work = match is_own_code {
        true => RunningTool::inline(work),
        false => RunningTool::spawn(work),
    };
    let interrupted = tokio::select! {
        biased;
        ended = &mut work.ended => {
            return outcome_of(tool, ended, &effect, max_output_bytes, &report);
        }
        () = cancel.cancelled() => Interruption::Cancelled,
        () = running_time(timeout) => Interruption::Timeout,
    };
    stop.cancel();
    let cleaned_up = match cleans_up {
        true => tokio::time::timeout(CLEANUP_TIMEOUT, &mut work.ended)
            .await
            .ok(),
        false => None,
    };
    let mut has_begun = true;
    match cleaned_up {
        Some(Ok(Err(error))) => {
            last_words.note(error.foreign_message());
            has_begun = !error.had_no_effect();
        }
        Some(_) => {}
        None => work.abort().await,
    }
    let (category, what) = match interrupted {
        Interruption::Cancelled => (
            ErrorCategory::Cancelled,
            "the call was cancelled while it ran".to_owned(),
        ),
        Interruption::Timeout => (
            ErrorCategory::Timeout,
            format!(
                "the call took longer than {} s and was stopped",
                timeout.as_secs()
            ),
        ),
    };
    let possible_effect = match has_begun {
        true => effect.of_failure,
        false => Effect::None,
    };
    let failure = Failure::new(category, possible_effect, what);
    let is_unknown = has_begun && effect.is_unknown_if_interrupted();
    match (is_unknown, interrupted) {
        (true, _) => effect.unknown(failure, &last_words),
        (false, Interruption::Cancelled) => CallEnd::Cancelled(failure),
        (false, Interruption::Timeout) => CallEnd::Timeout(effect.retryable(failure)),
    }
    .into()
}

/// A program or script of a tool that is not as it was when the tool was bound.
async fn changed_program(tool: &BoundTool) -> Option<PathBuf> {
    let programs = tool.programs();
    if programs.is_empty() {
        return None;
    }
    let looked = tokio::task::spawn_blocking(move || programs.changed()).await;
    // The task ends early only if the runtime shuts down.
    looked.unwrap_or_else(|_| Some(PathBuf::new()))
}

enum Interruption {
    Cancelled,
    Timeout,
}

/// Waits until the process has run for `limit`. The time in which the process was stopped by a signal, or
/// the machine was suspended, does not count: the tool could not be heard meanwhile.
async fn running_time(limit: Duration) {
    let mut left = limit;
    while !left.is_zero() {
        let tick = left.min(TICK);
        let since = Instant::now();
        tokio::time::sleep(tick).await;
        let passed = since.elapsed();
        let counted = match passed > tick + LONGEST_DELAY {
            true => tick,
            false => passed,
        };
        left = left.saturating_sub(counted);
    }
}

/// What a tool said last, for the person who has to find out what it did. It is untrusted content.
#[derive(Clone, Default)]
struct LastWords(Arc<Mutex<Option<String>>>);

impl LastWords {
    fn note(&self, words: Option<&str>) {
        let Some(words) = words.map(str::trim).filter(|words| !words.is_empty()) else {
            return;
        };
        // The end of a long text is what was said last.
        let skipped = words.chars().count().saturating_sub(MAX_LAST_WORDS);
        let words = words.chars().skip(skipped).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    /// A progress callback that notes the messages, and passes them on.
    fn recording(&self, progress: Option<OnProgress>) -> OnProgress {
        let words = self.clone();
        Arc::new(move |reported| {
            words.note(reported.message.as_deref());
            if let Some(progress) = &progress {
                progress(reported);
            }
        })
    }

    fn get(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A running tool. Dropping it stops it.
struct RunningTool {
    ended: BoxFuture<'static, Result<Result<Value, ToolError>, Crashed>>,
    /// The handle to abort it, if it runs in its own task.
    task: Option<AbortHandle>,
}

/// The tool panicked or was aborted, with a description.
struct Crashed(String);

impl RunningTool {
    /// Runs the tool in its own task, so that a tool that blocks its thread blocks neither the timer nor the
    /// caller, and a panic ends only that task.
    fn spawn(work: impl Future<Output = Result<Value, ToolError>> + Send + 'static) -> Self {
        let task = AbortOnDropHandle::new(tokio::spawn(work));
        Self {
            task: Some(task.abort_handle()),
            ended: Box::pin(async move {
                task.await.map_err(|error| match error.try_into_panic() {
                    Ok(panic) => Crashed::from_panic(panic),
                    Err(_) => Crashed("was aborted because the runtime shuts down".to_owned()),
                })
            }),
        }
    }

    /// Runs the tool in the caller's task, which avoids waking another thread.
    fn inline(work: impl Future<Output = Result<Value, ToolError>> + Send + 'static) -> Self {
        let work = AssertUnwindSafe(work).catch_unwind();
        Self {
            task: None,
            ended: Box::pin(async move { work.await.map_err(Crashed::from_panic) }),
        }
    }

    async fn abort(mut self) {
        if let Some(task) = self.task {
            task.abort();
            // Either it has ended now, or nothing more can be done about it.
            let _ = tokio::time::timeout(ABORT_TIMEOUT, &mut self.ended).await;
        }
    }
}

impl Crashed {
    fn from_panic(panic: Box<dyn Any + Send>) -> Self {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a message".to_owned());
        // Dropping the panic payload may panic again, which is ignored.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(move || drop(panic)));
        Self(format!("panicked: {message}"))
    }
}

/// The effects that a call may have had, by its risk. A call without a declared risk counts as irreversible.
struct Effects {
    /// Whether the call may be repeated, although it may have had an effect: it can be undone, and two such
    /// calls have the effect of one.
    is_repeatable: bool,
    /// The effect if it failed or was stopped.
    of_failure: Effect,
    /// The effect if it completed, but its result does not match the signature. A call that can be undone counts as
    /// applied. For an irreversible one the effect is unknown.
    of_bad_output: Effect,
}

impl Effects {
    fn of(risk: Option<RiskLevel>, is_idempotent: bool) -> Self {
        let is_repeatable = is_idempotent && risk == Some(RiskLevel::ReversibleWithDelay);
        let (of_failure, of_bad_output) = match risk.unwrap_or(RiskLevel::Irreversible) {
            RiskLevel::Reversible => (Effect::None, Effect::None),
            RiskLevel::ReversibleWithDelay => (Effect::Unknown, Effect::Applied),
            RiskLevel::Irreversible => (Effect::Unknown, Effect::Unknown),
        };
        Self {
            is_repeatable,
            of_failure,
            of_bad_output,
        }
    }

    /// Whether the outcome of a call is unknown if it was interrupted: it may have had an effect that must
    /// not happen twice.
    fn is_unknown_if_interrupted(&self) -> bool {
        self.of_failure == Effect::Unknown && !self.is_repeatable
    }

    /// The failure of a call that may be repeated, although it may have had an effect.
    fn retryable(&self, mut failure: Failure) -> Failure {
        failure.retryable |= self.is_repeatable && failure.category.is_retryable();
        failure
    }

    /// The end of an interrupted call whose outcome is unknown. Only the operator is shown what the tool said
    /// last.
    fn unknown(&self, failure: Failure, last_words: &LastWords) -> CallEnd {
        let doubt = "it is unknown whether it took effect";
        let said = match last_words.get() {
            Some(words) => format!("the tool said last: {words}"),
            None => "the tool said nothing".to_owned(),
        };
        CallEnd::Unknown(Failure {
            model_message: format!("{}; {doubt}", failure.model_message),
            operator_message: format!("{}; {doubt}; {said}", failure.operator_message),
            retryable: false,
            ..failure
        })
    }
}

fn time_limit(specification: &ToolSpecification) -> Duration {
    let declared = specification.attributes().timeout_seconds;
    declared.map_or(DEFAULT_TIMEOUT, |seconds| {
        Duration::from_secs(seconds.get().into())
    })
}

/// Whether the answers of a tool are read as envelopes: the tool and its declaration may say that its data only
/// looks like one.
fn has_envelopes(tool: &BoundTool) -> bool {
    let declared = tool.specification().attributes().envelope;
    let own = tool.tool().attributes().and_then(|own| own.envelope);
    tool.tool().has_envelopes() && declared.max(own) != Some(EnvelopeUse::Never)
}

/// What a call reports besides its outcome.
struct Report {
    last_words: LastWords,
    progress: OnProgress,
    notices: EnvelopeNotices,
}

impl Report {
    /// Takes what an answer reports: what to write differently, and the progress so far.
    fn take(&self, notices: Vec<Deprecation>, cost: Option<Money>, progress: &[Progress]) {
        self.notices.add(notices, cost);
        for reported in progress {
            (self.progress)(ToolProgress {
                done: reported.step().into(),
                total: Some(reported.total().into()),
                message: Some(reported.content().to_owned()),
            });
        }
    }
}

fn outcome_of(
    tool: &BoundTool,
    ended: Result<Result<Value, ToolError>, Crashed>,
    effect: &Effects,
    max_output_bytes: usize,
    report: &Report,
) -> DispatchOutcome {
    let last_words = &report.last_words;
    let end = match ended {
        Ok(Ok(value)) => {
            let opened = match has_envelopes(tool) {
                true => envelope::open(tool.specification(), value),
                false => Opened::Result(value).into(),
            };
            report.take(opened.notices, opened.cost, &opened.progress);
            let (value, parts) = match opened.content {
                Opened::Result(value) => (value, Vec::new()),
                Opened::Data { data, parts } => (data, parts),
                Opened::End(end) => return end.into(),
                Opened::Question(question) => return DispatchOutcome::Question(question),
            };
            let check = |value: &Value| check_output(tool.specification(), value, max_output_bytes);
            match check(&value) {
                None => CallEnd::Success(value),
                // The declared result is in the data of an envelope. What is next to it is kept.
                Some(_)
                    if fits_in(&value, max_output_bytes)
                        && parts.iter().any(|part| check(part).is_none()) =>
                {
                    CallEnd::Success(value)
                }
                Some(error) => CallEnd::Error(error.into_failure(effect.of_bad_output)),
            }
        }
        Ok(Err(mut error)) => {
            if let Some(question) = error.take_question() {
                return DispatchOutcome::Question(question);
            }
            let possible_effect = match error.category() {
                ErrorCategory::InvalidOutput => effect.of_bad_output,
                _ => effect.of_failure,
            };
            let is_interrupted = error.is_interrupted();
            let failure = error.into_failure(possible_effect);
            match is_interrupted && effect.is_unknown_if_interrupted() {
                true => effect.unknown(failure, last_words),
                false => CallEnd::Error(effect.retryable(failure)),
            }
        }
        Err(Crashed(how)) => {
            let failure = Failure::foreign(
                ErrorCategory::ToolFailure,
                effect.of_failure,
                format!("the tool `{}` {how}", tool.name()),
            );
            match effect.is_unknown_if_interrupted() {
                true => effect.unknown(failure, last_words),
                false => CallEnd::Error(failure),
            }
        }
    };
    end.into()
}

/// The error of a result that is too large or does not match the signature.
fn check_output(
    specification: &ToolSpecification,
    value: &Value,
    max_output_bytes: usize,
) -> Option<ToolError> {
    if !fits_in(value, max_output_bytes) {
        return Some(too_large(max_output_bytes));
    }
    let declared = specification.signature().returns();
    let misfits = declared.misfits(value);
    (!misfits.is_empty()).then(|| {
        let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        // The mismatches may quote untrusted content, so the model is not shown them.
        ToolError::foreign(
            ErrorCategory::InvalidOutput,
            format!(
                "the result is not {declared} as declared: {}",
                misfits.join("; ")
            ),
        )
    })
}

/// Whether the value, written as JSON, has at most `max_bytes`. The written bytes are only counted.
fn fits_in(value: &Value, max_bytes: usize) -> bool {
    struct Remaining(usize);
    impl io::Write for Remaining {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .checked_sub(bytes.len())
                .ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Remaining(max_bytes), value).is_ok()
}
