//! Signals that end the program. Before it goes it ends the servers it started, which would outlive it
//! otherwise. Runs are left as they are, as if the program had been killed: they can be resumed.

use std::io;
use std::sync::Once;

use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_service::Service;

/// What an interrupt is to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupts {
    /// A wish it sees to itself.
    AreHandled,
    /// The end of the program.
    End,
}

/// Has the program end, with its servers, when it is told to. The first call decides.
///
/// # Errors
/// If there is no thread or no signals to be had.
pub(super) fn end_on_signals(service: &Service, interrupts: Interrupts) -> io::Result<()> {
    static LISTENS: Once = Once::new();
    let mut listens = Ok(());
    LISTENS.call_once(|| listens = listen(service.clone(), interrupts));
    listens
}

/// A thread of its own listens as long as the program is there: its commands come and go, and some
/// block their threads.
fn listen(service: Service, interrupts: Interrupts) -> io::Result<()> {
    let mut kinds = vec![SignalKind::terminate(), SignalKind::hangup()];
    if interrupts == Interrupts::End {
        kinds.push(SignalKind::interrupt());
    }
    // Whoever is told to outlive its terminal does.
    kinds.retain(|kind| !is_ignored(*kind));
    if kinds.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // From here on none of them ends the program by itself.
    let listening = {
        let _within = runtime.enter();
        let listening = kinds.iter().map(|kind| signal(*kind));
        listening.collect::<io::Result<Vec<Signal>>>()?
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                if let Some(came) = first(listening).await
                    && let Some(kind) = kinds.get(came)
                {
                    end(&service, *kind).await;
                }
            });
        })?;
    Ok(())
}

/// Which of them comes first.
async fn first(mut listening: Vec<Signal>) -> Option<usize> {
    let coming = listening.iter_mut().map(|signal| Box::pin(signal.recv()));
    let (came, index, _) = futures::future::select_all(coming).await;
    came.map(|()| index)
}

/// Ends the servers, and then the program with the exit code for a signal.
pub(super) async fn end(service: &Service, kind: SignalKind) {
    service.abandon().await;
    std::process::exit(128 + kind.as_raw_value());
}

/// Whether the program was started to ignore a signal, as by `nohup`. Where that cannot be told, a
/// hangup is left alone.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    match mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) {
        Some(mask) => mask >> (kind.as_raw_value() - 1) & 1 == 1,
        None => kind == SignalKind::hangup(),
    }
}
