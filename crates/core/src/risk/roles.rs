//! Finds the role of each argument: from its name, from its schema (format, options, description) and
//! from the kind of tool. Schemas are read once for each tool; arguments without a schema are classified
//! by name when they occur.

use std::collections::HashMap;

use serde_json::{Map, Value};
use windlass_spec::RiskLevel;

use super::words::split_name;
use super::{Evidence, KnownTool, Source, reading};

/// The maximum depth of a schema that is read.
const MAX_DEPTH: usize = 8;
/// The maximum number of fields of a schema that are read; the others are classified by name.
const MAX_FIELDS: usize = 1000;

/// The role of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Always SQL.
    Sql,
    /// A query in some language; SQL if it looks like SQL.
    Query,
    /// A command line.
    Shell,
    /// The operation to perform.
    Operation,
    /// A path in a file system.
    Path,
    /// A URL.
    Url,
    /// An amount of money.
    Amount,
    /// Recipients of a message.
    Recipients,
    /// Any other argument.
    Other,
}

/// Hints about the kind of tool that help to classify its arguments.
#[derive(Debug, Clone, Copy, Default)]
struct Hints {
    sql: bool,
    shell: bool,
}

/// The known arguments of a tool.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    hints: Hints,
    pub(super) root: Node,
    /// The gravest operation that the schema offers, by argument.
    pub(super) operations: Vec<(String, Evidence)>,
}

/// One known argument.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) role: Role,
    fields: HashMap<String, Node>,
}

impl Node {
    /// A field, or the same field in each item of a list.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.fields.get(name)
    }
}

impl Shape {
    pub(super) fn of(tool: &KnownTool<'_>) -> Self {
        let hints = Hints::of(tool);
        let mut left = MAX_FIELDS;
        let schema = tool.schema.and_then(Value::as_object);
        Self {
            hints,
            root: node(Role::Other, schema, hints, MAX_DEPTH, &mut left),
            operations: schema.map(operations).unwrap_or_default(),
        }
    }

    /// The role of an argument of which only the name is known.
    pub(super) fn role_of_name(&self, name: &str) -> Role {
        role(name, None, self.hints)
    }
}

impl Hints {
    fn of(tool: &KnownTool<'_>) -> Self {
        const SQL: &[&str] = &[
            "sql",
            "bigquery",
            "clickhouse",
            "duckdb",
            "mariadb",
            "mssql",
            "mysql",
            "postgres",
            "postgresql",
            "redshift",
            "snowflake",
            "sqlite",
        ];
        const SHELL: &[&str] = &["bash", "shell", "terminal", "powershell", "zsh"];
        let words = split_name(tool.name);
        let text = tool.description.to_ascii_lowercase();
        let mentions = |wanted: &[&str]| {
            let mut described = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.iter().any(|word| wanted.contains(&word.as_str()))
                || described.any(|word| wanted.contains(&word))
        };
        Self {
            sql: mentions(SQL),
            shell: mentions(SHELL),
        }
    }
}

fn node(
    role_of_node: Role,
    schema: Option<&Map<String, Value>>,
    hints: Hints,
    depth: usize,
    left: &mut usize,
) -> Node {
    let mut node_of_schema = Node {
        role: role_of_node,
        fields: HashMap::new(),
    };
    let Some(mut schema) = schema.filter(|_| depth > 0) else {
        return node_of_schema;
    };
    // The fields of list items are stored with the list itself.
    for _ in 0..MAX_DEPTH {
        match schema.get("items").and_then(Value::as_object) {
            Some(items) => schema = items,
            None => break,
        }
    }
    let alternatives = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .flatten()
        .filter_map(Value::as_object);
    for schema in std::iter::once(schema).chain(alternatives) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            if *left == 0 {
                return node_of_schema;
            }
            *left -= 1;
            let schema = schema.as_object();
            let role = role(name, schema, hints);
            let field = node(role, schema, hints, depth - 1, left);
            node_of_schema.fields.insert(name.clone(), field);
        }
    }
    node_of_schema
}

/// The gravest of the operations that a schema offers.
fn operations(schema: &Map<String, Value>) -> Vec<(String, Evidence)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten().take(MAX_FIELDS);
    let offered = fields.filter(|(name, _)| is_operation(&split_name(name)));
    offered
        .filter_map(|(name, schema)| {
            // A default applies when nothing is chosen, so a graver option does not count.
            let options = match schema.get("default") {
                Some(default) => std::slice::from_ref(default),
                None => schema.get("enum")?.as_array()?.as_slice(),
            };
            let gravest = options
                .iter()
                .filter_map(Value::as_str)
                .filter_map(|option| Some((option, reading::read_operation(option)?)))
                .max_by_key(|(_, level)| *level)?;
            let (option, level) = gravest;
            let what = format!(
                "`{}` may be `{}`",
                super::sources::shown(name),
                super::sources::shown(option)
            );
            (level > RiskLevel::Reversible)
                .then(|| (name.clone(), Evidence::new(Source::Arguments, level, what)))
        })
        .collect()
}

fn is_operation(words: &[String]) -> bool {
    const OPERATION: &[&str] = &[
        "action",
        "method",
        "mutation",
        "op",
        "operation",
        "subcommand",
        "verb",
        "command",
    ];
    const AFTER: &[&str] = &["kind", "name", "type"];
    const BEFORE: &[&str] = &["api", "crud", "db", "http", "request"];
    let is = |index: usize, of: &[&str]| words.get(index).is_some_and(|w| of.contains(&w.as_str()));
    match words.len() {
        1 => is(0, OPERATION),
        2 => is(0, OPERATION) && is(1, AFTER) || is(0, BEFORE) && is(1, OPERATION),
        _ => false,
    }
}

fn role(name: &str, schema: Option<&Map<String, Value>>, hints: Hints) -> Role {
    let text_of = |key: &str| {
        let text = schema.and_then(|schema| schema.get(key)?.as_str());
        text.unwrap_or_default()
    };
    let has_options = schema.is_some_and(|schema| schema.contains_key("enum"));
    match text_of("format") {
        "sql" => return Role::Sql,
        "shell" | "command" => return Role::Shell,
        "uri" | "url" | "uri-reference" | "iri" => return Role::Url,
        "email" | "idn-email" => return Role::Recipients,
        "path" | "file-path" | "directory-path" => return Role::Path,
        _ => {}
    }
    let words = split_name(name);
    if has_options {
        return if is_operation(&words) {
            Role::Operation
        } else {
            Role::Other
        };
    }
    let described = described_role(text_of("description"));
    described.unwrap_or_else(|| role_by_name(&words, hints))
}

/// The role that the description of an argument states.
fn described_role(description: &str) -> Option<Role> {
    let text = description.to_ascii_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if mentions(&[
        "sql query",
        "sql statement",
        "sql to ",
        "sql command",
        "sql code",
    ]) {
        Some(Role::Sql)
    } else if mentions(&[
        "shell command",
        "bash command",
        "command line to",
        "command to run",
        "command to execute",
    ]) {
        Some(Role::Shell)
    } else {
        None
    }
}

fn role_by_name(words: &[String], hints: Hints) -> Role {
    const SQL: &[&str] = &["ddl", "dml", "sql"];
    const NO_SQL_AFTER: &[&str] = &[
        "dialect", "engine", "file", "id", "mode", "name", "server", "version",
    ];
    const QUERY: &[&str] = &[
        "graphql",
        "mutation",
        "q",
        "queries",
        "query",
        "statement",
        "statements",
    ];
    const SHELL: &[&str] = &[
        "argv",
        "bash",
        "cmd",
        "cmdline",
        "cmds",
        "command",
        "commandline",
        "commands",
        "powershell",
        "shell",
    ];
    const SHELL_IF_HINTED: &[&str] = &["args", "arguments", "code", "input", "line", "script"];
    const URL: &[&str] = &[
        "endpoint", "href", "link", "site", "uri", "url", "urls", "webhook", "website",
    ];
    const AMOUNT: &[&str] = &[
        "amount", "amounts", "bid", "cents", "cost", "deposit", "donation", "eur", "fee",
        "payment", "price", "salary", "stake", "sum", "tip", "total", "usd",
    ];
    const NO_AMOUNT: &[&str] = &[
        "above", "below", "currency", "filter", "id", "intent", "limit", "link", "max", "maximum",
        "method", "min", "minimum", "range", "type",
    ];
    const RECIPIENTS: &[&str] = &[
        "addressee",
        "addressees",
        "attendee",
        "attendees",
        "audience",
        "bcc",
        "cc",
        "contacts",
        "emails",
        "followers",
        "guests",
        "invitee",
        "invitees",
        "members",
        "participant",
        "participants",
        "recipient",
        "recipients",
        "subscribers",
        "users",
    ];
    const PATH: &[&str] = &[
        "dest",
        "destination",
        "dir",
        "directory",
        "file",
        "filename",
        "filepath",
        "files",
        "folder",
        "glob",
        "path",
        "paths",
        "pattern",
        "source",
        "src",
        "target",
    ];
    let any = |of: &[&str]| words.iter().any(|word| of.contains(&word.as_str()));
    let last = |of: &[&str]| words.last().is_some_and(|w| of.contains(&w.as_str()));
    if any(SQL) && !last(NO_SQL_AFTER) {
        Role::Sql
    } else if last(QUERY) {
        if hints.sql { Role::Sql } else { Role::Query }
    } else if last(SHELL) || hints.shell && last(SHELL_IF_HINTED) {
        Role::Shell
    } else if is_operation(words) {
        Role::Operation
    } else if last(URL) {
        Role::Url
    } else if any(AMOUNT) && !any(NO_AMOUNT) {
        Role::Amount
    } else if any(RECIPIENTS) || last(&["to"]) {
        Role::Recipients
    } else if last(PATH) {
        Role::Path
    } else {
        Role::Other
    }
}
