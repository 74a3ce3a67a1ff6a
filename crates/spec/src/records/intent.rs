//! The intent of a user: its type, the confidence, the known parameters, and the suggested tools. Intents
//! are recognised in `windlass-learn`; here are the rules that every intent must satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::confidence::{Confidence, NotAConfidence};
use super::schema;
use crate::names::{NonEmptyText, TextError, ToolName};
use crate::nearest::nearest;
use crate::signature::Misfit;
use crate::tool::ToolSpecification;

/// The intent of a user. Its type is declared, its tools exist, and its parameters fit one of them.
/// [`RawUserIntent::check`] is its only constructor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "RawUserIntent")]
pub struct UserIntent {
    intent_type: String,
    confidence: Confidence,
    parameters: Map<String, Value>,
    context_requirements: Vec<NonEmptyText>,
    suggested_tools: Vec<ToolName>,
    fallback_options: Vec<NonEmptyText>,
}

impl UserIntent {
    /// The type of the intent, one of the declared ones.
    #[must_use]
    pub fn intent_type(&self) -> &str {
        &self.intent_type
    }

    /// The confidence in the type.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// The known values, by the names of a suggested tool's parameters.
    #[must_use]
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// Further required information.
    #[must_use]
    pub fn context_requirements(&self) -> &[NonEmptyText] {
        &self.context_requirements
    }

    /// The suggested tools, best first.
    #[must_use]
    pub fn suggested_tools(&self) -> &[ToolName] {
        &self.suggested_tools
    }

    /// What to do if the tools fail.
    #[must_use]
    pub fn fallback_options(&self) -> &[NonEmptyText] {
        &self.fallback_options
    }
}

/// The intent of a user, before validation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    rename = "UserIntent",
    description = "The intent of a user. The type must be declared, the tools must exist, and the parameters must fit one of them."
)]
pub struct RawUserIntent {
    /// The type of the intent, one of the declared ones.
    #[schemars(with = "schema::Text")]
    pub intent_type: String,
    /// The confidence in the type.
    #[schemars(with = "schema::ZeroToOne")]
    pub confidence: f64,
    /// The known values, by the names of a suggested tool's parameters.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Further required information.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Text>")]
    pub context_requirements: Vec<String>,
    /// The suggested tools, best first.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Name>")]
    pub suggested_tools: Vec<String>,
    /// What to do if the tools fail.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Text>")]
    pub fallback_options: Vec<String>,
}

/// Why an intent is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UserIntentError {
    /// The type is not declared.
    #[error("intent_type: `{found}` is not declared{}", suggestion(.nearest_name))]
    UnknownType {
        /// The stated type.
        found: String,
        /// The most similar declared type.
        nearest_name: Option<String>,
    },
    /// The confidence is out of range.
    #[error("confidence: {0}")]
    Confidence(#[from] NotAConfidence),
    /// A suggested tool does not exist.
    #[error("suggested_tools: there is no tool `{found}`{}", suggestion(.nearest_name))]
    UnknownTool {
        /// The suggested tool.
        found: String,
        /// The most similar tool.
        nearest_name: Option<String>,
    },
    /// The parameters fit none of the suggested tools.
    #[error("parameters: they do not fit `{tool}`: {}", join_misfits(.misfits))]
    Parameters {
        /// The suggested tool that they fit best.
        tool: ToolName,
        /// Where they do not fit.
        misfits: Vec<Misfit>,
    },
    /// There are parameters, but no suggested tool.
    #[error("parameters: there is no suggested tool for them; add one to suggested_tools")]
    ParametersWithoutTool,
    /// A text is empty.
    #[error("{field}: entry {index}: {source}")]
    Text {
        /// The list it is in.
        field: &'static str,
        /// Its position, counted from 1.
        index: usize,
        /// Its error.
        source: TextError,
    },
}

impl RawUserIntent {
    /// Validates an intent against the declared types and the existing tools. A required parameter may
    /// be missing, because users rarely give all values at once; the present ones must fit.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn check<'a>(
        self,
        types: impl IntoIterator<Item = &'a str>,
        tools: impl IntoIterator<Item = &'a ToolSpecification>,
    ) -> Result<UserIntent, UserIntentError> {
        let types: Vec<&str> = types.into_iter().collect();
        if !types.contains(&self.intent_type.as_str()) {
            return Err(UserIntentError::UnknownType {
                nearest_name: nearest(&self.intent_type, types).map(str::to_owned),
                found: self.intent_type,
            });
        }
        let confidence = Confidence::try_from(self.confidence)?;
        let tools: Vec<&ToolSpecification> = tools.into_iter().collect();
        let suggested = suggested(&self.suggested_tools, &tools)?;
        check_parameters(&self.parameters, &suggested)?;
        Ok(UserIntent {
            intent_type: self.intent_type,
            confidence,
            parameters: self.parameters,
            context_requirements: texts("context_requirements", self.context_requirements)?,
            suggested_tools: suggested.iter().map(|tool| tool.name().clone()).collect(),
            fallback_options: texts("fallback_options", self.fallback_options)?,
        })
    }
}

fn suggested<'a>(
    names: &[String],
    tools: &[&'a ToolSpecification],
) -> Result<Vec<&'a ToolSpecification>, UserIntentError> {
    let find = |name: &String| {
        let found = tools.iter().find(|tool| tool.name().as_str() == name);
        found.copied().ok_or_else(|| UserIntentError::UnknownTool {
            found: name.clone(),
            nearest_name: nearest(name, tools.iter().map(|tool| tool.name().as_str()))
                .map(str::to_owned),
        })
    };
    names.iter().map(find).collect()
}

fn check_parameters(
    parameters: &Map<String, Value>,
    suggested: &[&ToolSpecification],
) -> Result<(), UserIntentError> {
    if parameters.is_empty() {
        return Ok(());
    }
    let nearest = suggested
        .iter()
        .map(|tool| (tool, misfits(parameters, tool)))
        .min_by_key(|(_, misfits)| misfits.len());
    match nearest {
        None => Err(UserIntentError::ParametersWithoutTool),
        Some((_, misfits)) if misfits.is_empty() => Ok(()),
        Some((tool, misfits)) => Err(UserIntentError::Parameters {
            tool: tool.name().clone(),
            misfits,
        }),
    }
}

/// Where the given parameters do not fit a tool.
fn misfits(parameters: &Map<String, Value>, tool: &ToolSpecification) -> Vec<Misfit> {
    let of_one = |(name, value): (&String, &Value)| {
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        match tool.signature().parameter(name) {
            Some(field) => {
                let mut misfits = field.ty.misfits(value);
                for misfit in &mut misfits {
                    misfit.pointer.insert_str(0, &pointer);
                }
                misfits
            }
            None => vec![Misfit {
                pointer,
                expected: "no such key".to_owned(),
                found: "a value".to_owned(),
            }],
        }
    };
    parameters.iter().flat_map(of_one).collect()
}

fn texts(field: &'static str, list: Vec<String>) -> Result<Vec<NonEmptyText>, UserIntentError> {
    let check = |(index, text): (usize, String)| {
        NonEmptyText::new(text).map_err(|source| UserIntentError::Text {
            field,
            index: index + 1,
            source,
        })
    };
    list.into_iter().enumerate().map(check).collect()
}

fn suggestion(nearest_name: &Option<String>) -> String {
    nearest_name
        .as_ref()
        .map_or_else(String::new, |nearest_name| {
            format!("; did you mean `{nearest_name}`?")
        })
}

fn join_misfits(misfits: &[Misfit]) -> String {
    let messages: Vec<String> = misfits.iter().map(ToString::to_string).collect();
    messages.join("; ")
}

impl From<UserIntent> for RawUserIntent {
    fn from(intent: UserIntent) -> Self {
        let strings = |list: Vec<NonEmptyText>| list.into_iter().map(String::from).collect();
        Self {
            intent_type: intent.intent_type,
            confidence: intent.confidence.get(),
            parameters: intent.parameters,
            context_requirements: strings(intent.context_requirements),
            suggested_tools: intent
                .suggested_tools
                .into_iter()
                .map(String::from)
                .collect(),
            fallback_options: strings(intent.fallback_options),
        }
    }
}
