//! The origin of a value: its layer, and its position in a file, or its variable or flag.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The layer that a value comes from. A later layer overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The built-in values.
    BuiltIn,
    /// The file of the machine's administrator.
    Admin,
    /// The user's own file.
    User,
    /// The file of the project.
    Project,
    /// Environment variables.
    Variable,
    /// Flags on the command line.
    Flag,
}

impl Layer {
    /// The name of the layer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Admin => "admin",
            Self::User => "user",
            Self::Project => "project",
            Self::Variable => "variable",
            Self::Flag => "flag",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
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
        f.write_str(&self.text.name)?;
        match self.position {
            Some((line, _)) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}
