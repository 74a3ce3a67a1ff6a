//! The sources that set the base risk of a tool.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::text::{TextUse, replace_hidden};
use windlass_spec::{RiskLevel, ToolSpecification};

use super::{Assessment, Evidence, Source, reading};

/// What is known of a tool for its risk. Unknown fields keep their defaults.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub schema: Option<&'a Value>,
    /// The operator's override.
    pub operator_override: Option<RiskLevel>,
    /// The least risk, whatever the other sources are.
    pub at_least: Option<RiskLevel>,
    /// The risk that its specification declares.
    pub declared: Option<RiskLevel>,
    /// The argument that makes a call a dry run, by its specification.
    pub dry_run_argument: Option<&'a str>,
    /// The annotations of the MCP server it comes from.
    pub annotations: Annotations,
    /// Whether the operator trusts that server.
    pub trust: Trust,
    /// Whether it comes from a server, so that its name and description are the server's.
    pub is_from_server: bool,
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

/// The hints by which an MCP server describes a tool. `None` means that a hint is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only_hint: Option<bool>,
    /// The tool may be destructive; that is the default if the hint is absent.
    pub destructive_hint: Option<bool>,
}

/// Whether the operator trusts a server's descriptions of its own tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// They may set the base.
    Trusted,
    /// They may only raise it.
    #[default]
    Untrusted,
}

/// The assessment before the arguments are known.
pub(super) fn base(tool: &KnownTool<'_>) -> Assessment {
    let operator = tool.operator_override.map(|level| {
        let what = "the operator set it";
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
    // An untrusted server may name anything `get_...`, so its words do not lower the risk.
    let is_trusted = !tool.is_from_server || tool.trust == Trust::Trusted;
    let words = is_trusted
        .then(|| reading::read(tool.name, tool.description))
        .flatten()
        .map(|reading| Evidence::new(Source::Words, reading.level, reading.what));

    let mut applicable = [operator, declared, trusted, method, words]
        .into_iter()
        .flatten();
    let first = applicable.next().unwrap_or_else(|| {
        let what = "nothing is known about the tool";
        Evidence::new(Source::Nothing, RiskLevel::Irreversible, what)
    });
    let mut assessment = Assessment {
        level: first.level,
        source: first.source,
        evidence: vec![first],
    };
    for evidence in applicable {
        // POST states a change, but not whether it can be undone. The words state that.
        let can_raise = assessment.source == Source::HttpMethod
            && assessment.level == RiskLevel::ReversibleWithDelay
            && evidence.source == Source::Words;
        if can_raise {
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
    if let Some(level) = tool.at_least {
        let what = "the project raises it";
        assessment.raise(Evidence::new(Source::Override, level, what));
    }
    assessment
}

/// The level of a request with that HTTP method; `None` if the method is unknown.
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

/// The finding for a trusted server. Absent hints have the protocol's defaults, which are the dangerous
/// ones. Without any hint there is no finding.
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
            "it is annotated as changing, and not as non-destructive",
        ),
    };
    Some(Evidence::new(Source::TrustedAnnotations, level, what))
}

/// The finding for an untrusted server. Only explicit hints count, not the protocol's defaults, and
/// hints that make the tool look harmless are ignored.
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

/// A foreign text for people: shortened, and without control characters.
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
