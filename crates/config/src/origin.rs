//! Where a value comes from: the layer, and the place in the file, variable or flag.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Which layer a value comes from. A later one wins over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// What holds if nobody says anything.
    BuiltIn,
    /// The file of whoever administers the machine.
    Admin,
    /// The user's own file.
    User,
    /// The file of the project.
    Project,
    /// Environment variables.
    Variable,
    /// What was given on the command line.
    Flag,
}

impl Layer {
    /// The word for it.
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

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub(crate) text: Arc<Text>,
    pub(crate) place: Option<(usize, usize)>,
}

/// One file, variable or flag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) layer: Layer,
    pub(crate) name: String,
    /// What relative paths in it start from; nothing for variables and flags, whose paths start
    /// from where the program was started.
    pub(crate) directory: PathBuf,
    /// Its number among all that are loaded, by which mistakes are sorted.
    pub(crate) number: usize,
}

impl Origin {
    pub(crate) fn built_in() -> Self {
        Self::new(Layer::BuiltIn, "built-in", 0)
    }

    /// A variable or a flag, which has no lines.
    pub(crate) fn new(layer: Layer, name: impl Into<String>, number: usize) -> Self {
        let text = Text {
            layer,
            name: name.into(),
            directory: PathBuf::new(),
            number,
        };
        Self {
            text: Arc::new(text),
            place: None,
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
        self.place.map(|(line, _)| line)
    }

    /// The column in the file in characters, from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.place.map(|(_, column)| column)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.text.directory
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text.name)?;
        match self.place {
            Some((line, _)) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}
