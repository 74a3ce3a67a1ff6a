//! Ctrl-C: the first stops after the current step, so that no step is left incomplete; the second stops at
//! once.

use windlass_runtime::Stop;

use super::terminal::eprint_line;

/// Returns a handle that stops a run on Ctrl-C. Must be called within a tokio runtime.
pub(super) fn stop_on_interrupt() -> Stop {
    let stop = Stop::default();
    let stopped = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = eprint_line("stopping after this step; interrupt again to stop at once");
            stopped.after_step.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.at_once.cancel();
        }
    });
    stop
}
