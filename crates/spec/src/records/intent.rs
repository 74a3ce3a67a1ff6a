//! What a person wants, as it was understood: the kind of intent, how surely, what of it is known
//! already, and which tools could serve it. Understanding is done elsewhere; here is what must hold
//! of it whoever does it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::confidence::{Confidence, NotAConfidence};
use super::schema;
use crate::names::{NonEmptyText, TextError, ToolName};
use crate::nearest::nearest;
use crate::signature::Misfit;
use crate::tool::ToolSpecification;

/// What a person wants. Its type is one that is declared, its tools exist, and its parameters fit one
/// of them; there is no other way to make one than [`RawUserIntent::check`].
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
    /// Which of the declared intents it is.
    #[must_use]
    pub fn intent_type(&self) -> &str {
        &self.intent_type
    }

    /// How likely that is right.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// What was said already, by the names of a suggested tool's parameters.
    #[must_use]
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// What must be known besides.
    #[must_use]
    pub fn context_requirements(&self) -> &[NonEmptyText] {
        &self.context_requirements
    }

    /// The tools that could serve it, best first.
    #[must_use]
    pub fn suggested_tools(&self) -> &[ToolName] {
        &self.suggested_tools
    }

    /// What to do if they fail.
    #[must_use]
    pub fn fallback_options(&self) -> &[NonEmptyText] {
        &self.fallback_options
    }
}

/// What a person wants, before it is checked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    rename = "UserIntent",
    description = "What a person wants, as it was understood. The type must be declared, the tools must exist, and the parameters must fit one of them."
)]
pub struct RawUserIntent {
    /// Which of the declared intents it is.
    #[schemars(with = "schema::Text")]
    pub intent_type: String,
    /// How likely that is right.
    #[schemars(with = "schema::ZeroToOne")]
    pub confidence: f64,
    /// What was said already, by the names of a suggested tool's parameters.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// What must be known besides.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Text>")]
    pub context_requirements: Vec<String>,
    /// The tools that could serve it, best first.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Name>")]
    pub suggested_tools: Vec<String>,
    /// What to do if they fail.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Text>")]
    pub fallback_options: Vec<String>,
}

/// Why something is no intent of a person.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UserIntentError {
    /// The type is not declared.
    #[error("intent_type: `{found}` is not declared{}", suggestion(.meant))]
    UnknownType {
        /// The type that was stated.
        found: String,
        /// The declared type most like it.
        meant: Option<String>,
    },
    /// The confidence is out of range.
    #[error("confidence: {0}")]
    Confidence(#[from] NotAConfidence),
    /// A suggested tool does not exist.
    #[error("suggested_tools: there is no tool `{found}`{}", suggestion(.meant))]
    UnknownTool {
        /// The tool that was suggested.
        found: String,
        /// The tool most like it.
        meant: Option<String>,
    },
    /// The parameters fit none of the suggested tools.
    #[error("parameters: they do not fit `{tool}`: {}", listed(.misfits))]
    Parameters {
        /// The suggested tool they are nearest to fitting.
        tool: ToolName,
        /// Where they do not fit.
        misfits: Vec<Misfit>,
    },
    /// There are parameters, but no tool to take them.
    #[error("parameters: there are some, but no suggested tool that could take them")]
    ParametersWithoutTool,
    /// A sentence is empty.
    #[error("{field}: entry {index}: {source}")]
    Text {
        /// The list it is in.
        field: &'static str,
        /// Its position, counted from 1.
        index: usize,
        /// What is wrong with it.
        source: TextError,
    },
}

impl RawUserIntent {
    /// Checks an intent against the declared types and the tools that exist. A required parameter may
    /// be missing, since a person rarely says everything at once; what is there must fit.
    ///
    /// # Errors
    /// If a rule is broken: the first one that is.
    pub fn check<'a>(
        self,
        types: impl IntoIterator<Item = &'a str>,
        tools: impl IntoIterator<Item = &'a ToolSpecification>,
    ) -> Result<UserIntent, UserIntentError> {
        let types: Vec<&str> = types.into_iter().collect();
        if !types.contains(&self.intent_type.as_str()) {
            return Err(UserIntentError::UnknownType {
                meant: nearest(&self.intent_type, types).map(str::to_owned),
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
            meant: nearest(name, tools.iter().map(|tool| tool.name().as_str())).map(str::to_owned),
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

fn suggestion(meant: &Option<String>) -> String {
    meant
        .as_ref()
        .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

fn listed(misfits: &[Misfit]) -> String {
    let said: Vec<String> = misfits.iter().map(ToString::to_string).collect();
    said.join("; ")
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
