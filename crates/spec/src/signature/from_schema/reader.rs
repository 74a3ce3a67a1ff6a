//! Reads one schema. It notes what cannot be expressed and continues, so that all problems are found.
//! The nesting depth and the amount of work are bounded for any schema.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Inexpressible;
use super::budget::{Budget, MAX_TYPES};
use super::keywords::{COMBINING, Kind, LOGICAL, accepts_all, effective, is_without_effect};
use super::place::SchemaPath;
use crate::signature::check::{misfit, nests_within};
use crate::signature::{Field, MAX_DEPTH, Type, shortened};

/// The largest number of references and choices on the way to a type. Each level of types commonly
/// takes two: a choice with null, and a reference.
const MAX_HOPS: usize = 2 * MAX_DEPTH;

/// The largest number of reported problems of one schema.
const MAX_PROBLEMS: usize = 100;

/// A problem that is noted already.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted;

/// The values a schema accepts: those of a type, and perhaps null.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) ty: Type,
    pub(super) nullable: bool,
}

/// The shape that accepts every value.
const ANYTHING: Shape = Shape {
    ty: Type::Any,
    nullable: false,
};

impl Shape {
    pub(super) fn into_type(self) -> Type {
        if self.nullable {
            Type::nullable(self.ty)
        } else {
            self.ty
        }
    }
}

/// The depth of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    pub(super) level: usize,
    pub(super) hops: usize,
}

impl Depth {
    pub(super) fn below(self) -> Self {
        Self {
            level: self.level + 1,
            ..self
        }
    }

    pub(super) fn next_hop(self) -> Self {
        Self {
            hops: self.hops + 1,
            ..self
        }
    }
}

/// The state of reading one schema.
pub(super) struct Reader<'s> {
    pub(super) root: &'s Value,
    pub(super) budget: Budget,
    /// The references being followed, by the key and name of their definitions.
    pub(super) following: Vec<(&'static str, String)>,
    /// The number of enclosing schemas with an `$id`, which changes the meaning of references.
    pub(super) embedded: usize,
    problems: Vec<Inexpressible>,
    known: HashSet<Inexpressible>,
    exhausted: bool,
}

impl<'s> Reader<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self {
            root,
            budget: Budget::default(),
            following: Vec::new(),
            embedded: 0,
            problems: Vec::new(),
            known: HashSet::new(),
            exhausted: false,
        }
    }

    /// The outcome, or the noted problems.
    pub(super) fn finish<T>(self, outcome: Result<T, Noted>) -> Result<T, Vec<Inexpressible>> {
        match outcome {
            Ok(value) if self.problems.is_empty() => Ok(value),
            _ => Err(self.problems),
        }
    }

    /// Notes a problem. Schemas referred to more than once are read more than once,
    /// but their problems are noted once.
    pub(super) fn note(&mut self, place: &SchemaPath<'_>, reason: impl Into<String>) -> Noted {
        if self.problems.len() < MAX_PROBLEMS {
            let problem = Inexpressible {
                pointer: place.pointer(),
                reason: reason.into(),
            };
            if self.known.insert(problem.clone()) {
                self.problems.push(problem);
            }
        }
        Noted
    }

    /// Notes, once, that the schema is too large.
    pub(super) fn exhaust(&mut self, place: &SchemaPath<'_>) -> Noted {
        if !self.exhausted {
            self.exhausted = true;
            let reason = format!("the schema is too large: it describes over {MAX_TYPES} types");
            self.note(place, reason);
        }
        Noted
    }

    /// Reads the whole schema as a type.
    pub(super) fn root(&mut self) -> Result<Shape, Noted> {
        self.read(self.root, &SchemaPath::Root, Depth { level: 1, hops: 0 })
    }

    /// Reads the whole schema as that of an object of arguments.
    pub(super) fn parameters(&mut self) -> Result<Vec<Field>, Noted> {
        // The object of arguments is not a level: its properties are the first level.
        let shape = self.read(self.root, &SchemaPath::Root, Depth { level: 0, hops: 0 })?;
        match shape {
            Shape { nullable: true, .. } => Err(self.note(
                &SchemaPath::Root,
                "null is accepted, but arguments must be an object",
            )),
            Shape {
                ty: Type::Record(fields),
                ..
            } => Ok(fields),
            Shape {
                ty: Type::Object, ..
            } => Err(self.open(&SchemaPath::Root)),
            Shape { ty, .. } => {
                let found = shortened(&ty.to_string());
                let reason = format!("arguments must be an object with named fields, not {found}");
                Err(self.note(&SchemaPath::Root, reason))
            }
        }
    }

    pub(super) fn open(&mut self, place: &SchemaPath<'_>) -> Noted {
        self.note(
            place,
            "extra keys are allowed: `additionalProperties` is not `false`",
        )
    }

    /// Reads the schema at `place`.
    pub(super) fn read(
        &mut self,
        schema: &'s Value,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Shape, Noted> {
        if self.exhausted {
            return Err(Noted);
        }
        if depth.level > MAX_DEPTH || depth.hops > MAX_HOPS {
            return Err(self.note(
                place,
                format!("it is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(true) => return Ok(ANYTHING),
            Value::Bool(false) => return Err(self.note(place, "no value is accepted")),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(self.note(place, "a schema must be an object or a boolean"));
            }
        };
        if !self.budget.types(1) || !self.budget.bytes(16 * keywords.len()) {
            return Err(self.exhaust(place));
        }
        let embeds = usize::from(!place.is_root() && keywords.contains_key("$id"));
        self.embedded += embeds;
        let shape = self.described(keywords, place, depth);
        self.embedded -= embeds;
        let shape = shape?;
        if let Some(default) = keywords.get("default") {
            self.check_default(default, &shape, &place.key("default"))?;
        }
        Ok(shape)
    }

    fn check_default(
        &mut self,
        default: &Value,
        shape: &Shape,
        place: &SchemaPath<'_>,
    ) -> Result<(), Noted> {
        if !nests_within(default, MAX_DEPTH) {
            return Err(self.note(
                place,
                format!("it is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        if !self.budget.value(default) {
            return Err(self.exhaust(place));
        }
        if shape.nullable && default.is_null() {
            return Ok(());
        }
        match misfit(&shape.ty, default) {
            None => Ok(()),
            Some(mismatch) => Err(self.note(
                place,
                format!("the default does not fit its schema: {mismatch}"),
            )),
        }
    }

    fn described(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Shape, Noted> {
        if keywords.get("not").is_some_and(accepts_all) {
            return Err(self.note(place, "no value is accepted"));
        }
        let mut logical = Ok(());
        for keyword in LOGICAL
            .into_iter()
            .filter(|keyword| keywords.contains_key(*keyword))
        {
            logical = Err(self.note(&place.key(keyword), cannot_be_expressed(keyword)));
        }
        let combining = COMBINING
            .into_iter()
            .find(|keyword| keywords.contains_key(*keyword));
        let shape = if let Some(reference) = keywords.get("$ref") {
            let alone = self.check_alone(keywords, "$ref", place);
            let shape = self.reference(reference, &place.key("$ref"), depth);
            alone.and(shape)
        } else if let Some((keyword, branches)) =
            combining.and_then(|keyword| Some((keyword, keywords.get(keyword)?)))
        {
            let alone = self.check_alone(keywords, keyword, place);
            let shape = self.choice(keyword, branches, &place.key(keyword), depth);
            alone.and(shape)
        } else {
            self.direct(keywords, place, depth)
        };
        logical.and(shape)
    }

    /// Checks that no other keyword narrows what `keyword` describes. Drafts differ in whether
    /// keywords next to a reference count, so none are allowed.
    fn check_alone(
        &mut self,
        keywords: &Map<String, Value>,
        keyword: &str,
        place: &SchemaPath<'_>,
    ) -> Result<(), Noted> {
        let mut others = effective(keywords, keyword);
        others.retain(|keyword| !LOGICAL.contains(keyword));
        if others.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "`{keyword}` together with `{}` cannot be expressed",
            others.join("`, `")
        );
        Err(self.note(place, reason))
    }

    /// Reads a schema that names the type itself.
    fn direct(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Shape, Noted> {
        let kinds = self.kinds(keywords, place)?;
        if keywords.contains_key("enum") || keywords.contains_key("const") {
            return self.listed(keywords, kinds.as_deref(), place);
        }
        let Some(mut kinds) = kinds else {
            if effective(keywords, "").is_empty() {
                return Ok(ANYTHING);
            }
            let reason = "without `type`, values of every other kind are accepted too";
            return Err(self.note(place, reason));
        };
        let nullable = kinds.contains(&Kind::Null);
        kinds.retain(|kind| *kind != Kind::Null);
        if kinds.contains(&Kind::Number) {
            kinds.retain(|kind| *kind != Kind::Integer);
        }
        let kind = match kinds[..] {
            [kind] => kind,
            [] => return Err(self.note(place, "only null is accepted")),
            _ => {
                let reason = "a choice between kinds of values cannot be expressed";
                return Err(self.note(&place.key("type"), reason));
            }
        };
        let unrestricted = self.check_unrestricted(keywords, kind, place);
        let ty = match kind {
            Kind::Null => Err(self.note(place, "only null is accepted")),
            Kind::Boolean => Ok(Type::Boolean),
            Kind::Integer => Ok(Type::Integer),
            Kind::Number => Ok(Type::Number),
            Kind::Text => Ok(Type::Text),
            Kind::Array => self.array(keywords, place, depth),
            Kind::Object => self.object(keywords, place, depth),
        };
        unrestricted.and(ty).map(|ty| Shape { ty, nullable })
    }

    /// Checks that no keyword rejects some values of `kind`.
    pub(super) fn check_unrestricted(
        &mut self,
        keywords: &Map<String, Value>,
        kind: Kind,
        place: &SchemaPath<'_>,
    ) -> Result<(), Noted> {
        let mut outcome = Ok(());
        for &keyword in kind.restrictions() {
            if keywords
                .get(keyword)
                .is_some_and(|setting| !is_without_effect(keyword, setting))
            {
                outcome = Err(self.note(&place.key(keyword), cannot_be_expressed(keyword)));
            }
        }
        outcome
    }

    fn array(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Type, Noted> {
        match keywords.get("items") {
            None => Ok(Type::Array),
            Some(items) if accepts_all(items) => Ok(Type::Array),
            Some(items) => {
                let item = self.read(items, &place.key("items"), depth.below())?;
                Ok(Type::list(item.into_type()))
            }
        }
    }
}

fn cannot_be_expressed(keyword: &str) -> String {
    format!("`{keyword}` cannot be expressed")
}
