//! What an operator sets for one tool, and what of it holds in one environment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::environment::Environment;
use super::limits::RateLimits;
use super::schema;
use crate::names::ToolName;
use crate::nearest::nearest;
use crate::signature::{Misfit, Signature};
use crate::tool::TimeoutSeconds;

/// What is set for one tool. That the parameters fit the tool is checked where its specification is
/// at hand, with [`ToolConfiguration::misfits`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolConfiguration {
    /// The tool.
    #[schemars(with = "schema::Name")]
    pub tool_name: ToolName,
    /// Whether it can be used.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The values that its parameters have when a call leaves them out.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// What is different in some environments.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Override>")]
    pub environment_overrides: BTreeMap<Environment, Override>,
    /// How often it may be called.
    #[serde(default)]
    pub rate_limits: RateLimits,
    /// How long a call may take; what the specification says if this does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Timeout>")]
    pub timeout_seconds: Option<TimeoutSeconds>,
}

/// What is different in one environment; what is left out is as everywhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Override {
    /// Whether the tool can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Values of parameters, each in the place of the one set everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// Limits, each in the place of the one set everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// How long a call may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Timeout>")]
    pub timeout_seconds: Option<TimeoutSeconds>,
}

/// What holds for a tool in one environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Whether it can be used.
    pub enabled: bool,
    /// The values that its parameters have when a call leaves them out.
    pub parameters: Map<String, Value>,
    /// How often it may be called.
    pub rate_limits: RateLimits,
    /// How long a call may take, if that is set.
    pub timeout_seconds: Option<TimeoutSeconds>,
}

fn yes() -> bool {
    true
}

impl ToolConfiguration {
    /// Nothing set for a tool.
    #[must_use]
    pub fn new(tool_name: ToolName) -> Self {
        Self {
            tool_name,
            enabled: true,
            parameters: Map::new(),
            environment_overrides: BTreeMap::new(),
            rate_limits: RateLimits::none(),
            timeout_seconds: None,
        }
    }

    /// What holds in an environment: what its override says, else what is set everywhere.
    #[must_use]
    pub fn resolved(&self, environment: &Environment) -> Resolved {
        let mut resolved = Resolved {
            enabled: self.enabled,
            parameters: self.parameters.clone(),
            rate_limits: self.rate_limits.clone(),
            timeout_seconds: self.timeout_seconds,
        };
        if let Some(different) = self.environment_overrides.get(environment) {
            resolved.enabled = different.enabled.unwrap_or(resolved.enabled);
            resolved
                .parameters
                .extend(different.parameters.clone().unwrap_or_default());
            if let Some(limits) = &different.rate_limits {
                resolved.rate_limits = resolved.rate_limits.overridden_by(limits);
            }
            resolved.timeout_seconds = different.timeout_seconds.or(resolved.timeout_seconds);
        }
        resolved
    }

    /// Every place where a parameter, everywhere or in one environment, is not one of the tool's or
    /// does not have its type; none if all fit.
    #[must_use]
    pub fn misfits(&self, signature: &Signature) -> Vec<Misfit> {
        let mut found = misfits_of(signature, &self.parameters, "/parameters");
        for (environment, different) in &self.environment_overrides {
            let place = format!("/environment_overrides/{environment}/parameters");
            let parameters = different.parameters.iter();
            found.extend(parameters.flat_map(|given| misfits_of(signature, given, &place)));
        }
        found
    }
}

fn misfits_of(signature: &Signature, parameters: &Map<String, Value>, place: &str) -> Vec<Misfit> {
    let mut found = Vec::new();
    for (name, value) in parameters {
        let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
        match signature.parameter(name) {
            Some(parameter) => {
                let misfits = parameter.ty.misfits(value).into_iter();
                found.extend(misfits.map(|misfit| Misfit {
                    pointer: format!("{place}{}", misfit.pointer),
                    ..misfit
                }));
            }
            None => {
                let known = signature
                    .parameters()
                    .iter()
                    .map(|field| field.name.as_str());
                let meant = nearest(name, known);
                found.push(Misfit {
                    pointer: place,
                    expected: meant.map_or("no such parameter".to_owned(), |meant| {
                        format!("no such parameter (did you mean `{meant}`?)")
                    }),
                    found: value.to_string().chars().take(60).collect(),
                });
            }
        }
    }
    found
}
