//! Access to files below a root without ever leaving it. A path is opened one step at a time, each
//! from the directory before it and never through a link. There is no time between check and use, so a
//! directory that is swapped for a link is an error and not an escape. This also works
//! on systems that cannot confine a whole path.

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

use super::guard::{DirectoryOnTheWay, Reached};
use super::path::Steps;

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileProblem {
    /// This step does not exist; the empty one is the root.
    Missing(String),
    /// This step is a link.
    Link(String),
    /// This step is not a directory.
    NotDirectory(String),
    /// The path is a directory and not a file.
    IsDirectory,
    /// Neither a regular file nor a directory, or in a virtual file system of the kernel.
    Special,
    /// The file is larger than the limit.
    TooLarge {
        /// Its size, if it is known.
        bytes: Option<u64>,
        /// The limit.
        max_bytes: usize,
    },
    /// The directory has more entries than this.
    TooMany(usize),
    /// It exists, and must not be replaced.
    Exists,
    /// It governs agents, for this reason.
    Governs(&'static str),
    /// The system denies access.
    Denied,
    /// Any other error.
    Failed {
        /// The message of the system.
        what: String,
        /// Whether something may have changed.
        had_effect: bool,
    },
}

impl FileProblem {
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

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryKind {
    File,
    Directory,
    Link,
    Other,
}

impl EntryKind {
    fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }

    /// Checks that it is a regular file.
    fn check_file(self, step: &str) -> Result<(), FileProblem> {
        match self {
            Self::File => Ok(()),
            Self::Directory => Err(FileProblem::IsDirectory),
            Self::Link => Err(FileProblem::Link(step.to_owned())),
            Self::Other => Err(FileProblem::Special),
        }
    }
}

/// What writing does if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WriteMode {
    /// Keeps it. If it already has the same content, that is not an error: the same call was
    /// made before.
    #[default]
    Create,
    /// Replaces it.
    Overwrite,
}

/// Decides whether the file that was reached may be used.
pub(super) type Check<'c> = &'c dyn Fn(&Reached<'_>) -> Result<(), FileProblem>;

/// The bytes of a file, if it has at most `max_bytes`.
pub(super) fn read(
    root: &Path,
    steps: &Steps,
    max_bytes: usize,
    check: Check<'_>,
) -> Result<Vec<u8>, FileProblem> {
    let (directory, name) = parent(root, steps, check)?;
    let (file, stat) = open_file(&directory, name)?;
    contents(file, &stat, max_bytes)
}

/// The beginning of a file, for checks; empty if it cannot be read.
pub(super) fn beginning(reached: &Reached<'_>, max_bytes: usize) -> Vec<u8> {
    let Ok((file, _)) = open_file(reached.directory, reached.name) else {
        return Vec::new();
    };
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let _ = file.take(limit).read_to_end(&mut bytes);
    bytes
}

/// Writes a file atomically, and returns whether it replaced another.
pub(super) fn write(
    root: &Path,
    steps: &Steps,
    content: &[u8],
    mode: WriteMode,
    check: Check<'_>,
    record: &dyn Fn() -> Result<(), FileProblem>,
) -> Result<bool, FileProblem> {
    let (directory, name) = parent(root, steps, check)?;
    check_file_system(&directory)?;
    let before = match stat(&directory, name) {
        Ok(stat) => {
            EntryKind::of(&stat).check_file(name)?;
            Some(stat)
        }
        Err(FileProblem::Missing(_)) => None,
        Err(problem) => return Err(problem),
    };
    if before.is_some() && mode == WriteMode::Create {
        return check_same_content(&directory, name, content).map(|()| false);
    }
    record()?;
    // The same permissions as the replaced file, also for the temporary file.
    let permissions = before.map(|stat| Permissions::from_raw_mode(stat.st_mode & 0o777));
    let (temporary, mut file) = create_temporary(&directory, permissions)?;
    let written = file
        .write_all(content)
        .and_then(|()| match permissions {
            Some(permissions) => Ok(sys::fchmod(&file, permissions)?),
            None => Ok(()),
        })
        .and_then(|()| file.sync_all())
        .map_err(FileProblem::failed)
        .and_then(|()| put_in_place(&directory, &temporary, name, mode));
    if let Err(problem) = written {
        // A temporary file that cannot be removed stays. Its name shows that Windlass created it.
        let _ = sys::unlinkat(&directory, &temporary, AtFlags::empty());
        return match problem {
            FileProblem::Exists => check_same_content(&directory, name, content).map(|()| false),
            other => Err(other),
        };
    }
    sys::fsync(&directory).map_err(|error| FileProblem::Failed {
        what: format!("written, but it may not survive a power failure: {error}"),
        had_effect: true,
    })?;
    Ok(before.is_some())
}

/// Deletes a file and returns its size.
pub(super) fn delete(root: &Path, steps: &Steps, check: Check<'_>) -> Result<u64, FileProblem> {
    let (directory, name) = parent(root, steps, check)?;
    check_file_system(&directory)?;
    let stat = stat(&directory, name)?;
    EntryKind::of(&stat).check_file(name)?;
    sys::unlinkat(&directory, name, AtFlags::empty())
        .map_err(|error| FileProblem::of(error, name))?;
    Ok(size(&stat))
}

/// The entries of a directory, in no order.
pub(super) fn list(
    root: &Path,
    steps: &Steps,
    max_entries: usize,
) -> Result<Vec<(String, EntryKind, Option<u64>)>, FileProblem> {
    let (directory, _) = open_directory(root, steps.names())?;
    check_file_system(&directory)?;
    let entries = Dir::read_from(&directory).map_err(|error| FileProblem::of(error, ""))?;
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| FileProblem::of(error, ""))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if listed.len() == max_entries {
            return Err(FileProblem::TooMany(max_entries));
        }
        // An entry that was removed meanwhile is skipped.
        let Ok(stat) = sys::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = EntryKind::of(&stat);
        let bytes = (kind == EntryKind::File).then(|| size(&stat));
        listed.push((name.to_string_lossy().into_owned(), kind, bytes));
    }
    Ok(listed)
}

/// The opened directory of a file that passes the check, and the file's name in it.
fn parent<'a>(
    root: &Path,
    steps: &'a Steps,
    check: Check<'_>,
) -> Result<(OwnedFd, &'a str), FileProblem> {
    let (name, parents) = steps.names().split_last().ok_or(FileProblem::IsDirectory)?;
    let (directory, chain) = open_directory(root, parents)?;
    check(&Reached {
        directory: &directory,
        chain: &chain,
        name,
    })?;
    Ok((directory, name))
}

/// Opens a directory step by step from the root, and returns it with the directories on the way. The root itself
/// may be a link, because the operator configured it.
fn open_directory(
    root: &Path,
    names: &[String],
) -> Result<(OwnedFd, Vec<DirectoryOnTheWay>), FileProblem> {
    const DIRECTORY: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::CLOEXEC);
    let mut directory = sys::open(root, DIRECTORY, Permissions::empty())
        .map_err(|error| FileProblem::of(error, ""))?;
    let mut chain = vec![DirectoryOnTheWay::of(&directory)];
    for name in names {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        directory =
            sys::openat(&directory, name, flags, Permissions::empty()).map_err(|error| {
                // For a link some systems return NOTDIR.
                let is_link =
                    || stat(&directory, name).is_ok_and(|it| EntryKind::of(&it) == EntryKind::Link);
                if error == Errno::NOTDIR && is_link() {
                    FileProblem::Link(name.clone())
                } else {
                    FileProblem::of(error, name)
                }
            })?;
        chain.push(DirectoryOnTheWay::of(&directory));
    }
    Ok((directory, chain))
}

fn stat(directory: &OwnedFd, name: &str) -> Result<Stat, FileProblem> {
    sys::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|error| FileProblem::of(error, name))
}

/// Opens a regular file for reading. Its kind is checked before, so that devices are not opened, and
/// after, because only an open file cannot be replaced.
fn open_file(directory: &OwnedFd, name: &str) -> Result<(File, Stat), FileProblem> {
    EntryKind::of(&stat(directory, name)?).check_file(name)?;
    // A pipe that replaced it would otherwise block until a process writes to it.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = sys::openat(directory, name, flags, Permissions::empty())
        .map_err(|error| FileProblem::of(error, name))?;
    let stat = sys::fstat(&file).map_err(|error| FileProblem::of(error, name))?;
    EntryKind::of(&stat).check_file(name)?;
    check_file_system(&file)?;
    Ok((File::from(file), stat))
}

fn contents(file: File, stat: &Stat, max_bytes: usize) -> Result<Vec<u8>, FileProblem> {
    let too_large = |bytes| FileProblem::TooLarge { bytes, max_bytes };
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if size(stat) > limit {
        return Err(too_large(Some(size(stat))));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(FileProblem::failed)?;
    if bytes.len() > max_bytes {
        return Err(too_large(None));
    }
    Ok(bytes)
}

/// Checks that the existing file has this content.
fn check_same_content(directory: &OwnedFd, name: &str, content: &[u8]) -> Result<(), FileProblem> {
    let (file, stat) = open_file(directory, name)?;
    match contents(file, &stat, content.len()) {
        Ok(existing) if existing == content => Ok(()),
        Ok(_) | Err(FileProblem::TooLarge { .. }) => Err(FileProblem::Exists),
        Err(problem) => Err(problem),
    }
}

fn create_temporary(
    directory: &OwnedFd,
    permissions: Option<Permissions>,
) -> Result<(String, File), FileProblem> {
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
        .map_err(|error| FileProblem::of(error, &name))?;
    Ok((name, File::from(file)))
}

/// Renames the temporary file to its final name.
fn put_in_place(
    directory: &OwnedFd,
    temporary: &str,
    name: &str,
    mode: WriteMode,
) -> Result<(), FileProblem> {
    let placed = match mode {
        WriteMode::Overwrite => sys::renameat(directory, temporary, directory, name),
        WriteMode::Create => {
            match sys::renameat_with(
                directory,
                temporary,
                directory,
                name,
                RenameFlags::NOREPLACE,
            ) {
                // Some file systems do not support this, but support links, which never replace either.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    sys::linkat(directory, temporary, directory, name, AtFlags::empty()).map(|()| {
                        // The file has its final name, so a temporary name that stays is not a failure.
                        let _ = sys::unlinkat(directory, temporary, AtFlags::empty());
                    })
                }
                placed => placed,
            }
        }
    };
    placed.map_err(|error| FileProblem::of(error, name))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Refuses virtual file systems of the kernel. Their files look regular, but reading one may block forever,
/// reveal data of other processes, or change something.
#[cfg(target_os = "linux")]
fn check_file_system(file: impl AsFd) -> Result<(), FileProblem> {
    const VIRTUAL: [u32; 17] = [
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
    let system = sys::fstatfs(file).map_err(|error| FileProblem::of(error, ""))?;
    // The numbers have 32 bits; the field is wider or signed on some machines.
    let magic = system.f_type as u32;
    if VIRTUAL.contains(&magic) {
        return Err(FileProblem::Special);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_file_system(_: impl AsFd) -> Result<(), FileProblem> {
    Ok(())
}

#[cfg(test)]
mod tests;
