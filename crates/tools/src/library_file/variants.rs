//! Tools of a library file with several implementations, between which principals are split.

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use windlass_spec::{NonEmptyText, Signature, ToolName};

use super::reader::{FileLocation, Reader};
use super::tools::Entry;
use crate::builder::ToolBuilder;
use crate::difference::differences;
use crate::split::{Split, ToolVariant};
use crate::tool::Tool;

/// The keys of a variant.
const KEYS: [&str; 10] = [
    "name",
    "weight",
    "command",
    "http",
    "builtin",
    "environment",
    "directory",
    "files",
    "writable_files",
    "offline",
];

const HINT: &str =
    "begin each with [[tools.NAME.variants]], and give it a name, a weight and an implementation";

/// What all variants of a tool share, as far as it is valid.
pub(super) struct SharedParts<'o> {
    pub(super) name: Option<&'o ToolName>,
    pub(super) description: Option<&'o str>,
    pub(super) signature: Option<&'o Signature>,
}

impl<'e, 'i> Entry<'e, 'i> {
    /// A tool with several implementations.
    pub(super) fn split(&self, reader: &mut Reader<'_>, shared: &SharedParts<'_>) -> Option<Tool> {
        let (location, value) = self.value("variants")?;
        let Some(items) = value.get_ref().as_array() else {
            reader.error(&location, "must be a list of tables", Some(HINT.to_owned()));
            return None;
        };
        let mut variants = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let location = self
                .location
                .below(&format!("variants[{index}]"), item.span().start);
            let table = reader.table(item, &location);
            variants.extend(table.and_then(|table| self.variant(reader, table, &location, shared)));
        }
        let experiment = match self.value("experiment") {
            Some((location, value)) => reader.text(value, &location),
            None => shared.name.map(ToString::to_string),
        };
        let is_complete = variants.len() == items.len();
        let (name, experiment) = (shared.name?, NonEmptyText::new(experiment?).ok()?);
        let (description, signature) = (shared.description?, shared.signature?);
        if !is_complete {
            return None;
        }
        let split = Split::new(experiment, variants)
            .map_err(|error| reader.error(&location, error.to_string(), Some(HINT.to_owned())))
            .ok()?;
        // One of the variants runs instead of this handler.
        let builder =
            ToolBuilder::new(name.to_string()).handler(|arguments| async move { Ok(arguments) });
        let tool = self.build_tool(reader, builder, description.to_owned(), signature.clone())?;
        Some(tool.split(split))
    }

    fn variant(
        &self,
        reader: &mut Reader<'_>,
        table: &DeTable<'_>,
        location: &FileLocation,
        shared: &SharedParts<'_>,
    ) -> Option<ToolVariant> {
        reader.check_keys(table, location, &KEYS);
        let name = reader.required_text(table, location, "name");
        let weight = match table.get("weight") {
            Some(value) => weight(reader, value, &location.below("weight", value.span().start)),
            None => Some(1.0),
        };
        let entry = Entry {
            table,
            location,
            base_directory: self.base_directory,
        };
        let tool = match entry.implementation_key(reader) {
            Some("builtin") => entry.builtin_variant(reader, shared),
            implementation_key => {
                let named = shared.name.map_or("unnamed", ToolName::as_str);
                let builder = entry.builder(reader, named, implementation_key, shared.signature);
                entry.build_tool(
                    reader,
                    builder?,
                    shared.description?.to_owned(),
                    shared.signature?.clone(),
                )
            }
        };
        Some(ToolVariant {
            name: NonEmptyText::new(name?).ok()?,
            weight: weight?,
            tool: tool?,
        })
    }

    /// A built-in tool with the same parameters as the other variants.
    fn builtin_variant(&self, reader: &mut Reader<'_>, shared: &SharedParts<'_>) -> Option<Tool> {
        let mut tool = self.builtin(reader, shared.name?.clone())?;
        let parameters = shared.signature?.parameters_schema();
        if !differences(&parameters, tool.schema()).is_empty() {
            let (location, _) = self.value("builtin")?;
            let message = "does not have the parameters of the tool's signature";
            reader.error(&location, message, None);
            return None;
        }
        tool.description = NonEmptyText::new(shared.description?).ok()?;
        Some(tool)
    }
}

fn weight(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    location: &FileLocation,
) -> Option<f64> {
    let text = match value.get_ref() {
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    };
    let weight: Option<f64> = text.and_then(|text| text.replace('_', "").parse().ok());
    let weight = weight.filter(|weight| weight.is_finite() && *weight >= 0.0);
    if weight.is_none() {
        let hint = "twice the weight gets twice the principals; 0 gets none";
        reader.error(
            location,
            "must be a number of at least 0",
            Some(hint.to_owned()),
        );
    }
    weight
}
