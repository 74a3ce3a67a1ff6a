//! Headers of a tool's requests. A secret is referenced by the name of an environment variable. Its value
//! is read for each request and never stored.

use reqwest::header::{HeaderName, HeaderValue};
use windlass_spec::ErrorCategory;

use super::HttpProblem;
use crate::error::ToolError;

/// Headers whose value is a secret, which must not be in a file.
const SECRET: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
];

/// Headers that the HTTP connection sets, so a tool must not.
const RESERVED: [&str; 7] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
];

/// A header: a fixed beginning, then the value of a variable if one is named.
#[derive(Debug, Clone)]
pub(super) struct Header {
    name: HeaderName,
    fixed: String,
    variable: Option<String>,
}

impl Header {
    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The environment variable that its value comes from.
    pub(super) fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }

    pub(super) fn parse(name: &str, value: &str) -> Result<Self, HttpProblem> {
        let problem = |why: &str| HttpProblem::Header {
            name: name.to_owned(),
            why: why.to_owned(),
        };
        let header: HeaderName = name
            .parse()
            .map_err(|_| problem("it is not a valid header name"))?;
        if RESERVED.contains(&header.as_str()) {
            return Err(problem("it is set by the connection"));
        }
        let (fixed, variable) = match value.split_once("env:") {
            Some((fixed, variable)) if fixed.is_empty() || fixed.ends_with(' ') => {
                (fixed, Some(variable))
            }
            _ => (value, None),
        };
        if variable.is_some_and(|variable| !is_variable(variable)) {
            return Err(problem(
                "`env:` must be followed by the name of an environment variable",
            ));
        }
        if variable.is_none() && SECRET.contains(&header.as_str()) {
            let why =
                "a secret does not belong in a file; write `env:NAME` and set the variable NAME";
            return Err(problem(why));
        }
        HeaderValue::from_str(fixed)
            .map_err(|_| problem("its value has characters that a header cannot have"))?;
        Ok(Self {
            name: header,
            fixed: fixed.to_owned(),
            variable: variable.map(str::to_owned),
        })
    }

    /// The header as it is sent. Values from the environment are added to `secrets`.
    pub(super) fn resolve(
        &self,
        secrets: &mut Vec<String>,
    ) -> Result<(HeaderName, HeaderValue), ToolError> {
        let mut text = self.fixed.clone();
        if let Some(variable) = &self.variable {
            let value = std::env::var(variable)
                .ok()
                .filter(|value| !value.trim().is_empty());
            let value = value.ok_or_else(|| {
                self.unusable(&format!("set the environment variable `{variable}`"))
            })?;
            // A key that was read from a file often ends with a line break.
            text.push_str(value.trim_end());
            secrets.push(value.trim_end().to_owned());
        }
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| self.unusable("its value has characters that a header cannot have"))?;
        value.set_sensitive(self.variable.is_some());
        Ok((self.name.clone(), value))
    }

    fn unusable(&self, what: &str) -> ToolError {
        let message = format!("the header `{}` cannot be sent: {what}", self.name);
        ToolError::foreign(ErrorCategory::Authentication, message).without_effect()
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
