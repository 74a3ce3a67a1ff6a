//! What all commands share: the identity of the user, and the service they call.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use windlass_service::{
    ErrorKind, FileChange, Identity, Notice, Overrides, RunOptions, Service, ServiceError,
};

use crate::arguments::ConfigurationOptions;
use crate::prompt::read_text;
use crate::terminal::{eprint_line, is_interactive, print_json, visible_line};
use crate::{CommandOutcome, paste};

/// The program with its global options.
pub(crate) struct Program {
    configuration: ConfigurationOptions,
}

impl Program {
    pub(crate) fn new(configuration: ConfigurationOptions) -> Self {
        Self { configuration }
    }

    /// The same program with another configuration of the project.
    pub(crate) fn with_configuration(&self, file: &Path) -> Self {
        let configuration = ConfigurationOptions {
            config: Some(file.to_owned()),
            ..self.configuration.clone()
        };
        Self { configuration }
    }

    /// Whether the user named the configuration of the project.
    pub(crate) fn names_configuration(&self) -> bool {
        self.configuration.config.is_some()
    }

    /// The identity of the user.
    pub(crate) fn identity(&self) -> anyhow::Result<Identity> {
        Ok(Identity::local()?)
    }

    /// The service, with the data directory of `--data`.
    pub(crate) fn service(&self, data: Option<&Path>) -> Service {
        self.service_with(data, Notices::Text)
    }

    /// Like [`Self::service`], with another format of notices.
    pub(crate) fn service_with(&self, data: Option<&Path>, notices: Notices) -> Service {
        self.open(self.overrides(data), notices)
    }

    /// The service for a command that runs an agent with these options.
    pub(crate) fn service_for(
        &self,
        data: Option<&Path>,
        options: &RunOptions,
        notices: Notices,
    ) -> Service {
        let overrides = Overrides {
            policies: options.policy.clone(),
            environment: options.environment.clone(),
            learning: options.learning(),
            ..self.overrides(data)
        };
        self.open(overrides, notices)
    }

    fn overrides(&self, data: Option<&Path>) -> Overrides {
        Overrides {
            // Printed commands name it, and are pasted elsewhere.
            data: data.map(|data| std::path::absolute(data).unwrap_or_else(|_| data.to_owned())),
            set: self.configuration.set.clone(),
            trust_project: self.configuration.trust_project,
            accept_changes: self.configuration.accept_changes,
            ..Overrides::default()
        }
    }

    fn open(&self, mut overrides: Overrides, notices: Notices) -> Service {
        if io::stdin().is_terminal() && is_interactive() {
            overrides.confirm = Some(Arc::new(confirm));
        }
        overrides.notify = Some(Arc::new(move |notice| notices.print(notice)));
        Service::open(self.configuration.config.as_deref(), overrides)
    }
}

/// Asks the user whether to accept these files.
fn confirm(changes: &[FileChange]) -> bool {
    for change in changes {
        let _ = eprint_line(&format!("{change}."));
    }
    let question = match changes {
        [_] => "Have you reviewed this file, and accept it? (y/N)",
        _ => "Have you reviewed these files, and accept them? (y/N)",
    };
    read_text(question, "")
        .is_ok_and(|typed| ["y", "yes"].contains(&typed.trim().to_lowercase().as_str()))
}

/// How notices are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notices {
    /// As text on standard error.
    Text,
    /// Changes of the configuration as JSON Lines on standard output, the rest as text.
    JsonLines,
}

impl Notices {
    fn print(self, notice: &Notice) {
        let (text, line) = match notice {
            Notice::Model(name) => (format!("model: {}", visible_line(name)), None),
            Notice::Warning(warning) => (warning.clone(), None),
            Notice::FileChanged(change) => (
                format!("{change}."),
                Some(json!({"event": "file_changed", "change": change})),
            ),
            Notice::RunTaken { run, reason } => (
                format!("run {run}: resumed ({reason})"),
                Some(json!({"event": "run_taken", "run": run, "reason": reason})),
            ),
            Notice::RunNotTaken { run, reason } => (
                format!(
                    "run {run}: not resumed: {}",
                    visible_line(&reason.replace('\n', "; "))
                ),
                Some(json!({"event": "run_not_taken", "run": run, "reason": reason})),
            ),
            Notice::ConfigurationReloaded { digest } => (
                format!("configuration reloaded ({digest})"),
                Some(json!({"event": "configuration_changed", "configuration": digest})),
            ),
            Notice::ConfigurationRefused { reason } => (
                format!(
                    "the changed configuration is invalid: {}\nkeeping the previous configuration",
                    reason.replace('\n', "\n  ")
                ),
                Some(json!({"event": "configuration_refused", "why": reason})),
            ),
        };
        // A closed output is not an error here.
        let _ = match line.filter(|_| self == Self::JsonLines) {
            Some(line) => print_json(&format!("{line}\n")),
            None => eprint_line(&text),
        };
    }
}

/// Prints the error of a command, also as JSON, and maps its kind to the exit code.
pub(crate) fn ended(
    result: anyhow::Result<CommandOutcome>,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let error = match result {
        Ok(outcome) => return Ok(outcome),
        Err(error) => error.downcast::<ServiceError>()?,
    };
    let code = match error.kind() {
        ErrorKind::Invalid => 2,
        ErrorKind::Unauthenticated | ErrorKind::Denied => 3,
        ErrorKind::NotFound => 7,
        ErrorKind::Conflict => 8,
        ErrorKind::Unavailable | ErrorKind::Failed => return Err(error.into()),
    };
    eprint_line(&format!("error: {error}"))?;
    if as_json {
        let hint = error.hint().map(paste::complete);
        let printed = json!({
            "error": error.code(), "message": error.message(), "hint": hint,
        });
        print_json(&format!("{printed}\n"))?;
    }
    Ok(CommandOutcome::Code(code))
}
