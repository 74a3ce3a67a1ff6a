//! The configuration for operators: its values with their origins, its mistakes, and its files. All of this is
//! read again from the files.

use std::path::{Path, PathBuf};

use windlass_config::{ConfigEntry, ConfigMistake, Layer};
use windlass_runtime::{ConfigurationError, Configured, FileTexts};
use windlass_spec::Agent;
use windlass_tools::ToolLibrary;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// The effective values.
#[derive(Debug, Clone)]
pub struct ConfigurationValues {
    /// Each value with its key and where it comes from, sorted by key. Secrets are hidden.
    pub values: Vec<ConfigEntry>,
    /// Warnings about probable mistakes.
    pub warnings: Vec<ConfigMistake>,
}

/// The result of checking a configuration.
#[derive(Debug, Clone)]
pub struct ConfigurationCheck {
    /// The project's configuration, if there is one.
    pub file: Option<PathBuf>,
    /// The mistakes and warnings.
    pub mistakes: Vec<ConfigMistake>,
    /// Why the built-in tools cannot work with it, if they cannot.
    pub settings_error: Option<String>,
}

impl ConfigurationCheck {
    /// How many errors there are; warnings do not count.
    #[must_use]
    pub fn error_count(&self) -> usize {
        let errors = self.mistakes.iter().filter(|mistake| mistake.is_error());
        errors.count() + usize::from(self.settings_error.is_some())
    }

    /// Whether the configuration can be used.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.error_count() == 0
    }
}

/// A possible configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationFile {
    /// Whose it is. Later layers win.
    pub layer: Layer,
    /// Its path.
    pub path: PathBuf,
    /// Whether it exists.
    pub exists: bool,
}

impl Service {
    /// The effective values with their origins: all, or those of a key and below it.
    ///
    /// # Errors
    /// If the identity may not read, the configuration has mistakes, or nothing has that key.
    pub fn configuration_values(
        &self,
        identity: &Identity,
        key: Option<&str>,
    ) -> Result<ConfigurationValues, ServiceError> {
        identity.require(Scope::Read)?;
        let files = self.configuration_files();
        let (configured, _) = files.read(&FileTexts::default())?;
        self.announce(&files, &configured);
        let is_asked = |shown: &ConfigEntry| {
            key.is_none_or(|key| {
                let below = shown.key.strip_prefix(key);
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let mut values = configured.configuration.entries();
        values.retain(is_asked);
        if let (Some(key), true) = (key, values.is_empty()) {
            let message = format!("nothing is set under `{key}`");
            return Err(ServiceError::not_found("no_such_key", message)
                .with_hint("`windlass config show` lists all values"));
        }
        Ok(ConfigurationValues {
            values,
            warnings: configured.warnings,
        })
    }

    /// Checks the configuration by itself and against the tools of agents.
    ///
    /// # Errors
    /// If the identity may not read, or a file cannot be read.
    pub fn check_configuration(
        &self,
        identity: &Identity,
        agents: &[Agent],
    ) -> Result<ConfigurationCheck, ServiceError> {
        identity.require(Scope::Read)?;
        let mut files = self.configuration_files();
        let file = files.project().map(Path::to_owned);
        // A check starts nothing, so all settings are checked.
        files.is_trust_granted = true;
        let (configured, mistakes) = match files.read(&FileTexts::default()) {
            Ok((configured, _)) => {
                let mistakes = self.mistakes(&configured, agents);
                (Some(configured), mistakes)
            }
            Err(ConfigurationError::Mistakes(mistakes)) => (None, mistakes),
            Err(error) => return Err(error.into()),
        };
        // The built-in tools check their own settings.
        let settings =
            configured.map(|configured| self.builtin_settings(&configured.configuration));
        let settings_error = settings.and_then(Result::err);
        Ok(ConfigurationCheck {
            file,
            mistakes,
            settings_error: settings_error.map(|error| error.to_string()),
        })
    }

    /// The possible configuration files, whether they exist or not. Later ones win.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_configuration_files(
        &self,
        identity: &Identity,
    ) -> Result<Vec<ConfigurationFile>, ServiceError> {
        identity.require(Scope::Read)?;
        let files = self.configuration_files().files.into_iter();
        let files = files.map(|(layer, path)| ConfigurationFile {
            exists: path.exists(),
            layer,
            path,
        });
        Ok(files.collect())
    }

    /// The warnings of a configuration, and what does not fit the tools of agents.
    fn mistakes(&self, configured: &Configured, agents: &[Agent]) -> Vec<ConfigMistake> {
        let mut mistakes = configured.warnings.clone();
        if agents.is_empty() {
            return mistakes;
        }
        let configuration = &configured.configuration;
        mistakes.extend(configuration.check_agents(agents.iter().map(Agent::name)));
        let library = self.build_library(configuration, &[], None);
        let library = library.unwrap_or_else(|_| ToolLibrary::new("none"));
        let exists = |key: &str| key.split('.').any(|part| library.lookup(part).is_some());
        let mut found = configured.check(agents);
        // A tool that no agent declares may still exist in a library.
        found.retain(|mistake| mistake.is_error() || !exists(&mistake.key));
        mistakes.extend(found);
        mistakes
    }
}
