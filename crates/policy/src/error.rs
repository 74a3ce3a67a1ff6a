//! Errors in a policy file. Each has the location, the rule, the problem, similar known names, and a
//! hint.

use std::fmt;

/// A position in a policy file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyPosition {
    /// The byte offset, from 0.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for PolicyPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a policy file was refused: one of possibly several errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// Where; `None` if it is about the tools and not the file.
    pub place: Option<PolicyPosition>,
    /// The `@id` of the rule, if it has one.
    pub rule: Option<String>,
    /// The problem.
    pub problem: Problem,
    /// Known names similar to the unknown one, most similar first.
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

/// A problem in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A syntax error.
    #[error("{0}")]
    Syntax(String),
    /// A rule has no `@id`, or an empty one.
    #[error("the rule has no @id")]
    MissingId,
    /// Two rules have the same `@id`.
    #[error("the @id is already used by the rule in line {first_line}")]
    DuplicateId {
        /// The line of the other rule.
        first_line: usize,
    },
    /// A rule has a slot such as `?principal`.
    #[error("the rule is a template, and templates are not supported")]
    Template,
    /// An action names no tool and no group of tools.
    #[error("there is no tool and no group of tools `{0}`")]
    UnknownTool(String),
    /// A rule names an argument that a tool does not have, or that cannot be represented.
    #[error("the tool `{tool}` has no argument `{argument}` that a rule can name")]
    UnknownArgument {
        /// The tool.
        tool: String,
        /// The argument, with the arguments that contain it.
        argument: String,
    },
    /// A rule names an attribute that does not exist.
    #[error("there is no attribute `{0}`")]
    UnknownAttribute(String),
    /// A rule names an entity type that does not exist.
    #[error("there is no entity type `{0}`")]
    UnknownEntityType(String),
    /// A rule uses an optional attribute without checking that it is present.
    #[error("`{0}` may be absent")]
    MaybeAbsent(String),
    /// A rule compares an attribute with a text that it can never have.
    #[error("`{attribute}` is never \"{word}\"")]
    UnknownWord {
        /// The attribute.
        attribute: String,
        /// The text.
        word: String,
    },
    /// A rule uses a value in a way that its type does not allow.
    #[error("{0}")]
    WrongType(String),
    /// A rule's conditions can never hold.
    #[error("the rule can never apply to any call")]
    NeverApplies,
    /// An annotation that looks like a misspelt known one.
    #[error("there is no annotation `@{0}`")]
    UnknownAnnotation(String),
    /// An `@security_level` that is invalid.
    #[error("`{0}` is not a security level")]
    UnknownSecurityLevel(String),
    /// An annotation about approvers that is invalid.
    #[error("the annotation `@{0}` cannot be read")]
    InvalidAnnotation(String),
    /// An `@escalate` in a rule without `@approvers`.
    #[error("the rule escalates, and names no group that has to approve")]
    EscalationWithoutGroup,
    /// A rule names a group of approvers that does not exist.
    #[error("there is no group of approvers `{0}`")]
    UnknownGroup(String),
    /// A comment that looks like a misspelt example.
    #[error("there is no kind of example `@{0}`")]
    UnknownExample(String),
    /// An example after the last rule.
    #[error("the example does not belong to a rule")]
    ExampleWithoutRule,
    /// An example that is not JSON.
    #[error("the example is not JSON: {0}")]
    ExampleNotJson(String),
    /// An example that does not describe a call.
    #[error("the example is not a call: {0}")]
    ExampleNotACall(String),
    /// An example that the rule does not treat as expected.
    #[error("the example {example} {outcome}")]
    ExampleFailed {
        /// The example as it is written.
        example: String,
        /// The actual result.
        outcome: String,
    },
    /// Two different tools have the same name.
    #[error("two different tools have the name `{0}`")]
    ConflictingTools(String),
    /// A tool has the name of a group of tools.
    #[error("the tool `{0}` has the name of a group of tools")]
    ReservedToolName(String),
    /// Any other error of Cedar.
    #[error("{0}")]
    Refused(String),
}

/// Something in a policy file that is allowed but probably unintended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWarning {
    /// Where.
    pub place: Option<PolicyPosition>,
    /// The `@id` of the rule.
    pub rule: String,
    /// The message.
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

/// An internal error: Cedar refused something that this crate generated.
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
    pub(crate) fn new(place: Option<PolicyPosition>, rule: Option<&str>, problem: Problem) -> Self {
        Self {
            place,
            rule: rule.map(str::to_owned),
            problem,
            nearest: Vec::new(),
            hint: None,
        }
    }

    /// The same error with the known names that are similar to `name`.
    pub(crate) fn near<'a>(mut self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        /// The maximum number of suggestions.
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
