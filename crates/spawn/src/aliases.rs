//! Other paths to the same directory: a file system that is mounted in several places.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo`.
struct Mount {
    device: String,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    at: PathBuf,
}

/// The other paths of a file or directory, and the mounts of what is in it. Links need not be followed in the path.
pub(crate) fn aliases(path: &Path) -> Vec<PathBuf> {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts: Vec<Mount> = mounts
        .split(|byte| *byte == b'\n')
        .filter_map(mount)
        .collect();
    let of_path = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    // Of several mounts at one place, the last one counts.
    let Some(own) = of_path.max_by_key(|mount| mount.at.components().count()) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&own.at) else {
        return Vec::new();
    };
    let stored = join(&own.root, below);
    let same_device = mounts.iter().filter(|mount| mount.device == own.device);
    let found = same_device.filter_map(|mount| match stored.strip_prefix(&mount.root) {
        Ok(below) => Some(join(&mount.at, below)).filter(|found| is_same(found, path)),
        Err(_) => mount.root.starts_with(&stored).then(|| mount.at.clone()),
    });
    let mut found: Vec<PathBuf> = found.filter(|found| !found.starts_with(path)).collect();
    found.sort();
    found.dedup();
    found
}

fn join(directory: &Path, below: &Path) -> PathBuf {
    match below == Path::new("") {
        true => directory.to_owned(),
        false => directory.join(below),
    }
}

/// Whether two paths lead to the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    identity(one).is_some_and(|found| identity(other) == Some(found))
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    Some(Mount {
        device: String::from_utf8(fields.next()?.to_owned()).ok()?,
        root: unescaped(fields.next()?),
        at: unescaped(fields.next()?),
    })
}

/// A path without the escapes of blanks and line breaks, such as `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = match byte {
            Some(_) => after.get(3..).unwrap_or_default(),
            None => after,
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_paths_are_read() {
        assert_eq!(unescaped(br"/a\040b\134"), Path::new("/a b\\"));
        assert_eq!(unescaped(br"/a\04"), Path::new(r"/a\04"));
        assert_eq!(unescaped("/é".as_bytes()), Path::new("/é"));
    }

    #[test]
    fn a_directory_that_is_mounted_once_has_no_other_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap();
        for found in aliases(&path) {
            assert!(is_same(&found, &path), "{}", found.display());
        }
    }
}
