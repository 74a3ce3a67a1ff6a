//! The worker: drives the runs of a store that can go on.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::ServiceError;
use crate::service::Service;

/// The file that every worker of a data directory holds a shared lock on.
const LOCK: &str = "worker.lock";

impl Service {
    /// Whether a worker drives the runs of this store, in this process or another.
    ///
    /// # Errors
    /// If that cannot be told.
    pub fn has_worker(&self) -> Result<bool, ServiceError> {
        is_locked(&self.data_directory()?.join(LOCK))
    }
}

fn is_locked(path: &Path) -> Result<bool, ServiceError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
