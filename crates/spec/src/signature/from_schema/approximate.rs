//! Approximate signatures of tools whose schemas are more specific than types. A model or person fills in
//! arguments by this signature; the owner of the schema validates them against the full schema.
//! Restrictions that a type cannot express are appended to the description.

use serde_json::{Map, Value};

use super::budget::Budget;
use super::keywords::{Kind, accepts_only_null, is_without_effect};
use crate::signature::{Field, MAX_DEPTH, Presence, Signature, SignatureError, Type};

/// The longest note about restrictions in a description, in characters.
const MAX_NOTE: usize = 400;

/// Why a schema has not even an approximate signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSignature {
    /// The arguments are not an object.
    #[error("it does not take an object of named arguments")]
    NoObject,
    /// The schema is too large.
    #[error("its schema is too large")]
    TooLarge,
    /// The resulting signature is invalid.
    #[error(transparent)]
    Unsound(#[from] SignatureError),
}

impl Signature {
    /// An approximate signature for the schemas of a tool.
    ///
    /// Its parameters have exactly the names in the schema; a parameter whose schema no type expresses
    /// is `Any`. Its return type is at least as wide as its schema, and `Any` without a schema.
    ///
    /// # Errors
    /// If the arguments are not an object, or if the schema is too large.
    pub fn from_schemas_approximately(
        parameters: &Value,
        returns: Option<&Value>,
    ) -> Result<Self, NoSignature> {
        let mut reader = ApproximateReader::new(parameters, Side::Arguments);
        let fields = reader.arguments().ok_or(NoSignature::NoObject)?;
        if reader.is_exhausted {
            return Err(NoSignature::TooLarge);
        }
        let returns = returns.map_or(Type::Any, |schema| {
            let mut reader = ApproximateReader::new(schema, Side::Result);
            let read = reader.read(schema, 1, 0);
            match reader.is_exhausted {
                true => Type::Any,
                false => read.into_type(),
            }
        });
        Ok(Self::new(fields, returns)?)
    }
}

/// The side of a call that a schema describes. The type of arguments may be narrower than their schema,
/// the type of a result may be wider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Arguments,
    Result,
}

/// The approximate type of a schema.
struct ApproximateType {
    ty: Type,
    nullable: bool,
    /// Restrictions that the type does not express.
    notes: Vec<String>,
}

impl ApproximateType {
    fn of(ty: Type) -> Self {
        Self {
            ty,
            nullable: false,
            notes: Vec::new(),
        }
    }

    fn any(note: Option<String>) -> Self {
        Self {
            notes: note.into_iter().collect(),
            ..Self::of(Type::Any)
        }
    }

    fn into_type(self) -> Type {
        match self.nullable {
            true => Type::nullable(self.ty),
            false => self.ty,
        }
    }
}

struct ApproximateReader<'s> {
    root: &'s Value,
    side: Side,
    budget: Budget,
    is_exhausted: bool,
}

impl<'s> ApproximateReader<'s> {
    fn new(root: &'s Value, side: Side) -> Self {
        Self {
            root,
            side,
            budget: Budget::default(),
            is_exhausted: false,
        }
    }

    fn arguments(&mut self) -> Option<Vec<Field>> {
        let keywords = self.root.as_object()?;
        match keywords.get("type") {
            None => {}
            Some(kind) if kind == "object" => {}
            Some(_) => return None,
        }
        Some(self.fields(keywords, 0, 0))
    }

    fn read(&mut self, schema: &'s Value, level: usize, hops: usize) -> ApproximateType {
        let Value::Object(keywords) = schema else {
            return ApproximateType::any(None);
        };
        // The limit on hops also ends cyclic references.
        if level > MAX_DEPTH || hops > MAX_DEPTH {
            return ApproximateType::any(None);
        }
        if !self.budget.types(1) || !self.budget.bytes(16 * keywords.len()) {
            self.is_exhausted = true;
        }
        if self.is_exhausted {
            return ApproximateType::any(None);
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#');
            let target = pointer.and_then(|pointer| self.root.pointer(pointer));
            return match target {
                Some(target) => self.read(target, level, hops + 1),
                None => ApproximateType::any(None),
            };
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(Value::Array(branches)) = keywords.get(keyword) {
                return self.choice(keyword, branches, level, hops);
            }
        }
        if let Some(read) = listed(keywords) {
            return read;
        }
        let Some((kind, nullable)) = kind(keywords) else {
            return ApproximateType::any(
                keywords.get("type").map(|kinds| format!("type: {kinds}")),
            );
        };
        let ty = match kind {
            Kind::Null => Type::Any,
            Kind::Boolean => Type::Boolean,
            Kind::Integer => Type::Integer,
            Kind::Number => Type::Number,
            Kind::Text => Type::Text,
            Kind::Array => match keywords.get("items") {
                None => Type::Array,
                Some(items) => Type::list(self.read(items, level + 1, hops).into_type()),
            },
            Kind::Object => self.object(keywords, level, hops),
        };
        ApproximateType {
            ty,
            nullable,
            notes: restrictions(keywords, kind),
        }
    }

    fn choice(
        &mut self,
        keyword: &str,
        branches: &'s [Value],
        level: usize,
        hops: usize,
    ) -> ApproximateType {
        let others = branches.iter().filter(|branch| !accepts_only_null(branch));
        let others: Vec<&Value> = others.collect();
        let nullable = keyword != "allOf" && others.len() < branches.len();
        let [only] = others[..] else {
            let text = serde_json::to_string(branches).unwrap_or_default();
            return ApproximateType::any(Some(format!("{keyword}: {text}")));
        };
        let read = self.read(only, level, hops + 1);
        ApproximateType {
            nullable: nullable || read.nullable,
            ..read
        }
    }

    fn object(&mut self, keywords: &'s Map<String, Value>, level: usize, hops: usize) -> Type {
        let has_fields = keywords
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|fields| !fields.is_empty());
        let others = keywords.get("additionalProperties");
        let is_closed = match self.side {
            Side::Arguments => others.is_none_or(|others| *others == Value::Bool(false)),
            Side::Result => others == Some(&Value::Bool(false)),
        };
        match has_fields && is_closed {
            true => Type::Record(self.fields(keywords, level, hops)),
            false => Type::Object,
        }
    }

    fn fields(
        &mut self,
        keywords: &'s Map<String, Value>,
        level: usize,
        hops: usize,
    ) -> Vec<Field> {
        let Some(Value::Object(properties)) = keywords.get("properties") else {
            return Vec::new();
        };
        let required = keywords.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let mut fields = Vec::new();
        for (name, schema) in properties {
            if name.is_empty() {
                continue;
            }
            let mut read = self.read(schema, level + 1, hops);
            if self.is_exhausted {
                return Vec::new();
            }
            let required = is_required(name);
            // A field can be absent but not null, so a required one that may be null is `Any`.
            if read.nullable && (required || self.side == Side::Result) {
                read.ty = Type::Any;
                read.notes.push("may be null".to_owned());
            }
            let declared = schema.get("description").and_then(Value::as_str);
            if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
                read.notes.push(format!("default: {default}"));
            }
            fields.push(Field {
                name: name.clone(),
                ty: read.ty,
                presence: match required {
                    true => Presence::Required,
                    false => Presence::Optional,
                },
                description: description(declared, &read.notes),
            });
        }
        fields
    }
}

/// The approximate type of a schema that lists its values.
fn listed(keywords: &Map<String, Value>) -> Option<ApproximateType> {
    let values = match (keywords.get("enum"), keywords.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (None, Some(only)) => std::slice::from_ref(only),
        _ => return None,
    };
    let mut options: Vec<String> = Vec::new();
    let mut nullable = false;
    for value in values {
        match value {
            Value::Null => nullable = true,
            Value::String(option) if options.contains(option) => {}
            Value::String(option) => options.push(option.clone()),
            _ => {
                let text = serde_json::to_string(values).unwrap_or_default();
                return Some(ApproximateType::any(Some(format!("one of {text}"))));
            }
        }
    }
    Some(match options.is_empty() {
        true => ApproximateType::any(None),
        false => ApproximateType {
            nullable,
            ..ApproximateType::of(Type::Enum(options))
        },
    })
}

/// The one kind of values a schema names, and whether null is allowed; `None` for several kinds.
fn kind(keywords: &Map<String, Value>) -> Option<(Kind, bool)> {
    let named = |name: &Value| name.as_str().and_then(Kind::from_name);
    match keywords.get("type")? {
        Value::Array(names) => {
            let kinds: Vec<Kind> = names.iter().map(named).collect::<Option<_>>()?;
            let others: Vec<&Kind> = kinds.iter().filter(|kind| **kind != Kind::Null).collect();
            match others[..] {
                [kind] => Some((*kind, others.len() < kinds.len())),
                _ => None,
            }
        }
        name => Some((named(name)?, false)),
    }
}

/// The restrictions of a schema on values of a kind, which no type expresses.
fn restrictions(keywords: &Map<String, Value>, kind: Kind) -> Vec<String> {
    let named = kind.restrictions().iter().copied().chain(["format"]);
    named
        .filter_map(|keyword| {
            let setting = keywords.get(keyword)?;
            (!is_without_effect(keyword, setting)).then(|| format!("{keyword}: {setting}"))
        })
        .collect()
}

/// The description of a field, followed by the restrictions that its type does not express.
fn description(declared: Option<&str>, notes: &[String]) -> Option<String> {
    let mut notes = notes.join(", ");
    if notes.chars().count() > MAX_NOTE {
        notes = notes.chars().take(MAX_NOTE).collect::<String>() + "…";
    }
    match (
        declared.map(str::trim).filter(|text| !text.is_empty()),
        notes.is_empty(),
    ) {
        (None, true) => None,
        (Some(text), true) => Some(text.to_owned()),
        (None, false) => Some(notes),
        (Some(text), false) => Some(format!("{text} ({notes})")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::NoSignature;
    use crate::signature::Signature;

    fn near(parameters: Value) -> String {
        let read = Signature::from_schemas_approximately(&parameters, None);
        read.map_or_else(|error| error.to_string(), |read| read.to_string())
    }

    fn with_argument(field: Value) -> String {
        near(json!({"type": "object", "properties": {"a": field}}))
    }

    #[test]
    fn restrictions_are_added_to_the_description() {
        assert_eq!(
            with_argument(
                json!({"type": "integer", "minimum": 1, "default": 5, "description": "How many."})
            ),
            "(a: Maybe Int \"How many. (minimum: 1, default: 5)\") --> IO Any"
        );
        assert_eq!(
            with_argument(json!({"type": "string", "format": "date", "minLength": 0})),
            "(a: Maybe Text \"format: \\\"date\\\"\") --> IO Any"
        );
    }

    #[test]
    fn a_schema_that_no_type_expresses_is_any() {
        assert_eq!(
            with_argument(json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
            "(a: Maybe Any \"anyOf: [{\\\"type\\\":\\\"string\\\"},{\\\"type\\\":\\\"number\\\"}]\") --> IO Any"
        );
        assert_eq!(with_argument(json!({})), "(a: Maybe Any) --> IO Any");
        assert_eq!(
            with_argument(json!({"enum": [1, "x"]})),
            "(a: Maybe Any \"one of [1,\\\"x\\\"]\") --> IO Any"
        );
    }

    #[test]
    fn a_nullable_argument_is_optional_unless_it_is_required() {
        let text_or_null =
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
        assert_eq!(
            with_argument(text_or_null.clone()),
            "(a: Maybe Text) --> IO Any"
        );
        let required =
            json!({"type": "object", "properties": {"a": text_or_null}, "required": ["a"]});
        assert_eq!(near(required), "(a: Any \"may be null\") --> IO Any");
    }

    #[test]
    fn references_are_followed_and_cycles_end() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "https://example.org/b"}},
            "required": ["a"],
            "$defs": {"a": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        });
        assert_eq!(near(schema), "(a: {n: Maybe Int}, b: Maybe Any) --> IO Any");
        let cyclic = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}},
        });
        assert_eq!(near(cyclic), "(a: Maybe Any) --> IO Any");
        let tree = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "object", "properties": {
                "l": {"$ref": "#/$defs/a"}, "r": {"$ref": "#/$defs/a"},
            }}},
        });
        assert_eq!(near(tree), NoSignature::TooLarge.to_string());
    }

    #[test]
    fn a_result_is_at_least_as_wide_as_its_schema() {
        let parameters = json!({"type": "object"});
        let return_type = |schema: Value| {
            let read = Signature::from_schemas_approximately(&parameters, Some(&schema));
            read.map(|read| read.returns().to_string()).ok()
        };
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(return_type(open).as_deref(), Some("Object"));
        let closed = json!({
            "type": "object",
            "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"type": "integer"}}},
            "required": ["b"],
            "additionalProperties": false,
        });
        assert_eq!(
            return_type(closed).as_deref(),
            Some("{a: Maybe Any \"may be null\", b: [Int]}")
        );
    }

    #[test]
    fn arguments_must_be_an_object() {
        assert_eq!(
            near(json!({"type": "array"})),
            NoSignature::NoObject.to_string()
        );
        assert_eq!(near(json!(true)), NoSignature::NoObject.to_string());
        assert_eq!(near(json!({"type": "object"})), "() --> IO Any");
    }
}
