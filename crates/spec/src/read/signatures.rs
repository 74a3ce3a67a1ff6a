//! Reads a signature written as a gram path: `(name::Text)==>(age::Int {default: 18})==>(::Text)`.
//! All nodes but the last are parameters, the last is the return type, and `()` alone before the
//! arrow means no parameters.

use serde_json::{Map, Number as JsonNumber, Value as Json};
use windlass_gram::{Name, Node, Number, Path, Span, Value, ValueData};

use super::Reader;
use super::properties::{Properties, text_of};
use crate::signature::{Field, Presence, Signature, Type};

/// The properties of the last node. It has no default or description, because signatures cannot store them.
const RETURN_PROPERTIES: [&str; 4] = ["optional", "enum", "elementType", "fields"];

const PROPERTIES: [&str; 6] = [
    "default",
    "optional",
    "description",
    "enum",
    "elementType",
    "fields",
];

impl<'t> Reader<'t> {
    /// The signature that a path declares; `None` if it has errors.
    pub(super) fn path_signature(&mut self, path: Path<'t>) -> Option<Signature> {
        let nodes: Vec<Node<'t>> = path.nodes().collect();
        let (returns, parameters) = nodes.split_last()?;
        if parameters.is_empty() {
            self.error_with_hint(
                "signature-shape",
                path.span(),
                "a signature needs an arrow",
                "a tool without parameters is `()==>(::Text)`",
            );
            return None;
        }
        let mut is_valid = true;
        for arrow in path.arrows() {
            let kind = arrow.kind();
            if kind.to_left || !kind.to_right {
                is_valid = false;
                self.error_with_hint(
                    "signature-shape",
                    arrow.span(),
                    "an arrow of a signature must point to the right",
                    "write `==>`",
                );
            }
        }
        let fields = match parameters {
            [only] if only.subject().is_empty() => Some(Vec::new()),
            _ => self.parameters(parameters),
        };
        let returns = self.returns(*returns);
        match Signature::new(fields?, returns?) {
            Ok(signature) => Some(signature).filter(|_| is_valid),
            Err(error) => {
                self.error("unsound-signature", path.span(), error.to_string());
                None
            }
        }
    }

    fn parameters(&mut self, nodes: &[Node<'t>]) -> Option<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::with_capacity(nodes.len());
        let mut names = std::collections::HashSet::new();
        let mut is_valid = true;
        for node in nodes {
            let Some((name, field)) = self.parameter(*node) else {
                is_valid = false;
                continue;
            };
            if !names.insert(field.name.clone()) {
                is_valid = false;
                self.error_with_hint(
                    "duplicate-parameter",
                    name.span,
                    format!("the parameter `{}` is declared twice", field.name),
                    "give every parameter its own name",
                );
            }
            fields.push(field);
        }
        is_valid.then_some(fields)
    }

    fn parameter(&mut self, node: Node<'t>) -> Option<(Name<'t>, Field)> {
        let subject = node.subject();
        let Some(name) = subject.identifier() else {
            self.error_with_hint(
                "unnamed-parameter",
                node.span(),
                "a parameter needs a name",
                "write `(name::Text)`; for no parameters at all, start with `()==>`",
            );
            return None;
        };
        let owner = format!("parameter `{}`", name.text);
        let properties = self.properties(owner, name.span, subject.record(), &PROPERTIES);
        let ty = self.labelled_type(node, &properties);
        let description = self
            .optional_text(&properties, "description")
            .map(|(text, _)| text.into());
        let is_optional = self
            .optional_boolean(&properties, "optional")
            .unwrap_or(false);
        let (ty, is_maybe) = ty?;
        let presence = match properties.get("default") {
            Some(value) => Presence::Default(self.json_default(value)?),
            None if is_optional || is_maybe => Presence::Optional,
            None => Presence::Required,
        };
        let field = Field {
            name: name.text.clone().into_owned(),
            ty,
            presence,
            description,
        };
        // Checked alone first, so that an error has a precise place.
        if let Err(error) = Signature::new(vec![field.clone()], Type::Text) {
            let place = properties
                .get("default")
                .map_or(name.span, |value| value.span);
            let hint = "change the default, the enum or the type so that they fit";
            self.error_with_hint("unsound-parameter", place, error.to_string(), hint);
            return None;
        }
        Some((name, field))
    }

    fn returns(&mut self, node: Node<'t>) -> Option<Type> {
        let subject = node.subject();
        let owner = "the return type".to_owned();
        let record = subject.record();
        let properties = self.properties(owner, node.span(), record, &RETURN_PROPERTIES);
        let is_optional = self
            .optional_boolean(&properties, "optional")
            .unwrap_or(false);
        let (ty, is_maybe) = self.labelled_type(node, &properties)?;
        Some(if is_optional || is_maybe {
            Type::nullable(ty)
        } else {
            ty
        })
    }

    /// The type from a node's label and properties, and whether the label makes it optional.
    fn labelled_type(
        &mut self,
        node: Node<'t>,
        properties: &Properties<'t>,
    ) -> Option<(Type, bool)> {
        let mut labels = node.subject().labels();
        let Some(label) = labels.next() else {
            self.error_with_hint(
                "missing-type",
                node.span(),
                format!("{} has no type", properties.owner),
                "write the type as a label, as in `(name::Text)`",
            );
            return None;
        };
        if let Some(second) = labels.next() {
            self.error_with_hint(
                "several-types",
                second.span,
                format!("{} has more than one type", properties.owner),
                "give it one label",
            );
            return None;
        }
        let (base, is_maybe) = self.type_text(&label.text, label.span)?;
        let ty = self.refined(base, properties)?;
        Some((ty, is_maybe))
    }

    /// Parses a type written as text within the span `whole`.
    fn type_text(&mut self, text: &str, whole: Span) -> Option<(Type, bool)> {
        match Type::parse(text) {
            Ok(found) => Some(found),
            Err(diagnostics) => {
                self.forward(diagnostics, self.offset_of(text), whole);
                None
            }
        }
    }

    /// A base type narrowed by `enum`, `elementType` or `fields`.
    fn refined(&mut self, base: Type, properties: &Properties<'t>) -> Option<Type> {
        let mut ty = base;
        for (key, needed, shown) in [
            ("enum", Type::Text, "Text"),
            ("elementType", Type::Array, "Array"),
            ("fields", Type::Object, "Object"),
        ] {
            let Some(value) = properties.get(key) else {
                continue;
            };
            if ty != needed {
                self.error_with_hint(
                    "property-type",
                    value.span,
                    format!("`{key}` needs the type {shown}, not {ty}"),
                    format!("change the label to `{shown}`, or remove `{key}`"),
                );
                return None;
            }
            ty = match key {
                "enum" => self.options(value, properties)?,
                "elementType" => self.element_type(value, properties)?,
                _ => self.record_fields(value, properties)?,
            };
        }
        Some(ty)
    }

    fn options(&mut self, value: &Value<'t>, properties: &Properties<'t>) -> Option<Type> {
        let ValueData::Array(items) = &value.data else {
            self.wrong_kind(properties, "enum", value, "an array of texts");
            return None;
        };
        let mut options = Vec::with_capacity(items.len());
        for item in items {
            match item.data.as_word() {
                Some(word) => options.push(word.to_owned()),
                None => {
                    self.wrong_kind(properties, "enum", item, "an array of texts");
                    return None;
                }
            }
        }
        Some(Type::Enum(options))
    }

    fn element_type(&mut self, value: &Value<'t>, properties: &Properties<'t>) -> Option<Type> {
        let Some((text, span)) = type_source(value) else {
            self.wrong_kind(properties, "elementType", value, "a type as text");
            return None;
        };
        let (ty, is_maybe) = self.type_text(&text, span)?;
        Some(Type::list(if is_maybe { Type::nullable(ty) } else { ty }))
    }

    fn record_fields(&mut self, value: &Value<'t>, properties: &Properties<'t>) -> Option<Type> {
        let ValueData::Map(entries) = &value.data else {
            self.wrong_kind(properties, "fields", value, "a map from names to types");
            return None;
        };
        let mut fields: Vec<Field> = Vec::with_capacity(entries.len());
        let mut names = std::collections::HashSet::new();
        let mut is_valid = true;
        for (name, entry) in entries {
            let Some((text, span)) = type_source(entry) else {
                self.wrong_kind(properties, "fields", entry, "a map from names to types");
                is_valid = false;
                continue;
            };
            // Read as the field of a record, so that defaults and descriptions are allowed too.
            let before = format!("{{{}: ", Json::String(name.text.clone().into_owned()));
            match Type::parse(&format!("{before}{text}}}")) {
                Ok((Type::Record(mut parsed), false)) if parsed.len() == 1 => {
                    if !names.insert(name.text.clone()) {
                        is_valid = false;
                        let message = format!("the field `{}` is declared twice", name.text);
                        self.error_with_hint("duplicate-field", name.span, message, "remove one");
                    }
                    fields.append(&mut parsed);
                }
                Ok(_) => {
                    is_valid = false;
                    self.error("unknown-type", span, format!("`{text}` is not a type"));
                }
                Err(mut diagnostics) => {
                    for diagnostic in &mut diagnostics {
                        let shift = |at: u32| {
                            at.saturating_sub(before.len() as u32)
                                .min(text.len() as u32)
                        };
                        diagnostic.span =
                            Span::new(shift(diagnostic.span.start), shift(diagnostic.span.end));
                    }
                    is_valid = false;
                    self.forward(diagnostics, self.offset_of(&text), span);
                }
            }
        }
        is_valid.then_some(Type::Record(fields))
    }

    /// A default as JSON. A bare word is a text, as everywhere in gram, except `null`.
    fn json_default(&mut self, value: &Value<'t>) -> Option<Json> {
        if matches!(value.data, ValueData::Symbol("null")) {
            self.error_with_hint(
                "default-type",
                value.span,
                "`null` is not a valid default",
                "for an optional parameter, write `optional: true`",
            );
            return None;
        }
        let json = json(&value.data);
        if json.is_none() {
            let message = format!("{} cannot be a default", value.data.describe());
            self.error("default-type", value.span, message);
        }
        json
    }
}

/// The text of a type written as a value, and its place.
fn type_source<'t>(value: &Value<'t>) -> Option<(std::borrow::Cow<'t, str>, Span)> {
    match &value.data {
        ValueData::Text(text) => Some((text.clone(), value.span)),
        ValueData::Symbol(word) => Some(((*word).into(), value.span)),
        _ => None,
    }
}

pub(super) fn json(data: &ValueData<'_>) -> Option<Json> {
    Some(match data {
        ValueData::Boolean(boolean) => Json::Bool(*boolean),
        ValueData::Number(number) => json_number(*number)?,
        ValueData::Array(items) => Json::Array(
            items
                .iter()
                .map(|item| json(&item.data))
                .collect::<Option<_>>()?,
        ),
        ValueData::Map(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                let earlier = object.insert(key.text.clone().into_owned(), json(&value.data)?);
                // A duplicate key is ambiguous.
                if earlier.is_some() {
                    return None;
                }
            }
            Json::Object(object)
        }
        other => Json::String(text_of(other)?.to_owned()),
    })
}

/// A number as JSON, if a JSON number can represent it exactly.
fn json_number(number: Number<'_>) -> Option<Json> {
    match (number.as_i64(), number) {
        (Some(integer), _) => Some(integer.into()),
        (None, Number::Integer(text)) => text.parse::<u64>().ok().map(Json::from),
        (None, Number::Decimal(_)) => JsonNumber::from_f64(number.as_f64()?).map(Json::Number),
        (None, Number::Hexadecimal(_) | Number::Octal(_) | Number::Measurement(..)) => None,
    }
}
