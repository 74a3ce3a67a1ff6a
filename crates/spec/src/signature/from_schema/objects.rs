//! Reads schemas of objects: their keys, the required ones, and whether other keys are allowed.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::keywords::{accepts_all, accepts_none};
use super::place::SchemaPath;
use super::reader::{Depth, Noted, Reader};
use crate::signature::{Field, Presence, Type, shortened};

impl<'s> Reader<'s> {
    /// Reads a schema of objects, whose `type` has been read.
    pub(super) fn object(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Type, Noted> {
        let nothing = Map::new();
        let required = self.required(keywords, place)?;
        let properties = match keywords.get("properties") {
            None => None,
            Some(Value::Object(properties)) => Some(properties),
            Some(_) => return Err(self.note(&place.key("properties"), "it is not an object")),
        };
        let named = properties.unwrap_or(&nothing);
        let mut outcome = match keywords.get("additionalProperties") {
            Some(others) if accepts_none(others) => Ok(()),
            Some(others) if !accepts_all(others) => {
                let reason = "extra keys of a given type are allowed, which cannot be expressed";
                Err(self.note(&place.key("additionalProperties"), reason))
            }
            _ if named.is_empty() && required.is_empty() => return Ok(Type::Object),
            _ => Err(self.open(place)),
        };
        if outcome.is_ok() {
            for name in required.iter().filter(|name| !named.contains_key(**name)) {
                let name = shortened(name);
                let reason = format!("`{name}` is required, but not allowed: no value is accepted");
                outcome = Err(self.note(&place.key("required"), reason));
            }
        }
        let mut fields = Vec::new();
        for (name, schema) in properties.into_iter().flatten() {
            let place = place.key("properties");
            match self.property(
                name,
                schema,
                required.contains(name.as_str()),
                &place,
                depth,
            ) {
                Ok(field) => fields.push(field),
                Err(Noted) => outcome = Err(Noted),
            }
        }
        outcome.map(|()| Type::Record(fields))
    }

    fn required(
        &mut self,
        keywords: &'s Map<String, Value>,
        place: &SchemaPath<'_>,
    ) -> Result<HashSet<&'s str>, Noted> {
        let names: Option<HashSet<&str>> = match keywords.get("required") {
            None => Some(HashSet::new()),
            Some(Value::Array(names)) => {
                if !self.budget.bytes(16 * names.len()) {
                    return Err(self.exhaust(place));
                }
                names.iter().map(Value::as_str).collect()
            }
            Some(_) => None,
        };
        names.ok_or_else(|| self.note(&place.key("required"), "it is not a list of names"))
    }

    fn property(
        &mut self,
        name: &str,
        schema: &'s Value,
        required: bool,
        properties: &SchemaPath<'_>,
        depth: Depth,
    ) -> Result<Field, Noted> {
        let place = &properties.key(name);
        let setting = |keyword| {
            schema
                .as_object()
                .and_then(|keywords| keywords.get(keyword))
        };
        let (description, default) = (setting("description"), setting("default"));
        let mut outcome = Ok(());
        if name.is_empty() {
            outcome = Err(self.note(place, "an empty key cannot be expressed"));
        }
        if required && default.is_some() {
            let reason = "it is required and has a default, which cannot be expressed";
            outcome = Err(self.note(place, reason));
        }
        let shape = self.read(schema, place, depth.below())?;
        if shape.nullable {
            let reason = "it may be null; a field can be absent, but its value is never null";
            outcome = Err(self.note(place, reason));
        }
        let description = description.and_then(Value::as_str);
        if !self
            .budget
            .bytes(name.len() + description.map_or(0, str::len))
        {
            return Err(self.exhaust(place));
        }
        let presence = match default {
            Some(default) => Presence::Default(default.clone()),
            None if required => Presence::Required,
            None => Presence::Optional,
        };
        outcome.map(|()| Field {
            name: name.to_owned(),
            ty: shape.ty,
            presence,
            description: description.map(str::to_owned),
        })
    }
}
