//! Watches the files of a configuration and puts a crew under what they say as soon as they say
//! something else. What cannot be used changes nothing, and whoever watches is told why.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};

use windlass_config::Configuration;
use windlass_tools::ToolLibrary;

use super::files::{ConfigurationFiles, Read, Seen};
use super::{ConfigurationError, Configured};
use crate::crew::Crew;

/// How long nothing must have changed before the files are read: whoever writes them may not be done.
const SETTLE: Duration = Duration::from_millis(20);

/// After how long files are watched. What changed before is seen then.
const BEGIN: Duration = Duration::from_millis(150);

/// How often the files are looked at in case nobody tells of a change, as on some network drives.
const LOOK: Duration = Duration::from_secs(2);

/// What came of a change.
#[derive(Debug, Clone)]
pub enum Reload {
    /// It holds now.
    Changed(Box<Configured>),
    /// It cannot be used; what held before still does.
    Refused(String),
}

/// Called with what came of each change, on the thread that watches.
pub type OnReload = Arc<dyn Fn(&Reload) + Send + Sync>;

/// What stands behind the tools under a configuration, or why nothing can.
pub type LibraryOf = Arc<dyn Fn(&Configuration) -> Result<ToolLibrary, String> + Send + Sync>;

/// Somebody watches. Dropped, they stop.
#[derive(Debug)]
pub struct Watching {
    stop: Option<Sender<Woken>>,
    thread: Option<JoinHandle<()>>,
}

enum Woken {
    Change,
    Stop,
}

/// Puts `crew` under what `files` say whenever that changes. `read` is what they said when the crew
/// was put under them.
#[must_use]
pub fn watch(
    files: ConfigurationFiles,
    read: Read,
    crew: Crew,
    library: LibraryOf,
    on_reload: OnReload,
) -> Watching {
    let (tell, told) = channel();
    let stop = tell.clone();
    let thread = std::thread::spawn(move || {
        let mut watch = Watch {
            seen: files.seen(&read),
            files,
            read,
            crew,
            library,
            on_reload,
        };
        // Most runs are over before anybody could change a file, and to stop being told of changes
        // takes the system longer than such a run.
        match told.recv_timeout(BEGIN) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
        }
        // Without it changes are seen a little later.
        let _watcher = watch.watcher(tell);
        // Something may have changed before anybody watched.
        watch.look();
        watch.until_stopped(&told);
    });
    Watching {
        stop: Some(stop),
        thread: Some(thread),
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(Woken::Stop);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watch {
    files: ConfigurationFiles,
    read: Read,
    seen: Seen,
    crew: Crew,
    library: LibraryOf,
    on_reload: OnReload,
}

impl Watch {
    /// Has changes in the directories of the files told. A file that is replaced is another one, so
    /// it is no use to watch the file itself.
    fn watcher(&self, tell: Sender<Woken>) -> Option<notify::RecommendedWatcher> {
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<_>| {
            let is_read = |event: &notify::Event| event.kind.is_access();
            if !event.as_ref().is_ok_and(is_read) {
                let _ = tell.send(Woken::Change);
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
            // One that is not there is looked at now and then.
            let _ = watcher.watch(directory, RecursiveMode::NonRecursive);
        }
        Some(watcher)
    }

    fn until_stopped(&mut self, told: &Receiver<Woken>) {
        loop {
            match told.recv_timeout(LOOK) {
                Ok(Woken::Change) => loop {
                    match told.recv_timeout(SETTLE) {
                        Ok(Woken::Change) => {}
                        Ok(Woken::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                        Err(RecvTimeoutError::Timeout) => break,
                    }
                },
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Woken::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look();
        }
    }

    /// Looks whether the files say something else.
    fn look(&mut self) {
        let seen = self.files.look(&self.read);
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
        let library = (self.library)(&configured.configuration)?;
        let done = self.crew.configure_with(&configured, Some(&library));
        done.map_err(|error| error.to_string())?;
        self.read = read;
        // What was read, not what is there by now: what changed in between is yet to be read.
        self.seen = self.files.seen(&self.read);
        Ok(configured)
    }
}
