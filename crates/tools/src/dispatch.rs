//! Dispatch: runs one call that was permitted and says how it ended. It always comes back, with one
//! of the ends a journal knows: after the time limit, after being stopped, after a panic. Whether a
//! call may run was decided before; whether it is tried again is decided after.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass_core::gate::Permit;
use windlass_core::run::{CallEnd, Reply, ToolQuestion};
use windlass_spec::{Effect, ErrorCategory, Failure, RiskLevel, ToolSpecification};

use crate::bind::BoundTool;
use crate::envelope::{self, Opened};
use crate::error::ToolError;
use crate::memory::{Caller, MemoryPort};
use crate::output::too_large;
use crate::tool::{CallContext, OnProgress};

/// How long a call may take if its specification does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes a result may have as JSON. How much of it a model is shown is not decided here.
pub const DEFAULT_MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;

/// How long a stopped tool may take to put things away. A program gets two seconds between being
/// asked to end and being killed; this leaves it that and some more.
const WIND_DOWN: Duration = Duration::from_secs(4);

/// How long to wait for an aborted tool to be gone. It is gone at its next `await`; one that never
/// reaches it holds a thread, but not the run.
const ABORT: Duration = Duration::from_secs(1);

/// What a call is run with besides its permit.
#[derive(Clone)]
pub struct DispatchOptions {
    /// Cancelled by whoever wants the call to end now.
    pub cancel: CancellationToken,
    /// How long the call may take, if not as long as its specification says.
    pub timeout: Option<Duration>,
    /// How many bytes a result may have as JSON.
    pub max_output_bytes: usize,
    /// How reversible the call was found to be, if that is not only what its specification says.
    pub risk: Option<RiskLevel>,
    /// What tells this call from all others.
    pub key: String,
    /// What came of the form that the tool wanted filled in when it last ran for this call.
    pub reply: Option<Reply>,
    /// Where to tell how far the call has come.
    pub progress: Option<OnProgress>,
    /// For whom the call is made, if that is known.
    pub caller: Option<Caller>,
    /// Where memories are kept, if they are.
    pub memory: Option<Arc<dyn MemoryPort>>,
    /// Which of several implementations is to run, if there are several and that is decided.
    pub variant: Option<String>,
}

impl fmt::Debug for DispatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchOptions")
            .field("key", &self.key)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Default for DispatchOptions {
    fn default() -> Self {
        Self {
            cancel: CancellationToken::new(),
            timeout: None,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            risk: None,
            key: String::new(),
            reply: None,
            progress: None,
            caller: None,
            memory: None,
            variant: None,
        }
    }
}

/// What came of running a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Dispatched {
    /// It ended.
    Ended(CallEnd),
    /// The tool did nothing yet: it needs a person first, and this is what it asks.
    Asks(Box<ToolQuestion>),
}

impl From<CallEnd> for Dispatched {
    fn from(end: CallEnd) -> Self {
        Self::Ended(end)
    }
}

/// Runs the call that `permit` allows.
///
/// The tool gets the time `options` or its specification states, or [`DEFAULT_TIMEOUT`], and is stopped after
/// that, as it is when `options.cancel` is cancelled or when the future of this call is dropped. Must
/// be called within a tokio runtime with time and IO.
pub async fn dispatch(tool: &BoundTool, permit: Permit, options: DispatchOptions) -> Dispatched {
    if options.cancel.is_cancelled() {
        let message = "the call was stopped before it began";
        let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
        return CallEnd::Cancelled(failure).into();
    }
    let declared = tool.specification().attributes().risk;
    let effect = Effects::of(options.risk.or(declared));
    let timeout = options.timeout;
    let timeout = timeout.unwrap_or_else(|| time_limit(tool.specification()));
    let context = CallContext {
        stop: CancellationToken::new(),
        max_output_bytes: options.max_output_bytes,
        key: options.key,
        reply: options.reply,
        progress: options.progress,
        caller: options.caller,
        memory: options.memory,
        variant: options.variant,
    };
    let stop = context.stop.clone();
    let implementation = tool.shared_tool();
    let winds_down = implementation.winds_down;
    // What calls a server is our own code, which never holds its thread.
    let is_ours = implementation.annotations.is_some();
    let work = async move { implementation.start(permit, context).await };
    let mut work = match is_ours {
        true => Work::here(work),
        false => Work::beside(work),
    };
    let interrupted = tokio::select! {
        biased;
        ended = &mut work.ended => {
            return ended_by_itself(tool, ended, &effect, options.max_output_bytes);
        }
        () = options.cancel.cancelled() => Interruption::Cancelled,
        () = tokio::time::sleep(timeout) => Interruption::Timeout,
    };
    stop.cancel();
    if !winds_down
        || tokio::time::timeout(WIND_DOWN, &mut work.ended)
            .await
            .is_err()
    {
        work.abort().await;
    }
    let end = match interrupted {
        Interruption::Cancelled => CallEnd::Cancelled(Failure::new(
            ErrorCategory::Cancelled,
            effect.of_failure,
            "the call was stopped while it ran",
        )),
        Interruption::Timeout => CallEnd::Timeout(Failure::new(
            ErrorCategory::Timeout,
            effect.of_failure,
            format!(
                "the call took longer than {} s and was stopped",
                timeout.as_secs()
            ),
        )),
    };
    end.into()
}

enum Interruption {
    Cancelled,
    Timeout,
}

/// A tool at work. Dropping it stops it.
struct Work {
    ended: BoxFuture<'static, Result<Result<Value, ToolError>, Broken>>,
    /// What stops it, if it is a task of its own.
    task: Option<AbortHandle>,
}

/// A tool came to no end of its own; in words, how.
struct Broken(String);

impl Work {
    /// In a task of its own: a tool that blocks its thread then blocks neither the clock nor the caller, and
    /// one that panics ends only itself.
    fn beside(work: impl Future<Output = Result<Value, ToolError>> + Send + 'static) -> Self {
        let task = AbortOnDropHandle::new(tokio::spawn(work));
        Self {
            task: Some(task.abort_handle()),
            ended: Box::pin(async move {
                task.await.map_err(|error| match error.try_into_panic() {
                    Ok(panic) => Broken::by(panic),
                    Err(_) => Broken("was broken off because the runtime shuts down".to_owned()),
                })
            }),
        }
    }

    /// By whoever waits for it, which spares two threads from waking each other.
    fn here(work: impl Future<Output = Result<Value, ToolError>> + Send + 'static) -> Self {
        let work = AssertUnwindSafe(work).catch_unwind();
        Self {
            task: None,
            ended: Box::pin(async move { work.await.map_err(Broken::by) }),
        }
    }

    async fn abort(mut self) {
        if let Some(task) = self.task {
            task.abort();
            // Either it is gone now, or nothing more can be done about it.
            let _ = tokio::time::timeout(ABORT, &mut self.ended).await;
        }
    }
}

impl Broken {
    fn by(panic: Box<dyn Any + Send>) -> Self {
        let said = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without a message".to_owned());
        // What a tool panicked with is its own; if letting go of it panics again, that is the end of it.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(move || drop(panic)));
        Self(format!("panicked: {said}"))
    }
}

/// What a call may have done, by how reversible it is. What is not declared is irreversible.
struct Effects {
    /// If it failed or was stopped on the way.
    of_failure: Effect,
    /// If it came to its end and only its answer is not as promised. What can be undone is then taken
    /// for done; of what cannot, the word of a tool that broke its promise is not enough.
    of_bad_output: Effect,
}

impl Effects {
    fn of(risk: Option<RiskLevel>) -> Self {
        let (of_failure, of_bad_output) = match risk.unwrap_or(RiskLevel::Irreversible) {
            RiskLevel::Reversible => (Effect::None, Effect::None),
            RiskLevel::ReversibleWithDelay => (Effect::Unknown, Effect::Applied),
            RiskLevel::Irreversible => (Effect::Unknown, Effect::Unknown),
        };
        Self {
            of_failure,
            of_bad_output,
        }
    }
}

fn time_limit(specification: &ToolSpecification) -> Duration {
    let declared = specification.attributes().timeout_seconds;
    declared.map_or(DEFAULT_TIMEOUT, |seconds| {
        Duration::from_secs(seconds.get().into())
    })
}

fn ended_by_itself(
    tool: &BoundTool,
    ended: Result<Result<Value, ToolError>, Broken>,
    effect: &Effects,
    max_output_bytes: usize,
) -> Dispatched {
    let end = match ended {
        Ok(Ok(value)) => {
            let opened = match tool.tool().annotations() {
                None => envelope::open(tool.specification(), value),
                Some(_) => Opened::Result(value),
            };
            let value = match opened {
                Opened::Result(value) => value,
                Opened::End(end) => return end.into(),
                Opened::Asks(question) => return Dispatched::Asks(question),
            };
            match bad_output(tool.specification(), &value, max_output_bytes) {
                None => CallEnd::Success(value),
                Some(error) => CallEnd::Error(error.into_failure(effect.of_bad_output)),
            }
        }
        Ok(Err(mut error)) => {
            if let Some(question) = error.take_question() {
                return Dispatched::Asks(question);
            }
            let otherwise = match error.category() {
                ErrorCategory::InvalidOutput => effect.of_bad_output,
                _ => effect.of_failure,
            };
            CallEnd::Error(error.into_failure(otherwise))
        }
        Err(Broken(how)) => CallEnd::Error(Failure::foreign(
            ErrorCategory::ToolFailure,
            effect.of_failure,
            format!("the tool `{}` {how}", tool.name()),
        )),
    };
    end.into()
}

/// What is wrong with a result, if anything is.
fn bad_output(
    specification: &ToolSpecification,
    value: &Value,
    max_output_bytes: usize,
) -> Option<ToolError> {
    if !fits_in(value, max_output_bytes) {
        return Some(too_large(max_output_bytes));
    }
    let promised = specification.signature().returns();
    let misfits = promised.misfits(value);
    (!misfits.is_empty()).then(|| {
        let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        // What was found may be quoted from a foreign answer, so the model is not told.
        ToolError::foreign(
            ErrorCategory::InvalidOutput,
            format!(
                "the result is not {promised} as declared: {}",
                misfits.join("; ")
            ),
        )
    })
}

/// Whether the value, written as JSON, has at most `max_bytes`. Nothing is kept of what is written.
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
