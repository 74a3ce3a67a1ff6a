//! An operator's configuration of one tool, and its resolution for one environment.

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

/// The configuration of one tool. [`ToolConfiguration::misfits`] checks the parameters against the
/// tool's signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolConfiguration {
    /// The tool.
    #[schemars(with = "schema::Name")]
    pub tool_name: ToolName,
    /// Whether it can be used.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The values of parameters that a call omits.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The overrides for single environments.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Override>")]
    pub environment_overrides: BTreeMap<Environment, Override>,
    /// Its rate limits.
    #[serde(default)]
    pub rate_limits: RateLimits,
    /// The time limit of a call; by default that of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Timeout>")]
    pub timeout_seconds: Option<TimeoutSeconds>,
}

/// The overrides for one environment; absent fields keep the general setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Override {
    /// Whether the tool can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Values of parameters; each replaces the general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// Rate limits; each replaces the general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// The time limit of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Timeout>")]
    pub timeout_seconds: Option<TimeoutSeconds>,
}

/// The configuration of a tool, resolved for one environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Whether it can be used.
    pub enabled: bool,
    /// The values of parameters that a call omits.
    pub parameters: Map<String, Value>,
    /// Its rate limits.
    pub rate_limits: RateLimits,
    /// The time limit of a call, if set.
    pub timeout_seconds: Option<TimeoutSeconds>,
}

fn yes() -> bool {
    true
}

impl ToolConfiguration {
    /// A configuration without settings.
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

    /// The configuration in an environment: its override where set, otherwise the general setting.
    #[must_use]
    pub fn resolved(&self, environment: &Environment) -> Resolved {
        let mut resolved = Resolved {
            enabled: self.enabled,
            parameters: self.parameters.clone(),
            rate_limits: self.rate_limits.clone(),
            timeout_seconds: self.timeout_seconds,
        };
        if let Some(overrides) = self.environment_overrides.get(environment) {
            resolved.enabled = overrides.enabled.unwrap_or(resolved.enabled);
            resolved
                .parameters
                .extend(overrides.parameters.clone().unwrap_or_default());
            if let Some(limits) = &overrides.rate_limits {
                resolved.rate_limits = resolved.rate_limits.overridden_by(limits);
            }
            resolved.timeout_seconds = overrides.timeout_seconds.or(resolved.timeout_seconds);
        }
        resolved
    }

    /// Every place where a parameter, in general or in one environment, does not exist in the tool or
    /// does not have its type; empty if all fit.
    #[must_use]
    pub fn misfits(&self, signature: &Signature) -> Vec<Misfit> {
        let mut found = misfits_of(signature, &self.parameters, "/parameters");
        for (environment, overrides) in &self.environment_overrides {
            let place = format!("/environment_overrides/{environment}/parameters");
            let parameters = overrides.parameters.iter();
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
