//! A server as a section of `windlass.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_spec::ProgramAccess;
use windlass_spec::server::{DEFAULT_START_TIMEOUT, EnvTemplate, OAuth, ServerSettings, Transport};

/// The section `[servers.NAME]` to append to a configuration. Relative paths start from the directory of
/// the file.
#[must_use]
pub fn to_toml(settings: &ServerSettings) -> String {
    let name = &settings.name;
    let mut section = Section(format!("[servers.{name}]\n"));
    let mut tables = Vec::new();
    match &settings.transport {
        Transport::Command(command) => {
            section.text("command", &command.program);
            section.texts("arguments", &command.arguments);
            if let Some(directory) = &command.directory {
                section.text("directory", &path(directory));
            }
            let parts: Vec<String> = command.parts.iter().map(|part| path(part)).collect();
            section.texts("parts", &parts);
            section.access(&command.access);
            tables.push(("environment", &command.environment));
        }
        Transport::Http(http) => {
            section.text("url", &http.url);
            tables.push(("headers", &http.headers));
        }
    }
    if !settings.is_enabled {
        section.line("enabled", "false");
    }
    if settings.is_trusted {
        section.line("trusted", "true");
    }
    if settings.has_envelopes {
        section.line("envelope", "true");
    }
    if settings.may_sample {
        section.line("sampling", "true");
    }
    if settings.start_timeout != DEFAULT_START_TIMEOUT {
        let seconds = settings.start_timeout.as_secs().to_string();
        section.line("start_timeout_seconds", &seconds);
    }
    for (key, table) in tables {
        section.table(&format!("servers.{name}.{key}"), table);
    }
    if let Transport::Http(http) = &settings.transport
        && let Some(oauth) = &http.oauth
    {
        section.oauth(&format!("servers.{name}.oauth"), oauth);
    }
    section.0
}

struct Section(String);

impl Section {
    fn access(&mut self, access: &ProgramAccess) {
        let paths = |paths: &[PathBuf]| paths.iter().map(|listed| path(listed)).collect::<Vec<_>>();
        if let Some(files) = &access.files {
            match files.as_slice() {
                [] => self.line("files", "[]"),
                files => self.texts("files", &paths(files)),
            }
        }
        self.texts("writable_files", &paths(&access.writable_files));
        if access.is_offline {
            self.line("offline", "true");
        }
    }

    fn line(&mut self, key: &str, value: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.line(key, &quoted(text));
    }

    fn texts(&mut self, key: &str, texts: &[String]) {
        if !texts.is_empty() {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            self.line(key, &format!("[{}]", texts.join(", ")));
        }
    }

    fn table(&mut self, path: &str, table: &BTreeMap<String, EnvTemplate>) {
        if table.is_empty() {
            return;
        }
        let _ = write!(self.0, "\n[{path}]\n");
        for (key, given) in table {
            let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let key = match !key.is_empty() && key.chars().all(is_bare) {
                true => key.clone(),
                false => quoted(key),
            };
            self.line(&key, &quoted(&given.to_string()));
        }
    }

    fn oauth(&mut self, path: &str, oauth: &OAuth) {
        let _ = write!(self.0, "\n[{path}]\n");
        if let Some(id) = &oauth.client_id {
            self.text("client_id", id);
        }
        if let Some(secret) = &oauth.client_secret {
            self.text("client_secret", &secret.to_string());
        }
        self.texts("scopes", &oauth.scopes);
    }
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A quoted TOML string. JSON escapes are valid in TOML, except for one character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7F}', "\\u007F")
}
