//! Options of a caller that override the configuration: for a whole service, and for one run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use windlass_model::Dialect;
use windlass_runtime::{Asker, Driver, FileDigests, Stop, WaitPolicy, Watch};
use windlass_spec::RunId;
use windlass_tools::BindingMode;

use crate::binding::BindingRecord;
use crate::file_changes::FileChange;

/// Options for all operations of a service. They override its configuration.
#[derive(Clone, Default)]
pub struct Overrides {
    /// The data directory, instead of the configuration's or the user's.
    pub data: Option<PathBuf>,
    /// Keys of the configuration: `KEY=VALUE`.
    pub set: Vec<String>,
    /// The policies, instead of those of the configuration.
    pub policies: Option<PathBuf>,
    /// The environment, instead of the configuration's.
    pub environment: Option<String>,
    /// How much is learned, instead of the configuration's setting.
    pub learning: LearningOverride,
    /// Whether the project of the working directory is trusted, whatever is in it.
    pub trust_project: bool,
    /// Receives notices for the operator.
    pub notify: Option<Notify>,
    /// Accepts files that changed since a run began or that tools of agents wrote.
    pub accept_changes: bool,
    /// Asks the user whether to accept such files. Without it they are refused.
    pub confirm: Option<Confirm>,
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides")
            .field("data", &self.data)
            .field("set", &self.set)
            .field("policies", &self.policies)
            .field("environment", &self.environment)
            .field("learning", &self.learning)
            .field("trust_project", &self.trust_project)
            .field("accept_changes", &self.accept_changes)
            .finish_non_exhaustive()
    }
}

/// How much is recalled and learned, instead of the configuration's setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LearningOverride {
    /// The configuration's setting.
    #[default]
    Configured,
    /// Strategies are recalled and none is learned.
    Frozen,
    /// Nothing is recalled or learned.
    Off,
}

impl LearningOverride {
    /// The setting as `KEY=VALUE`.
    pub(crate) const fn flag(self) -> Option<&'static str> {
        match self {
            Self::Configured => None,
            Self::Frozen => Some("learning.frozen=true"),
            Self::Off => Some("learning.enabled=false"),
        }
    }
}

/// A notice for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Which model answers, and why if it is not the declared one.
    Model(String),
    /// A problem that does not stop the work.
    Warning(String),
    /// A file that governs the run changed since the last run.
    FileChanged(FileChange),
    /// A worker drives a run.
    RunTaken {
        /// The run.
        run: RunId,
        /// Why it can continue, in a word.
        reason: &'static str,
    },
    /// A worker cannot drive a run.
    RunNotTaken {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// The changed configuration is active.
    ConfigurationReloaded {
        /// Its digest.
        digest: String,
    },
    /// The changed configuration is invalid; the previous one stays active.
    ConfigurationRefused {
        /// Why.
        reason: String,
    },
}

/// Receives notices.
pub type Notify = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Asks the user whether to accept these files.
pub type Confirm = Arc<dyn Fn(&[FileChange]) -> bool + Send + Sync>;

/// How the agents of a run are bound: libraries, model, configuration. Stored with the run, so that it
/// can be bound again in the same way after its process has ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOptions {
    /// Which agent of the file; optional if the file has one top-level agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The libraries with the implementations; those of the configuration if there are none.
    #[serde(default, deserialize_with = "one_or_many")]
    pub library: Vec<String>,
    /// How closely an implementation must match its specification, instead of the configuration's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<BindingMode>,
    /// The model instead of the agent's: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
    #[serde(default)]
    pub model: Option<String>,
    /// Where the model's server is.
    #[serde(default)]
    pub base_url: Option<String>,
    /// How the model is asked for calls.
    pub dialect: Dialect,
    /// The policies instead of those of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PathBuf>,
    /// The environment instead of the configuration's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Neither recall strategies nor learn any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_learning: bool,
    /// Recall strategies and learn none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
    /// The project's configuration, in a stored run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The files of the project with their digests, in a stored run that was started under a named configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_files: Option<FileDigests>,
    /// The overridden keys of the configuration, in a stored run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// What the run was bound to, in a stored run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindingRecord>,
    /// Where to record the requests to the model and its answers.
    #[serde(skip)]
    pub record: Option<PathBuf>,
    /// How many answers of a script were used before, in a run that is resumed.
    #[serde(skip)]
    pub answered: usize,
}

impl RunOptions {
    /// How much is learned.
    #[must_use]
    pub const fn learning(&self) -> LearningOverride {
        match (self.no_learning, self.frozen) {
            (true, _) => LearningOverride::Off,
            (false, true) => LearningOverride::Frozen,
            (false, false) => LearningOverride::Configured,
        }
    }

    /// The same options with absolute paths, so that the run can be resumed from another directory.
    pub(crate) fn with_absolute_paths(mut self) -> Self {
        let absolute = |path: &Path| std::fs::canonicalize(path).ok();
        for library in &mut self.library {
            if let Some(path) = absolute(Path::new(&*library)) {
                *library = path.to_string_lossy().into_owned();
            }
        }
        for kind in ["scripted:", "replay:"] {
            let named = self.model.as_deref();
            if let Some(file) = named.and_then(|named| named.strip_prefix(kind))
                && let Some(path) = absolute(Path::new(file))
            {
                self.model = Some(format!("{kind}{}", path.display()));
            }
        }
        self.policy = self.policy.map(|path| absolute(&path).unwrap_or(path));
        self
    }
}

/// Reads a list, or the single value of an older version.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
        None(()),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
        OneOrMany::None(()) => Vec::new(),
    })
}

/// How a caller takes part in a run while it is driven: stops it, watches it, answers its questions.
/// By default it does none of this.
#[derive(Clone, Default)]
pub struct Attachment {
    /// Stops the run.
    pub stop: Stop,
    /// Receives the progress of the run.
    pub watch: Option<Watch>,
    /// Answers questions where the caller is, such as at a terminal.
    pub asker: Option<Asker>,
    /// What happens when the run can only wait for a person.
    pub wait_policy: Option<WaitPolicy>,
}

impl Attachment {
    /// The driver, with the caller taking part.
    pub(crate) fn attach(self, driver: Driver) -> Driver {
        let mut driver = driver.stopped_by(self.stop);
        if let Some(watch) = self.watch {
            driver = driver.watched_by(watch);
        }
        if let Some(asker) = self.asker {
            driver = driver.asking(asker);
        }
        if let Some(wait_policy) = self.wait_policy {
            driver = driver.with_wait_policy(wait_policy);
        }
        driver
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment")
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}
