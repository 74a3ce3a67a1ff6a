//! What can be wrong with a policy file. Every finding says where, in which rule, what, which known
//! names are near, and what to do.

use std::fmt;

/// A place in a policy file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The byte, from 0.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a policy file was refused: one finding of possibly several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// Where; `None` if it is not about the file but about the tools.
    pub place: Option<Place>,
    /// The `@id` of the rule, if it has one.
    pub rule: Option<String>,
    /// What is wrong.
    pub problem: Problem,
    /// Known names near to the one that is not known, the nearest first.
    pub nearest: Vec<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl std::error::Error for PolicyError {}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(rule) = &self.rule {
            write!(f, "rule `{rule}`: ")?;
        }
        write!(f, "{}", self.problem)?;
        if !self.nearest.is_empty() {
            let names: Vec<String> = self
                .nearest
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            write!(f, "; did you mean {}?", names.join(" or "))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// What is wrong with a policy file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not Cedar.
    #[error("{0}")]
    Syntax(String),
    /// A rule has no `@id`, or an empty one.
    #[error("the rule has no @id")]
    MissingId,
    /// Two rules have the same `@id`.
    #[error("the @id is taken by the rule in line {first_line}")]
    DuplicateId {
        /// Where the other rule begins.
        first_line: usize,
    },
    /// A rule has a slot such as `?principal`.
    #[error("the rule is a template, and nothing fills its slots")]
    Template,
    /// An action names no tool and no group of tools.
    #[error("there is no tool and no group of tools `{0}`")]
    UnknownTool(String),
    /// A rule names an argument that a tool does not have, or that cannot be expressed.
    #[error("the tool `{tool}` has no argument `{argument}` that a rule can name")]
    UnknownArgument {
        /// The tool.
        tool: String,
        /// The argument, with the arguments it is part of.
        argument: String,
    },
    /// A rule names an attribute that does not exist.
    #[error("there is no attribute `{0}`")]
    UnknownAttribute(String),
    /// A rule names a type of entity that does not exist.
    #[error("there is no entity type `{0}`")]
    UnknownEntityType(String),
    /// A rule uses what may be absent without asking whether it is there.
    #[error("`{0}` may be absent")]
    MaybeAbsent(String),
    /// A rule compares an attribute with a text it never is.
    #[error("`{attribute}` is never \"{word}\"")]
    UnknownWord {
        /// The attribute.
        attribute: String,
        /// The text.
        word: String,
    },
    /// A rule does with a value what its type does not allow.
    #[error("{0}")]
    WrongType(String),
    /// A rule's conditions can never hold.
    #[error("the rule can never apply to any call")]
    NeverApplies,
    /// An annotation that looks like a known one, misspelt.
    #[error("there is no annotation `@{0}`")]
    UnknownAnnotation(String),
    /// An `@security_level` that is none.
    #[error("`{0}` is no security level")]
    UnknownSecurityLevel(String),
    /// A comment that looks like an example, misspelt.
    #[error("there is no kind of example `@{0}`")]
    UnknownExample(String),
    /// An example that stands after the last rule.
    #[error("the example belongs to no rule")]
    ExampleWithoutRule,
    /// An example that is not JSON.
    #[error("the example is not JSON: {0}")]
    ExampleNotJson(String),
    /// An example that describes no call.
    #[error("the example is no call: {0}")]
    ExampleNotACall(String),
    /// An example that the rule does not treat as it says.
    #[error("the example {example} {outcome}")]
    ExampleFailed {
        /// The example as it is written.
        example: String,
        /// What happened instead.
        outcome: String,
    },
    /// Two different tools of one name.
    #[error("two different tools are called `{0}`")]
    ConflictingTools(String),
    /// A tool with the name of a group of tools.
    #[error("the tool `{0}` has the name of a group of tools")]
    ReservedToolName(String),
    /// Something else the policy language refuses.
    #[error("{0}")]
    Refused(String),
}

/// Something in a policy file that is allowed but probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWarning {
    /// Where.
    pub place: Option<Place>,
    /// The `@id` of the rule.
    pub rule: String,
    /// What it is.
    pub message: String,
}

impl fmt::Display for PolicyWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "rule `{}`: {}", self.rule, self.message)
    }
}

/// Something made here that the policy language refuses. It does not happen as long as what is made
/// here is right.
#[derive(Debug)]
pub(crate) struct Internal(String);

impl Internal {
    pub(crate) fn new(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl From<Internal> for PolicyError {
    fn from(Internal(message): Internal) -> Self {
        Self::new(None, None, Problem::Refused(message))
    }
}

impl PolicyError {
    pub(crate) fn new(place: Option<Place>, rule: Option<&str>, problem: Problem) -> Self {
        Self {
            place,
            rule: rule.map(str::to_owned),
            problem,
            nearest: Vec::new(),
            hint: None,
        }
    }

    /// The same finding with the known names that are near to `name`.
    pub(crate) fn near<'a>(mut self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        /// More names than these help nobody to choose.
        const LIMIT: usize = 3;
        self.nearest = windlass_spec::nearest_all(name, known, LIMIT)
            .into_iter()
            .map(str::to_owned)
            .collect();
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
