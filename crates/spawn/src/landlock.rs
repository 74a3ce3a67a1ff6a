//! Landlock: a program that can open nothing but declared files.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, path_beneath_rules,
};

/// What a program may do with the files of a list, and those below its directories.
#[derive(Debug, Default)]
pub(crate) struct FileRules {
    /// Read them.
    pub(crate) readable: Vec<PathBuf>,
    /// Read and run them.
    pub(crate) runnable: Vec<PathBuf>,
    /// Read, write, make and remove them.
    pub(crate) writable: Vec<PathBuf>,
    /// Read and write them, as devices.
    pub(crate) devices: Vec<PathBuf>,
}

/// The rules as the kernel has them. A process enters them with `landlock_restrict_self`. `None` if the kernel has no
/// Landlock.
pub(crate) fn ruleset(rules: &FileRules) -> Result<Option<OwnedFd>, RulesetError> {
    let all = AccessFs::from_all(ABI::V5);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device: BitFlags<AccessFs> = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let ruleset = Ruleset::default()
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(&rules.readable, read))?
        .add_rules(path_beneath_rules(
            &rules.runnable,
            read | AccessFs::Execute,
        ))?
        .add_rules(path_beneath_rules(
            &rules.writable,
            all & !AccessFs::IoctlDev,
        ))?
        .add_rules(path_beneath_rules(&rules.devices, device))?;
    Ok(ruleset.into())
}
