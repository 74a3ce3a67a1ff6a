//! From a text to what its writer wants: the class gives the type, the tools that serve it and what it
//! needs; the text gives further tools and what parameters are plainly in it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use windlass_reflex::{Reflex, ToolIndex, ToolView};
use windlass_spec::{RawUserIntent, ToolSpecification, Type, UserIntent};

use super::classifier::IntentClassifier;
use super::definitions::{IntentDefinition, IntentDefinitions};

/// How many tools are suggested at most.
const MOST_SUGGESTED: usize = 6;

/// How many tools are suggested only because they are like the text.
const MOST_FOUND: usize = 3;

/// How alike a text and a tool must be for that.
const LEAST_LIKENESS: f32 = 0.38;

/// How much more a tool is worth that is declared for the intent. Between tools that fit the text
/// about as well, the declaration decides.
const DECLARED: f32 = 0.1;

/// What the writer of `text` wants; none if it is no declared intent.
///
/// `tools` are the specifications of the tools that exist, and `index` is made of the same; a tool that
/// is in the index only is not suggested.
#[must_use]
pub fn understand<'a>(
    text: &str,
    classifier: &IntentClassifier,
    definitions: &IntentDefinitions,
    tools: impl IntoIterator<Item = &'a ToolSpecification>,
    index: &ToolIndex,
) -> Option<UserIntent> {
    let found = classifier.classify(text);
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
    // What was put together here keeps the rules; if it ever did not, it would not be believed.
    raw.check(types, tools.into_values()).ok()
}

/// The tools declared for the intent and those most like the text, best first.
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
        Some((score + DECLARED, tool))
    });
    let alike = hits
        .iter()
        .filter(|hit| hit.likeness >= LEAST_LIKENESS)
        .filter(|hit| {
            definition
                .tools
                .iter()
                .all(|name| name.as_str() != hit.name)
        })
        .filter_map(|hit| Some((hit.score, *tools.get(hit.name)?)))
        .take(MOST_FOUND);
    let mut suggested: Vec<(f32, &ToolSpecification)> = declared.chain(alike).collect();
    suggested.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut seen = HashSet::new();
    suggested.retain(|(_, tool)| seen.insert(tool.name()));
    suggested.truncate(MOST_SUGGESTED);
    suggested.into_iter().map(|(_, tool)| tool).collect()
}

/// The parameters of a tool that are plainly in the text, and sentences that name the required ones
/// that are not.
fn parameters(text: &str, tool: &ToolSpecification) -> (Map<String, Value>, Vec<String>) {
    let choice = Reflex::default().choose(text, &[ToolView::from(tool)]);
    let arguments = choice.map_or(Value::Null, |choice| choice.arguments);
    let said = squeezed(text);
    let mut parameters = Map::new();
    if let Value::Object(arguments) = arguments {
        for (name, value) in arguments {
            let fits = tool.signature().parameter(&name).is_some_and(|field| {
                field.ty.misfits(&value).is_empty() && is_said(&value, &field.ty, &said)
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

/// Whether a value stands in the text, rather than being guessed from it.
fn is_said(value: &Value, ty: &Type, said: &str) -> bool {
    match (value, ty) {
        // One of few words, which the text may say in another form.
        (Value::String(_), Type::Enum(_)) => true,
        (Value::String(text), _) => {
            let text = squeezed(text);
            !text.is_empty() && said.contains(&text)
        }
        (Value::Number(_), _) => true,
        // "No" is what is put where nothing is said.
        (Value::Bool(yes), _) => *yes,
        (Value::Array(items), Type::List(item)) => {
            items.iter().all(|value| is_said(value, item, said))
        }
        (Value::Array(items), _) => items.iter().all(|value| is_said(value, &Type::Text, said)),
        (Value::Object(entries), _) => entries
            .values()
            .all(|value| is_said(value, &Type::Text, said)),
        (Value::Null, _) => false,
    }
}

/// In lower case and with one blank between words.
fn squeezed(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}
