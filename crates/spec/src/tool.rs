//! Tool specifications: the name, description, signature and declared attributes of a tool.
//! Implementations are bound to them later.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::{NonEmptyText, ToolName};
use crate::risk::RiskLevel;
use crate::signature::{Signature, Type};
use crate::words::words;

/// A declared tool. Its JSON Schema is derived from its signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "raw::ToolSpecification", into = "raw::ToolSpecification")]
pub struct ToolSpecification {
    name: ToolName,
    description: NonEmptyText,
    signature: Signature,
    attributes: ToolAttributes,
    schema: Value,
}

/// A description that is too short or too long for a model to choose by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the description has {0} characters; it must have {least} to {most}",
    least = ToolSpecification::DESCRIPTION_LENGTH.start(),
    most = ToolSpecification::DESCRIPTION_LENGTH.end()
)]
pub struct DescriptionLength(pub usize);

impl ToolSpecification {
    /// The allowed length of a description that an operator writes, in characters.
    pub const DESCRIPTION_LENGTH: std::ops::RangeInclusive<usize> = 10..=500;

    /// Checks the length of a description. Those of imported tools can have any.
    ///
    /// # Errors
    /// If it is too short or too long.
    pub fn check_description(description: &str) -> Result<(), DescriptionLength> {
        match description.chars().count() {
            length if Self::DESCRIPTION_LENGTH.contains(&length) => Ok(()),
            length => Err(DescriptionLength(length)),
        }
    }

    /// A specification without attributes.
    #[must_use]
    pub fn new(name: ToolName, description: NonEmptyText, signature: Signature) -> Self {
        Self {
            schema: signature.parameters_schema(),
            name,
            description,
            signature,
            attributes: ToolAttributes::default(),
        }
    }

    /// The same specification with these attributes.
    ///
    /// # Errors
    /// If the attributes do not fit the signature.
    pub fn with_attributes(mut self, attributes: ToolAttributes) -> Result<Self, AttributeError> {
        if let Some(argument) = &attributes.dry_run_argument {
            let parameter = self
                .signature
                .parameter(argument)
                .ok_or_else(|| AttributeError::NoSuchParameter(argument.clone()))?;
            if parameter.ty != Type::Boolean {
                return Err(AttributeError::NotBoolean(argument.clone()));
            }
        }
        self.attributes = attributes;
        Ok(self)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// Its description, which models choose it by.
    #[must_use]
    pub fn description(&self) -> &str {
        self.description.as_str()
    }

    /// Its parameters and its result.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The JSON Schema of its result.
    #[must_use]
    pub fn returns_schema(&self) -> Value {
        self.signature.returns_schema()
    }

    /// Its declared attributes.
    #[must_use]
    pub fn attributes(&self) -> &ToolAttributes {
        &self.attributes
    }
}

/// The attributes that a specification may declare. `None` means not declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAttributes {
    /// How reversible a call is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<RiskLevel>,
    /// The category the tool belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<NonEmptyText>,
    /// The time limit of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<TimeoutSeconds>,
    /// Whether calling it twice with the same arguments is the same as calling it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether a result may answer the same call later in the run. Without a declaration, results of
    /// reversible calls may, except those of clocks. Results from outside never do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cacheable: Option<bool>,
    /// Whether its results come from outside the operator's control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Whether its results are confidential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<bool>,
    /// How long a call is held, and can be undone, before it takes effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo_window_seconds: Option<u32>,
    /// Whether a run may continue while a call is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred: Option<bool>,
    /// The boolean parameter that makes a call a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run_argument: Option<String>,
    /// Whether its answers are read as envelopes. By default they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<EnvelopeUse>,
    /// That the tool is deprecated, and what to use instead. Models are not shown a deprecated tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<NonEmptyText>,
    /// Data of the author for people and programs. It has no effect.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl ToolAttributes {
    /// Merges these attributes with those the tool's author declares, `own`. Where both declare one, the
    /// safer value or that of `self` wins.
    #[must_use]
    pub fn merged_with(&self, own: &Self) -> Self {
        let either = |declared: Option<bool>, own: Option<bool>| match (declared, own) {
            (Some(declared), Some(own)) => Some(declared || own),
            (declared, own) => declared.or(own),
        };
        // A tool is idempotent or cacheable only if no declaration denies it.
        let both = |declared: Option<bool>, own: Option<bool>| match (declared, own) {
            (Some(declared), Some(own)) => Some(declared && own),
            (declared, own) => declared.or(own),
        };
        Self {
            risk: self.risk.max(own.risk),
            category: self.category.clone().or_else(|| own.category.clone()),
            timeout_seconds: self.timeout_seconds.or(own.timeout_seconds),
            idempotent: both(self.idempotent, own.idempotent),
            cacheable: both(self.cacheable, own.cacheable),
            open_world: either(self.open_world, own.open_world),
            sensitive: either(self.sensitive, own.sensitive),
            undo_window_seconds: self.undo_window_seconds.or(own.undo_window_seconds),
            deferred: self.deferred.or(own.deferred),
            dry_run_argument: self.dry_run_argument.clone(),
            envelope: self.envelope.max(own.envelope),
            deprecated: self.deprecated.clone().or_else(|| own.deprecated.clone()),
            metadata: {
                let mut metadata = own.metadata.clone();
                metadata.extend(self.metadata.clone());
                metadata
            },
        }
    }
}

words! {
    /// Whether the answers of a tool are read as envelopes.
    EnvelopeUse, "use of the envelope" {
        /// If they are one, in its present or an older shape.
        Auto = "auto",
        /// Never: the data of the tool only looks like one.
        Never = "never",
    }
}

/// Why attributes are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// `dry_run_argument` names no parameter.
    #[error("the dry-run argument `{0}` is not a parameter of the tool")]
    NoSuchParameter(String),
    /// `dry_run_argument` names a parameter that is not boolean.
    #[error("the dry-run argument `{0}` must be of type Bool")]
    NotBoolean(String),
}

/// A tool's time limit: 1 to 300 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct TimeoutSeconds(NonZeroU16);

/// A time limit outside 1 to 300 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a timeout must be 1 to 300 seconds")]
pub struct TimeoutOutOfRange;

impl TimeoutSeconds {
    /// The longest time limit.
    pub const MAX: u16 = 300;
    /// The default time limit.
    pub const DEFAULT: Self = Self(match NonZeroU16::new(30) {
        Some(seconds) => seconds,
        None => NonZeroU16::MIN,
    });

    /// The number of seconds.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0.get()
    }
}

impl TryFrom<i64> for TimeoutSeconds {
    type Error = TimeoutOutOfRange;

    fn try_from(seconds: i64) -> Result<Self, TimeoutOutOfRange> {
        u16::try_from(seconds)
            .ok()
            .filter(|&seconds| seconds <= Self::MAX)
            .and_then(NonZeroU16::new)
            .map(Self)
            .ok_or(TimeoutOutOfRange)
    }
}

impl From<TimeoutSeconds> for i64 {
    fn from(timeout: TimeoutSeconds) -> Self {
        Self::from(timeout.get())
    }
}

mod raw {
    //! The JSON form of a specification, before it is checked.

    use serde::{Deserialize, Serialize};
    use serde_json::{Map, Value};

    use super::ToolAttributes;
    use crate::names::{NonEmptyText, ToolName};
    use crate::signature::Signature;

    #[derive(Serialize, Deserialize)]
    pub(super) struct ToolSpecification {
        name: ToolName,
        description: NonEmptyText,
        #[serde(rename = "typeSignature")]
        type_signature: String,
        #[serde(flatten)]
        attributes: ToolAttributes,
        /// Written for readers. When read, it must be the schema of the signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        /// Other keys, which are refused: a misspelt attribute must not pass unnoticed.
        #[serde(flatten)]
        unknown: Map<String, Value>,
    }

    impl From<super::ToolSpecification> for ToolSpecification {
        fn from(tool: super::ToolSpecification) -> Self {
            Self {
                type_signature: tool.signature.to_string(),
                name: tool.name,
                description: tool.description,
                attributes: tool.attributes,
                schema: Some(tool.schema),
                unknown: Map::new(),
            }
        }
    }

    impl TryFrom<ToolSpecification> for super::ToolSpecification {
        type Error = String;

        fn try_from(raw: ToolSpecification) -> Result<Self, String> {
            if let Some(key) = raw.unknown.keys().next() {
                return Err(format!("unknown field `{key}` of the tool `{}`", raw.name));
            }
            let signature = Signature::parse(&raw.type_signature).map_err(|diagnostics| {
                let messages: Vec<_> = diagnostics.into_iter().map(|d| d.message).collect();
                format!("typeSignature of `{}`: {}", raw.name, messages.join("; "))
            })?;
            let tool = Self::new(raw.name, raw.description, signature)
                .with_attributes(raw.attributes)
                .map_err(|error| error.to_string())?;
            match raw.schema {
                Some(schema) if schema != tool.schema => Err(format!(
                    "the schema of `{}` does not match its typeSignature; remove the schema",
                    tool.name
                )),
                _ => Ok(tool),
            }
        }
    }
}
