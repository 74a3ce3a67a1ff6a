//! Which argument is what: found from its name, from its schema (format, options, description) and
//! from what kind of tool it is passed to. Schemas are read once a tool; arguments that no schema
//! mentions are judged by their names when they come.

use std::collections::HashMap;

use serde_json::{Map, Value};
use windlass_spec::RiskLevel;

use super::words::split_name;
use super::{Evidence, KnownTool, Source, reading};

/// Schemas are read this deep.
const MAX_DEPTH: usize = 8;
/// At most so many fields of a schema are read; those beyond are judged by name.
const MAX_FIELDS: usize = 1000;

/// What an argument means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// SQL, whatever it looks like.
    Sql,
    /// A query in some language; SQL if it looks like it.
    Query,
    /// A command line.
    Shell,
    /// What is to be done.
    Operation,
    /// Where in a file system.
    Path,
    /// Where in the web.
    Url,
    /// How much money.
    Amount,
    /// Who gets something.
    Recipients,
    /// Something else.
    Other,
}

/// What kind of tool it is, as far as it helps to understand its arguments.
#[derive(Debug, Clone, Copy, Default)]
struct Hints {
    sql: bool,
    shell: bool,
}

/// What is known of the arguments of a tool.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    hints: Hints,
    pub(super) root: Node,
    /// The gravest operation that the schema offers to choose, by argument.
    pub(super) operations: Vec<(String, Evidence)>,
}

/// What is known of one argument.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) role: Role,
    fields: HashMap<String, Node>,
}

impl Node {
    /// What is known of a field, or of the same field in each item of a list.
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

    /// What an argument means of which only the name is known.
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
        let says = |wanted: &[&str]| {
            let mut described = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.iter().any(|word| wanted.contains(&word.as_str()))
                || described.any(|word| wanted.contains(&word))
        };
        Self {
            sql: says(SQL),
            shell: says(SHELL),
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
    // The fields of the items of a list are found under the list itself.
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

/// The gravest of the operations a schema lets a caller choose from.
fn operations(schema: &Map<String, Value>) -> Vec<(String, Evidence)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten().take(MAX_FIELDS);
    let offered = fields.filter(|(name, _)| is_operation(&split_name(name)));
    offered
        .filter_map(|(name, schema)| {
            // A default says what happens when nothing is chosen, so nothing worse is to be feared.
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

/// What the description of an argument says plainly that it is.
fn described_role(description: &str) -> Option<Role> {
    let text = description.to_ascii_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if says(&[
        "sql query",
        "sql statement",
        "sql to ",
        "sql command",
        "sql code",
    ]) {
        Some(Role::Sql)
    } else if says(&[
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
