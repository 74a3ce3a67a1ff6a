//! What no agent may reach through the file tools: the files that govern agents, in this project and in
//! others. Files and directories are compared by device and inode, and by the directory that holds them, so
//! neither another root nor a link, a renamed directory or another case leads around this.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self as sys, AtFlags, Stat};
use windlass_spec::text::class_of;

use crate::library_file::is_library;

/// The database of a data directory, by which such a directory is recognized.
const DATABASE: &str = "windlass.db";

/// The device and the inode of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }

    fn at(path: &Path) -> Option<Self> {
        sys::stat(path).ok().as_ref().map(Self::of)
    }
}

/// A file or directory that governs agents. It may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::builtin) struct Governed {
    path: PathBuf,
    /// Its identity when the settings were made: it is the same file after its directory was renamed.
    known: Option<FileId>,
}

impl Governed {
    pub(in crate::builtin) fn new(path: PathBuf) -> Self {
        let path = std::path::absolute(&path).unwrap_or(path);
        Self {
            known: FileId::at(&path),
            path,
        }
    }

    /// Whether it is this file or directory, now or when the settings were made.
    fn is(&self, id: FileId) -> bool {
        self.known == Some(id) || FileId::at(&self.path) == Some(id)
    }

    /// Whether it is the file of that name in a directory, which may be missing. Names are compared without
    /// case, because some file systems do.
    fn is_named(&self, directory: FileId, name: &str) -> bool {
        let own = self.path.file_name().and_then(|own| own.to_str());
        own.is_some_and(|own| same_name(own, name))
            && self.path.parent().and_then(FileId::at) == Some(directory)
    }
}

/// A directory that a path leads through.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectoryOnTheWay {
    /// `None` if it is not known.
    id: Option<FileId>,
    /// Whether it has a database of Windlass.
    is_data_directory: bool,
}

impl DirectoryOnTheWay {
    pub(super) fn of(directory: &OwnedFd) -> Self {
        Self {
            id: sys::fstat(directory).ok().as_ref().map(FileId::of),
            is_data_directory: sys::statat(directory, DATABASE, AtFlags::SYMLINK_NOFOLLOW).is_ok(),
        }
    }

    fn at(path: &Path) -> Self {
        Self {
            id: FileId::at(path),
            is_data_directory: path.join(DATABASE).symlink_metadata().is_ok(),
        }
    }
}

/// A file that a tool is about to use, whether or not it exists.
pub(super) struct Reached<'a> {
    /// The opened directory of the file.
    pub(super) directory: &'a OwnedFd,
    /// The directories from the root to the file.
    pub(super) chain: &'a [DirectoryOnTheWay],
    /// Its name in the directory.
    pub(super) name: &'a str,
}

impl Reached<'_> {
    /// Whether it is one of these files, or in one of these directories. `root` is the directory that the
    /// path begins at.
    pub(super) fn is_one_of(&self, governed: &[Governed], root: &Path) -> bool {
        let own = sys::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW);
        let own = own.ok().as_ref().map(FileId::of);
        let parent = self.chain.last().and_then(|parent| parent.id);
        let directories: Vec<FileId> = above(root)
            .chain(self.chain.iter().copied())
            .filter_map(|directory| directory.id)
            .collect();
        governed.iter().any(|governed| {
            own.is_some_and(|own| governed.is(own))
                || parent.is_some_and(|parent| governed.is_named(parent, self.name))
                || directories.iter().any(|id| governed.is(*id))
        })
    }

    /// Whether it is in a data directory, of whichever project.
    pub(super) fn is_data(&self, root: &Path) -> bool {
        let mut directories = above(root).chain(self.chain.iter().copied());
        directories.any(|directory| directory.is_data_directory)
    }
}

/// The directories above a root.
fn above(root: &Path) -> impl Iterator<Item = DirectoryOnTheWay> {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let above: Vec<DirectoryOnTheWay> = root
        .ancestors()
        .skip(1)
        .map(DirectoryOnTheWay::at)
        .collect();
    above.into_iter()
}

/// Why a file governs agents, whatever project it belongs to; `None` if it does not. `existing` and `new` are what
/// it has in it and would have.
pub(super) fn governs_agents(name: &str, existing: &[u8], new: &[u8]) -> Option<&'static str> {
    let name = folded(name);
    let extension = Path::new(&name).extension().and_then(|it| it.to_str());
    let has_extension = |expected: &str| extension == Some(expected);
    let is_library_text = |content: &[u8]| std::str::from_utf8(content).is_ok_and(is_library);
    if is_configuration(&name) {
        Some("is a configuration of Windlass")
    } else if has_extension("gram") || std::str::from_utf8(existing).is_ok_and(is_agent_file) {
        Some("is an agent file")
    } else if has_extension("cedar") {
        Some("is a policy")
    } else if is_library_text(existing) || has_extension("toml") && is_library_text(new) {
        // A configuration may name a library that has any extension.
        Some("is a tool library")
    } else if name.starts_with(DATABASE) {
        Some("is a database of Windlass")
    } else {
        None
    }
}

/// Whether a text declares agents. Such a file can be run whatever its name is.
fn is_agent_file(text: &str) -> bool {
    text.contains("Agent") && windlass_spec::read(text).file.is_some()
}

/// Whether a name is that of a configuration.
pub(super) fn is_configuration(name: &str) -> bool {
    same_name(name, "windlass.toml")
}

fn same_name(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// A name as file systems compare it that ignore case, invisible characters, or dots and spaces at the end.
fn folded(name: &str) -> String {
    let visible = name.trim_end_matches(['.', ' ']).chars();
    let visible = visible.filter(|c| class_of(*c).is_none());
    let upper: String = visible.flat_map(char::to_uppercase).collect();
    upper.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::governs_agents;

    #[test]
    fn names_that_some_file_systems_do_not_distinguish_govern_too() {
        for name in [
            "windlass.toml",
            "Windlass.TOML",
            "WINDLA\u{17f}S.toml",
            "windlass.toml.",
            "windlass.toml ",
            "wind\u{200b}lass.toml",
            "agent.GRAM",
            "agent.gram. .",
            "policy.\u{ad}cedar",
            "WINDLASS.DB-wal",
        ] {
            assert!(governs_agents(name, b"", b"").is_some(), "{name:?}");
        }
        for name in ["windlass.md", "gram", "a.gram.txt", "toml"] {
            assert!(governs_agents(name, b"", b"").is_none(), "{name:?}");
        }
    }

    #[test]
    fn a_library_is_recognized_under_any_name() {
        let library = b"name = \"tools\"\n[tools.pay]\ncommand = [\"true\"]\n";
        assert!(governs_agents("tools.lib", library, b"new").is_some());
        assert!(governs_agents("tools.toml", b"", library).is_some());
        assert!(governs_agents("draft.txt", b"", library).is_none());
    }

    #[test]
    fn an_agent_file_is_recognized_under_any_name() {
        let agent = "[helper:Agent {instruction: \"Help.\", model: \"OpenAI/gpt-4o-mini\"}]\n";
        assert!(governs_agents("helper.txt", agent.as_bytes(), b"").is_some());
        assert!(governs_agents("helper", agent.as_bytes(), b"new").is_some());
        // A new text that quotes an agent does not govern anything yet.
        assert!(governs_agents("draft.txt", b"", agent.as_bytes()).is_none());
        assert!(governs_agents("notes.txt", b"The Agent is [great].", b"").is_none());
    }
}
