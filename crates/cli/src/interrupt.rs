//! Ctrl-C: once stops after the step under way, so that nothing is left half done; twice stops at
//! once.

use windlass_runtime::Stop;

use super::terminal::complain;

/// Stops what is driven with the returned handle when the person says so. Must be called within a
/// tokio runtime.
pub(super) fn stop_on_interrupt() -> Stop {
    let stop = Stop::default();
    let stopped = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = complain("stopping after this step; interrupt again to stop at once");
            stopped.after_step.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.at_once.cancel();
        }
    });
    stop
}
