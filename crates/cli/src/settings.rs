//! The configuration of this program: where it is looked for, what it says, and what is done when it
//! changes while an agent works.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::json;
use windlass_config::Configuration;
use windlass_runtime::{
    ConfigurationError, ConfigurationFiles, Configured, Crew, Read, Reload, Watching, watch,
};

use super::arguments::ConfigurationOptions;
use super::data;
use super::libraries::{self, Sought};
use super::terminal::{complain, put};

/// What was typed about the configuration, for all commands alike.
static TYPED: OnceLock<ConfigurationOptions> = OnceLock::new();

/// Takes what was typed about the configuration.
pub(super) fn take(typed: ConfigurationOptions) {
    let _ = TYPED.set(typed);
}

/// The files the configuration comes from: the project's is the one that was typed, else `kept`, else
/// the nearest one above this directory.
pub(super) fn files(kept: Option<&Path>) -> ConfigurationFiles {
    let typed = TYPED.get();
    let named = typed.and_then(|typed| typed.config.as_deref()).or(kept);
    let directory = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let mut files = ConfigurationFiles::find(named, &directory);
    files.flags = typed.map(|typed| typed.set.clone()).unwrap_or_default();
    files
}

/// The files that what holds for calls comes from. The policies are those the configuration names,
/// else those in the data directory, else the built-in ones.
pub(super) fn files_for(
    kept: Option<&Path>,
    data: Option<&Path>,
) -> anyhow::Result<ConfigurationFiles> {
    let mut files = files(kept);
    files.usual_policies = Some(data::directory(data)?.join("policy.cedar"));
    Ok(files)
}

/// What the configuration says, without a crew in mind. Read once.
///
/// # Errors
/// If it cannot be read, or has mistakes.
pub(super) fn configured() -> anyhow::Result<&'static Configured> {
    static READ: OnceLock<Result<Configured, ConfigurationError>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let read = files(None).read(&Read::default());
        read.map(|(configured, _)| configured)
    });
    read.as_ref().map_err(|error| error.clone().into())
}

/// A crew under a configuration, and the files that comes from.
pub(super) struct Governed {
    pub(super) crew: Crew,
    files: ConfigurationFiles,
    read: Read,
    /// The libraries that were named, whatever the configuration says.
    libraries: Vec<String>,
    data: Option<PathBuf>,
}

impl Governed {
    /// Puts a crew under what the files say.
    ///
    /// # Errors
    /// If that does not fit the crew.
    pub(super) fn new(
        crew: Crew,
        configured: &Configured,
        files: ConfigurationFiles,
        read: Read,
        libraries: &[String],
        data: Option<&Path>,
    ) -> anyhow::Result<Self> {
        crew.configure(configured)?;
        Ok(Self {
            crew,
            files,
            read,
            libraries: libraries.to_vec(),
            data: data.map(Path::to_owned),
        })
    }

    /// The crew, put under what the files say whenever they change, as long as what comes with it
    /// lives. What comes of a change is told on standard error, and as a line of JSON on standard
    /// output if a program reads events there.
    pub(super) fn watched(self, as_json_lines: bool) -> (Crew, Watching) {
        let crew = self.crew.clone();
        let tell = move |reload: &Reload| {
            let told = match reload {
                Reload::Changed(configured) => {
                    let digest = configured.digest();
                    (
                        json!({"event": "configuration_changed", "configuration": digest}),
                        format!("the configuration was changed; {digest} holds from now on"),
                    )
                }
                Reload::Refused(why) => (
                    json!({"event": "configuration_refused", "why": why}),
                    format!(
                        "the configuration was changed, and is not used: {why}\nwhat held before still does"
                    ),
                ),
            };
            // Whoever reads may have gone away.
            let _ = match as_json_lines {
                true => put(&format!("{}\n", told.0)),
                false => complain(&told.1),
            };
        };
        let (named, data) = (self.libraries, self.data);
        let library = move |configuration: &Configuration| {
            let sought = Sought {
                data: data.as_deref(),
                wanted: None,
            };
            libraries::all(&named, configuration, sought).map_err(|error| format!("{error:#}"))
        };
        let (library, tell) = (Arc::new(library), Arc::new(tell));
        let watching = watch(self.files, self.read, self.crew, library, tell);
        (crew, watching)
    }
}
