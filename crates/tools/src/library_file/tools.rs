//! The tools of a library file: from tables to tools.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_gram::LineIndex;
use windlass_spec::reserved::check_name;
use windlass_spec::{
    DescriptionLength, EnvelopeUse, NonEmptyText, ProgramAccess, Signature, ToolName,
    ToolSpecification, nearest,
};

use super::reader::{FileLocation, Reader, quoted};
use super::variants::SharedParts;
use crate::builder::ToolBuilder;
use crate::command::CommandLine;
use crate::difference::differences;
use crate::hello::builtin_libraries;
use crate::http::{HttpEndpoint, HttpMethod};
use crate::tool::Tool;

/// The keys of a tool.
const KEYS: [&str; 13] = [
    "description",
    "signature",
    "command",
    "http",
    "builtin",
    "variants",
    "experiment",
    "environment",
    "directory",
    "files",
    "writable_files",
    "offline",
    "envelope",
];

/// The keys for implementations. A tool has one of them.
pub(super) const IMPLEMENTATION_KEYS: [&str; 4] = ["command", "http", "builtin", "variants"];

/// The keys that only a command has.
const COMMAND_KEYS: [&str; 5] = [
    "environment",
    "directory",
    "files",
    "writable_files",
    "offline",
];

/// The keys of `http`.
const HTTP_KEYS: [&str; 4] = ["method", "url", "allowed_hosts", "headers"];

const COMMAND_HINT: &str = "a command is a list of words, because it does not run in a shell: \
                            command = [\"python3\", \"search.py\"]";

/// The tools in the order of the file. Those with errors are reported and omitted.
pub(super) fn read(
    reader: &mut Reader<'_>,
    entries: &Spanned<DeValue<'_>>,
    location: &FileLocation,
    base_directory: &Path,
) -> Vec<Tool> {
    let Some(table) = reader.table(entries, location) else {
        return Vec::new();
    };
    if table.is_empty() {
        let hint = "a library has at least one tool: begin one with [tools.NAME]";
        reader.error(location, "is empty", Some(hint.to_owned()));
    }
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
        .into_iter()
        .filter_map(|(key, value)| {
            let name = key.get_ref().as_ref();
            let location = location.below(name, key.span().start);
            let table = reader.table(value, &location)?;
            Entry {
                table,
                location: &location,
                base_directory,
            }
            .tool(reader, name)
        })
        .collect()
}

/// The table of one tool.
pub(super) struct Entry<'e, 'i> {
    pub(super) table: &'e DeTable<'i>,
    pub(super) location: &'e FileLocation,
    pub(super) base_directory: &'e Path,
}

impl<'e, 'i> Entry<'e, 'i> {
    fn tool(&self, reader: &mut Reader<'_>, name: &str) -> Option<Tool> {
        reader.check_keys(self.table, self.location, &KEYS);
        let name = ToolName::new(name)
            .map_err(|error| {
                reader.error(
                    self.location,
                    format!("is not a valid tool name: {error}"),
                    None,
                );
            })
            .ok();
        let name = name.filter(|name| match check_name(name.as_str()) {
            Ok(()) => true,
            Err(error) => {
                reader.error(self.location, format!("cannot be declared: {error}"), None);
                false
            }
        });
        let implementation_key = self.implementation_key(reader);
        if implementation_key == Some("builtin") {
            return self.builtin(reader, name?);
        }
        let description = reader.required_text(self.table, self.location, "description");
        let description = description.filter(|text| self.check_description(reader, text));
        let signature = reader.required_text(self.table, self.location, "signature");
        let signature = signature.and_then(|text| self.signature(reader, &text));
        if implementation_key == Some("variants") {
            let shared = SharedParts {
                name: name.as_ref(),
                description: description.as_deref(),
                signature: signature.as_ref(),
            };
            return self.split(reader, &shared);
        }
        let tool_name = name.as_ref().map_or("unnamed", ToolName::as_str);
        let builder = self.builder(reader, tool_name, implementation_key, signature.as_ref());
        name?;
        self.build_tool(reader, builder?, description?, signature?)
    }

    /// A builder for the tool with its implementation.
    pub(super) fn builder(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        implementation_key: Option<&str>,
        signature: Option<&Signature>,
    ) -> Option<ToolBuilder> {
        let builder = Some(ToolBuilder::new(name.to_owned()));
        match implementation_key {
            Some("command") => {
                let command = self.command(reader);
                builder
                    .zip(command)
                    .map(|(builder, command)| builder.command(command))
            }
            Some("http") => {
                let endpoint = self.endpoint(reader, signature);
                builder
                    .zip(endpoint)
                    .map(|(builder, endpoint)| builder.http(endpoint))
            }
            _ => None,
        }
    }

    /// Whether a description has an allowed length. If not, that is reported.
    fn check_description(&self, reader: &mut Reader<'_>, description: &str) -> bool {
        let checked = ToolSpecification::check_description(description);
        let Err(DescriptionLength(length)) = checked else {
            return true;
        };
        let location = self.value("description").map(|(location, _)| location);
        let allowed = ToolSpecification::DESCRIPTION_LENGTH;
        let message = format!(
            "has {length} characters; it must have {} to {}",
            allowed.start(),
            allowed.end()
        );
        let hint = "describe what the tool does and when to use it".to_owned();
        reader.error(
            location.as_ref().unwrap_or(self.location),
            message,
            Some(hint),
        );
        false
    }

    /// Builds the tool with its description and signature.
    pub(super) fn build_tool(
        &self,
        reader: &mut Reader<'_>,
        builder: ToolBuilder,
        description: String,
        signature: Signature,
    ) -> Option<Tool> {
        let built = builder
            .description(description)
            .signature(signature)
            .envelopes(self.has_envelopes(reader))
            .build();
        let mut tool = built
            .map_err(|error| reader.error(self.location, error.to_string(), None))
            .ok()?;
        tool.implementation = Some(self.describe_implementation().into());
        Some(tool)
    }

    /// Whether the answers of the tool are read as envelopes.
    fn has_envelopes(&self, reader: &mut Reader<'_>) -> bool {
        let Some((location, value)) = self.value("envelope") else {
            return true;
        };
        let word = reader.text(value, &location);
        match word.map(|word| word.parse::<EnvelopeUse>()) {
            Some(Ok(envelope)) => envelope == EnvelopeUse::Auto,
            Some(Err(error)) => {
                let hint = "write \"never\" if the data of the tool only looks like an envelope";
                reader.error(
                    &location,
                    format!("is not valid: {error}"),
                    Some(hint.to_owned()),
                );
                true
            }
            None => true,
        }
    }

    /// A description of the implementation.
    fn describe_implementation(&self) -> String {
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
        let mut description = words("command").join(" ");
        let below = text(self.table, "directory");
        let directory: PathBuf = self.base_directory.join(below).components().collect();
        if directory != Path::new(".") {
            description = format!("{description} (in {})", directory.display());
        }
        let passed = words("environment");
        if !passed.is_empty() {
            description = format!("{description} (with {})", passed.join(", "));
        }
        let paths = |key: &str| words(key).into_iter().map(PathBuf::from).collect();
        let offline = self.table.get("offline");
        let access = ProgramAccess {
            files: self.table.get("files").map(|_| paths("files")),
            writable_files: paths("writable_files"),
            is_offline: offline.and_then(|value| value.get_ref().as_bool()) == Some(true),
        };
        match access == ProgramAccess::default() {
            true => description,
            false => format!("{description} ({access})"),
        }
    }

    /// The one key of the implementation.
    pub(super) fn implementation_key(&self, reader: &mut Reader<'_>) -> Option<&'static str> {
        let given: Vec<&str> = IMPLEMENTATION_KEYS
            .into_iter()
            .filter(|&key| self.table.contains_key(key))
            .collect();
        let implementation_key = match given.as_slice() {
            [] => {
                let hint = format!("give one of {}", quoted(&IMPLEMENTATION_KEYS));
                reader.error(self.location, "has no implementation", Some(hint));
                None
            }
            &[one] => IMPLEMENTATION_KEYS.into_iter().find(|&key| key == one),
            several => {
                let hint = format!("keep one of {}", quoted(several));
                reader.error(
                    self.location,
                    "has more than one implementation",
                    Some(hint),
                );
                None
            }
        };
        if let Some((location, _)) = self
            .value("experiment")
            .filter(|_| !given.contains(&"variants"))
        {
            reader.error(&location, "is only for `variants`", None);
        }
        if !self.table.contains_key("command") && !given.is_empty() {
            for key in COMMAND_KEYS {
                if let Some((location, _)) = self.value(key) {
                    reader.error(&location, "is only for a `command`", None);
                }
            }
        }
        implementation_key
    }

    pub(super) fn value(&self, key: &str) -> Option<(FileLocation, &'e Spanned<DeValue<'i>>)> {
        let value = self.table.get(key)?;
        Some((self.location.below(key, value.span().start), value))
    }

    fn signature(&self, reader: &mut Reader<'_>, text: &str) -> Option<Signature> {
        let (location, _) = self.value("signature")?;
        match Signature::parse(text) {
            Ok(signature) => Some(signature),
            Err(findings) => {
                let index = LineIndex::new(text);
                for finding in findings {
                    let column = index.position(finding.span.start).column;
                    let message = format!(
                        "is not a valid signature, at character {column}: {}",
                        finding.message
                    );
                    reader.error(&location, message, finding.hint);
                }
                None
            }
        }
    }

    fn command(&self, reader: &mut Reader<'_>) -> Option<CommandLine> {
        let (location, value) = self.value("command")?;
        let words = reader.texts(value, &location, COMMAND_HINT);
        let command = words.and_then(|words| {
            let command = CommandLine::new(words);
            command
                .map_err(|error| {
                    reader.error(
                        &location,
                        format!("is not a valid command: {error}"),
                        Some(COMMAND_HINT.to_owned()),
                    );
                })
                .ok()
        });
        let mut directory = self.base_directory.to_path_buf();
        if let Some((location, value)) = self.value("directory") {
            directory.extend(reader.text(value, &location));
        }
        let mut environment = Vec::new();
        if let Some((location, value)) = self.value("environment") {
            let hint = "name the variables to pass on: environment = [\"SEARCH_HOME\"]";
            environment = reader.texts(value, &location, hint).unwrap_or_default();
            for name in environment.iter().filter(|name| !is_variable(name)) {
                let message = format!("has `{name}` in it, which is not a valid variable name");
                reader.error(&location, message, Some(hint.to_owned()));
            }
            for name in environment.iter().filter(|name| is_of_windlass(name)) {
                let message = format!("has `{name}` in it, which no tool may have");
                reader.error(&location, message, None);
            }
        }
        let access = self.access(reader);
        let command = command?.directory(directory).environment(environment);
        Some(command.access(access))
    }

    /// What a command declares that it needs of the machine. Its files are relative to the library file.
    fn access(&self, reader: &mut Reader<'_>) -> ProgramAccess {
        let hint = "list files and directories: files = [\"archive\"]";
        let mut paths = |key: &str| {
            let (location, value) = self.value(key)?;
            let listed = reader.texts(value, &location, hint).unwrap_or_default();
            for path in listed
                .iter()
                .filter(|path| path.is_empty() || path.contains('\0'))
            {
                let message = format!("has `{path}` in it, which is not a path");
                reader.error(&location, message, Some(hint.to_owned()));
            }
            let base = std::path::absolute(self.base_directory);
            let base = base.unwrap_or_else(|_| self.base_directory.to_path_buf());
            Some(listed.into_iter().map(|path| base.join(path)).collect())
        };
        let (files, writable_files) = (paths("files"), paths("writable_files"));
        let is_offline = self.value("offline").is_some_and(|(location, value)| {
            let given = value.get_ref().as_bool();
            if given.is_none() {
                let hint = Some("offline = true".to_owned());
                reader.error(&location, "must be `true` or `false`", hint);
            }
            given.unwrap_or(false)
        });
        ProgramAccess {
            files,
            writable_files: writable_files.unwrap_or_default(),
            is_offline,
        }
    }

    fn endpoint(
        &self,
        reader: &mut Reader<'_>,
        signature: Option<&Signature>,
    ) -> Option<HttpEndpoint> {
        let (location, value) = self.value("http")?;
        let table = reader.table(value, &location)?;
        reader.check_keys(table, &location, &HTTP_KEYS);
        let method = reader.required_text(table, &location, "method");
        let method = method.and_then(|word| self.method(reader, table, &location, &word));
        let url = reader.required_text(table, &location, "url");
        let hosts_hint = "list the hosts that it may call: allowed_hosts = [\"api.example.org\"]";
        let hosts = match table.get("allowed_hosts") {
            Some(value) => reader.texts(
                value,
                &location.below("allowed_hosts", value.span().start),
                hosts_hint,
            ),
            None => {
                let missing = location.below("allowed_hosts", value.span().start);
                reader.error(&missing, "is missing", Some(hosts_hint.to_owned()));
                None
            }
        };
        let at_url = table.get("url").map_or(value, |url| url).span().start;
        let at_url = location.below("url", at_url);
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
        let endpoint = self.headers(reader, table, &location, endpoint);
        method.and(endpoint)
    }

    fn method(
        &self,
        reader: &mut Reader<'_>,
        table: &DeTable<'_>,
        location: &FileLocation,
        word: &str,
    ) -> Option<HttpMethod> {
        let found = HttpMethod::ALL
            .into_iter()
            .find(|method| method.as_str() == word);
        if found.is_none() {
            let offset = table.get("method").map_or(0, |value| value.span().start);
            let known = HttpMethod::ALL.map(HttpMethod::as_str);
            let suggestion = nearest(word, known);
            let suggestion = suggestion.map_or(String::new(), |suggestion| {
                format!("did you mean \"{suggestion}\"? ")
            });
            let hint = format!("{suggestion}known methods: {}", quoted(&known));
            reader.error(
                &location.below("method", offset),
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
        location: &FileLocation,
        endpoint: Option<HttpEndpoint>,
    ) -> Option<HttpEndpoint> {
        let Some(headers) = table.get("headers") else {
            return endpoint;
        };
        let location = location.below("headers", headers.span().start);
        let mut good = Vec::new();
        let entries = reader.table(headers, &location)?;
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let location = location.below(name, value.span().start);
            let Some(text) = reader.text(value, &location) else {
                continue;
            };
            match HttpEndpoint::check_header(name, &text) {
                Ok(()) => good.push((name, text)),
                Err(problem) => reader.error(&location, format!("is refused: {problem}"), None),
            }
        }
        good.into_iter()
            .try_fold(endpoint?, |endpoint, (name, text)| {
                endpoint.header(name, &text)
            })
            .ok()
    }

    /// A tool of a built-in library, which has its own signature. A signature in the file must
    /// agree with it. A description in the file replaces its own.
    pub(super) fn builtin(&self, reader: &mut Reader<'_>, name: ToolName) -> Option<Tool> {
        let (location, value) = self.value("builtin")?;
        let wanted = reader.text(value, &location)?;
        let libraries = builtin_libraries();
        let mut tools = libraries.iter().flat_map(|library| {
            let full_name = move |tool: &Tool| format!("{}/{}", library.name(), tool.name());
            library.iter().map(move |tool| (full_name(tool), tool))
        });
        let Some((_, tool)) = tools.clone().find(|(full_name, _)| *full_name == wanted) else {
            let names: Vec<String> = tools.by_ref().map(|(full_name, _)| full_name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let suggestion = nearest(&wanted, names.iter().copied());
            let suggestion = suggestion.map_or(String::new(), |suggestion| {
                format!("did you mean `{suggestion}`? ")
            });
            let hint = format!("{suggestion}built-in tools: {}", quoted(&names));
            reader.error(
                &location,
                format!("is not a built-in tool: `{wanted}`"),
                Some(hint),
            );
            return None;
        };
        let mut tool = tool.clone().renamed(name);
        tool.implementation = Some(format!("built-in {wanted}").into());
        tool.has_envelopes &= self.has_envelopes(reader);
        if let Some((location, value)) = self.value("description") {
            let description = NonEmptyText::new(reader.text(value, &location)?);
            tool.description = description
                .map_err(|error| reader.error(&location, format!("is refused: {error}"), None))
                .ok()?;
            if !self.check_description(reader, tool.description.as_str()) {
                return None;
            }
        }
        if let Some((location, value)) = self.value("signature") {
            let text = reader.text(value, &location)?;
            let signature = self.signature(reader, &text)?;
            let differs = !differences(&signature.parameters_schema(), tool.schema()).is_empty();
            if differs {
                let hint = "remove it: a built-in tool has its own signature";
                let message = format!("differs from the signature of `{wanted}`");
                reader.error(&location, message, Some(hint.to_owned()));
                return None;
            }
        }
        Some(tool)
    }
}

/// Whether a variable holds a key or a passphrase of Windlass.
fn is_of_windlass(name: &str) -> bool {
    let is_secret = name.contains("KEY") || name.contains("PASS");
    name.starts_with("WINDLASS_") && is_secret
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}
