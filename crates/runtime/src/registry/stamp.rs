//! Tells whether a file is still the one that was read, without opening it.

use std::fs::metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that changes twice within this time may have the same times after both changes.
const GRANULARITY: Duration = Duration::from_secs(2);

/// A file that has not changed for a while: which one it is, its size, and when it changed. Every change of its content
/// gives it another stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Programs cannot set this time.
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of a file; `None` if it changed a moment ago or is missing.
    pub(super) fn of(path: &Path) -> Option<Self> {
        Self::at(path, SystemTime::now())
    }

    fn at(path: &Path, now: SystemTime) -> Option<Self> {
        let found = metadata(path).ok()?;
        let seconds = u64::try_from(found.ctime()).ok()?;
        let changed = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        let age = now.duration_since(changed).ok()?;
        (age > GRANULARITY).then(|| Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_stamp_only_after_a_while_and_another_one_after_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.toml");
        std::fs::write(&path, "a").unwrap();
        let now = SystemTime::now();
        assert_eq!(FileStamp::at(&path, now), None);
        let later = now + 2 * GRANULARITY;
        let before = FileStamp::at(&path, later).unwrap();
        assert_eq!(FileStamp::at(&path, later), Some(before.clone()));
        // The file system may not yet tell the two times apart, so the new file has another inode.
        let other = directory.path().join("other");
        std::fs::write(&other, "b").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_ne!(FileStamp::at(&path, later), Some(before));
        assert_eq!(FileStamp::at(&directory.path().join("none"), later), None);
    }
}
