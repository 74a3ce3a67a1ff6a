//! What a program that Windlass starts may reach, as its author declares it, and how strictly an installation enforces it.

use std::fmt;
use std::path::PathBuf;

/// What a program needs of the machine. A program that declares nothing may open every file of its user but those of
/// Windlass, and use the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramAccess {
    /// The files and directories that it reads. It can open no others, besides its working directory, its
    /// interpreter and those of the system. `None` if they are not declared.
    pub files: Option<Vec<PathBuf>>,
    /// The files and directories that it also writes.
    pub writable_files: Vec<PathBuf>,
    /// Whether it uses no network.
    pub is_offline: bool,
}

impl ProgramAccess {
    /// Whether it can open declared files only.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.files.is_some() || !self.writable_files.is_empty()
    }

    /// All files and directories that it declares.
    pub fn declared(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().flatten().chain(&self.writable_files)
    }
}

/// Describes what is declared, such as `files: archive; offline`. Empty if nothing is.
impl fmt::Display for ProgramAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |paths: &[PathBuf]| {
            let paths: Vec<String> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            paths.join(", ")
        };
        let mut parts = Vec::new();
        match self.files.as_deref() {
            Some([]) if self.writable_files.is_empty() => parts.push("no files".to_owned()),
            Some([]) | None => {}
            Some(files) => parts.push(format!("files: {}", list(files))),
        }
        if !self.writable_files.is_empty() {
            parts.push(format!("writes: {}", list(&self.writable_files)));
        }
        if self.is_offline {
            parts.push("offline".to_owned());
        }
        f.write_str(&parts.join("; "))
    }
}

/// How an installation treats programs that cannot be isolated as they should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IsolationLevel {
    /// Programs start in a session of their own, and are isolated no further.
    Off,
    /// They start with the isolation that the system gives.
    BestEffort,
    /// A program does not start if what it declares cannot be enforced.
    #[default]
    Declared,
    /// Nor does it start if keys and data cannot be covered.
    Strict,
}

impl IsolationLevel {
    /// All levels, the least strict one first.
    pub const ALL: [Self; 4] = [Self::Off, Self::BestEffort, Self::Declared, Self::Strict];

    /// The word for it in configuration files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::BestEffort => "best_effort",
            Self::Declared => "declared",
            Self::Strict => "strict",
        }
    }

    /// The level that a word stands for.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_described() {
        let mut access = ProgramAccess::default();
        assert_eq!(access.to_string(), "");
        assert!(!access.is_confined());
        access.files = Some(Vec::new());
        assert_eq!(access.to_string(), "no files");
        assert!(access.is_confined());
        access.files = Some(vec!["a".into(), "b".into()]);
        access.writable_files = vec!["out".into()];
        access.is_offline = true;
        assert_eq!(access.to_string(), "files: a, b; writes: out; offline");
    }

    #[test]
    fn levels_have_words() {
        for level in IsolationLevel::ALL {
            assert_eq!(IsolationLevel::of_word(level.as_str()), Some(level));
        }
        assert_eq!(IsolationLevel::of_word("none"), None);
    }
}
