//! Ownership of runs: the process that holds the lock file of a run owns it. The system releases the lock when
//! the owner dies, so no clock is needed. The epoch in the database is a second check: an owner that
//! lost its lock unnoticed (a copied directory, a file system without locks) can no longer append.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use windlass_spec::RunId;

use crate::connection::open_private;
use crate::error::Error;

/// How often a lock is tried before its run counts as owned, and the pause in between. Retries are needed because
/// a process that only checks the owner of a run holds the lock for a moment ([`is_owned`]).
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
    /// Takes the lock of a run. `epoch` is the owner's epoch in the database.
    pub(crate) fn take(locks: &Path, run: &RunId, epoch: i64) -> Result<Self, Error> {
        let path = lock_path(locks, run);
        let mut tries = 0;
        loop {
            let lock = open_private(&path)?;
            match lock.try_lock() {
                // The last owner may have removed the file after it was opened here. That lock protects
                // nothing, because the next owner would create and lock a new file. Try again.
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

    /// How many owners the run has had, including this one.
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
    /// Removes the lock file unless the run is abandoned, so that a waiting run costs nothing but its rows. The
    /// file is removed before the lock is released, because only an owner may remove it.
    fn drop(&mut self) {
        if cfg!(unix) && !self.is_abandoned && is_at(&self.lock, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn lock_path(locks: &Path, run: &RunId) -> PathBuf {
    // Ids may contain colons, which some file systems do not allow.
    locks.join(format!("run-{}.lock", run.as_str().replace(':', "%3A")))
}

/// Whether a living process, this one or another, owns a run. It neither creates nor removes files: the next
/// owner uses the lock file that a dead process left behind.
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

/// Whether a run has a lock file. An owner that releases its run removes the file; one that dies leaves it.
pub(crate) fn has_lock_file(locks: &Path, run: &RunId) -> bool {
    lock_path(locks, run).exists()
}

/// Creates the lock file of a run, as if its owner had died.
pub(crate) fn create_lock_file(locks: &Path, run: &RunId) -> Result<(), Error> {
    open_private(&lock_path(locks, run)).map(drop)
}

/// Whether an open file is the one that is at the path now.
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
        // Lock files are never removed on these systems.
        let _ = (file, path);
        true
    }
}
