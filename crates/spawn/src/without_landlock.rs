//! Systems without Landlock: no program can be restricted to declared files.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// What a program may do with the files of a list, and those below its directories.
#[derive(Debug, Default)]
pub(crate) struct FileRules {
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) runnable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) devices: Vec<PathBuf>,
}

/// There are no rules.
pub(crate) fn ruleset(_: &FileRules) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}
