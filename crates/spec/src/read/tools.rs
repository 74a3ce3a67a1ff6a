//! Reads one tool: its description, its signature in either form, and its attributes.

use serde_json::{Map, Value as Json};
use windlass_gram::{Element, Span, ValueData};

use super::Reader;
use super::definitions::Definition;
use super::properties::{Properties, list, text_of};
use super::signatures::json;
use crate::names::{NonEmptyText, ToolName};
use crate::nearest::nearest;
use crate::risk::RiskLevel;
use crate::signature::{Signature, Type};
use crate::tool::{
    DescriptionLength, EnvelopeUse, TimeoutSeconds, ToolAttributes, ToolSpecification,
};

const PROPERTIES: [&str; 16] = [
    "name",
    "description",
    "typeSignature",
    "risk",
    "category",
    "timeout_seconds",
    "idempotent",
    "cacheable",
    "open_world",
    "sensitive",
    "undo_window_seconds",
    "deferred",
    "dry_run_argument",
    "envelope",
    "deprecated",
    "metadata",
];

impl<'t> Reader<'t> {
    /// The tool that a definition declares; `None` if it has errors.
    pub(super) fn tool(&mut self, definition: &Definition<'t>) -> Option<ToolSpecification> {
        let name = self.tool_name(definition);
        let owner = format!("tool `{}`", definition.name.text);
        let place = definition.name.span;
        let properties = self.properties(owner, place, definition.subject.record(), &PROPERTIES);
        self.check_stated_name(definition, &properties);
        let description = self.tool_description(&properties);
        let signature = self.tool_signature(definition, &properties);
        let attributes = self.attributes(&properties, signature.as_ref());
        let tool = ToolSpecification::new(name?, description?, signature?);
        match tool.with_attributes(attributes) {
            Ok(tool) => Some(tool),
            Err(error) => {
                let place = properties
                    .get("dry_run_argument")
                    .map_or(place, |value| value.span);
                self.error("dry-run-argument", place, error.to_string());
                None
            }
        }
    }

    fn tool_name(&mut self, definition: &Definition<'t>) -> Option<ToolName> {
        match ToolName::new(&*definition.name.text) {
            Ok(name) => Some(name),
            Err(error) => {
                let message = format!("this is not a valid tool name: {error}");
                let hint = "use a word for what the tool does, such as `search_docs`";
                self.error_with_hint("bad-name", definition.name.span, message, hint);
                None
            }
        }
    }

    fn tool_description(&mut self, properties: &Properties<'t>) -> Option<NonEmptyText> {
        let example = "What it does, for the model that chooses it";
        let (description, span) = self.required_text(properties, "description", example)?;
        if let Err(DescriptionLength(length)) =
            ToolSpecification::check_description(description.as_str())
        {
            let allowed = ToolSpecification::DESCRIPTION_LENGTH;
            self.error_with_hint(
                "description-length",
                span,
                format!(
                    "the description of {} has {length} characters; it must have {} to {}",
                    properties.owner,
                    allowed.start(),
                    allowed.end()
                ),
                "describe what the tool does and when to use it",
            );
            return None;
        }
        Some(description)
    }

    /// The author's data: a map, or a text with a JSON object, which can nest.
    fn metadata(&mut self, properties: &Properties<'t>) -> Map<String, Json> {
        let Some(value) = properties.get("metadata") else {
            return Map::new();
        };
        let found = match &value.data {
            data @ ValueData::Map(_) => json(data),
            data => text_of(data).and_then(|text| serde_json::from_str(text).ok()),
        };
        match found {
            Some(Json::Object(metadata)) => metadata,
            _ => {
                let expected = "a map such as `{owner: \"docs\"}`, or a text with a JSON object";
                self.wrong_kind(properties, "metadata", value, expected);
                Map::new()
            }
        }
    }

    /// The signature, from a path among the elements or from the property `typeSignature`. Both may
    /// be present if they are equal.
    fn tool_signature(
        &mut self,
        definition: &Definition<'t>,
        properties: &Properties<'t>,
    ) -> Option<Signature> {
        let text = properties.get("typeSignature");
        let from_text = match text.map(|value| &value.data) {
            Some(ValueData::Text(text)) => Some(self.text_signature(text, properties)),
            Some(_) => {
                if let Some(value) = text {
                    self.wrong_kind(properties, "typeSignature", value, "a text");
                }
                Some(None)
            }
            None => None,
        };
        let from_path = self.path_among_elements(definition);
        match (from_text, from_path) {
            (None, None) => {
                self.error_with_hint(
                    "missing-signature",
                    properties.place,
                    format!("{} has no signature", properties.owner),
                    "add a signature: `[name:Tool {…} | (query::Text)==>(::Text)]`",
                );
                None
            }
            (Some(signature), None) | (None, Some(signature)) => signature,
            (Some(from_text), Some(from_path)) => {
                let (from_text, from_path) = (from_text?, from_path?);
                if from_text != from_path {
                    self.error_with_hint(
                        "signature-mismatch",
                        text.map_or(properties.place, |value| value.span),
                        format!("the two signatures of {} differ", properties.owner),
                        format!("the path is `{from_path}`; keep one of the two"),
                    );
                    return None;
                }
                Some(from_path)
            }
        }
    }

    fn text_signature(&mut self, text: &str, properties: &Properties<'t>) -> Option<Signature> {
        match Signature::parse(text) {
            Ok(signature) => Some(signature),
            Err(diagnostics) => {
                let whole = properties
                    .get("typeSignature")
                    .map_or(properties.place, |value| value.span);
                self.forward(diagnostics, self.offset_of(text), whole);
                None
            }
        }
    }

    /// Reports the diagnostics of a text at `offset` of the source, or at `whole` if the exact offset is
    /// not known.
    pub(super) fn forward(
        &mut self,
        diagnostics: Vec<windlass_gram::Diagnostic>,
        offset: Option<u32>,
        whole: Span,
    ) {
        for mut diagnostic in diagnostics {
            diagnostic.span = offset.map_or(whole, |offset| diagnostic.span.shifted(offset));
            self.report(diagnostic);
        }
    }

    /// `None` if there are no elements; `Some(None)` if they are not a signature.
    #[expect(
        clippy::option_option,
        reason = "the caller distinguishes an absent signature from an invalid one"
    )]
    fn path_among_elements(&mut self, definition: &Definition<'t>) -> Option<Option<Signature>> {
        let mut elements = definition.elements();
        let first = elements.next()?;
        if let Some(second) = elements.next() {
            self.error_with_hint(
                "several-signatures",
                second.span(),
                format!("tool `{}` has more than one element", definition.name.text),
                "a tool has one signature; join parameters with `==>`: \
                 `(first::Text)==>(second::Int)==>(::Text)`",
            );
            return Some(None);
        }
        match first {
            Element::Path(path) => Some(self.path_signature(path)),
            other => {
                self.error_with_hint(
                    "signature-shape",
                    other.span(),
                    format!(
                        "the element of tool `{}` is not a signature",
                        definition.name.text
                    ),
                    "write the signature as a path: `(query::Text)==>(::Text)`",
                );
                Some(None)
            }
        }
    }

    fn attributes(
        &mut self,
        properties: &Properties<'t>,
        signature: Option<&Signature>,
    ) -> ToolAttributes {
        let dry_run_argument = self
            .optional_text(properties, "dry_run_argument")
            .map(|(name, span)| (String::from(name), span));
        // An invalid signature is reported already, so a missing parameter is not reported again.
        let dry_run_argument = signature.and_then(|signature| {
            let (name, span) = dry_run_argument?;
            self.check_dry_run(signature, name, span)
        });
        ToolAttributes {
            risk: self.risk(properties),
            category: self
                .optional_text(properties, "category")
                .map(|(text, _)| text),
            timeout_seconds: self.timeout(properties),
            idempotent: self.optional_boolean(properties, "idempotent"),
            cacheable: self.optional_boolean(properties, "cacheable"),
            open_world: self.optional_boolean(properties, "open_world"),
            sensitive: self.optional_boolean(properties, "sensitive"),
            undo_window_seconds: self.undo_window(properties),
            deferred: self.optional_boolean(properties, "deferred"),
            dry_run_argument,
            envelope: self.envelope(properties),
            deprecated: self
                .optional_text(properties, "deprecated")
                .map(|(text, _)| text),
            metadata: self.metadata(properties),
        }
    }

    fn check_dry_run(&mut self, signature: &Signature, name: String, span: Span) -> Option<String> {
        let booleans: Vec<&str> = signature
            .parameters()
            .iter()
            .filter(|parameter| parameter.ty == Type::Boolean)
            .map(|parameter| parameter.name.as_str())
            .collect();
        if booleans.contains(&name.as_str()) {
            return Some(name);
        }
        let message = format!("`{name}` is not a parameter of type Bool of this tool");
        let hint = match nearest(&name, booleans.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "name the boolean parameter that makes a call a dry run".to_owned(),
        };
        self.error_with_hint("dry-run-argument", span, message, hint);
        None
    }

    fn risk(&mut self, properties: &Properties<'t>) -> Option<RiskLevel> {
        let (word, span) = self.optional_text(properties, "risk")?;
        let level = word.as_str().parse().ok();
        if level.is_none() {
            let words = RiskLevel::ALL.map(RiskLevel::as_str);
            let hint = match nearest(word.as_str(), words) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the levels are {}", list(&words)),
            };
            self.error_with_hint(
                "unknown-risk",
                span,
                format!("`{word}` is not a risk level"),
                hint,
            );
        }
        level
    }

    fn envelope(&mut self, properties: &Properties<'t>) -> Option<EnvelopeUse> {
        let (word, span) = self.optional_text(properties, "envelope")?;
        let known = word.as_str().parse().ok();
        if known.is_none() {
            self.error_with_hint(
                "unknown-envelope",
                span,
                format!("`{word}` is not a use of the envelope"),
                "write `never` if the data of the tool only looks like an envelope; the default is `auto`",
            );
        }
        known
    }

    fn timeout(&mut self, properties: &Properties<'t>) -> Option<TimeoutSeconds> {
        let (seconds, span) = self.optional_integer(properties, "timeout_seconds")?;
        match TimeoutSeconds::try_from(seconds) {
            Ok(timeout) => Some(timeout),
            Err(error) => {
                let message = format!("{error}, not {seconds}");
                self.error_with_hint("timeout-range", span, message, "the default is 30 seconds");
                None
            }
        }
    }

    fn undo_window(&mut self, properties: &Properties<'t>) -> Option<u32> {
        let (seconds, span) = self.optional_integer(properties, "undo_window_seconds")?;
        let window = u32::try_from(seconds).ok();
        if window.is_none() {
            let message = format!(
                "an undo window must be 0 to {} seconds, not {seconds}",
                u32::MAX
            );
            self.error_with_hint("undo-window-range", span, message, "0 means no window");
        }
        window
    }
}
