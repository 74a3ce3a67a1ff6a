//! Reaching files below a root without ever leaving it. A path is walked one step at a time, each step
//! opened from the directory before it and never through a link; what was opened is what is used. A
//! directory that is swapped for a link on the way is therefore an error and not a way out: there is
//! no moment between looking and using. That also holds on systems that cannot confine a whole path.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::{
    self as sys, AtFlags, Dir, FileType, Mode as Permissions, OFlags, RenameFlags, Stat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::path::Steps;

/// What stands in the way of using a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// This step is not there; the empty one is the root.
    Missing(String),
    /// This step is a link.
    Link(String),
    /// This step is something other than a directory.
    NotDirectory(String),
    /// A file is wanted, and this is a directory.
    IsDirectory,
    /// Neither a regular file nor a directory, or made up by the kernel.
    Special,
    /// More than may be read.
    TooLarge {
        /// How much it is, where that is known.
        bytes: Option<u64>,
        /// How much it may be.
        max_bytes: usize,
    },
    /// More entries than this are in the directory.
    TooMany(usize),
    /// It is there already, and is not to be replaced.
    Exists,
    /// The system says no.
    Denied,
    /// Anything else.
    Failed {
        /// What the system says.
        what: String,
        /// Whether something may have changed.
        had_effect: bool,
    },
}

impl Problem {
    fn of(error: Errno, step: &str) -> Self {
        match error {
            Errno::NOENT => Self::Missing(step.to_owned()),
            Errno::LOOP => Self::Link(step.to_owned()),
            Errno::NOTDIR => Self::NotDirectory(step.to_owned()),
            Errno::ISDIR => Self::IsDirectory,
            Errno::EXIST => Self::Exists,
            Errno::NXIO | Errno::NODEV => Self::Special,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            other => Self::failed(other.into()),
        }
    }

    fn failed(error: io::Error) -> Self {
        Self::Failed {
            what: error.to_string(),
            had_effect: false,
        }
    }
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl Kind {
    fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }

    /// Whether it is a regular file; the problem if it is not.
    fn check_file(self, step: &str) -> Result<(), Problem> {
        match self {
            Self::File => Ok(()),
            Self::Directory => Err(Problem::IsDirectory),
            Self::Link => Err(Problem::Link(step.to_owned())),
            Self::Other => Err(Problem::Special),
        }
    }
}

/// What writing does about a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    /// Leaves it alone. That it has this very content already is no error: then the same call was
    /// made before.
    #[default]
    Create,
    /// Replaces it.
    Overwrite,
}

/// The bytes of a file, if it has at most `max_bytes`.
pub(super) fn read(root: &Path, steps: &Steps, max_bytes: usize) -> Result<Vec<u8>, Problem> {
    let (directory, name) = parent(root, steps)?;
    let (file, stat) = open_file(&directory, name)?;
    contents(file, &stat, max_bytes)
}

/// Writes a file whole or not at all, and says whether it took the place of another.
pub(super) fn write(
    root: &Path,
    steps: &Steps,
    content: &[u8],
    mode: Mode,
) -> Result<bool, Problem> {
    let (directory, name) = parent(root, steps)?;
    check_holds_files(&directory)?;
    let before = match stat(&directory, name) {
        Ok(stat) => {
            Kind::of(&stat).check_file(name)?;
            Some(stat)
        }
        Err(Problem::Missing(_)) => None,
        Err(problem) => return Err(problem),
    };
    if before.is_some() && mode == Mode::Create {
        return same_content(&directory, name, content).map(|()| false);
    }
    // Neither wider nor narrower than what it replaces, and never more than that on the way.
    let permissions = before.map(|stat| Permissions::from_raw_mode(stat.st_mode & 0o777));
    let (temporary, mut file) = create_temporary(&directory, permissions)?;
    let written = file
        .write_all(content)
        .and_then(|()| match permissions {
            Some(permissions) => Ok(sys::fchmod(&file, permissions)?),
            None => Ok(()),
        })
        .and_then(|()| file.sync_all())
        .map_err(Problem::failed)
        .and_then(|()| put_in_place(&directory, &temporary, name, mode));
    if let Err(problem) = written {
        // What cannot be removed now stays under a name that says whose it is.
        let _ = sys::unlinkat(&directory, &temporary, AtFlags::empty());
        return match problem {
            Problem::Exists => same_content(&directory, name, content).map(|()| false),
            other => Err(other),
        };
    }
    sys::fsync(&directory).map_err(|error| Problem::Failed {
        what: format!("written, but it may not survive a power failure: {error}"),
        had_effect: true,
    })?;
    Ok(before.is_some())
}

/// Deletes a file and says how large it was.
pub(super) fn delete(root: &Path, steps: &Steps) -> Result<u64, Problem> {
    let (directory, name) = parent(root, steps)?;
    check_holds_files(&directory)?;
    let stat = stat(&directory, name)?;
    Kind::of(&stat).check_file(name)?;
    sys::unlinkat(&directory, name, AtFlags::empty()).map_err(|error| Problem::of(error, name))?;
    Ok(size(&stat))
}

/// What is in a directory, in no order.
pub(super) fn list(
    root: &Path,
    steps: &Steps,
    most: usize,
) -> Result<Vec<(String, Kind, Option<u64>)>, Problem> {
    let directory = open_directory(root, steps.names())?;
    check_holds_files(&directory)?;
    let entries = Dir::read_from(&directory).map_err(|error| Problem::of(error, ""))?;
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Problem::of(error, ""))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if listed.len() == most {
            return Err(Problem::TooMany(most));
        }
        // One that is gone again is not there.
        let Ok(stat) = sys::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = Kind::of(&stat);
        let bytes = (kind == Kind::File).then(|| size(&stat));
        listed.push((name.to_string_lossy().into_owned(), kind, bytes));
    }
    Ok(listed)
}

/// The directory a file is in, opened, and the name of the file there.
fn parent<'a>(root: &Path, steps: &'a Steps) -> Result<(OwnedFd, &'a str), Problem> {
    let (name, way) = steps.names().split_last().ok_or(Problem::IsDirectory)?;
    Ok((open_directory(root, way)?, name))
}

/// Walks down from the root. The root itself may be a link: the operator wrote it.
fn open_directory(root: &Path, names: &[String]) -> Result<OwnedFd, Problem> {
    const DIRECTORY: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);
    let mut directory =
        sys::open(root, DIRECTORY, Permissions::empty()).map_err(|error| Problem::of(error, ""))?;
    for name in names {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        directory =
            sys::openat(&directory, name, flags, Permissions::empty()).map_err(|error| {
                // For a link some systems say that it is no directory.
                let is_link = || stat(&directory, name).is_ok_and(|it| Kind::of(&it) == Kind::Link);
                if error == Errno::NOTDIR && is_link() {
                    Problem::Link(name.clone())
                } else {
                    Problem::of(error, name)
                }
            })?;
    }
    Ok(directory)
}

fn stat(directory: &OwnedFd, name: &str) -> Result<Stat, Problem> {
    sys::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|error| Problem::of(error, name))
}

/// Opens a regular file for reading. It is looked at first, so that devices are not even opened, and
/// again once it is open, because only then it cannot become something else.
fn open_file(directory: &OwnedFd, name: &str) -> Result<(File, Stat), Problem> {
    Kind::of(&stat(directory, name)?).check_file(name)?;
    // A pipe that took its place would otherwise block until somebody writes to it.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = sys::openat(directory, name, flags, Permissions::empty())
        .map_err(|error| Problem::of(error, name))?;
    let stat = sys::fstat(&file).map_err(|error| Problem::of(error, name))?;
    Kind::of(&stat).check_file(name)?;
    check_holds_files(&file)?;
    Ok((File::from(file), stat))
}

fn contents(file: File, stat: &Stat, max_bytes: usize) -> Result<Vec<u8>, Problem> {
    let too_large = |bytes| Problem::TooLarge { bytes, max_bytes };
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if size(stat) > limit {
        return Err(too_large(Some(size(stat))));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(Problem::failed)?;
    if bytes.len() > max_bytes {
        return Err(too_large(None));
    }
    Ok(bytes)
}

/// Whether the file that is there has this content already.
fn same_content(directory: &OwnedFd, name: &str, content: &[u8]) -> Result<(), Problem> {
    let (file, stat) = open_file(directory, name)?;
    match contents(file, &stat, content.len()) {
        Ok(there) if there == content => Ok(()),
        Ok(_) | Err(Problem::TooLarge { .. }) => Err(Problem::Exists),
        Err(problem) => Err(problem),
    }
}

fn create_temporary(
    directory: &OwnedFd,
    permissions: Option<Permissions>,
) -> Result<(String, File), Problem> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let name = format!(
        ".windlass-{}-{:x}-{}.tmp",
        std::process::id(),
        since.unwrap_or_default().as_nanos(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let permissions = permissions.unwrap_or(Permissions::from_raw_mode(0o666));
    let file = sys::openat(directory, &name, flags, permissions)
        .map_err(|error| Problem::of(error, &name))?;
    Ok((name, File::from(file)))
}

/// Gives a file that is written its name.
fn put_in_place(
    directory: &OwnedFd,
    temporary: &str,
    name: &str,
    mode: Mode,
) -> Result<(), Problem> {
    let placed = match mode {
        Mode::Overwrite => sys::renameat(directory, temporary, directory, name),
        Mode::Create => {
            match sys::renameat_with(
                directory,
                temporary,
                directory,
                name,
                RenameFlags::NOREPLACE,
            ) {
                // Some file systems cannot do this, but can link, which never replaces either.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    sys::linkat(directory, temporary, directory, name, AtFlags::empty()).map(|()| {
                        // The file is in its place, so that its other name stays is no failure.
                        let _ = sys::unlinkat(directory, temporary, AtFlags::empty());
                    })
                }
                placed => placed,
            }
        }
    };
    placed.map_err(|error| Problem::of(error, name))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Refuses what the kernel makes up: its files look regular, but reading one may wait for ever, tell
/// about other processes, or change something.
#[cfg(target_os = "linux")]
fn check_holds_files(file: impl AsFd) -> Result<(), Problem> {
    const MADE_UP: [u32; 17] = [
        0x0000_9fa0, // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x0000_1cd1, // devpts
        0xcafe_4a11, // bpf
        0xf97c_ff8c, // selinux
        0x6165_676c, // pstore
        0xde5e_81e4, // efivarfs
        0x6265_6570, // configfs
        0x4249_4e4d, // binfmt_misc
        0x6573_5543, // fusectl
        0x1980_0202, // mqueue
        0x6e73_6673, // nsfs
    ];
    let system = sys::fstatfs(file).map_err(|error| Problem::of(error, ""))?;
    // The numbers have 32 bits; the field is wider or signed on some machines.
    let magic = system.f_type as u32;
    if MADE_UP.contains(&magic) {
        return Err(Problem::Special);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_holds_files(_: impl AsFd) -> Result<(), Problem> {
    Ok(())
}

#[cfg(test)]
mod tests;
