//! Who can change a file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::geteuid;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// It belongs to another user, who can change it.
    #[error("it belongs to another user (uid {0}), who can change it")]
    OtherUser(u32),
    /// Everybody can write to it.
    #[error("everybody can write to it; run `chmod o-w` on it")]
    WritableByAll,
    /// A group with other members can write to it.
    #[error("the group {0} can write to it; run `chmod g-w` on it")]
    WritableByGroup(u32),
    /// Other users can read it.
    #[error("other users can read it; run `chmod go-rwx` on it")]
    ReadableByOthers,
    /// It cannot be examined.
    #[error("{0}")]
    Unknown(#[from] io::Error),
}

/// Refuses a file that another user can change: one that belongs to another user, or that all users or a shared
/// group can write to. Files of root are accepted, and for root those of the user who called `sudo`. A link and the
/// file it points to must both fit.
///
/// # Errors
/// If another user can change the file, or it cannot be examined.
pub fn check_owner(path: &Path) -> Result<(), OwnerError> {
    let link = path.symlink_metadata()?;
    check_uid(&link)?;
    let file = match link.is_symlink() {
        true => path.metadata()?,
        false => link,
    };
    check_uid(&file)?;
    // The mode of a link means nothing.
    if file.mode() & 0o002 != 0 {
        return Err(OwnerError::WritableByAll);
    }
    if file.mode() & 0o020 != 0 && !is_private_group(file.gid(), file.uid()) {
        return Err(OwnerError::WritableByGroup(file.gid()));
    }
    Ok(())
}

/// Refuses an open file with a secret that another user can read or change. A file of root may be readable by its group:
/// so systems give keys to their servers.
///
/// # Errors
/// If another user can read or change the file, or it cannot be examined.
pub fn check_secret(file: &File) -> Result<(), OwnerError> {
    let found = file.metadata()?;
    check_uid(&found)?;
    let is_of_root = found.uid() == 0 && !geteuid().is_root();
    let forbidden = if is_of_root { 0o037 } else { 0o077 };
    match found.mode() & forbidden == 0 {
        true => Ok(()),
        false => Err(OwnerError::ReadableByOthers),
    }
}

fn check_uid(file: &Metadata) -> Result<(), OwnerError> {
    let own = geteuid().as_raw();
    let sudo = || {
        let uid = std::env::var("SUDO_UID").ok()?;
        uid.parse::<u32>().ok()
    };
    let is_accepted =
        file.uid() == own || file.uid() == 0 || (own == 0 && sudo() == Some(file.uid()));
    match is_accepted {
        true => Ok(()),
        false => Err(OwnerError::OtherUser(file.uid())),
    }
}

/// Whether a group has no member but a user. Many systems give every user such a group, with the same number.
fn is_private_group(group: u32, user: u32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path);
    match (read("/etc/passwd"), read("/etc/group")) {
        (Ok(users), Ok(groups)) => has_no_other_member(group, user, &users, &groups),
        _ => group == user,
    }
}

/// Whether no user but this one is in a group, by the texts of `/etc/passwd` and `/etc/group`. A group that is not in
/// there is private if it has the number of the user.
fn has_no_other_member(group: u32, user: u32, users: &str, groups: &str) -> bool {
    let fields = |line: &'_ str| -> Vec<String> { line.split(':').map(str::to_owned).collect() };
    let number =
        |fields: &[String], place: usize| -> Option<u32> { fields.get(place)?.parse().ok() };
    let users: Vec<Vec<String>> = users.lines().map(fields).collect();
    let is_shared_by_user = users
        .iter()
        .any(|fields| number(fields, 3) == Some(group) && number(fields, 2) != Some(user));
    let own_names: Vec<&String> = users
        .iter()
        .filter(|fields| number(fields, 2) == Some(user))
        .filter_map(|fields| fields.first())
        .collect();
    let listed = groups
        .lines()
        .map(fields)
        .find(|fields| number(fields, 2) == Some(group));
    match listed {
        Some(fields) => {
            let members = fields.get(3).cloned().unwrap_or_default();
            let mut members = members.split(',').filter(|member| !member.is_empty());
            !is_shared_by_user
                && members.all(|member| own_names.iter().any(|name| name.as_str() == member))
        }
        None => group == user && !is_shared_by_user,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\
                         bob:x:1001:100::/home/bob:/bin/sh\neve:x:1002:100::/home/eve:/bin/sh\n";
    const GROUPS: &str = "root:x:0:\nada:x:1000:ada\nusers:x:100:\nteam:x:50:ada,bob\n";

    #[test]
    fn a_group_is_private_if_nobody_else_is_in_it() {
        let is_private = |group, user| has_no_other_member(group, user, USERS, GROUPS);
        assert!(is_private(1000, 1000));
        assert!(is_private(0, 0));
        assert!(is_private(4321, 4321));
        assert!(!is_private(100, 1001));
        assert!(!is_private(50, 1000));
        assert!(!is_private(4321, 1000));
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let file = File::create(&path).unwrap();
        for (mode, is_private) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_secret(&file).is_ok(), is_private, "{mode:o}");
        }
    }

    #[test]
    fn a_file_that_everybody_can_write_to_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        check_owner(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o646)).unwrap();
        assert!(matches!(check_owner(&path), Err(OwnerError::WritableByAll)));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(check_owner(&link), Err(OwnerError::WritableByAll)));
    }
}
