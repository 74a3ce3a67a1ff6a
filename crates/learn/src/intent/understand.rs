//! Turns a text into a user intent. The class gives the type, the tools and the required context. The text gives
//! further tools and the parameters that it contains.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use windlass_reflex::{Reflex, ToolIndex, ToolView};
use windlass_spec::{NonEmptyText, RawUserIntent, ToolSpecification, Type, UserIntent};

use super::classifier::{Classification, IntentClassifier};
use super::definitions::{IntentDefinition, IntentDefinitions};

/// The most suggested tools.
const MOST_SUGGESTED: usize = 6;

/// The most tools that are suggested only because they are similar to the text.
const MOST_SIMILAR: usize = 3;

/// The least similarity of such a tool.
const MIN_SIMILARITY: f32 = 0.38;

/// The bonus of a tool that is declared for the intent. Between tools that fit the text
/// about equally well, the declaration decides.
const DECLARED_BONUS: f32 = 0.1;

/// The intent of `text`; `None` if it has no declared intent.
///
/// `tools` are the specifications of the existing tools, and `index` is built from the same. A tool that
/// is only in the index is not suggested.
#[must_use]
pub fn understand<'a>(
    text: &str,
    classifier: &IntentClassifier,
    definitions: &IntentDefinitions,
    tools: impl IntoIterator<Item = &'a ToolSpecification>,
    index: &ToolIndex,
) -> Option<UserIntent> {
    understand_as(&classifier.classify(text), text, definitions, tools, index)
}

/// Like [`understand`], for a text that is classified already.
#[must_use]
pub fn understand_as<'a>(
    found: &Classification<'_>,
    text: &str,
    definitions: &IntentDefinitions,
    tools: impl IntoIterator<Item = &'a ToolSpecification>,
    index: &ToolIndex,
) -> Option<UserIntent> {
    let intent = found.intent?;
    let definition = definitions.get(intent)?;
    let tools: HashMap<&str, &ToolSpecification> = tools
        .into_iter()
        .map(|tool| (tool.name().as_str(), tool))
        .collect();
    let suggested = suggested(text, definition, &tools, index);
    let (parameters, missing) = suggested
        .first()
        .map(|tool| parameters(text, tool))
        .unwrap_or_default();
    let stated = definition.context.iter().map(ToString::to_string);
    let raw = RawUserIntent {
        intent_type: intent.to_owned(),
        confidence: found.confidence.get(),
        parameters,
        context_requirements: stated.chain(missing).collect(),
        suggested_tools: suggested
            .iter()
            .map(|tool| tool.name().to_string())
            .collect(),
        fallback_options: definition
            .fallbacks
            .iter()
            .map(ToString::to_string)
            .collect(),
    };
    let types = definitions.iter().map(|(name, _)| name);
    // The intent is always valid. If it were not, it would be dropped.
    raw.check(types, tools.into_values()).ok()
}

/// What has to be known for an intent, as far as its text does not state it. Parameters of the first suggested
/// tool are looked for in the text. The context that a definition declares in words cannot be looked for: it counts
/// as stated if the text states all that the first suggested tool requires.
#[must_use]
pub fn unmet_context(intent: &UserIntent, definitions: &IntentDefinitions) -> Vec<NonEmptyText> {
    let definition = definitions.get(intent.intent_type());
    let declared = definition.map_or(&[][..], |definition| &definition.context);
    let required = intent.context_requirements();
    let has_all_parameters = !intent.suggested_tools().is_empty()
        && required.iter().all(|required| declared.contains(required));
    match has_all_parameters {
        true => Vec::new(),
        false => required.to_vec(),
    }
}

/// The tools declared for the intent and those most similar to the text, best first.
fn suggested<'a>(
    text: &str,
    definition: &IntentDefinition,
    tools: &HashMap<&str, &'a ToolSpecification>,
    index: &ToolIndex,
) -> Vec<&'a ToolSpecification> {
    let hits = index.search(text, index.len());
    let scores: HashMap<&str, f32> = hits.iter().map(|hit| (hit.name, hit.score)).collect();
    let declared = definition.tools.iter().filter_map(|name| {
        let tool = *tools.get(name.as_str())?;
        let score = scores.get(name.as_str()).copied().unwrap_or(0.0);
        Some((score + DECLARED_BONUS, tool))
    });
    let alike = hits
        .iter()
        .filter(|hit| hit.similarity >= MIN_SIMILARITY)
        .filter(|hit| {
            definition
                .tools
                .iter()
                .all(|name| name.as_str() != hit.name)
        })
        .filter_map(|hit| Some((hit.score, *tools.get(hit.name)?)))
        .take(MOST_SIMILAR);
    let mut suggested: Vec<(f32, &ToolSpecification)> = declared.chain(alike).collect();
    suggested.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut seen = HashSet::new();
    suggested.retain(|(_, tool)| seen.insert(tool.name()));
    suggested.truncate(MOST_SUGGESTED);
    suggested.into_iter().map(|(_, tool)| tool).collect()
}

/// The parameters of a tool that are in the text, and descriptions of the required ones that are not.
fn parameters(text: &str, tool: &ToolSpecification) -> (Map<String, Value>, Vec<String>) {
    let choice = Reflex::default().choose(text, &[ToolView::from(tool)]);
    let arguments = choice.map_or(Value::Null, |choice| choice.arguments);
    let normalized = normalize(text);
    let mut parameters = Map::new();
    if let Value::Object(arguments) = arguments {
        for (name, value) in arguments {
            let fits = tool.signature().parameter(&name).is_some_and(|field| {
                field.ty.misfits(&value).is_empty() && is_in_text(&value, &field.ty, &normalized)
            });
            if fits {
                parameters.insert(name, value);
            }
        }
    }
    let missing = tool
        .signature()
        .parameters()
        .iter()
        .filter(|field| field.is_required() && !parameters.contains_key(&field.name))
        .map(|field| format!("`{}` for the tool `{}`", field.name, tool.name()))
        .collect();
    (parameters, missing)
}

/// Whether a value is literally in the text, rather than guessed from it.
fn is_in_text(value: &Value, ty: &Type, normalized: &str) -> bool {
    match (value, ty) {
        // An enum value may be in the text in another form.
        (Value::String(_), Type::Enum(_)) => true,
        (Value::String(text), _) => {
            let text = normalize(text);
            !text.is_empty() && normalized.contains(&text)
        }
        (Value::Number(_), _) => true,
        // `false` is also the default for a missing value.
        (Value::Bool(yes), _) => *yes,
        (Value::Array(items), Type::List(item)) => items
            .iter()
            .all(|value| is_in_text(value, item, normalized)),
        (Value::Array(items), _) => items
            .iter()
            .all(|value| is_in_text(value, &Type::Text, normalized)),
        (Value::Object(entries), _) => entries
            .values()
            .all(|value| is_in_text(value, &Type::Text, normalized)),
        (Value::Null, _) => false,
    }
}

/// The text in lower case, with one blank between words.
fn normalize(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}
