//! MCP servers as an operator names them: how a server is reached and what it is allowed. A secret is
//! never part of it: it is named, and its value is read from the environment when it is needed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What stands between the name of a server and the name of one of its tools.
pub const SEPARATOR: &str = "__";

/// How long a server may take until it answers for the first time, if nothing else is said.
pub const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(60);

/// The name an operator gives a server: the beginning of the names of its tools. A small letter, then
/// small letters, digits, `-` and `_`, 32 characters at most; two `_` in a row stand between the server
/// and the tool and cannot be part of either end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

/// A name that no server can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name for a server: it begins with a small letter, goes on with small letters, digits, \
     `-` and single `_`, does not end in `_`, and has at most 32 characters"
)]
pub struct ServerNameError(pub String);

impl ServerName {
    /// The name, if a server can have it.
    ///
    /// # Errors
    /// If it cannot.
    pub fn new(name: impl Into<String>) -> Result<Self, ServerNameError> {
        let name = name.into();
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
        let is_of = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let fits = begins
            && name.len() <= 32
            && name.chars().all(is_of)
            && !name.contains(SEPARATOR)
            && !name.ends_with('_');
        match fits {
            true => Ok(Self(name)),
            false => Err(ServerNameError(name)),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ServerName {
    type Error = ServerNameError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

/// A text in a setting, with the value of an environment variable at its end if one is named:
/// `Bearer env:API_TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Given {
    fixed: String,
    variable: Option<String>,
}

/// What stands after `env:` is no name of a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("after `env:` stands the name of an environment variable, not `{0}`")]
pub struct GivenError(pub String);

/// A variable that a setting names is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable `{0}` is not set")]
pub struct NotSet(pub String);

impl Given {
    /// Reads a setting.
    ///
    /// # Errors
    /// If what stands after `env:` cannot be the name of a variable.
    pub fn new(text: &str) -> Result<Self, GivenError> {
        let (fixed, variable) = match text.split_once("env:") {
            Some((fixed, variable)) if fixed.is_empty() || fixed.ends_with(' ') => {
                (fixed, Some(variable))
            }
            _ => (text, None),
        };
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match variable {
            Some(variable) if !is_name(variable) => Err(GivenError(variable.to_owned())),
            variable => Ok(Self {
                fixed: fixed.to_owned(),
                variable: variable.map(str::to_owned),
            }),
        }
    }

    /// The variable whose value is part of it.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }

    /// The text with the value of its variable, which `lookup` gives.
    ///
    /// # Errors
    /// If the variable is not set.
    pub fn value(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, NotSet> {
        match &self.variable {
            None => Ok(self.fixed.clone()),
            Some(name) => match lookup(name) {
                Some(value) => Ok(format!("{}{value}", self.fixed)),
                None => Err(NotSet(name.clone())),
            },
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variable {
            None => f.write_str(&self.fixed),
            Some(name) => write!(f, "{}env:{name}", self.fixed),
        }
    }
}

impl TryFrom<String> for Given {
    type Error = GivenError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text)
    }
}

impl From<Given> for String {
    fn from(given: Given) -> Self {
        given.to_string()
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started and spoken to over its standard input and output.
    Command(CommandTransport),
    /// An address that is spoken to over HTTP.
    Http(HttpTransport),
}

/// A program that is a server. It is started as it stands here: no shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTransport {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// What it is started with.
    pub arguments: Vec<String>,
    /// Where it is started, if not where this program runs.
    pub directory: Option<PathBuf>,
    /// The variables it gets besides `PATH`, `HOME` and `LANG`.
    pub environment: BTreeMap<String, Given>,
    /// Files and directories whose content is part of the program, besides the program itself and the
    /// files among its arguments.
    pub parts: Vec<PathBuf>,
}

/// A server at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTransport {
    /// The address, which begins with `https://` or `http://`.
    pub url: String,
    /// What is sent with every request.
    pub headers: BTreeMap<String, Given>,
    /// How to get leave from whoever guards it, if it is guarded.
    pub oauth: Option<OAuth>,
}

/// How this program makes itself known to whoever guards a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The name it was registered under beforehand, if it was.
    pub client_id: Option<String>,
    /// What proves that name.
    pub client_secret: Option<Given>,
    /// What leave is asked for, if not what the server says.
    pub scopes: Vec<String>,
}

/// A server as an operator names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The operator's name for it.
    pub name: ServerName,
    /// How it is reached.
    pub transport: Transport,
    /// Whether it is used at all.
    pub is_enabled: bool,
    /// Whether what it says of its own tools may lower their risk.
    pub is_trusted: bool,
    /// Whether it may ask the model of a run something.
    pub may_sample: bool,
    /// How long it may take until it answers for the first time.
    pub start_timeout: Duration,
}

impl ServerSettings {
    /// A server that is used, not trusted, and allowed nothing.
    #[must_use]
    pub fn new(name: ServerName, transport: Transport) -> Self {
        Self {
            name,
            transport,
            is_enabled: true,
            is_trusted: false,
            may_sample: false,
            start_timeout: DEFAULT_START_TIMEOUT,
        }
    }
}
