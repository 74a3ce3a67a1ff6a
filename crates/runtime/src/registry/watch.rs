//! Watches the files of a configuration and applies each change to a crew. An invalid configuration changes
//! nothing and is reported.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};

use windlass_config::Configuration;
use windlass_tools::ToolLibrary;

use super::files::{ConfigurationFiles, FileStates, FileTexts};
use super::trust::ProjectTrust;
use super::{ConfigurationError, Configured};
use crate::crew::Crew;

/// How long the files must be unchanged before they are read, because a write may still be in progress.
const SETTLE: Duration = Duration::from_millis(20);

/// The delay before the files are watched. Earlier changes are detected then.
const START_DELAY: Duration = Duration::from_millis(150);

/// How often the files are compared in case changes are not reported, as on some network drives.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The result of a changed configuration.
#[derive(Debug, Clone)]
pub enum Reload {
    /// The new configuration is active.
    Changed(Box<Configured>),
    /// The new configuration is invalid; the previous one stays active.
    Refused(String),
}

/// Called with the result of each change, on the watching thread.
pub type OnReload = Arc<dyn Fn(&Reload) + Send + Sync>;

/// Returns the tool library for a configuration, or why there is none.
pub type LibraryOf = Arc<dyn Fn(&Configuration) -> Result<ToolLibrary, String> + Send + Sync>;

/// A running watch of configuration files. Dropping it stops the watch.
#[derive(Debug)]
pub struct ConfigurationWatch {
    stop: Option<Sender<Wake>>,
    thread: Option<JoinHandle<()>>,
}

enum Wake {
    Change,
    Stop,
}

/// Applies the configuration in `files` to `crew` whenever it changes. `read` are the texts of the
/// configuration that the crew has now.
#[must_use]
pub fn watch_configuration(
    files: ConfigurationFiles,
    read: FileTexts,
    crew: Crew,
    library: LibraryOf,
    on_reload: OnReload,
) -> ConfigurationWatch {
    let (sender, receiver) = channel();
    let stop = sender.clone();
    let thread = std::thread::spawn(move || {
        let mut watch = ConfigurationReloader {
            seen: files.states_when_read(&read),
            files,
            read,
            crew,
            library,
            on_reload,
        };
        // Most runs are over before a file can change, and ending a watch takes longer than such a run.
        match receiver.recv_timeout(START_DELAY) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
        }
        // Without a watcher, changes are found by polling.
        let _watcher = watch.watcher(sender);
        // The files may have changed before the watch started.
        watch.reload_if_changed();
        watch.run_until_stopped(&receiver);
    });
    ConfigurationWatch {
        stop: Some(stop),
        thread: Some(thread),
    }
}

impl Drop for ConfigurationWatch {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(Wake::Stop);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct ConfigurationReloader {
    files: ConfigurationFiles,
    read: FileTexts,
    seen: FileStates,
    crew: Crew,
    library: LibraryOf,
    on_reload: OnReload,
}

impl ConfigurationReloader {
    /// Watches the directories of the files. Watching a file itself would miss that it is replaced by
    /// another one.
    fn watcher(&self, sender: Sender<Wake>) -> Option<notify::RecommendedWatcher> {
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<_>| {
            let is_read = |event: &notify::Event| event.kind.is_access();
            if !event.as_ref().is_ok_and(is_read) {
                let _ = sender.send(Wake::Change);
            }
        })
        .ok()?;
        let mut watched: Vec<&Path> = self.seen.keys().filter_map(|path| path.parent()).collect();
        watched.sort();
        watched.dedup();
        for directory in watched {
            let directory = match directory == Path::new("") {
                true => Path::new("."),
                false => directory,
            };
            // A missing directory is polled.
            let _ = watcher.watch(directory, RecursiveMode::NonRecursive);
        }
        Some(watcher)
    }

    fn run_until_stopped(&mut self, receiver: &Receiver<Wake>) {
        loop {
            match receiver.recv_timeout(POLL_INTERVAL) {
                Ok(Wake::Change) => loop {
                    match receiver.recv_timeout(SETTLE) {
                        Ok(Wake::Change) => {}
                        Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                        Err(RecvTimeoutError::Timeout) => break,
                    }
                },
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.reload_if_changed();
        }
    }

    /// Reloads the configuration if the files have changed.
    fn reload_if_changed(&mut self) {
        let seen = self.files.current_states(&self.read);
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        let reload = match self.reload() {
            Ok(configured) => Reload::Changed(Box::new(configured)),
            Err(why) => Reload::Refused(why),
        };
        (self.on_reload)(&reload);
    }

    fn reload(&mut self) -> Result<Configured, String> {
        let read = self.files.read(&self.read);
        let (configured, read) = read.map_err(|error: ConfigurationError| error.to_string())?;
        if let ProjectTrust::Changed(_) = configured.trust
            && !configured.untrusted.is_empty()
        {
            return Err(
                "it changed and is not trusted any more; review it with `windlass trust`"
                    .to_owned(),
            );
        }
        let library = (self.library)(&configured.configuration)?;
        let done = self.crew.configure_with(&configured, Some(&library));
        done.map_err(|error| error.to_string())?;
        self.read = read;
        // The texts that were read, not the current ones: a later change is still to be read.
        self.seen = self.files.states_when_read(&self.read);
        Ok(configured)
    }
}
