//! Builds tools from Rust functions. The code that `#[tool]` generates calls this, so that the
//! generated code is small.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windlass_spec::{ErrorCategory, Field, Presence, Signature};

use crate::builder::{ToolBuildError, ToolBuilder, ToolProblem};
use crate::error::ToolError;
use crate::tool::Tool;
use crate::tool_type::{Nesting, ToolType, TypeTooDeep};

/// A builder for a tool that is a Rust function.
pub struct NativeTool {
    builder: ToolBuilder,
    parameters: Result<Vec<Field>, TypeTooDeep>,
}

impl NativeTool {
    /// A builder for a tool with this name and description.
    #[must_use]
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            builder: Tool::builder(name).description(description),
            parameters: Ok(Vec::new()),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter<T: ToolType>(mut self, name: &str) -> Self {
        self.parameters = self.parameters.and_then(|mut parameters| {
            parameters.push(T::field(name, Nesting::TOP)?);
            Ok(parameters)
        });
        self
    }

    /// Describes the parameter added last.
    #[must_use]
    pub fn described(self, description: &str) -> Self {
        self.change_last(|field| field.description = Some(description.to_owned()))
    }

    /// Gives the parameter added last a default.
    #[must_use]
    pub fn with_default(self, value: Value) -> Self {
        self.change_last(|field| field.presence = Presence::Default(value))
    }

    fn change_last(mut self, change: impl FnOnce(&mut Field)) -> Self {
        if let Some(field) = self
            .parameters
            .as_mut()
            .ok()
            .and_then(|fields| fields.last_mut())
        {
            change(field);
        }
        self
    }

    /// The tool that returns `T` by running `function`.
    ///
    /// # Errors
    /// If the types or the defaults do not form a signature.
    pub fn returning<T, F, R>(self, function: F) -> Result<Tool, ToolBuildError>
    where
        T: ToolType + Serialize,
        F: Fn(Arguments) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolError>> + Send + 'static,
    {
        let signature = signature::<T>(self.parameters);
        let defaults = signature.as_ref().map(defaults).unwrap_or_default();
        self.builder
            .signature(signature)
            .typed(move |mut given: Map<String, Value>| {
                insert_defaults(&mut given, &defaults);
                function(Arguments(given))
            })
            .build()
    }
}

fn signature<T: ToolType>(
    parameters: Result<Vec<Field>, TypeTooDeep>,
) -> Result<Signature, ToolProblem> {
    Ok(Signature::new(parameters?, T::tool_type(Nesting::TOP)?)?)
}

fn defaults(signature: &Signature) -> Map<String, Value> {
    signature
        .parameters()
        .iter()
        .filter_map(|field| match &field.presence {
            Presence::Default(value) => Some((field.name.clone(), value.clone())),
            Presence::Required | Presence::Optional => None,
        })
        .collect()
}

fn insert_defaults(given: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    for (name, value) in defaults {
        if !given.contains_key(name) {
            given.insert(name.clone(), value.clone());
        }
    }
}

/// The arguments of one call, taken by name.
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Takes the argument with this name.
    ///
    /// # Errors
    /// If it is required and absent, or cannot be deserialized.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ToolError> {
        let refused = |what: String| {
            ToolError::of(
                ErrorCategory::InvalidArguments,
                format!("invalid arguments: {what}"),
            )
            .without_effect()
        };
        match self.0.remove(name) {
            Some(value) => {
                serde_json::from_value(value).map_err(|error| refused(format!("`{name}`: {error}")))
            }
            // As in serde: a type that can be read from null may be absent.
            None => serde_json::from_value(Value::Null)
                .map_err(|_| refused(format!("`{name}` is missing"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{Arguments, insert_defaults};

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn arguments_are_taken_by_name_and_an_absent_option_is_none() {
        let mut arguments = Arguments(object(json!({"limit": 3})));
        assert_eq!(arguments.take::<Option<String>>("query"), Ok(None));
        assert_eq!(arguments.take::<u8>("limit"), Ok(3));
    }

    #[test]
    fn a_missing_or_invalid_argument_is_named() {
        let mut arguments = Arguments(object(json!({"limit": 300})));
        let refused = arguments.take::<u8>("limit").unwrap_err();
        assert_eq!(
            refused.message(),
            "invalid arguments: `limit`: invalid value: integer `300`, expected u8"
        );
        let absent = arguments.take::<String>("query").unwrap_err();
        assert_eq!(absent.message(), "invalid arguments: `query` is missing");
    }

    #[test]
    fn defaults_fill_in_only_absent_arguments() {
        let mut given = object(json!({"limit": 3}));
        insert_defaults(&mut given, &object(json!({"limit": 10, "sort": "name"})));
        assert_eq!(Value::Object(given), json!({"limit": 3, "sort": "name"}));
    }
}
