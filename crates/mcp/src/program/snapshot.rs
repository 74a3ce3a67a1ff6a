//! The files of a server at one moment: their contents and identities. Two equal snapshots show that no file
//! was replaced in between.
//!
//! A file that is written, renamed, or restored gets a new change time, which no program can set. Directories
//! are not compared, because servers create files in them. So a directory above a file that is replaced and
//! put back between two snapshots is not detected.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use windlass_spec::server::CommandTransport;

use super::{Program, ProgramError, read_program};

/// The coarsest clock of change times. Two changes within this time may have the same change time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// How often the files are read until none was changed within the last [`CLOCK_STEP`].
const ATTEMPTS: usize = 10;

/// The most links on the way to a file, as in Linux.
const MAX_LINKS: usize = 40;

/// The files of a server at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramSnapshot {
    pub(crate) program: Program,
    /// The identity of every file by its canonical path, and of every symbolic link on the way to it.
    pub(super) identities: BTreeMap<PathBuf, FileIdentity>,
}

/// What distinguishes a file from another file with the same path and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    /// The change time in seconds and nanoseconds.
    changed: (i64, i64),
}

impl FileIdentity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a further change may get the same change time. A time in the future does not count: waiting
    /// does not help, and the clock was set back, so that a further change gets an earlier time.
    fn is_recent(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds))
        else {
            return false;
        };
        let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        now.duration_since(changed)
            .is_ok_and(|passed| passed < CLOCK_STEP)
    }
}

impl ProgramSnapshot {
    /// Reads the files of a server. Waits until every later change gets a later change time.
    pub(crate) fn take(transport: &CommandTransport, found: &Path) -> Result<Self, ProgramError> {
        let mut changing = found.to_owned();
        for _ in 0..ATTEMPTS {
            match read_program(transport, found) {
                Ok(snapshot) => {
                    let now = SystemTime::now();
                    let mut identities = snapshot.identities.iter();
                    match identities.find(|(_, identity)| identity.is_recent(now)) {
                        None => return Ok(snapshot),
                        Some((path, _)) => changing.clone_from(path),
                    }
                }
                Err(ProgramError::Changing(path)) => changing = path,
                Err(error) => return Err(error),
            }
            thread::sleep(CLOCK_STEP);
        }
        Err(ProgramError::Changing(changing))
    }

    /// Describes what was changed since this snapshot. Empty if nothing was.
    pub(crate) fn changes_since(
        &self,
        transport: &CommandTransport,
        found: &Path,
    ) -> Result<Vec<String>, ProgramError> {
        let after = read_program(transport, found)?;
        let mut changes = self.program.difference(&after.program);
        if !changes.is_empty() {
            return Ok(changes);
        }
        for (path, identity) in &self.identities {
            let other = after.identities.get(path);
            let path = path.display();
            match other {
                Some(other) if other == identity => {}
                Some(other) if (other.device, other.inode) != (identity.device, identity.inode) => {
                    changes.push(format!("`{path}` was replaced by another file"));
                }
                Some(_) => changes.push(format!("`{path}` was changed or moved, and restored")),
                None => changes.push(format!("`{path}` is no longer a link to the program")),
            }
        }
        Ok(changes)
    }
}

/// The symbolic links on the way to a file, each with its identity.
pub(super) fn links_of(path: &Path) -> io::Result<BTreeMap<PathBuf, FileIdentity>> {
    let path = std::path::absolute(path)?;
    let mut links = BTreeMap::new();
    let mut resolved = PathBuf::new();
    // The components that are not resolved yet, the next one last.
    let mut rest: Vec<OsString> = Vec::new();
    let push = |rest: &mut Vec<OsString>, path: &Path| {
        let components = path.components().rev();
        rest.extend(components.map(|component| component.as_os_str().to_owned()));
    };
    push(&mut rest, &path);
    let mut followed = 0;
    while let Some(next) = rest.pop() {
        match Path::new(&next).components().next() {
            Some(Component::ParentDir) => {
                resolved.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(_) => {}
        }
        // An absolute component replaces the whole path.
        let candidate = resolved.join(&next);
        let metadata = fs::symlink_metadata(&candidate)?;
        if !metadata.is_symlink() {
            resolved = candidate;
            continue;
        }
        followed += 1;
        if followed > MAX_LINKS {
            return Err(io::Error::other("there are too many symbolic links"));
        }
        push(&mut rest, &fs::read_link(&candidate)?);
        links.insert(candidate, FileIdentity::of(&metadata));
    }
    Ok(links)
}
