//! The key that undoes a held call: while a run at a terminal waits for the end of an undo window, `u` undoes the
//! call that would start first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windlass_core::run::Event;
use windlass_service::{HoldChange, Identity, Service};
use windlass_spec::{CallId, Timestamp};

use super::prompt;

/// The key.
const UNDO: &str = "u";

/// How long to wait for a prompt to end.
const PAUSE: Duration = Duration::from_millis(50);

/// A call that is held.
#[derive(Debug, Clone)]
pub(super) struct HeldCall {
    pub(super) call: CallId,
    pub(super) tool: String,
    pub(super) until: Timestamp,
    /// Whether the run continues meanwhile.
    pub(super) is_deferred: bool,
}

/// The held calls of a run, and the keys that undo them.
pub(super) struct UndoKeys {
    held: Mutex<HeldCalls>,
    /// Held by the prompt or by the listener, which read the same terminal.
    terminal: Mutex<()>,
    /// How many prompts wait for the terminal or use it.
    prompts: AtomicUsize,
    /// `None` if there is no terminal to type at.
    undoing: Option<(Service, Identity)>,
    /// Reports why a call was not undone.
    report: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Debug, Default)]
struct HeldCalls {
    calls: Vec<HeldCall>,
    /// Calls that the user has undone, until the run knows it.
    undone: Vec<CallId>,
    is_listening: bool,
}

impl HeldCalls {
    /// The call that starts first.
    fn next(&self) -> Option<&HeldCall> {
        let open = self.calls.iter();
        let open = open.filter(|held| !self.undone.contains(&held.call));
        open.min_by_key(|held| held.until)
    }
}

impl UndoKeys {
    pub(super) fn new(
        undoing: Option<(Service, Identity)>,
        report: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            held: Mutex::default(),
            terminal: Mutex::default(),
            prompts: AtomicUsize::new(0),
            undoing,
            report: Box::new(report),
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldCalls> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a key undoes held calls.
    pub(super) fn has_key(&self) -> bool {
        self.undoing.is_some()
    }

    /// The call that starts first.
    pub(super) fn next(&self) -> Option<HeldCall> {
        self.held().next().cloned()
    }

    /// Takes note of a held call, and of its end.
    pub(super) fn see(self: &Arc<Self>, event: &Event, tool: Option<&str>) {
        match event {
            Event::Held {
                call,
                until,
                deferred,
                ..
            } => {
                let mut held = self.held();
                held.calls.push(HeldCall {
                    call: call.clone(),
                    tool: tool.unwrap_or("the call").to_owned(),
                    until: *until,
                    is_deferred: *deferred,
                });
                if self.has_key() && !held.is_listening {
                    let keys = Arc::clone(self);
                    let listener = std::thread::Builder::new().name("undo keys".to_owned());
                    // Without the thread, the command still undoes the call.
                    held.is_listening = listener.spawn(move || keys.listen()).is_ok();
                }
            }
            Event::Released { call, .. }
            | Event::Undone { call, .. }
            | Event::CallStarted { call, .. }
            | Event::CallEnded { call, .. } => {
                let mut held = self.held();
                held.calls.retain(|held| held.call != *call);
                held.undone.retain(|undone| undone != call);
            }
            _ => {}
        }
    }

    /// Ends the listener, before the terminal is used for something else.
    pub(super) fn end(&self) {
        self.held().calls.clear();
        drop(self.terminal.lock());
    }

    /// Does work that reads the terminal.
    pub(super) fn paused<T>(&self, work: impl FnOnce() -> T) -> T {
        self.prompts.fetch_add(1, Ordering::SeqCst);
        let done = {
            let _terminal = self.terminal.lock();
            work()
        };
        self.prompts.fetch_sub(1, Ordering::SeqCst);
        done
    }

    /// Listens as long as calls are held.
    fn listen(&self) {
        loop {
            {
                let mut held = self.held();
                if held.calls.is_empty() {
                    held.is_listening = false;
                    return;
                }
            }
            if self.prompts.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(PAUSE);
                continue;
            }
            let listened = {
                let _terminal = self.terminal.lock();
                prompt::listen(&mut |letter| {
                    if letter.is_some_and(|letter| letter.eq_ignore_ascii_case(UNDO)) {
                        self.undo();
                    }
                    self.prompts.load(Ordering::SeqCst) == 0 && !self.held().calls.is_empty()
                })
            };
            match listened {
                Ok(()) => std::thread::sleep(PAUSE),
                // The terminal is gone.
                Err(_) => {
                    self.held().is_listening = false;
                    return;
                }
            }
        }
    }

    /// Undoes the call that starts first.
    fn undo(&self) {
        let (Some((service, identity)), Some(next)) = (&self.undoing, self.next()) else {
            return;
        };
        match service.change_hold(identity, &next.call.to_string(), HoldChange::Undo) {
            // The run reports it.
            Ok(_) => self.held().undone.push(next.call),
            Err(error) => (self.report)(&format!("error: {error}")),
        }
    }
}
