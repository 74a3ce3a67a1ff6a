//! The risk of the arguments of a call. They may only raise it. The walk keeps its own stack and visits
//! every value once, so neither depth nor size is a problem. SQL and command lines have their own size
//! limits, beyond which they count as unknown.

use std::collections::HashMap;

use serde_json::{Map, Value};
use windlass_spec::RiskLevel;

use super::reading::{read_flag, read_operation};
use super::roles::{Node, Role, Shape};
use super::sources::{of_http_method, shown};
use super::{Assessment, Evidence, Source, shell, sql, url};

/// More recipients than this make a message a mass mailing.
pub(super) const MANY_RECIPIENTS: usize = 10;
/// The maximum number of findings that are kept.
const MAX_FINDINGS: usize = 8;
/// The maximum number of argument names that are cached during one walk.
const MAX_CACHED_NAMES: usize = 256;

/// Flags that make a change permanent.
const PERMANENT_FLAGS: [&str; 16] = [
    "all",
    "auto_approve",
    "bypass",
    "cascade",
    "force",
    "forced",
    "hard",
    "no_backup",
    "overwrite",
    "permanent",
    "permanently",
    "prune",
    "purge",
    "recursive",
    "recursively",
    "skip_trash",
];

/// Raises the assessment by the findings in the arguments.
pub(super) fn assess(arguments: &Map<String, Value>, shape: &Shape, assessment: &mut Assessment) {
    let mut walk = Walk {
        shape,
        roles: HashMap::new(),
        always: Findings::default(),
        if_changing: Findings::default(),
    };
    for (name, evidence) in &shape.operations {
        if arguments.get(name).is_none_or(Value::is_null) {
            walk.always.add(evidence.level, || evidence.what.clone());
        }
    }
    walk.object(arguments);
    let Walk {
        always,
        if_changing,
        ..
    } = walk;
    for evidence in always.found {
        assessment.raise(evidence);
    }
    if assessment.level > RiskLevel::Reversible {
        for evidence in if_changing.found {
            assessment.raise(evidence);
        }
    }
}

struct Walk<'w> {
    shape: &'w Shape,
    roles: HashMap<&'w str, Role>,
    /// Findings that always raise the level.
    always: Findings,
    /// Findings that raise only a call that changes something: listing `*` is harmless.
    if_changing: Findings,
}

#[derive(Default)]
struct Findings {
    found: Vec<Evidence>,
}

impl Findings {
    fn add(&mut self, level: RiskLevel, what: impl FnOnce() -> String) {
        let worst = self.found.iter().map(|evidence| evidence.level).max();
        let worse = worst.is_none_or(|worst| level > worst);
        if level > RiskLevel::Reversible && (self.found.len() < MAX_FINDINGS || worse) {
            self.found
                .push(Evidence::new(Source::Arguments, level, what()));
        }
    }
}

impl<'w> Walk<'w> {
    fn object(&mut self, arguments: &'w Map<String, Value>) {
        // A value, the node of its schema, its name, and its role.
        let mut pending: Vec<(&'w Value, Option<&'w Node>, &'w str, Role)> = Vec::new();
        let root = Some(&self.shape.root);
        for (name, value) in arguments {
            self.push_value(&mut pending, root, name, value);
        }
        while let Some((value, node, name, role)) = pending.pop() {
            match value {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        self.push_value(&mut pending, node, name, value);
                    }
                }
                Value::Array(items) => {
                    self.list(name, items, role);
                    if role == Role::Shell && is_argument_vector(name, items) {
                        continue;
                    }
                    pending.extend(items.iter().map(|item| (item, node, name, role)));
                }
                Value::String(text) => self.text(name, text, role),
                Value::Bool(true) => self.flag(name),
                Value::Number(number) if role == Role::Amount => {
                    if number.as_f64() != Some(0.0) {
                        self.amount(name, &number.to_string());
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }

    fn push_value(
        &mut self,
        pending: &mut Vec<(&'w Value, Option<&'w Node>, &'w str, Role)>,
        parent: Option<&'w Node>,
        name: &'w str,
        value: &'w Value,
    ) {
        let node = parent.and_then(|parent| parent.field(name));
        let role = match node {
            Some(node) => node.role,
            None => self.role_of_name(name),
        };
        pending.push((value, node, name, role));
    }

    fn role_of_name(&mut self, name: &'w str) -> Role {
        if let Some(role) = self.roles.get(name) {
            return *role;
        }
        let role = self.shape.role_of_name(name);
        if self.roles.len() < MAX_CACHED_NAMES {
            self.roles.insert(name, role);
        }
        role
    }

    fn list(&mut self, name: &str, items: &[Value], role: Role) {
        if role == Role::Recipients {
            self.recipients(name, items.len());
        }
        if role == Role::Shell && is_argument_vector(name, items) {
            let words = items.iter().filter_map(Value::as_str).map(str::to_owned);
            let finding = shell::assess_words(words.collect());
            self.always.add(finding.level, || {
                format!("`{}`: {}", shown(name), finding.what)
            });
        }
    }

    fn text(&mut self, name: &str, text: &str, role: Role) {
        let mut raise = |level: RiskLevel, what: &str| {
            self.always
                .add(level, || format!("`{}`: {what}", shown(name)));
        };
        match role {
            Role::Sql if !text.trim().is_empty() => {
                let finding = sql::assess(text);
                raise(finding.level, &finding.what);
            }
            Role::Query => {
                if let Some(finding) = sql::assess_if_sql(text) {
                    raise(finding.level, &finding.what);
                }
            }
            Role::Shell if !text.trim().is_empty() => {
                let finding = shell::assess(text);
                raise(finding.level, &finding.what);
            }
            Role::Operation => {
                let level = of_http_method(text).or_else(|| read_operation(text));
                if let Some(level) = level {
                    raise(level, &format!("the operation is `{}`", shown(text)));
                }
            }
            Role::Path => self.path(name, text),
            Role::Amount => self.amount(name, text),
            Role::Recipients => self.recipients_in_text(name, text),
            Role::Sql | Role::Shell | Role::Url | Role::Other => {}
        }
        // A text that only starts with a URL is prose, unless the argument is a URL.
        if let Some(finding) = url::assess(text)
            && (role == Role::Url || !text.trim().contains(char::is_whitespace))
        {
            self.always.add(finding.level, || {
                format!("`{}`: {}", shown(name), finding.what)
            });
        }
    }

    fn flag(&mut self, name: &str) {
        if is_permanent_flag(name) {
            self.if_changing.add(RiskLevel::Irreversible, || {
                format!("`{}` is set", shown(name))
            });
        } else if let Some(reading) = read_flag(name) {
            self.always
                .add(reading.level, || format!("`{}` is set", shown(name)));
        }
    }

    fn path(&mut self, name: &str, text: &str) {
        let trimmed = text.trim();
        let wildcard = trimmed.contains(['*', '?']) && !trimmed.contains("://");
        let bare = trimmed.trim_end_matches(['/', '\\']);
        let whole =
            !trimmed.is_empty() && matches!(bare, "" | "~" | "$HOME" | "." | ".." | "C:" | "c:");
        if wildcard || whole {
            self.if_changing.add(RiskLevel::Irreversible, || {
                let reach = if wildcard {
                    "may match many files"
                } else {
                    "is a whole directory tree"
                };
                format!("`{}`: `{}` {reach}", shown(name), shown(text))
            });
        }
    }

    fn amount(&mut self, name: &str, text: &str) {
        let moves = text.chars().any(|c| c.is_numeric() && c != '0');
        if moves {
            self.if_changing.add(RiskLevel::Irreversible, || {
                format!("`{}` is {}", shown(name), shown(text))
            });
        }
    }

    fn recipients_in_text(&mut self, name: &str, text: &str) {
        const GROUPS: [&str; 8] = [
            "all",
            "everyone",
            "@all",
            "@channel",
            "@everyone",
            "@here",
            "everybody",
            "*",
        ];
        let mut count = 0;
        let parts = text.split([',', ';', '\n']).map(str::trim);
        for part in parts.filter(|part| !part.is_empty()) {
            count += 1;
            let local = part.split_once('@').map_or(part, |(local, _)| local);
            let is_group = |text: &str| GROUPS.iter().any(|g| g.eq_ignore_ascii_case(text));
            if is_group(part) || is_group(local) {
                self.if_changing.add(RiskLevel::Irreversible, || {
                    format!("`{}`: `{}` is a group", shown(name), shown(part))
                });
            }
        }
        self.recipients(name, count);
    }

    fn recipients(&mut self, name: &str, count: usize) {
        if count > MANY_RECIPIENTS {
            self.if_changing.add(RiskLevel::Irreversible, || {
                format!("`{}` names {count} recipients", shown(name))
            });
        }
    }
}

/// Whether a list is one command with its arguments; a list called `commands` has several.
fn is_argument_vector(name: &str, items: &[Value]) -> bool {
    let plural = name.to_ascii_lowercase().ends_with('s') && !name.eq_ignore_ascii_case("args");
    !plural && items.iter().all(Value::is_string)
}

fn is_permanent_flag(name: &str) -> bool {
    let words = super::words::split_name(name);
    let joined = words.join("_");
    PERMANENT_FLAGS.contains(&joined.as_str())
        || words.iter().any(|word| {
            matches!(
                word.as_str(),
                "force" | "recursive" | "permanently" | "overwrite"
            )
        }) && !words
            .iter()
            .any(|word| matches!(word.as_str(), "no" | "not" | "without"))
}
