//! What the kernel gives, found out by system calls.

use std::ffi::CString;
use std::path::Path;
use std::sync::OnceLock;

use crate::child::{Cover, Namespaces, Setup};

/// How keys, data and terminals can be covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hiding {
    /// Not at all.
    Impossible,
    /// By mounts of this process, which is root.
    AsRoot,
    /// By mounts in a user namespace.
    InUserNamespace,
}

/// What the kernel gives to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// How keys, data and terminals can be covered.
    pub hiding: Hiding,
    /// The version of Landlock; 0 if there is none.
    pub landlock: u32,
    /// Whether a program can be started without a network.
    pub offline: bool,
}

impl Support {
    /// The first version of Landlock that keeps a program from changing files that it may not open.
    pub const NEEDED_LANDLOCK: u32 = 3;

    /// Finds it out, once for a process.
    #[must_use]
    pub fn of_kernel() -> Self {
        static FOUND: OnceLock<Support> = OnceLock::new();
        *FOUND.get_or_init(probe)
    }

    /// Whether a program can be restricted to declared files.
    #[must_use]
    pub fn restricts_files(self) -> bool {
        self.landlock >= Self::NEEDED_LANDLOCK
    }
}

#[cfg(not(target_os = "linux"))]
fn probe() -> Support {
    Support {
        hiding: Hiding::Impossible,
        landlock: 0,
        offline: false,
    }
}

#[cfg(target_os = "linux")]
fn probe() -> Support {
    let is_root = rustix::process::geteuid().is_root();
    let candidates = [Hiding::AsRoot, Hiding::InUserNamespace];
    let mut candidates = candidates
        .into_iter()
        .filter(|hiding| is_root || *hiding != Hiding::AsRoot);
    let hiding = candidates.find(|hiding| crate::child::is_possible(setup(*hiding, false)));
    let hiding = hiding.unwrap_or(Hiding::Impossible);
    Support {
        hiding,
        landlock: crate::child::landlock_version(),
        offline: hiding != Hiding::Impossible && crate::child::is_possible(setup(hiding, true)),
    }
}

#[cfg(target_os = "linux")]
fn setup(hiding: Hiding, is_offline: bool) -> Setup {
    let mut covers = terminals();
    covers.push(Cover::Directory(CString::from(c"/proc")));
    Setup {
        namespaces: hiding.namespaces(),
        covers,
        is_offline,
        directory: CString::from(c"/"),
        keeps_privileges: false,
        ruleset: None,
    }
}

/// The terminals of the system that can be opened by name.
pub(crate) fn terminals() -> Vec<Cover> {
    match Path::new("/dev/pts").is_dir() {
        true => vec![Cover::Terminals],
        false => Vec::new(),
    }
}

impl Hiding {
    /// The namespaces in which it is done.
    pub(crate) fn namespaces(self) -> Namespaces {
        let mapping = |id: u32| format!("{id} {id} 1\n").into_bytes();
        match self {
            Self::Impossible => Namespaces::Inherited,
            Self::AsRoot => Namespaces::Own,
            Self::InUserNamespace => Namespaces::User {
                users: mapping(rustix::process::geteuid().as_raw()),
                groups: mapping(rustix::process::getegid().as_raw()),
            },
        }
    }
}
