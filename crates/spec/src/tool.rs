//! Tool specifications: what a tool is called, what it does, what it takes and gives, and what is
//! declared about its use. Nothing here can run; implementations are bound to it late.

use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::{NonEmptyText, ToolName};
use crate::risk::RiskLevel;
use crate::signature::{Signature, Type};

/// A declared tool. Its JSON Schema is derived from its signature and always in step with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "raw::ToolSpecification", into = "raw::ToolSpecification")]
pub struct ToolSpecification {
    name: ToolName,
    description: NonEmptyText,
    signature: Signature,
    attributes: ToolAttributes,
    schema: Value,
}

impl ToolSpecification {
    /// A specification with nothing declared beyond its signature.
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

    /// What it does, for the model that may choose it.
    #[must_use]
    pub fn description(&self) -> &str {
        self.description.as_str()
    }

    /// What it takes and gives.
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

    /// What is declared about its use.
    #[must_use]
    pub fn attributes(&self) -> &ToolAttributes {
        &self.attributes
    }
}

/// What a specification may declare about a tool's use. `None` means that it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolAttributes {
    /// How reversible a call is.
    pub risk: Option<RiskLevel>,
    /// The category the tool belongs to.
    pub category: Option<NonEmptyText>,
    /// How long a call may take.
    pub timeout_seconds: Option<TimeoutSeconds>,
    /// Whether calling it twice with the same arguments is the same as calling it once.
    pub idempotent: Option<bool>,
    /// Whether its results come from outside the operator's control.
    pub open_world: Option<bool>,
    /// Whether its results are confidential.
    pub sensitive: Option<bool>,
    /// How long a call can be undone before it takes effect.
    pub undo_window_seconds: Option<u32>,
    /// Whether a run may go on while a call is held.
    pub deferred: Option<bool>,
    /// The boolean parameter that makes a call change nothing.
    pub dry_run_argument: Option<String>,
    /// That it is no longer to be used, and what to use instead. Models are not shown it.
    pub deprecated: Option<NonEmptyText>,
}

impl ToolAttributes {
    /// What holds of a tool whose author declares `own`, and of which these are declared: in each the
    /// one that asks for more care, and what only one of them says.
    #[must_use]
    pub fn with_own(&self, own: &Self) -> Self {
        let careful = |said: Option<bool>, own: Option<bool>| match (said, own) {
            (Some(said), Some(own)) => Some(said || own),
            (said, own) => said.or(own),
        };
        // Twice is the same as once only if both say so.
        let both = |said: Option<bool>, own: Option<bool>| match (said, own) {
            (Some(said), Some(own)) => Some(said && own),
            (said, own) => said.or(own),
        };
        Self {
            risk: self.risk.max(own.risk),
            category: self.category.clone().or_else(|| own.category.clone()),
            timeout_seconds: self.timeout_seconds.or(own.timeout_seconds),
            idempotent: both(self.idempotent, own.idempotent),
            open_world: careful(self.open_world, own.open_world),
            sensitive: careful(self.sensitive, own.sensitive),
            undo_window_seconds: self.undo_window_seconds.or(own.undo_window_seconds),
            deferred: self.deferred.or(own.deferred),
            dry_run_argument: self.dry_run_argument.clone(),
            deprecated: self.deprecated.clone().or_else(|| own.deprecated.clone()),
        }
    }
}

/// Why attributes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// `dry_run_argument` names nothing.
    #[error("the dry-run argument `{0}` is not a parameter of the tool")]
    NoSuchParameter(String),
    /// `dry_run_argument` names a parameter that cannot be true.
    #[error("the dry-run argument `{0}` must be of type Bool")]
    NotBoolean(String),
}

/// A tool's time limit: 1 to 300 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct TimeoutSeconds(NonZeroU16);

/// A time limit outside 1 to 300 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a timeout is 1 to 300 seconds")]
pub struct TimeoutOutOfRange;

impl TimeoutSeconds {
    /// The longest time limit.
    pub const MAX: u16 = 300;
    /// The time limit if nobody says.
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
    use serde_json::Value;

    use super::{TimeoutSeconds, ToolAttributes};
    use crate::names::{NonEmptyText, ToolName};
    use crate::risk::RiskLevel;
    use crate::signature::Signature;

    // The attributes stand here one by one because a flattened struct would let misspelt keys pass.
    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct ToolSpecification {
        name: ToolName,
        description: NonEmptyText,
        #[serde(rename = "typeSignature")]
        type_signature: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        risk: Option<RiskLevel>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<NonEmptyText>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_seconds: Option<TimeoutSeconds>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idempotent: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        open_world: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sensitive: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undo_window_seconds: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deferred: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dry_run_argument: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deprecated: Option<NonEmptyText>,
        /// Written for readers; when read, it must be what the signature says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
    }

    impl From<super::ToolSpecification> for ToolSpecification {
        fn from(tool: super::ToolSpecification) -> Self {
            let ToolAttributes {
                risk,
                category,
                timeout_seconds,
                idempotent,
                open_world,
                sensitive,
                undo_window_seconds,
                deferred,
                dry_run_argument,
                deprecated,
            } = tool.attributes;
            Self {
                type_signature: tool.signature.to_string(),
                name: tool.name,
                description: tool.description,
                risk,
                category,
                timeout_seconds,
                idempotent,
                open_world,
                sensitive,
                undo_window_seconds,
                deferred,
                dry_run_argument,
                deprecated,
                schema: Some(tool.schema),
            }
        }
    }

    impl TryFrom<ToolSpecification> for super::ToolSpecification {
        type Error = String;

        fn try_from(raw: ToolSpecification) -> Result<Self, String> {
            let signature = Signature::parse(&raw.type_signature).map_err(|diagnostics| {
                let messages: Vec<_> = diagnostics.into_iter().map(|d| d.message).collect();
                format!("typeSignature of `{}`: {}", raw.name, messages.join("; "))
            })?;
            let attributes = ToolAttributes {
                risk: raw.risk,
                category: raw.category,
                timeout_seconds: raw.timeout_seconds,
                idempotent: raw.idempotent,
                open_world: raw.open_world,
                sensitive: raw.sensitive,
                undo_window_seconds: raw.undo_window_seconds,
                deferred: raw.deferred,
                dry_run_argument: raw.dry_run_argument,
                deprecated: raw.deprecated,
            };
            let tool = Self::new(raw.name, raw.description, signature)
                .with_attributes(attributes)
                .map_err(|error| error.to_string())?;
            match raw.schema {
                Some(schema) if schema != tool.schema => Err(format!(
                    "the schema of `{}` is not the one its typeSignature gives; leave it out",
                    tool.name
                )),
                _ => Ok(tool),
            }
        }
    }
}
