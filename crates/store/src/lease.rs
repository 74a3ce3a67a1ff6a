//! Who owns a run: whoever holds its lock file. The system releases the lock when the owner dies, so
//! no clock is needed to tell. The epoch in the database is the second line of defence: an owner who
//! lost its lock unnoticed (a copied directory, a file system without locks) can append no more.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use windlass_spec::RunId;

use crate::connection::open_private;
use crate::error::Error;

/// The right to append to the journal of one run.
#[derive(Debug)]
pub struct RunLease {
    run: RunId,
    epoch: i64,
    path: PathBuf,
    /// Closing it releases the lock.
    _lock: File,
}

impl RunLease {
    /// Takes the lock of a run; `epoch` is what the database says of its owner now.
    pub(crate) fn take(locks: &Path, run: &RunId, epoch: i64) -> Result<Self, Error> {
        // Ids may hold colons, which not every file system takes.
        let path = locks.join(format!("run-{}.lock", run.as_str().replace(':', "%3A")));
        let lock = open_private(&path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                run: run.clone(),
                epoch,
                path,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Error::OwnedElsewhere(run.clone())),
            Err(TryLockError::Error(error)) => Err(Error::file("lock", &path, error)),
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

    pub(crate) fn set_epoch(&mut self, epoch: i64) {
        self.epoch = epoch;
    }

    /// Removes the lock file. Only for runs that can have no further owner: otherwise one who opened
    /// the file before and one who makes it anew would both get a lock.
    pub(crate) fn remove_file(&self) {
        self.file().remove();
    }

    /// The lock file, to be removed later, under the same condition.
    pub(crate) fn file(&self) -> LockFile {
        LockFile(self.path.clone())
    }
}

/// The lock file of a run.
pub(crate) struct LockFile(PathBuf);

impl LockFile {
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_file(self.0);
    }
}
