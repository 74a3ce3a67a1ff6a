//! Files that only their owner can read, and the check of who can change a file.
//!
//! [`create`], [`append`] and [`write()`] give every file the mode 0600 and [`create_directory`] every directory the
//! mode 0700, whatever existed before. [`check_owner`] refuses files that another user can change, and [`check_secret`]
//! those that another user can read.

mod owner;

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

pub use owner::{OwnerError, check_owner, check_secret};
use rustix::fs::OFlags;

/// The mode of files.
const FILE_MODE: u32 = 0o600;

/// The mode of directories.
const DIRECTORY_MODE: u32 = 0o700;

/// The bits of a mode that are permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// Options that create a file which only its owner can read. Use [`open`] to open the file.
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Opens a file with these options, and takes it away from others if it existed before. A link is not followed, since
/// it could lead to any file of the user, unless it leads to a device or is one of the system's, such as `/dev/stdout`.
///
/// # Errors
/// If it is a link or cannot be opened, or belongs to another user.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let mut itself = options.clone();
    itself.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = match itself.open(path) {
        Err(_) if is_link(path) => {
            check_link(path)?;
            options.open(path)?
        }
        opened => opened?,
    };
    make_private(&file)?;
    Ok(file)
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
}

/// Refuses a link to a file, unless the system made it.
fn check_link(path: &Path) -> io::Result<()> {
    let is_of_system = ["/dev", "/proc"]
        .iter()
        .any(|system| path.starts_with(system));
    let is_device = std::fs::metadata(path).is_ok_and(|target| !target.is_file());
    if is_of_system || is_device {
        return Ok(());
    }
    let target = std::fs::read_link(path)?;
    let message = format!(
        "it is a link to `{}`; name the file itself",
        target.display()
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Creates a file, or empties one that exists.
///
/// # Errors
/// If it cannot be created, or belongs to another user.
pub fn create(path: &Path) -> io::Result<File> {
    // The content of an existing file is removed only when others cannot read the new one.
    let file = open(options().write(true).create(true).truncate(false), path)?;
    // A device such as `/dev/stdout` has no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a file to write at its end, and creates it if it is missing.
///
/// # Errors
/// If it cannot be opened, or belongs to another user.
pub fn append(path: &Path) -> io::Result<File> {
    open(options().append(true).create(true), path)
}

/// Writes a file, and replaces what was in it.
///
/// # Errors
/// If it cannot be written, or belongs to another user.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(content.as_ref())
}

/// Writes a file so that readers see the old or the new content, and nothing in between. A link is replaced.
///
/// # Errors
/// If it cannot be written.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let mut file = tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new(".")))?;
    file.write_all(content.as_ref())?;
    make_private(file.as_file())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a directory with those above it, or takes one that exists away from others. A directory that contains the
/// working directory or the home directory is left as it is: it has other uses.
///
/// # Errors
/// If it cannot be created, belongs to another user, or everybody can write to it, such as `/tmp`.
pub fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE);
    builder.create(path)?;
    let mode = std::fs::metadata(path)?.mode();
    if mode & 0o002 != 0 {
        let message = format!(
            "everybody can write to `{}`; use a directory of your own",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    match mode & OTHERS == 0 || has_other_uses(path) {
        true => Ok(()),
        false => std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE)),
    }
}

/// Whether the working directory or the home directory is a directory or in it.
fn has_other_uses(path: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let used = [std::env::current_dir().ok(), home];
    let path = std::fs::canonicalize(path).ok();
    let resolved = used
        .into_iter()
        .flatten()
        .map(|used| std::fs::canonicalize(&used).unwrap_or(used));
    path.is_none_or(|path| resolved.into_iter().any(|used| used.starts_with(&path)))
}

/// Takes a file away from all but its owner without opening it. A missing file is left out.
///
/// # Errors
/// If it is a link, or belongs to another user.
pub fn restrict(path: &Path) -> io::Result<()> {
    if is_link(path) {
        check_link(path)?;
    }
    match std::fs::metadata(path) {
        Ok(found) if found.mode() & OTHERS == 0 => Ok(()),
        Ok(_) => match std::fs::set_permissions(path, Permissions::from_mode(FILE_MODE)) {
            // Another process has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes a regular file away from all but its owner.
fn make_private(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    match metadata.is_file() && metadata.mode() & 0o7777 != FILE_MODE {
        true => file.set_permissions(Permissions::from_mode(FILE_MODE)),
        false => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn with_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_are_private_whatever_existed_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for write in [
            |path: &Path| write(path, "new").unwrap(),
            |path: &Path| append(path).unwrap().write_all(b"new").unwrap(),
            |path: &Path| replace(path, "new").unwrap(),
        ] {
            write(&path);
            assert_eq!(mode(&path), 0o600);
            with_mode(&path, 0o666);
            write(&path);
            assert_eq!(mode(&path), 0o600);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn an_existing_file_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "a long old content").unwrap();
        write(&path, "new").unwrap();
        let mut text = String::new();
        File::open(&path)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "new");
    }

    #[test]
    fn a_link_is_not_followed_and_its_target_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (link, victim) = (
            directory.path().join("link"),
            directory.path().join("victim"),
        );
        std::fs::write(&victim, "content").unwrap();
        with_mode(&victim, 0o644);
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        for refused in [
            write(&link, "new"),
            append(&link).map(drop),
            restrict(&link),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("victim"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "content");
        assert_eq!(mode(&victim), 0o644);
        std::fs::remove_file(&victim).unwrap();
        assert!(write(&link, "new").is_err());
        assert!(!victim.exists());
        // A device is no file of the user.
        let device = directory.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        write(&device, "new").unwrap();
    }

    #[test]
    fn directories_are_private_whatever_existed_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        create_directory(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o700, 0o700));
        with_mode(&path, 0o755);
        create_directory(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_directory_that_everybody_can_write_to_is_refused_and_left_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared");
        std::fs::create_dir(&path).unwrap();
        with_mode(&path, 0o1777);
        assert!(create_directory(&path).is_err());
        assert_eq!(mode(&path), 0o1777);
    }
}
