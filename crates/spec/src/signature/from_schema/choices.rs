//! Reads references, lists of options, and combinations of schemas.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::keywords::{Kind, accepts_only_null};
use super::place::SchemaPath;
use super::reader::{Depth, Noted, Reader, Shape};
use crate::signature::check::is_integer;
use crate::signature::{Type, shortened};

impl<'s> Reader<'s> {
    /// Follows a reference to a definition of this schema.
    pub(super) fn reference(
        &mut self,
        reference: &Value,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Shape, Noted> {
        let Some(reference) = reference.as_str() else {
            return Err(self.note(place, "a reference must be a string"));
        };
        let recursive = "it refers to itself, directly or indirectly, which no type can express";
        if reference == "#" {
            return Err(self.note(place, recursive));
        }
        let Some((table, name)) = definition(reference).filter(|_| self.embedded == 0) else {
            let target = shortened(reference);
            let reason = format!("`{target}` is not followed; only `#/$defs/name` references are");
            return Err(self.note(place, reason));
        };
        let root = self.root;
        let Some(target) = root
            .get(table)
            .and_then(|definitions| definitions.get(&name))
        else {
            return Err(self.note(place, format!("`{}` does not exist", shortened(reference))));
        };
        let step = (table, name);
        if self.following.contains(&step) {
            return Err(self.note(place, recursive));
        }
        let name = step.1.clone();
        self.following.push(step);
        let shape = self.read(
            target,
            &SchemaPath::Root.key(table).key(&name),
            depth.next_hop(),
        );
        self.following.pop();
        shape
    }

    /// The kinds of values that `type` allows; `None` if it is absent and so allows all.
    pub(super) fn kinds(
        &mut self,
        keywords: &Map<String, Value>,
        place: &SchemaPath<'_>,
    ) -> Result<Option<Vec<Kind>>, Noted> {
        let names = match keywords.get("type") {
            None => return Ok(None),
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
        };
        let place = place.key("type");
        let mut kinds = Vec::new();
        for name in names {
            let Some(kind) = name.as_str().and_then(Kind::from_name) else {
                let found = shortened(&name.as_str().map_or_else(String::new, str::to_owned));
                let reason = format!("`{found}` is not a type of JSON Schema");
                return Err(self.note(&place, reason));
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(Some(kinds))
    }

    /// Reads a schema that lists its values by `enum` or `const`.
    pub(super) fn listed(
        &mut self,
        keywords: &'s Map<String, Value>,
        kinds: Option<&[Kind]>,
        place: &SchemaPath<'_>,
    ) -> Result<Shape, Noted> {
        let only = keywords.get("const");
        let values = match keywords.get("enum") {
            None => only.map(std::slice::from_ref).unwrap_or_default(),
            Some(Value::Array(values)) => values.as_slice(),
            Some(_) => return Err(self.note(&place.key("enum"), "it is not a list of values")),
        };
        let mut options = Vec::new();
        let mut seen = HashSet::new();
        let mut nullable = false;
        let mut others = false;
        for value in values {
            if !self.budget.bytes(16 + value.as_str().map_or(0, str::len)) {
                return Err(self.exhaust(place));
            }
            let allowed = kinds.is_none_or(|kinds| kinds.iter().any(|kind| has_kind(value, *kind)));
            if !allowed || only.is_some_and(|only| only != value) {
                continue;
            }
            match value {
                Value::Null => nullable = true,
                Value::String(option) => {
                    if seen.insert(option.as_str()) {
                        options.push(option.clone());
                    }
                }
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    others = true;
                }
            }
        }
        if !self.budget.types(options.len()) {
            return Err(self.exhaust(place));
        }
        if others {
            let keyword = if keywords.contains_key("enum") {
                "enum"
            } else {
                "const"
            };
            let reason = "only strings can be listed as options, not other values";
            return Err(self.note(&place.key(keyword), reason));
        }
        if options.is_empty() {
            return Err(self.note(place, nothing_but_null(nullable)));
        }
        self.check_unrestricted(keywords, Kind::Text, place)?;
        Ok(Shape {
            ty: Type::Enum(options),
            nullable,
        })
    }

    /// Reads a schema composed of others by `anyOf`, `oneOf` or `allOf`.
    pub(super) fn choice(
        &mut self,
        keyword: &str,
        branches: &'s Value,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Shape, Noted> {
        let branches = match branches.as_array() {
            Some(branches) if !branches.is_empty() => branches,
            _ => return Err(self.note(place, "it is not a list of schemas")),
        };
        if keyword == "allOf" && branches.len() > 1 {
            return Err(self.note(place, "`allOf` of several schemas cannot be expressed"));
        }
        let mut shapes = Vec::new();
        let mut nulls = 0_usize;
        let mut outcome = Ok(());
        for (index, branch) in branches.iter().enumerate() {
            if accepts_only_null(branch) {
                nulls += 1;
                continue;
            }
            match self.read(branch, &place.index(index), depth.next_hop()) {
                Ok(shape) => {
                    nulls += usize::from(shape.nullable);
                    shapes.push(shape.ty);
                }
                Err(Noted) => outcome = Err(Noted),
            }
        }
        outcome?;
        // `oneOf` rejects values that two branches accept.
        let exclusive = keyword == "oneOf";
        let nullable = if exclusive { nulls == 1 } else { nulls > 0 };
        let mut shapes = shapes.into_iter();
        let Some(first) = shapes.next() else {
            return Err(self.note(place, nothing_but_null(nullable)));
        };
        let rest: Vec<Type> = shapes.collect();
        // With a branch that accepts everything, `oneOf` rejects all values of the other branches.
        let has_any = first == Type::Any || rest.contains(&Type::Any);
        if has_any && exclusive && branches.len() > 1 {
            return Err(self.note(place, "a choice between types cannot be expressed"));
        }
        if rest.is_empty() || has_any {
            let (ty, nullable) = match has_any {
                true => (Type::Any, false),
                false => (first, nullable),
            };
            return Ok(Shape { ty, nullable });
        }
        let reason = match union(first, rest, exclusive) {
            Some(Type::Enum(options)) if options.is_empty() => nothing_but_null(nullable),
            Some(ty) => return Ok(Shape { ty, nullable }),
            None => "a choice between types cannot be expressed",
        };
        Err(self.note(place, reason))
    }
}

fn nothing_but_null(nullable: bool) -> &'static str {
    if nullable {
        "only null is accepted"
    } else {
        "no value is accepted"
    }
}

/// The type of the values of any of these types, or of exactly one of them; `None` if no type fits.
fn union(first: Type, rest: Vec<Type>, exclusive: bool) -> Option<Type> {
    if let Some(options) = union_of_options(&first, &rest, exclusive) {
        return Some(Type::Enum(options));
    }
    if exclusive {
        return None;
    }
    rest.into_iter().try_fold(first, |widest, next| {
        if widest.accepts(&next).is_ok() {
            Some(widest)
        } else if next.accepts(&widest).is_ok() {
            Some(next)
        } else {
            None
        }
    })
}

fn union_of_options(first: &Type, rest: &[Type], exclusive: bool) -> Option<Vec<String>> {
    let mut listed = Vec::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for ty in std::iter::once(first).chain(rest) {
        let Type::Enum(options) = ty else {
            return None;
        };
        for option in options {
            let count = counts.entry(option).or_default();
            *count += 1;
            if *count == 1 {
                listed.push(option);
            }
        }
    }
    let is_included = |option: &&String| !exclusive || counts.get(option.as_str()) == Some(&1);
    Some(listed.into_iter().filter(is_included).cloned().collect())
}

fn has_kind(value: &Value, kind: Kind) -> bool {
    match kind {
        Kind::Null => value.is_null(),
        Kind::Boolean => value.is_boolean(),
        Kind::Integer => is_integer(value),
        Kind::Number => value.is_number(),
        Kind::Text => value.is_string(),
        Kind::Array => value.is_array(),
        Kind::Object => value.is_object(),
    }
}

/// The table and name of the definition that `#/$defs/name` or `#/definitions/name` refers to.
fn definition(reference: &str) -> Option<(&'static str, String)> {
    let (table, name) = ["$defs", "definitions"].into_iter().find_map(|table| {
        let rest = reference.strip_prefix("#/")?.strip_prefix(table)?;
        Some((table, rest.strip_prefix('/')?))
    })?;
    if name.contains('/') {
        return None;
    }
    let name = percent_decoded(name)?;
    Some((table, name.replace("~1", "/").replace("~0", "~")))
}

/// Undoes the percent-encoding of a URI.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}
