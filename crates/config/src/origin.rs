//! The origin of a value: its layer, and its position in a file, or its variable or flag.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_spec::text::{TextUse, escape_line};

windlass_spec::word_set! {
    /// The layer that a value comes from. A later layer overrides an earlier one.
    Layer, "layer" {
        /// The built-in values.
        BuiltIn = "built-in",
        /// The file of the machine's administrator.
        Admin = "admin",
        /// The user's own file.
        User = "user",
        /// The file of the project.
        Project = "project",
        /// Environment variables.
        Variable = "variable",
        /// Flags on the command line.
        Flag = "flag",
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub(crate) text: Arc<SourceText>,
    pub(crate) position: Option<(usize, usize)>,
}

/// One file, variable or flag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceText {
    pub(crate) layer: Layer,
    pub(crate) name: String,
    /// The directory that relative paths in it start from. Empty for variables and flags, whose paths
    /// start from the current directory.
    pub(crate) directory: PathBuf,
    /// Its position among all loaded sources. Mistakes are sorted by it.
    pub(crate) number: usize,
}

impl Origin {
    pub(crate) fn built_in() -> Self {
        Self::new(Layer::BuiltIn, "built-in", 0)
    }

    /// The origin of a value in a variable or flag, which has no lines.
    pub(crate) fn new(layer: Layer, name: impl Into<String>, number: usize) -> Self {
        let text = SourceText {
            layer,
            name: name.into(),
            directory: PathBuf::new(),
            number,
        };
        Self {
            text: Arc::new(text),
            position: None,
        }
    }

    /// The layer.
    #[must_use]
    pub fn layer(&self) -> Layer {
        self.text.layer
    }

    /// The name of the file or variable, or the flag.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text.name
    }

    /// The line in the file, from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// The column in the file in characters, from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.text.directory
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_line(&self.text.name, TextUse::Exact))?;
        match self.position {
            Some((line, _)) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}
