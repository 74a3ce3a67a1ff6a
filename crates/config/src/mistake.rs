//! Errors and warnings about a configuration.

use std::fmt;

use serde::Serialize;
use windlass_spec::text::{TextUse, escape_line};

use crate::origin::Origin;

/// An error or warning about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigMistake {
    /// The file, variable or flag it is in.
    pub source: String,
    /// The line, from 1; variables and flags have none.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// The key it is about, such as `gate.undo_window_seconds`; empty for a syntax error.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// Whether it is an error or a warning.
    pub severity: Severity,
    /// The position of its source among all loaded sources.
    #[serde(skip)]
    pub(crate) number: usize,
}

/// How severe a mistake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The configuration is not loaded.
    Error,
    /// The configuration is loaded, but the value is probably not intended.
    Warning,
}

impl ConfigMistake {
    pub(crate) fn error(
        origin: &Origin,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            source: origin.name().to_owned(),
            line: origin.line(),
            column: origin.column(),
            key: key.into(),
            message: message.into(),
            help: None,
            severity: Severity::Error,
            number: origin.text.number,
        }
    }

    pub(crate) fn warning(
        origin: &Origin,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(origin, key, message)
        }
    }

    pub(crate) fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    /// Whether it prevents loading.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Sorts mistakes by source and line.
    pub(crate) fn sort(mistakes: &mut [Self]) {
        mistakes.sort_by(|a, b| {
            let position = |mistake: &Self| (mistake.number, mistake.line, mistake.column);
            position(a)
                .cmp(&position(b))
                .then_with(|| a.key.cmp(&b.key))
        });
    }
}

impl fmt::Display for ConfigMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_line(&self.source, TextUse::Exact))?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        // The name of a flag contains the key.
        let is_named = self.source == format!("`--set {}`", self.key);
        if !self.key.is_empty() && !is_named {
            write!(f, "{}: ", self.key)?;
        }
        // Both may quote a value of the file, which must not begin a line.
        let indented = |text: &str| text.replace('\n', "\n    ");
        f.write_str(&indented(&self.message))?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {}", indented(help)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigMistake {}

/// Words in backticks, separated by commas.
pub(crate) fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// "did you mean `x`?", if there is a suggestion.
pub(crate) fn did_you_mean(meant: Option<&str>) -> Option<String> {
    meant.map(|meant| format!("did you mean `{meant}`?"))
}
