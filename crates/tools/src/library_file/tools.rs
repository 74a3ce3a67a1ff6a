//! The tools of a library file: from tables to tools.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_gram::LineIndex;
use windlass_spec::reserved::check_name;
use windlass_spec::{NonEmptyText, Signature, ToolName, nearest};

use super::reader::{Place, Reader, quoted};
use super::variants::Outer;
use crate::builder::ToolBuilder;
use crate::command::CommandLine;
use crate::difference::differences;
use crate::hello::builtin_libraries;
use crate::http::{HttpEndpoint, HttpMethod};
use crate::tool::Tool;

/// The keys a tool has.
const KEYS: [&str; 9] = [
    "description",
    "signature",
    "command",
    "http",
    "builtin",
    "variants",
    "experiment",
    "environment",
    "directory",
];

/// Those that say what runs. A tool has one of them.
const WHAT_RUNS: [&str; 4] = ["command", "http", "builtin", "variants"];

/// Those that only a command has.
const FOR_COMMANDS: [&str; 2] = ["environment", "directory"];

/// The keys of `http`.
const HTTP_KEYS: [&str; 4] = ["method", "url", "allowed_hosts", "headers"];

const COMMAND_HINT: &str = "a command is a list of words, because no shell takes it apart: \
                            command = [\"python3\", \"search.py\"]";

/// The tools in the order of the file; those that are wrong are reported and left out.
pub(super) fn read(
    reader: &mut Reader<'_>,
    entries: &Spanned<DeValue<'_>>,
    place: &Place,
    base_directory: &Path,
) -> Vec<Tool> {
    let Some(table) = reader.table(entries, place) else {
        return Vec::new();
    };
    if table.is_empty() {
        let hint = "a library has at least one tool: begin one with [tools.NAME]";
        reader.error(place, "is empty", Some(hint.to_owned()));
    }
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
        .into_iter()
        .filter_map(|(key, value)| {
            let name = key.get_ref().as_ref();
            let place = place.below(name, key.span().start);
            let table = reader.table(value, &place)?;
            Entry {
                table,
                place: &place,
                base_directory,
            }
            .tool(reader, name)
        })
        .collect()
}

/// The table of one tool.
pub(super) struct Entry<'e, 'i> {
    pub(super) table: &'e DeTable<'i>,
    pub(super) place: &'e Place,
    pub(super) base_directory: &'e Path,
}

impl<'e, 'i> Entry<'e, 'i> {
    fn tool(&self, reader: &mut Reader<'_>, name: &str) -> Option<Tool> {
        reader.known_keys(self.table, self.place, &KEYS);
        let name = ToolName::new(name)
            .map_err(|error| {
                reader.error(self.place, format!("is no name for a tool: {error}"), None);
            })
            .ok();
        let name = name.filter(|name| match check_name(name.as_str()) {
            Ok(()) => true,
            Err(error) => {
                reader.error(self.place, format!("cannot be declared: {error}"), None);
                false
            }
        });
        let what_runs = self.what_runs(reader);
        if what_runs == Some("builtin") {
            return self.builtin(reader, name?);
        }
        let description = reader.required_text(self.table, self.place, "description");
        let signature = reader.required_text(self.table, self.place, "signature");
        let signature = signature.and_then(|text| self.signature(reader, &text));
        if what_runs == Some("variants") {
            let outer = Outer {
                name: name.as_ref(),
                description: description.as_deref(),
                signature: signature.as_ref(),
            };
            return self.split(reader, &outer);
        }
        let tool_name = name.as_ref().map_or("unnamed", ToolName::as_str);
        let runs = self.runs(reader, tool_name, what_runs, signature.as_ref());
        name?;
        self.built(reader, runs?, description?, signature?)
    }

    /// What runs, begun to be a tool.
    pub(super) fn runs(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        what_runs: Option<&str>,
        signature: Option<&Signature>,
    ) -> Option<ToolBuilder> {
        let begin = Some(ToolBuilder::new(name.to_owned()));
        match what_runs {
            Some("command") => {
                let command = self.command(reader);
                begin
                    .zip(command)
                    .map(|(begin, command)| begin.command(command))
            }
            Some("http") => {
                let endpoint = self.endpoint(reader, signature);
                begin
                    .zip(endpoint)
                    .map(|(begin, endpoint)| begin.http(endpoint))
            }
            _ => None,
        }
    }

    /// The tool, with what it is told to be like.
    pub(super) fn built(
        &self,
        reader: &mut Reader<'_>,
        runs: ToolBuilder,
        description: String,
        signature: Signature,
    ) -> Option<Tool> {
        let built = runs.description(description).signature(signature).build();
        let mut tool = built
            .map_err(|error| reader.error(self.place, error.to_string(), None))
            .ok()?;
        tool.implementation = Some(self.told().into());
        Some(tool)
    }

    /// What runs, in words.
    fn told(&self) -> String {
        let text = |table: &DeTable<'_>, key: &str| {
            let value = table.get(key).and_then(|value| value.get_ref().as_str());
            value.unwrap_or_default().to_owned()
        };
        let words = |key: &str| {
            let items = self
                .table
                .get(key)
                .and_then(|value| value.get_ref().as_array());
            let words = items
                .into_iter()
                .flatten()
                .filter_map(|item| item.get_ref().as_str());
            words.collect::<Vec<_>>()
        };
        if let Some(http) = self
            .table
            .get("http")
            .and_then(|value| value.get_ref().as_table())
        {
            return format!("{} {}", text(http, "method"), text(http, "url"));
        }
        let mut told = words("command").join(" ");
        let below = text(self.table, "directory");
        let directory: PathBuf = self.base_directory.join(below).components().collect();
        if directory != Path::new(".") {
            told = format!("{told} (in {})", directory.display());
        }
        match words("environment").as_slice() {
            [] => told,
            passed => format!("{told} (with {})", passed.join(", ")),
        }
    }

    /// The one key that says what runs.
    pub(super) fn what_runs(&self, reader: &mut Reader<'_>) -> Option<&'static str> {
        let given: Vec<&str> = WHAT_RUNS
            .into_iter()
            .filter(|&key| self.table.contains_key(key))
            .collect();
        let what_runs = match given.as_slice() {
            [] => {
                let hint = format!("give one of {}", quoted(&WHAT_RUNS));
                reader.error(self.place, "has nothing to run", Some(hint));
                None
            }
            &[one] => WHAT_RUNS.into_iter().find(|&key| key == one),
            several => {
                let hint = format!("keep one of {}", quoted(several));
                reader.error(self.place, "has more than one thing to run", Some(hint));
                None
            }
        };
        if let Some((place, _)) = self
            .value("experiment")
            .filter(|_| !given.contains(&"variants"))
        {
            reader.error(&place, "is only for `variants`", None);
        }
        if !self.table.contains_key("command") && !given.is_empty() {
            for key in FOR_COMMANDS {
                if let Some((place, _)) = self.value(key) {
                    reader.error(&place, "is only for a `command`", None);
                }
            }
        }
        what_runs
    }

    pub(super) fn value(&self, key: &str) -> Option<(Place, &'e Spanned<DeValue<'i>>)> {
        let value = self.table.get(key)?;
        Some((self.place.below(key, value.span().start), value))
    }

    fn signature(&self, reader: &mut Reader<'_>, text: &str) -> Option<Signature> {
        let (place, _) = self.value("signature")?;
        match Signature::parse(text) {
            Ok(signature) => Some(signature),
            Err(findings) => {
                let index = LineIndex::new(text);
                for finding in findings {
                    let column = index.position(finding.span.start).column;
                    let message = format!(
                        "is no signature, at character {column}: {}",
                        finding.message
                    );
                    reader.error(&place, message, finding.hint);
                }
                None
            }
        }
    }

    fn command(&self, reader: &mut Reader<'_>) -> Option<CommandLine> {
        let (place, value) = self.value("command")?;
        let words = reader.texts(value, &place, COMMAND_HINT);
        let command = words.and_then(|words| {
            let command = CommandLine::new(words);
            command
                .map_err(|error| {
                    reader.error(
                        &place,
                        format!("is no command: {error}"),
                        Some(COMMAND_HINT.to_owned()),
                    );
                })
                .ok()
        });
        let mut directory = self.base_directory.to_path_buf();
        if let Some((place, value)) = self.value("directory") {
            directory.extend(reader.text(value, &place));
        }
        let mut environment = Vec::new();
        if let Some((place, value)) = self.value("environment") {
            let hint = "name the variables to pass on: environment = [\"SEARCH_HOME\"]";
            environment = reader.texts(value, &place, hint).unwrap_or_default();
            for name in environment.iter().filter(|name| !is_variable(name)) {
                let message = format!("has `{name}` in it, which is no name of a variable");
                reader.error(&place, message, Some(hint.to_owned()));
            }
        }
        Some(command?.directory(directory).environment(environment))
    }

    fn endpoint(
        &self,
        reader: &mut Reader<'_>,
        signature: Option<&Signature>,
    ) -> Option<HttpEndpoint> {
        let (place, value) = self.value("http")?;
        let table = reader.table(value, &place)?;
        reader.known_keys(table, &place, &HTTP_KEYS);
        let method = reader.required_text(table, &place, "method");
        let method = method.and_then(|word| self.method(reader, table, &place, &word));
        let url = reader.required_text(table, &place, "url");
        let hosts_hint = "name the servers it may ask: allowed_hosts = [\"api.example.org\"]";
        let hosts = match table.get("allowed_hosts") {
            Some(value) => reader.texts(
                value,
                &place.below("allowed_hosts", value.span().start),
                hosts_hint,
            ),
            None => {
                let missing = place.below("allowed_hosts", value.span().start);
                reader.error(&missing, "is missing", Some(hosts_hint.to_owned()));
                None
            }
        };
        let at_url = table.get("url").map_or(value, |url| url).span().start;
        let at_url = place.below("url", at_url);
        let endpoint = url.zip(hosts).and_then(|(url, hosts)| {
            HttpEndpoint::new(method.unwrap_or(HttpMethod::Get), &url, hosts)
                .map_err(|problem| reader.error(&at_url, format!("is refused: {problem}"), None))
                .ok()
        });
        if let (Some(endpoint), Some(signature)) = (&endpoint, signature) {
            for problem in endpoint.misfits(signature) {
                let names = signature
                    .parameters()
                    .iter()
                    .map(|field| field.name.as_str());
                let names: Vec<&str> = names.collect();
                let hint = format!("the signature has {}", quoted(&names));
                reader.error(&at_url, format!("does not fit: {problem}"), Some(hint));
            }
        }
        let endpoint = self.headers(reader, table, &place, endpoint);
        method.and(endpoint)
    }

    fn method(
        &self,
        reader: &mut Reader<'_>,
        table: &DeTable<'_>,
        place: &Place,
        word: &str,
    ) -> Option<HttpMethod> {
        let found = HttpMethod::ALL
            .into_iter()
            .find(|method| method.as_str() == word);
        if found.is_none() {
            let offset = table.get("method").map_or(0, |value| value.span().start);
            let known = HttpMethod::ALL.map(HttpMethod::as_str);
            let meant = nearest(word, known);
            let meant = meant.map_or(String::new(), |meant| format!("did you mean \"{meant}\"? "));
            let hint = format!("{meant}known are {}", quoted(&known));
            reader.error(
                &place.below("method", offset),
                format!("cannot be \"{word}\""),
                Some(hint),
            );
        }
        found
    }

    fn headers(
        &self,
        reader: &mut Reader<'_>,
        table: &DeTable<'_>,
        place: &Place,
        endpoint: Option<HttpEndpoint>,
    ) -> Option<HttpEndpoint> {
        let Some(headers) = table.get("headers") else {
            return endpoint;
        };
        let place = place.below("headers", headers.span().start);
        let mut good = Vec::new();
        let entries = reader.table(headers, &place)?;
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let place = place.below(name, value.span().start);
            let Some(text) = reader.text(value, &place) else {
                continue;
            };
            match HttpEndpoint::check_header(name, &text) {
                Ok(()) => good.push((name, text)),
                Err(problem) => reader.error(&place, format!("is refused: {problem}"), None),
            }
        }
        good.into_iter()
            .try_fold(endpoint?, |endpoint, (name, text)| {
                endpoint.header(name, &text)
            })
            .ok()
    }

    /// A tool of a built-in library, which says itself what it takes. What the file says too must
    /// agree; its description is the file's if the file has one.
    pub(super) fn builtin(&self, reader: &mut Reader<'_>, name: ToolName) -> Option<Tool> {
        let (place, value) = self.value("builtin")?;
        let wanted = reader.text(value, &place)?;
        let libraries = builtin_libraries();
        let mut tools = libraries.iter().flat_map(|library| {
            let called = move |tool: &Tool| format!("{}/{}", library.name(), tool.name());
            library.iter().map(move |tool| (called(tool), tool))
        });
        let Some((_, tool)) = tools.clone().find(|(called, _)| *called == wanted) else {
            let names: Vec<String> = tools.by_ref().map(|(called, _)| called).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let meant = nearest(&wanted, names.iter().copied());
            let meant = meant.map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
            let hint = format!("{meant}known are {}", quoted(&names));
            reader.error(
                &place,
                format!("names no built-in tool: `{wanted}`"),
                Some(hint),
            );
            return None;
        };
        let mut tool = tool.clone().renamed(name);
        tool.implementation = Some(format!("built-in {wanted}").into());
        if let Some((place, value)) = self.value("description") {
            let description = NonEmptyText::new(reader.text(value, &place)?);
            tool.description = description
                .map_err(|error| reader.error(&place, format!("is refused: {error}"), None))
                .ok()?;
        }
        if let Some((place, value)) = self.value("signature") {
            let text = reader.text(value, &place)?;
            let signature = self.signature(reader, &text)?;
            let differs = !differences(&signature.parameters_schema(), tool.schema()).is_empty();
            if differs {
                let hint = "leave it out: a built-in tool says itself what it takes";
                let message = format!("is not that of `{wanted}`");
                reader.error(&place, message, Some(hint.to_owned()));
                return None;
            }
        }
        Some(tool)
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}
