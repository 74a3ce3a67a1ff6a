//! What a program needs to run: itself, its interpreters, and the files of the system.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::landlock::FileRules;

/// Directories of the system with programs, libraries and settings. None of them holds files of users.
const SYSTEM: [&str; 15] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/snap",
    "/proc",
    "/sys",
];

/// Devices without content, and the terminals that a program makes itself.
const DEVICES: [&str; 7] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/ptmx",
    "/dev/pts",
];

/// The longest first line of a script.
const MAX_FIRST_LINE: u64 = 512;

/// How many interpreters are followed: a script may be interpreted by a script.
const MAX_INTERPRETERS: usize = 4;

/// The names of directories with programs. What is beside such a directory belongs to them.
const PROGRAM_DIRECTORIES: [&str; 4] = ["bin", "sbin", "shims", "libexec"];

/// Adds the files of the system.
pub(crate) fn add_system(rules: &mut FileRules) {
    rules.runnable.extend(SYSTEM.map(PathBuf::from));
    rules.devices.extend(DEVICES.map(PathBuf::from));
    // Often a link to a file of the running system.
    let resolver = std::fs::canonicalize("/etc/resolv.conf");
    rules.readable.extend(resolver.ok());
}

/// The file of a program, which is looked up in `search` if its name has no slash.
pub(crate) fn find(program: &OsStr, search: &OsStr) -> Option<PathBuf> {
    match program.as_bytes().contains(&b'/') {
        true => Some(PathBuf::from(program)),
        false => std::env::split_paths(search)
            .map(|directory| directory.join(program))
            .find(|file| file.is_file()),
    }
}

/// The directories of a program and its interpreters. `is_private` says which directories hold more than programs.
pub(crate) fn directories(
    program: &Path,
    search: &OsStr,
    is_private: impl Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = Some(program.to_owned());
    for _ in 0..MAX_INTERPRETERS {
        let Some(program) = next.take() else {
            break;
        };
        let resolved = std::fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        for file in [&program, &resolved] {
            found.extend(directory_of(file, &is_private));
            // A directory may hold more than programs.
            found.push(file.clone());
        }
        next = interpreter(&resolved, search);
    }
    found
}

/// The directory with a program and what belongs to it, unless it is private.
fn directory_of(program: &Path, is_private: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let directory = program.parent()?;
    let is_of_programs = |directory: &Path| {
        let name = directory.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| PROGRAM_DIRECTORIES.contains(&name))
    };
    let whole = directory.parent().filter(|_| is_of_programs(directory));
    [whole, Some(directory)]
        .into_iter()
        .flatten()
        .find(|directory| !is_private(directory))
        .map(Path::to_owned)
}

/// The interpreter in the first line of a script. Of `env`, the program that it starts.
fn interpreter(script: &Path, search: &OsStr) -> Option<PathBuf> {
    let mut beginning = Vec::new();
    let file = File::open(script).ok()?;
    file.take(MAX_FIRST_LINE).read_to_end(&mut beginning).ok()?;
    let line = beginning.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(OsStr::from_bytes);
    let first = Path::new(words.next()?);
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(first.to_owned());
    }
    let is_option =
        |word: &&OsStr| word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'=');
    let started: OsString = words.find(|word| !is_option(word))?.to_owned();
    find(&started, search)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("tool");
        let search = OsStr::new("/usr/bin:/bin");
        let found = |line: &str| {
            std::fs::write(&script, line).unwrap();
            interpreter(&script, search)
        };
        assert_eq!(found("#!/bin/sh -e\necho"), Some(PathBuf::from("/bin/sh")));
        let sh = find(OsStr::new("sh"), search);
        assert!(sh.is_some());
        assert_eq!(found("#!/usr/bin/env sh\n"), sh);
        assert_eq!(found("#! /usr/bin/env -S A=1 sh -e\n"), sh);
        assert_eq!(found("echo"), None);
        assert_eq!(found("#!/usr/bin/env\n"), None);
    }

    #[test]
    fn a_private_directory_is_not_opened_for_a_program_in_it() {
        let all = |_: &Path| false;
        let program = Path::new("/home/ada/.local/bin/tool");
        assert_eq!(directory_of(program, all), Some("/home/ada/.local".into()));
        let is_private = |path: &Path| Path::new("/home/ada/.local/state").starts_with(path);
        assert_eq!(
            directory_of(program, is_private),
            Some("/home/ada/.local/bin".into())
        );
        let in_home = Path::new("/home/ada/tool");
        assert_eq!(directory_of(in_home, is_private), None);
    }
}
