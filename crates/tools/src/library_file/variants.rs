//! Tools of a library file with several implementations, between which principals are split.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_spec::{NonEmptyText, Signature, ToolName};

use super::reader::{Place, Reader};
use super::tools::Entry;
use crate::builder::ToolBuilder;
use crate::difference::differences;
use crate::split::{Split, Variant};
use crate::tool::Tool;

/// The keys a variant has.
const KEYS: [&str; 7] = [
    "name",
    "weight",
    "command",
    "http",
    "builtin",
    "environment",
    "directory",
];

const HINT: &str =
    "begin each with [[tools.NAME.variants]], and give it a name, a weight and what runs";

/// What all variants of a tool share, as far as it was in order.
pub(super) struct Outer<'o> {
    pub(super) name: Option<&'o ToolName>,
    pub(super) description: Option<&'o str>,
    pub(super) signature: Option<&'o Signature>,
}

impl<'e, 'i> Entry<'e, 'i> {
    /// A tool with several implementations.
    pub(super) fn split(&self, reader: &mut Reader<'_>, outer: &Outer<'_>) -> Option<Tool> {
        let (place, value) = self.value("variants")?;
        let Some(items) = value.get_ref().as_array() else {
            reader.error(&place, "must be a list of tables", Some(HINT.to_owned()));
            return None;
        };
        let mut variants = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = self
                .place
                .below(&format!("variants[{index}]"), item.span().start);
            let table = reader.table(item, &place);
            variants.extend(table.and_then(|table| self.variant(reader, table, &place, outer)));
        }
        let experiment = match self.value("experiment") {
            Some((place, value)) => reader.text(value, &place),
            None => outer.name.map(ToString::to_string),
        };
        let is_complete = variants.len() == items.len();
        let (name, experiment) = (outer.name?, NonEmptyText::new(experiment?).ok()?);
        let (description, signature) = (outer.description?, outer.signature?);
        if !is_complete {
            return None;
        }
        let split = Split::new(experiment, variants)
            .map_err(|error| reader.error(&place, error.to_string(), Some(HINT.to_owned())))
            .ok()?;
        // What runs is one of the variants; this is never reached.
        let begin =
            ToolBuilder::new(name.to_string()).handler(|arguments| async move { Ok(arguments) });
        let tool = self.built(reader, begin, description.to_owned(), signature.clone())?;
        Some(tool.split(split))
    }

    fn variant(
        &self,
        reader: &mut Reader<'_>,
        table: &DeTable<'_>,
        place: &Place,
        outer: &Outer<'_>,
    ) -> Option<Variant> {
        reader.known_keys(table, place, &KEYS);
        let name = reader.required_text(table, place, "name");
        let weight = match table.get("weight") {
            Some(value) => weight(reader, value, &place.below("weight", value.span().start)),
            None => Some(1.0),
        };
        let entry = Entry {
            table,
            place,
            base_directory: self.base_directory,
        };
        let tool = match entry.what_runs(reader) {
            Some("builtin") => entry.builtin_variant(reader, outer),
            what_runs => {
                let named = outer.name.map_or("unnamed", ToolName::as_str);
                let runs = entry.runs(reader, named, what_runs, outer.signature);
                entry.built(
                    reader,
                    runs?,
                    outer.description?.to_owned(),
                    outer.signature?.clone(),
                )
            }
        };
        Some(Variant {
            name: NonEmptyText::new(name?).ok()?,
            weight: weight?,
            tool: tool?,
        })
    }

    /// A built-in tool that takes what the others take.
    fn builtin_variant(&self, reader: &mut Reader<'_>, outer: &Outer<'_>) -> Option<Tool> {
        let mut tool = self.builtin(reader, outer.name?.clone())?;
        let parameters = outer.signature?.parameters_schema();
        if !differences(&parameters, tool.schema()).is_empty() {
            let (place, _) = self.value("builtin")?;
            let message = "does not take what the signature of the tool says";
            reader.error(&place, message, None);
            return None;
        }
        tool.description = NonEmptyText::new(outer.description?).ok()?;
        Some(tool)
    }
}

fn weight(reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>, place: &Place) -> Option<f64> {
    let text = match value.get_ref() {
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    };
    let weight: Option<f64> = text.and_then(|text| text.replace('_', "").parse().ok());
    let weight = weight.filter(|weight| weight.is_finite() && *weight >= 0.0);
    if weight.is_none() {
        let hint = "twice the weight gets twice the principals; 0 gets none";
        reader.error(place, "must be a number from 0 on", Some(hint.to_owned()));
    }
    weight
}
