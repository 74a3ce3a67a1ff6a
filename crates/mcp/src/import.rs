//! Import of servers from the files of other programs: `{"mcpServers": {...}}` (Claude, Cursor and most
//! others) and `{"servers": {...}, "inputs": [...]}` (VS Code). Also writes a server as configuration.
//!
//! Literal secrets in such a file are not copied. They become `env:NAME`, with a note that the variable has
//! to be set. Settings without an equivalent get a note too; none is dropped silently.

mod lenient;
mod secrets;
#[cfg(test)]
mod tests;
mod toml;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Map, Value};
use windlass_spec::ProgramAccess;
use windlass_spec::server::{
    CommandTransport, EnvTemplate, HttpTransport, ServerName, ServerSettings, Transport,
    is_unencrypted, secret_arguments,
};

use crate::text::{clipped, visible};
use secrets::Variables;

pub use self::toml::to_toml;

/// A server of another program's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its name in that file.
    pub name: String,
    /// Its settings. `None` if it cannot be used, which the notes explain.
    pub settings: Option<ServerSettings>,
    /// What the user has to know or do.
    pub notes: Vec<String>,
}

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// It is not JSON.
    #[error("the file is not valid JSON: {0}")]
    NotJson(String),
    /// There are no servers in it.
    #[error("the file has no servers: it needs an object `mcpServers` or `servers`")]
    NoServers,
}

/// Reads the servers of another program's file, in the order of the file.
///
/// # Errors
/// If it is not JSON, or has no servers.
pub fn import(text: &str) -> Result<Vec<Imported>, ImportError> {
    let file: Value = serde_json::from_str(&lenient::plain(text))
        .map_err(|error| ImportError::NotJson(error.to_string()))?;
    let places = [
        file.get("mcpServers"),
        file.get("servers"),
        file.pointer("/mcp/servers"),
        file.pointer("/mcp/mcpServers"),
    ];
    let servers = places.into_iter().flatten().find_map(Value::as_object);
    let servers = servers.ok_or(ImportError::NoServers)?;
    let inputs = secrets::inputs(&file);
    let mut taken = BTreeSet::new();
    let mut variables = Variables::new(&inputs);
    let mut imported = Vec::new();
    for (name, entry) in servers {
        let mut notes = Vec::new();
        let shown = visible(clipped(name, 100)).into_owned();
        let valid = valid_name(name, &mut taken);
        if valid.as_str() != name {
            notes.push(format!("it is named `{valid}` here"));
        }
        let mut server = ServerImport {
            name: valid,
            variables: &mut variables,
            is_enabled: true,
            notes,
        };
        let settings = match entry.as_object() {
            Some(entry) => server.read(entry),
            None => {
                server.notes.push("its entry is not an object".to_owned());
                None
            }
        };
        imported.push(Imported {
            name: shown,
            settings,
            notes: server.notes,
        });
    }
    Ok(imported)
}

/// The longest base of a name, so that a number can be appended.
const MAX_BASE: usize = 22;

/// A valid and unique name for a server.
fn valid_name(name: &str, taken: &mut BTreeSet<String>) -> ServerName {
    let mut base = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        };
        let repeats = matches!(c, '-' | '_') && base.ends_with(['-', '_']);
        if !repeats && base.len() < MAX_BASE {
            base.push(c);
        }
    }
    let base = base.trim_matches(['-', '_']);
    let base = match base.starts_with(|first: char| first.is_ascii_lowercase()) {
        true => base.to_owned(),
        false => format!("s{base}"),
    };
    let mut candidate = base.clone();
    let mut number: u32 = 1;
    loop {
        if let Ok(name) = ServerName::new(&candidate)
            && taken.insert(candidate)
        {
            return name;
        }
        number += 1;
        candidate = format!("{base}-{number}");
    }
}

/// The import of one server.
struct ServerImport<'v, 'f> {
    name: ServerName,
    variables: &'v mut Variables<'f>,
    is_enabled: bool,
    notes: Vec<String>,
}

/// The keys that are imported.
const KNOWN: [&str; 16] = [
    "args",
    "arguments",
    "command",
    "cwd",
    "description",
    "disabled",
    "enabled",
    "env",
    "gallery",
    "headers",
    "httpUrl",
    "name",
    "serverUrl",
    "transport",
    "type",
    "url",
];

/// The keys with which other programs let tools run without approval.
const APPROVAL_KEYS: [&str; 4] = ["alwaysAllow", "autoApprove", "trust", "allowedTools"];

impl ServerImport<'_, '_> {
    fn read(&mut self, entry: &Map<String, Value>) -> Option<ServerSettings> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let is = |key: &str| entry.get(key).and_then(Value::as_bool);
        if is("disabled") == Some(true) || is("enabled") == Some(false) {
            self.is_enabled = false;
            self.note("it is disabled in the file, so it is imported as disabled");
        }
        for key in entry.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            let key = visible(clipped(key, 60)).into_owned();
            match APPROVAL_KEYS.contains(&key.as_str()) {
                true => self.note(format!(
                    "`{key}` is not imported: risk, permissions and policies decide which tools may run"
                )),
                false => self.note(format!("`{key}` is not imported")),
            }
        }
        let url = text("url").or(text("serverUrl")).or(text("httpUrl"));
        let kind = text("type").or(text("transport")).unwrap_or_default();
        let transport = match (text("command"), url) {
            (Some(_), Some(_)) => {
                self.note("it has both a command and a URL; remove one of them");
                return None;
            }
            (None, None) => {
                self.note("it has neither a command nor a URL; add one of them");
                return None;
            }
            (Some(command), None) => Transport::Command(self.command(command, entry)?),
            (None, Some(url)) => Transport::Http(self.http(url, kind, entry)?),
        };
        let mut settings = ServerSettings::new(self.name.clone(), transport);
        settings.is_enabled = self.is_enabled;
        Some(settings)
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn command(&mut self, command: &str, entry: &Map<String, Value>) -> Option<CommandTransport> {
        let mut arguments = Vec::new();
        let mut program = command.trim().to_owned();
        if program.is_empty() || program.contains('\0') {
            self.note("its command is empty or not valid");
            return None;
        }
        // Other programs start it with a shell. A path may contain spaces, a name does not.
        if let Some((first, rest)) = command.trim().split_once(char::is_whitespace)
            && !first.contains('/')
        {
            if command.contains(['\\', '"', '\'']) {
                self.note(
                    "its command is a shell command line; split it into `command` and `args`",
                );
                return None;
            }
            arguments.extend(rest.split_whitespace().map(str::to_owned));
            program = first.to_owned();
            self.note("its command is a shell command line and was split at its spaces");
        }
        let given = entry.get("args").or_else(|| entry.get("arguments"));
        for item in given.and_then(Value::as_array).into_iter().flatten() {
            match item {
                Value::String(text) if !text.contains('\0') => arguments.push(text.clone()),
                Value::Number(_) | Value::Bool(_) => arguments.push(item.to_string()),
                _ => self.note("an argument that is not a string is not imported"),
            }
        }
        self.note_placeholders(&program, &arguments);
        self.note_unpinned_version(&program, &arguments);
        let secrets = secret_arguments(&arguments);
        if secrets.iter().any(Option::is_some) {
            self.is_enabled = false;
            self.note(format!(
                "a secret in its arguments is not copied, and the server is disabled; replace `{NOT_COPIED}` and \
                 enable it. All users of this machine can see arguments, so use a variable if the server supports one"
            ));
        }
        for (argument, secret) in arguments.iter_mut().zip(secrets) {
            if let Some(secret) = secret {
                argument.truncate(secret);
                argument.push_str(NOT_COPIED);
            }
        }
        let directory = entry.get("cwd").and_then(Value::as_str);
        let directory = directory.filter(|text| !text.trim().is_empty() && !text.contains('\0'));
        Some(CommandTransport {
            program,
            arguments,
            directory: directory.map(PathBuf::from),
            environment: self.given(entry.get("env"), Names::Variables),
            parts: Vec::new(),
            access: ProgramAccess::default(),
        })
    }

    fn http(&mut self, url: &str, kind: &str, entry: &Map<String, Value>) -> Option<HttpTransport> {
        let has_scheme = url.starts_with("https://") || url.starts_with("http://");
        let authority = url.split("://").nth(1).unwrap_or_default();
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let has_host = !authority.is_empty() && !authority.starts_with(':');
        if !has_scheme || !has_host || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            self.note("its URL does not begin with https:// or http://, or has no host");
            return None;
        }
        if authority.contains('@') {
            self.note(
                "its URL contains a user and a password; use a header with `env:NAME` instead",
            );
            return None;
        }
        if kind.eq_ignore_ascii_case("sse") {
            self.is_enabled = false;
            self.note(
                "it uses the old SSE transport, which is not supported, so it is disabled; set the URL of a \
                 streamable HTTP server and enable it",
            );
        }
        let url = self.without_secrets(url);
        let headers = self.given(entry.get("headers"), Names::Headers);
        if is_unencrypted(&url) && headers.values().any(|given| given.variable().is_some()) {
            self.note(
                "its secrets would be sent to another machine over http://; use an https:// URL",
            );
            return None;
        }
        Some(HttpTransport {
            url,
            headers,
            oauth: None,
        })
    }

    /// The URL without secrets in its query.
    fn without_secrets(&mut self, url: &str) -> String {
        let Some((address, query)) = url.split_once('?') else {
            return url.to_owned();
        };
        let mut has_secret = false;
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if windlass_spec::server::looks_secret(name, value) => {
                has_secret = true;
                format!("{name}={NOT_COPIED}")
            }
            _ => pair.to_owned(),
        });
        let pairs: Vec<String> = pairs.collect();
        if has_secret {
            self.is_enabled = false;
            self.note(format!(
                "a secret in its URL is not copied, and the server is disabled; replace `{NOT_COPIED}` and enable it"
            ));
        }
        format!("{address}?{}", pairs.join("&"))
    }

    /// The variables or headers, with secrets replaced by variable names.
    fn given(&mut self, table: Option<&Value>, names: Names) -> BTreeMap<String, EnvTemplate> {
        let mut all = BTreeMap::new();
        for (key, value) in table.and_then(Value::as_object).into_iter().flatten() {
            let shown = visible(clipped(key, 60)).into_owned();
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => {
                    self.note(format!("`{shown}` is not a string and is not imported"));
                    continue;
                }
            };
            if !names.fits(key) {
                self.note(format!(
                    "`{shown}` is not {} and is not imported",
                    names.describe()
                ));
                continue;
            }
            let written = self
                .variables
                .convert(&self.name, key, &text, names, &mut self.notes);
            if let Ok(given) = EnvTemplate::new(&written) {
                all.insert(key.clone(), given);
            }
        }
        all
    }

    fn note_placeholders(&mut self, program: &str, arguments: &[String]) {
        let texts = arguments.iter().map(String::as_str).chain([program]);
        let found: BTreeSet<&str> = texts.filter_map(secrets::placeholder).collect();
        for placeholder in found {
            let placeholder = visible(clipped(placeholder, 60)).into_owned();
            self.note(format!(
                "`{placeholder}` in its command is not replaced; write its value"
            ));
        }
    }

    /// Adds a note if the package version is not pinned: then its publisher decides what runs next.
    fn note_unpinned_version(&mut self, program: &str, arguments: &[String]) {
        let runners = ["npx", "bunx", "pnpx", "uvx", "pipx"];
        if !runners.contains(&program) {
            return;
        }
        let is_version = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let is_pinned = arguments.iter().any(|argument| {
            let version = argument
                .rsplit_once('@')
                .or_else(|| argument.split_once("=="));
            version.is_some_and(|(_, version)| is_version(version))
        });
        if !is_pinned {
            self.note(format!(
                "`{program}` runs the newest version on every start; pin a version"
            ));
        }
    }
}

/// The text that replaces a secret.
const NOT_COPIED: &str = "NOT-COPIED";

/// What the keys of an object are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Variables,
    Headers,
}

impl Names {
    fn fits(self, name: &str) -> bool {
        match self {
            Self::Variables => secrets::is_variable(name),
            Self::Headers => {
                let own = [
                    "host",
                    "content-length",
                    "content-type",
                    "accept",
                    "connection",
                ];
                let lower = name.to_ascii_lowercase();
                let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
                !name.is_empty()
                    && name.chars().all(is_part)
                    && !own.contains(&lower.as_str())
                    && !lower.starts_with("mcp-")
                    && !["last-event-id", "transfer-encoding", "upgrade"].contains(&lower.as_str())
            }
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Variables => "a valid variable name",
            Self::Headers => "a header that can be set",
        }
    }
}
