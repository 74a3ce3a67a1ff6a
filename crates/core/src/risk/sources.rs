//! The sources that set the base of a tool's risk, and what each of them says.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::text::{TextUse, replace_hidden};
use windlass_spec::{RiskLevel, ToolSpecification};

use super::{Assessment, Evidence, Source, reading};

/// What is known of a tool that bears on its risk. Whatever is not known is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is said of it.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub schema: Option<&'a Value>,
    /// What the operator says of its risk.
    pub operator_override: Option<RiskLevel>,
    /// What its specification declares.
    pub declared: Option<RiskLevel>,
    /// The argument that, by its specification, makes a call change nothing.
    pub dry_run_argument: Option<&'a str>,
    /// The annotations of the MCP server it comes from.
    pub annotations: Annotations,
    /// Whether the operator trusts that server.
    pub trust: Trust,
    /// Whether it comes from a server, so that its name and description are the server's words.
    pub is_of_server: bool,
    /// The method of the HTTP request it makes.
    pub http_method: Option<&'a str>,
}

impl<'a> KnownTool<'a> {
    /// A tool of which only the name is known.
    #[must_use]
    pub fn named(name: &'a str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// A tool of which the specification is known.
    #[must_use]
    pub fn specified(specification: &'a ToolSpecification) -> Self {
        let attributes = specification.attributes();
        Self {
            name: specification.name().as_str(),
            description: specification.description(),
            schema: Some(specification.schema()),
            declared: attributes.risk,
            dry_run_argument: attributes.dry_run_argument.as_deref(),
            ..Self::default()
        }
    }
}

/// The hints by which an MCP server describes a tool. `None` means that it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only_hint: Option<bool>,
    /// The tool may destroy; if it does not say, it may.
    pub destructive_hint: Option<bool>,
}

/// Whether the operator trusts what a server says of its own tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// What it says may set the base.
    Trusted,
    /// What it says may only raise.
    #[default]
    Untrusted,
}

/// What the sources say before there are any arguments.
pub(super) fn base(tool: &KnownTool<'_>) -> Assessment {
    let operator = tool.operator_override.map(|level| {
        let what = "the operator says so";
        Evidence::new(Source::Override, level, what)
    });
    let declared = tool.declared.map(|level| {
        let what = "the specification declares it";
        Evidence::new(Source::Declaration, level, what)
    });
    let trusted = match tool.trust {
        Trust::Trusted => trusted(tool.annotations),
        Trust::Untrusted => None,
    };
    let method = tool.http_method.map(|method| {
        let level = of_http_method(method).unwrap_or(RiskLevel::Irreversible);
        let what = format!("the HTTP method is {}", shown(method));
        Evidence::new(Source::HttpMethod, level, what)
    });
    // A server that is not trusted may call anything `get_...`: its words lower nothing.
    let is_believed = !tool.is_of_server || tool.trust == Trust::Trusted;
    let words = is_believed
        .then(|| reading::read(tool.name, tool.description))
        .flatten()
        .map(|reading| Evidence::new(Source::Words, reading.level, reading.what));

    let mut spoke = [operator, declared, trusted, method, words]
        .into_iter()
        .flatten();
    let first = spoke.next().unwrap_or_else(|| {
        let what = "nothing is known of what it does";
        Evidence::new(Source::Nothing, RiskLevel::Irreversible, what)
    });
    let mut assessment = Assessment {
        level: first.level,
        source: first.source,
        evidence: vec![first],
    };
    for evidence in spoke {
        // POST says that something changes, not whether it can be changed back. The words do.
        let open = assessment.source == Source::HttpMethod
            && assessment.level == RiskLevel::ReversibleWithDelay
            && evidence.source == Source::Words;
        if open {
            assessment.raise(evidence);
        } else {
            assessment.evidence.push(evidence);
        }
    }
    if tool.trust == Trust::Untrusted
        && let Some(evidence) = untrusted(tool.annotations)
    {
        if assessment.source == Source::Override {
            assessment.evidence.push(evidence);
        } else {
            assessment.raise(evidence);
        }
    }
    assessment
}

/// The level of a request with that method; `None` if it is no method anyone knows.
pub(super) fn of_http_method(method: &str) -> Option<RiskLevel> {
    let is_one_of = |methods: &[&str]| methods.iter().any(|m| m.eq_ignore_ascii_case(method));
    if is_one_of(&["GET", "HEAD", "OPTIONS", "QUERY", "PROPFIND"]) {
        Some(RiskLevel::Reversible)
    } else if is_one_of(&["POST", "PUT", "PATCH"]) {
        Some(RiskLevel::ReversibleWithDelay)
    } else if is_one_of(&["DELETE", "PURGE"]) {
        Some(RiskLevel::Irreversible)
    } else {
        None
    }
}

/// What a trusted server says. Hints it leaves out have the protocol's defaults, which are the
/// dangerous ones; a server that gives none of them has said nothing.
fn trusted(annotations: Annotations) -> Option<Evidence> {
    let Annotations {
        read_only_hint,
        destructive_hint,
    } = annotations;
    let (level, what) = match (read_only_hint, destructive_hint) {
        (None, None) => return None,
        (Some(true), _) => (RiskLevel::Reversible, "it is annotated as only reading"),
        (_, Some(false)) => (
            RiskLevel::ReversibleWithDelay,
            "it is annotated as changing without destroying",
        ),
        (_, Some(true)) => (RiskLevel::Irreversible, "it is annotated as destructive"),
        (Some(false), None) => (
            RiskLevel::Irreversible,
            "it is annotated as changing, and not as sparing what is there",
        ),
    };
    Some(Evidence::new(Source::TrustedAnnotations, level, what))
}

/// What an untrusted server admits. Only what it says itself counts, not the protocol's defaults,
/// and what would make the tool look harmless does not count at all.
fn untrusted(annotations: Annotations) -> Option<Evidence> {
    let (level, what) = if annotations.destructive_hint == Some(true) {
        (RiskLevel::Irreversible, "it is annotated as destructive")
    } else if annotations.read_only_hint == Some(false) {
        (
            RiskLevel::ReversibleWithDelay,
            "it is annotated as changing",
        )
    } else {
        return None;
    };
    Some(Evidence::new(Source::UntrustedAnnotations, level, what))
}

/// A foreign word for people: short, and without anything that could steer a terminal.
pub(super) fn shown(text: &str) -> String {
    const MAX_SHOWN: usize = 40;
    let beginning: String = text.chars().take(MAX_SHOWN).collect();
    let shown = replace_hidden(&beginning, TextUse::Name, |_, hidden, shown| {
        shown.extend(hidden.chars().map(|_| '\u{fffd}'));
    });
    match beginning.len() < text.len() {
        true => format!("{shown}…"),
        false => shown.into_owned(),
    }
}
