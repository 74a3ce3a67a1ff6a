//! The process group of a command: all processes it started, unless they started their own group.
//! Signals are sent by the `kill` program, because sending them from here would need
//! unsafe code.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::process::{Child, Command};

/// A process group, killed at the latest when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    /// The id of the group; zero after it was killed.
    id: AtomicU32,
}

impl ProcessGroup {
    /// The group of `child`, which was started as a group leader.
    pub fn of(child: &Child) -> Self {
        Self {
            id: AtomicU32::new(child.id().unwrap_or_default()),
        }
    }

    fn id(&self) -> Option<u32> {
        Some(self.id.load(Ordering::Relaxed)).filter(|&id| id != 0)
    }

    /// Sends TERM to all processes.
    pub async fn terminate(&self) {
        if let Some(id) = self.id() {
            signal(id, "TERM").await;
        }
    }

    /// Sends KILL to all processes.
    pub async fn kill(&self) {
        if let Some(id) = self.id() {
            signal(id, "KILL").await;
            self.id.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for ProcessGroup {
    /// Kills the group of a call that was dropped. It waits for `kill`, a millisecond or
    /// two, because nothing may run later that could do it.
    fn drop(&mut self) {
        let Some(id) = self.id() else {
            return;
        };
        for words in commands(id, "KILL") {
            let [program, arguments @ ..] = words.as_slice() else {
                continue;
            };
            let sent = std::process::Command::new(program)
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if sent.is_ok() {
                return;
            }
        }
    }
}

/// Sends a signal to a group. If the group has ended already, that is not an error.
async fn signal(id: u32, name: &str) {
    for words in commands(id, name) {
        let [program, arguments @ ..] = words.as_slice() else {
            continue;
        };
        let sent = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await;
        if sent.is_ok() {
            return;
        }
    }
}

/// The commands that send a signal to a group. The second is for systems where `kill` is only a shell
/// builtin. They contain no untrusted input.
fn commands(id: u32, name: &str) -> [Vec<String>; 2] {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let group = format!("-{id}");
    [
        words(&["kill", "-s", name, "--", &group]),
        words(&["/bin/sh", "-c", "kill -s \"$0\" -- \"$1\"", name, &group]),
    ]
}
