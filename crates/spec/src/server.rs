//! Settings of MCP servers: the transport and the permissions of a server. Settings never contain a
//! secret: they name an environment variable, which is read when the value is needed.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::access::ProgramAccess;
use crate::{checked_text, parsed_text};

/// The separator between the name of a server and the name of one of its tools.
pub const SEPARATOR: &str = "__";

/// The default time limit for a server's first answer.
pub const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(60);

checked_text! {
    /// The operator's name for a server, which is the prefix of its tools' names. A lowercase letter, then
    /// lowercase letters, digits, `-` and `_`, at most 32 characters. It contains no `__`, which is the
    /// [`SEPARATOR`], and does not end in `_`.
    ServerName(String), ServerNameError, check_name
}

/// An invalid server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid server name; use a lowercase letter, then lowercase letters, digits, \
     `-` and single `_`, not ending in `_`, at most 32 characters"
)]
pub struct ServerNameError(pub String);

fn check_name(name: &str) -> Result<(), ServerNameError> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= 32
        && name.chars().all(is_allowed)
        && !name.contains(SEPARATOR)
        && !name.ends_with('_');
    match fits {
        true => Ok(()),
        false => Err(ServerNameError(name.to_owned())),
    }
}

/// A text in a setting that may end with a reference to an environment variable:
/// `Bearer env:API_TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EnvTemplate {
    fixed: String,
    variable: Option<String>,
}

/// The text after `env:` is not the name of a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of an environment variable; write one after `env:`")]
pub struct EnvTemplateError(pub String);

/// A variable that a setting refers to is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable `{0}` is not set")]
pub struct VariableNotSet(pub String);

impl EnvTemplate {
    /// Reads a setting.
    ///
    /// # Errors
    /// If the text after `env:` is not the name of a variable.
    pub fn new(text: &str) -> Result<Self, EnvTemplateError> {
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
            Some(variable) if !is_name(variable) => Err(EnvTemplateError(variable.to_owned())),
            variable => Ok(Self {
                fixed: fixed.to_owned(),
                variable: variable.map(str::to_owned),
            }),
        }
    }

    /// The variable it refers to.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        self.variable.as_deref()
    }

    /// The text with the value of its variable, which `lookup` returns.
    ///
    /// # Errors
    /// If the variable is not set.
    pub fn value(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<String, VariableNotSet> {
        match &self.variable {
            None => Ok(self.fixed.clone()),
            Some(name) => match lookup(name) {
                Some(value) => Ok(format!("{}{value}", self.fixed)),
                None => Err(VariableNotSet(name.clone())),
            },
        }
    }
}

impl fmt::Display for EnvTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variable {
            None => f.write_str(&self.fixed),
            Some(name) => write!(f, "{}env:{name}", self.fixed),
        }
    }
}

impl FromStr for EnvTemplate {
    type Err = EnvTemplateError;

    fn from_str(text: &str) -> Result<Self, EnvTemplateError> {
        Self::new(text)
    }
}

parsed_text!(EnvTemplate);

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started, with messages over its standard input and output.
    Command(CommandTransport),
    /// A URL, with messages over HTTP.
    Http(HttpTransport),
}

/// A program that is a server. It is started directly, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTransport {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its working directory, if not that of this program.
    pub directory: Option<PathBuf>,
    /// The variables it gets besides `PATH`, `HOME` and `LANG`.
    pub environment: BTreeMap<String, EnvTemplate>,
    /// Files and directories whose content is part of the program, besides the program itself and the
    /// files among its arguments.
    pub parts: Vec<PathBuf>,
    /// What it needs of the machine.
    pub access: ProgramAccess,
}

/// A server at a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTransport {
    /// The URL, which begins with `https://` or `http://`.
    pub url: String,
    /// The headers of every request.
    pub headers: BTreeMap<String, EnvTemplate>,
    /// The OAuth client settings, if the server requires authorization.
    pub oauth: Option<OAuth>,
}

/// This program's OAuth client settings for a server's authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The id of the client, if it is registered already.
    pub client_id: Option<String>,
    /// The secret of the client.
    pub client_secret: Option<EnvTemplate>,
    /// The scopes to request, if not those of the server's metadata.
    pub scopes: Vec<String>,
}

/// An operator's settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The operator's name for it.
    pub name: ServerName,
    /// Its transport.
    pub transport: Transport,
    /// Whether it is used.
    pub is_enabled: bool,
    /// Whether its annotations of its own tools may lower their risk.
    pub is_trusted: bool,
    /// Whether answers of its tools are read as envelopes.
    pub has_envelopes: bool,
    /// Whether it may send sampling requests to the model of a run.
    pub may_sample: bool,
    /// The time limit for its first answer.
    pub start_timeout: Duration,
}

impl ServerSettings {
    /// An enabled server that is not trusted and may not sample.
    #[must_use]
    pub fn new(name: ServerName, transport: Transport) -> Self {
        Self {
            name,
            transport,
            is_enabled: true,
            is_trusted: false,
            has_envelopes: false,
            may_sample: false,
            start_timeout: DEFAULT_START_TIMEOUT,
        }
    }
}

/// Words in the names of variables and headers whose values are secrets.
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

/// Prefixes of well-known secrets.
const SECRET_PREFIXES: [&str; 16] = [
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

/// Whether a text under this name looks like a literal secret: because of the name, because of the prefix
/// of the text, or because it is a URL with a password. Numbers, switches and paths are not secrets,
/// whatever their names, and neither is a text that refers to a variable.
#[must_use]
pub fn looks_secret(name: &str, text: &str) -> bool {
    let is_reference = EnvTemplate::new(text).is_ok_and(|given| given.variable().is_some());
    let text = text.trim();
    let is_switch = matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "true" | "false" | "yes" | "no" | "on" | "off" | "none" | "null"
    );
    let is_short_number = text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    // A placeholder that another program fills in.
    let is_placeholder = text.contains("${");
    if is_reference || is_switch || is_short_number || is_placeholder {
        return false;
    }
    let has_prefix = |prefix: &&str| text.len() > prefix.len() && text.starts_with(*prefix);
    if SECRET_PREFIXES.iter().any(has_prefix) || has_password(text) {
        return true;
    }
    let is_path = ["/", "./", "../", "~/"]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    let is_address = text.starts_with("http://") || text.starts_with("https://");
    !is_path && !is_address && is_name_of_secret(name)
}

fn is_name_of_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let is_key = |position: usize| {
        // A `key` is last or followed by an id or a number: `API_KEY`, `AWS_ACCESS_KEY_ID`.
        let rest = words.get(position + 1..).unwrap_or_default();
        words.get(position) == Some(&"key") && matches!(rest, [] | ["id" | "1" | "2"])
    };
    words.iter().any(|word| SECRET_WORDS.contains(word))
        || (0..words.len()).any(is_key)
        || words
            .iter()
            .any(|word| word.ends_with("apikey") || word.ends_with("password"))
}

/// For each argument of a program, the offset of a literal secret in it: in `--token=...`, after
/// `--token`, in `TOKEN=...` and `Authorization: ...`, or as the whole argument.
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

/// Whether a text is a URL with a user and a password.
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

/// The host of a URL, without its port and its brackets.
pub(crate) fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host().map(|host| match host {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    })
}

/// Whether requests to a URL are sent in clear text over the network: not over `https`, and not to
/// a loopback address.
#[must_use]
pub fn is_unencrypted(url: &str) -> bool {
    let is_encrypted = url
        .get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
    let is_loopback = host(url).is_some_and(|host| {
        let address: Option<IpAddr> = host.parse().ok();
        host == "localhost" || address.is_some_and(|address| address.is_loopback())
    });
    !is_encrypted && !is_loopback
}

#[cfg(test)]
mod tests;
