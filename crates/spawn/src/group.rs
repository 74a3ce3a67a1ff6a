//! The process group of a program: all processes it started, unless they started their own group.

use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Signal, kill_process_group};

/// A process group, killed at the latest when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    /// The id of the group; zero after it was killed.
    id: AtomicI32,
}

impl ProcessGroup {
    /// The group of a process that was started as the leader of one. `None` if it has ended already.
    #[must_use]
    pub fn of(leader: Option<u32>) -> Self {
        let id = leader.and_then(|id| i32::try_from(id).ok());
        Self {
            id: AtomicI32::new(id.unwrap_or_default()),
        }
    }

    /// Sends TERM to all processes.
    pub fn terminate(&self) {
        send(self.id.load(Ordering::Relaxed), Signal::TERM);
    }

    /// Sends KILL to all processes.
    pub fn kill(&self) {
        send(self.id.swap(0, Ordering::Relaxed), Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    /// Kills the group of a call that was dropped.
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a group. That it has ended already is not an error.
fn send(id: i32, signal: Signal) {
    if let Some(id) = Pid::from_raw(id) {
        let _ = kill_process_group(id, signal);
    }
}
