//! MCP servers as an operator names them: how a server is reached and what it is allowed. A secret is
//! never part of it: it is named, and its value is read from the environment when it is needed.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
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

/// Words in the names of variables and headers that hold a secret.
const SECRET_WORDS: [&str; 17] = [
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
];

/// How well-known secrets begin.
const SECRET_BEGINNINGS: [&str; 16] = [
    "sk-",
    "sk_live_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "ya29.",
    "Bearer ",
    "-----BEGIN",
];

/// Whether a text under this name looks like a secret that is written out: by the name, by how the text
/// begins, or because it is an address with a password in it. Numbers, switches and paths are none,
/// whatever they are called, and what is [`Given`] by a variable is not written out.
#[must_use]
pub fn looks_secret(name: &str, text: &str) -> bool {
    let is_given = Given::new(text).is_ok_and(|given| given.variable().is_some());
    let text = text.trim();
    let is_switch = matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "true" | "false" | "yes" | "no" | "on" | "off" | "none" | "null"
    );
    let is_short_number = text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    // A placeholder that somebody else fills in.
    let is_placeholder = text.contains("${");
    if is_given || is_switch || is_short_number || is_placeholder {
        return false;
    }
    let begins = |beginning: &&str| text.len() > beginning.len() && text.starts_with(*beginning);
    if SECRET_BEGINNINGS.iter().any(begins) || has_password(text) {
        return true;
    }
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|beginning| text.starts_with(beginning));
    let is_address = text.starts_with("http://") || text.starts_with("https://");
    !is_path && !is_address && is_name_of_secret(name)
}

fn is_name_of_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let is_key = |position: usize| {
        // A key is one of something, and may be numbered or named: `API_KEY`, `AWS_ACCESS_KEY_ID`.
        let rest = words.get(position + 1..).unwrap_or_default();
        words.get(position) == Some(&"key") && matches!(rest, [] | ["id" | "1" | "2"])
    };
    words.iter().any(|word| SECRET_WORDS.contains(word))
        || (0..words.len()).any(is_key)
        || words
            .iter()
            .any(|word| word.ends_with("apikey") || word.ends_with("password"))
}

/// Where in each argument of a program a secret begins that is written out: in `--token=...`, after
/// `--token`, in `TOKEN=...` and `Authorization: ...`, or by itself.
#[must_use]
pub fn secret_arguments(arguments: &[String]) -> Vec<Option<usize>> {
    let mut flag = "";
    let mut found = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_flag = argument.starts_with('-');
        let named = [argument.find('='), argument.find(':')];
        let named = named.into_iter().flatten().find_map(|at| {
            let (name, value) = (argument.get(..at)?, argument.get(at + 1..)?);
            let name = name.trim_matches('-').trim();
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let is_secret = name.chars().all(is_name) && looks_secret(name, value);
            is_secret.then_some(at + 1)
        });
        let is_value = !is_flag && looks_secret(flag, argument);
        found.push(named.or(is_value.then_some(0)));
        flag = match is_flag {
            true => argument.trim_start_matches('-'),
            false => "",
        };
    }
    found
}

/// Whether a text is an address with a user and a password in it.
fn has_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| {
        user.split_once(':')
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

/// The host of an address, without its port and its brackets.
#[must_use]
pub fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

/// Whether what is sent to an address can be read on its way: it goes over `http`, and not to this
/// machine itself.
#[must_use]
pub fn is_open(url: &str) -> bool {
    let is_encrypted = url
        .get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
    let is_here = host(url).is_some_and(|host| {
        let address: Option<IpAddr> = host.parse().ok();
        host.eq_ignore_ascii_case("localhost")
            || address.is_some_and(|address| address.is_loopback())
    });
    !is_encrypted && !is_here
}

#[cfg(test)]
mod tests;
