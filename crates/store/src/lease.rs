//! Who owns a run: whoever holds its lock file. The system releases the lock when the owner dies, so
//! no clock is needed to tell. The epoch in the database is the second line of defence: an owner who
//! lost its lock unnoticed (a copied directory, a file system without locks) can append no more.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use windlass_spec::RunId;

use crate::connection::open_private;
use crate::error::Error;

/// How often a lock is tried for before its run counts as owned, and how long to wait in between: a
/// process that only asks whether a run is owned has the lock for a moment ([`is_owned`]).
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(1);

/// The right to append to the journal of one run.
#[derive(Debug)]
pub struct RunLease {
    run: RunId,
    epoch: i64,
    path: PathBuf,
    /// Closing it releases the lock.
    lock: File,
    /// Whether the lock file stays, as when the owner dies.
    is_abandoned: bool,
}

impl RunLease {
    /// Takes the lock of a run; `epoch` is what the database says of its owner now.
    pub(crate) fn take(locks: &Path, run: &RunId, epoch: i64) -> Result<Self, Error> {
        let path = lock_path(locks, run);
        let mut tries = 0;
        loop {
            let lock = open_private(&path)?;
            match lock.try_lock() {
                // Its last owner may have removed the file after we opened it. Then the lock is of no
                // use: the next one makes the file anew and locks that.
                Ok(()) if !is_at(&lock, &path) => {}
                Ok(()) => {
                    return Ok(Self {
                        run: run.clone(),
                        epoch,
                        path,
                        lock,
                        is_abandoned: false,
                    });
                }
                Err(TryLockError::WouldBlock) if tries < TRIES => {
                    tries += 1;
                    sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(Error::OwnedElsewhere(run.clone())),
                Err(TryLockError::Error(error)) => return Err(Error::file("lock", &path, error)),
            }
        }
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// How many owners the run has had, with this one.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Leaves the run as an owner does that dies: the next worker resumes it.
    pub(crate) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    pub(crate) fn set_epoch(&mut self, epoch: i64) {
        self.epoch = epoch;
    }
}

impl Drop for RunLease {
    /// A run that its owner gave up has no lock file, so that one that waits costs nothing but its rows. The
    /// file goes before the lock does: only an owner may remove it.
    fn drop(&mut self) {
        if cfg!(unix) && !self.is_abandoned && is_at(&self.lock, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn lock_path(locks: &Path, run: &RunId) -> PathBuf {
    // Ids may hold colons, which not every file system takes.
    locks.join(format!("run-{}.lock", run.as_str().replace(':', "%3A")))
}

/// Whether a living process, this one or another, owns a run. Nothing is made or removed: the lock file
/// that a process left behind when it died is its next owner's to use.
pub(crate) fn is_owned(locks: &Path, run: &RunId) -> Result<bool, Error> {
    let path = lock_path(locks, run);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::file("open", &path, error)),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(Error::file("lock", &path, error)),
    }
}

/// Whether a run has a lock file. An owner that lets go of its run removes it; one that dies leaves it.
pub(crate) fn has_lock_file(locks: &Path, run: &RunId) -> bool {
    lock_path(locks, run).exists()
}

/// Makes the lock file of a run, as an owner leaves it that dies.
pub(crate) fn leave_lock_file(locks: &Path, run: &RunId) -> Result<(), Error> {
    open_private(&lock_path(locks, run)).map(drop)
}

/// Whether an open file is the one that a path leads to now.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        match (file.metadata(), std::fs::metadata(path)) {
            (Ok(file), Ok(found)) => identity(file) == identity(found),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        // Nobody removes a lock file there.
        let _ = (file, path);
        true
    }
}
