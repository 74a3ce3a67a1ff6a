//! Signals that end the program. The program first stops the servers it started, which would outlive it
//! otherwise. Runs are left as after a kill: they can be resumed.

use std::io;
use std::sync::Once;

use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_service::Service;

use super::prompt;

/// How a command treats an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupts {
    /// The command handles it.
    Handled,
    /// It ends the program.
    EndProgram,
}

/// Ends the program and its servers on a signal. Only the first call has an effect.
///
/// # Errors
/// If the thread or the signal handlers cannot be created.
pub(super) fn end_on_signals(service: &Service, interrupts: Interrupts) -> io::Result<()> {
    static STARTED: Once = Once::new();
    let mut started = Ok(());
    STARTED.call_once(|| started = listen(service.clone(), interrupts));
    started
}

/// Starts a thread that waits for signals, because some commands block their threads.
fn listen(service: Service, interrupts: Interrupts) -> io::Result<()> {
    let mut kinds = vec![SignalKind::terminate(), SignalKind::hangup()];
    if interrupts == Interrupts::EndProgram {
        kinds.push(SignalKind::interrupt());
    }
    // A signal that is ignored, as under `nohup`, stays ignored.
    kinds.retain(|kind| !is_ignored(*kind));
    if kinds.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // From here on, these signals no longer end the program by default.
    let listening = {
        let _within = runtime.enter();
        let listening = kinds.iter().map(|kind| signal(*kind));
        listening.collect::<io::Result<Vec<Signal>>>()?
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                if let Some(index) = first(listening).await
                    && let Some(kind) = kinds.get(index)
                {
                    end(&service, *kind).await;
                }
            });
        })?;
    Ok(())
}

/// Returns the index of the first signal that arrives.
async fn first(mut listening: Vec<Signal>) -> Option<usize> {
    let pending = listening.iter_mut().map(|signal| Box::pin(signal.recv()));
    let (received, index, _) = futures::future::select_all(pending).await;
    received.map(|()| index)
}

/// Stops the servers, then exits with the exit code for a signal.
pub(super) async fn end(service: &Service, kind: SignalKind) {
    service.abandon().await;
    prompt::restore_terminal();
    std::process::exit(128 + kind.as_raw_value());
}

/// Whether the program was started with the signal ignored, as by `nohup`. If that is unknown, a hangup counts
/// as ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    match mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) {
        Some(mask) => mask >> (kind.as_raw_value() - 1) & 1 == 1,
        None => kind == SignalKind::hangup(),
    }
}
