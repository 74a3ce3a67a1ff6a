//! Signatures of tools whose schemas say more than types can. What is read here is near the schema, not
//! the same: it is what a person or a model goes by when filling in arguments, while whoever owns the
//! schema checks them against all of it. What a type cannot say is said in the description instead, so
//! that nothing is kept from the one who fills it in.

use serde_json::{Map, Value};

use super::budget::Budget;
use super::keywords::{Kind, accepts_only_null, is_idle};
use crate::signature::{Field, MAX_DEPTH, Presence, Signature, SignatureError, Type};

/// How long what a description says of restrictions may be.
const MAX_NOTE: usize = 400;

/// Why there is no signature for a schema, not even one near it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSignature {
    /// Arguments are always an object.
    #[error("it does not take an object of named arguments")]
    NoObject,
    /// It is too much to read.
    #[error("its schema is too large")]
    TooLarge,
    /// What was read does not fit together.
    #[error(transparent)]
    Unsound(#[from] SignatureError),
}

impl Signature {
    /// A signature near the schemas of a tool that was described elsewhere.
    ///
    /// Its arguments have the names the schema gives, and no others; where no type says what a schema
    /// says, it is `Any`. Its result is at least as wide as its schema, and `Any` if there is none.
    ///
    /// # Errors
    /// If the arguments are no object, or too many.
    pub fn near_schemas(parameters: &Value, returns: Option<&Value>) -> Result<Self, NoSignature> {
        let mut reader = Near::new(parameters, Side::Arguments);
        let fields = reader.arguments().ok_or(NoSignature::NoObject)?;
        if reader.is_exhausted {
            return Err(NoSignature::TooLarge);
        }
        let returns = returns.map_or(Type::Any, |schema| {
            let mut reader = Near::new(schema, Side::Result);
            let read = reader.read(schema, 1, 0);
            match reader.is_exhausted {
                true => Type::Any,
                false => read.into_type(),
            }
        });
        Ok(Self::new(fields, returns)?)
    }
}

/// Which side of a call a schema describes. What goes in may be narrower than its schema, what comes
/// out may be wider; never the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Arguments,
    Result,
}

/// What a schema comes to.
struct Read {
    ty: Type,
    nullable: bool,
    /// What the type does not say.
    notes: Vec<String>,
}

impl Read {
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

struct Near<'s> {
    root: &'s Value,
    side: Side,
    budget: Budget,
    is_exhausted: bool,
}

impl<'s> Near<'s> {
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

    fn read(&mut self, schema: &'s Value, level: usize, hops: usize) -> Read {
        let Value::Object(keywords) = schema else {
            return Read::any(None);
        };
        // Also a bound on references that lead round in circles.
        if level > MAX_DEPTH || hops > MAX_DEPTH {
            return Read::any(None);
        }
        if !self.budget.types(1) || !self.budget.bytes(16 * keywords.len()) {
            self.is_exhausted = true;
        }
        if self.is_exhausted {
            return Read::any(None);
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#');
            let target = pointer.and_then(|pointer| self.root.pointer(pointer));
            return match target {
                Some(target) => self.read(target, level, hops + 1),
                None => Read::any(None),
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
            return Read::any(keywords.get("type").map(|kinds| format!("type: {kinds}")));
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
        Read {
            ty,
            nullable,
            notes: restrictions(keywords, kind),
        }
    }

    fn choice(&mut self, keyword: &str, branches: &'s [Value], level: usize, hops: usize) -> Read {
        let others = branches.iter().filter(|branch| !accepts_only_null(branch));
        let others: Vec<&Value> = others.collect();
        let nullable = keyword != "allOf" && others.len() < branches.len();
        let [only] = others[..] else {
            let text = serde_json::to_string(branches).unwrap_or_default();
            return Read::any(Some(format!("{keyword}: {text}")));
        };
        let read = self.read(only, level, hops + 1);
        Read {
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
            // A field of a type is left out rather than null; one that must be there may have to be.
            if read.nullable && (required || self.side == Side::Result) {
                read.ty = Type::Any;
                read.notes.push("may be null".to_owned());
            }
            let said = schema.get("description").and_then(Value::as_str);
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
                description: description(said, &read.notes),
            });
        }
        fields
    }
}

/// What a schema that lists its values comes to.
fn listed(keywords: &Map<String, Value>) -> Option<Read> {
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
                return Some(Read::any(Some(format!("one of {text}"))));
            }
        }
    }
    Some(match options.is_empty() {
        true => Read::any(None),
        false => Read {
            nullable,
            ..Read::of(Type::Enum(options))
        },
    })
}

/// The one kind of values a schema names, and whether null is one of them; none if there are several.
fn kind(keywords: &Map<String, Value>) -> Option<(Kind, bool)> {
    let named = |name: &Value| name.as_str().and_then(Kind::named);
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

/// What a schema says about values of a kind that no type says.
fn restrictions(keywords: &Map<String, Value>, kind: Kind) -> Vec<String> {
    let named = kind.restrictions().iter().copied().chain(["format"]);
    named
        .filter_map(|keyword| {
            let setting = keywords.get(keyword)?;
            (!is_idle(keyword, setting)).then(|| format!("{keyword}: {setting}"))
        })
        .collect()
}

/// What is said of a field: its own words, then what its type does not say.
fn description(said: Option<&str>, notes: &[String]) -> Option<String> {
    let mut notes = notes.join(", ");
    if notes.chars().count() > MAX_NOTE {
        notes = notes.chars().take(MAX_NOTE).collect::<String>() + "…";
    }
    match (
        said.map(str::trim).filter(|said| !said.is_empty()),
        notes.is_empty(),
    ) {
        (None, true) => None,
        (Some(said), true) => Some(said.to_owned()),
        (None, false) => Some(notes),
        (Some(said), false) => Some(format!("{said} ({notes})")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::NoSignature;
    use crate::signature::Signature;

    fn near(parameters: Value) -> String {
        let read = Signature::near_schemas(&parameters, None);
        read.map_or_else(|error| error.to_string(), |read| read.to_string())
    }

    fn takes(field: Value) -> String {
        near(json!({"type": "object", "properties": {"a": field}}))
    }

    #[test]
    fn what_a_type_cannot_say_is_said_in_the_description() {
        assert_eq!(
            takes(
                json!({"type": "integer", "minimum": 1, "default": 5, "description": "How many."})
            ),
            "(a: Maybe Int \"How many. (minimum: 1, default: 5)\") --> IO Any"
        );
        assert_eq!(
            takes(json!({"type": "string", "format": "date", "minLength": 0})),
            "(a: Maybe Text \"format: \\\"date\\\"\") --> IO Any"
        );
    }

    #[test]
    fn what_no_type_says_is_any() {
        assert_eq!(
            takes(json!({"anyOf": [{"type": "string"}, {"type": "number"}]})),
            "(a: Maybe Any \"anyOf: [{\\\"type\\\":\\\"string\\\"},{\\\"type\\\":\\\"number\\\"}]\") --> IO Any"
        );
        assert_eq!(takes(json!({})), "(a: Maybe Any) --> IO Any");
        assert_eq!(
            takes(json!({"enum": [1, "x"]})),
            "(a: Maybe Any \"one of [1,\\\"x\\\"]\") --> IO Any"
        );
    }

    #[test]
    fn an_argument_that_may_be_null_may_be_left_out_unless_it_is_required() {
        let text_or_null =
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null});
        assert_eq!(takes(text_or_null.clone()), "(a: Maybe Text) --> IO Any");
        let required =
            json!({"type": "object", "properties": {"a": text_or_null}, "required": ["a"]});
        assert_eq!(near(required), "(a: Any \"may be null\") --> IO Any");
    }

    #[test]
    fn references_are_followed_but_not_round_in_circles() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "https://example.org/b"}},
            "required": ["a"],
            "$defs": {"a": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        });
        assert_eq!(near(schema), "(a: {n: Maybe Int}, b: Maybe Any) --> IO Any");
        let circle = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}},
        });
        assert_eq!(near(circle), "(a: Maybe Any) --> IO Any");
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
        let takes = json!({"type": "object"});
        let gives = |schema: Value| {
            let read = Signature::near_schemas(&takes, Some(&schema));
            read.map(|read| read.returns().to_string()).ok()
        };
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(gives(open).as_deref(), Some("Object"));
        let closed = json!({
            "type": "object",
            "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"type": "integer"}}},
            "required": ["b"],
            "additionalProperties": false,
        });
        assert_eq!(
            gives(closed).as_deref(),
            Some("{a: Maybe Any \"may be null\", b: [Int]}")
        );
    }

    #[test]
    fn arguments_are_an_object() {
        assert_eq!(
            near(json!({"type": "array"})),
            NoSignature::NoObject.to_string()
        );
        assert_eq!(near(json!(true)), NoSignature::NoObject.to_string());
        assert_eq!(near(json!({"type": "object"})), "() --> IO Any");
    }
}
