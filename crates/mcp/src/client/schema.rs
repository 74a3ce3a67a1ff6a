//! What an answer promised to look like, checked without being led astray: the schema comes from a
//! stranger. Nothing is fetched, nothing is followed for ever, and how much work a check can become is
//! reckoned before it begins.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Larger or deeper schemas than this are not read.
const MOST_NODES: usize = 20_000;
const MOST_LEVELS: usize = 64;

/// How often parts of a schema may be applied to parts of an answer.
const MOST_WORK: f64 = 20_000_000.0;

/// How large what a pattern becomes may be.
const MOST_OF_PATTERN: usize = 1 << 20;

/// Where parts of a schema stand that apply to the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Where parts of a schema stand that apply to parts of the value.
const WITHIN: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Where parts stand by name: of the same value, and of parts of it.
const NAMED_IN_PLACE: &[&str] = &["dependentSchemas", "dependencies"];
const NAMED_WITHIN: &[&str] = &["properties", "patternProperties"];

/// A schema that can be checked against.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    plan: Plan,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Why it is not checked against.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let plan = Plan::of(schema)?;
        let validator = jsonschema::options()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MOST_OF_PATTERN)
                    .dfa_size_limit(MOST_OF_PATTERN),
            )
            .build(schema)
            .map_err(|error| {
                format!("it is no schema: {}", super::shown(&error.to_string(), 300))
            })?;
        Ok(Self { validator, plan })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Where it does not fit, or why that cannot be told.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.plan.work(value) > MOST_WORK {
            return Err("to check it against what it promised would take too long".to_owned());
        }
        self.validator.validate(value).map_err(|error| {
            let place = error.instance_path().to_string();
            let what = super::shown(&error.masked().to_string(), 300);
            format!("at `{place}`: {what}")
        })
    }
}

/// Which part of a schema leads to which.
#[derive(Debug, Default)]
struct Plan {
    /// For every part, those that apply to the same value.
    in_place: Vec<Vec<usize>>,
    /// And those that apply to parts of it.
    within: Vec<Vec<usize>>,
    /// The parts, each before those it leads to in place.
    order: Vec<usize>,
}

impl Plan {
    fn of(schema: &Value) -> Result<Self, String> {
        let mut places = HashMap::new();
        let mut nodes = Vec::new();
        collect(schema, String::new(), 0, &mut places, &mut nodes)?;
        let mut plan = Self::default();
        for (pointer, node) in &nodes {
            let mut in_place = Vec::new();
            let mut within = Vec::new();
            let Some(node) = node.as_object() else {
                plan.in_place.push(in_place);
                plan.within.push(within);
                continue;
            };
            for (key, part) in node {
                let below = format!("{pointer}/{}", escaped(key));
                let targets = match key.as_str() {
                    // A field may have such a name too; then what stands there is no text.
                    "$ref" | "$dynamicRef" | "$recursiveRef" if part.is_string() => {
                        in_place.push(referred(part, &places)?);
                        continue;
                    }
                    "$id" | "$anchor" | "$dynamicAnchor"
                        if part.is_string() && !pointer.is_empty() =>
                    {
                        return Err("it names parts of itself".to_owned());
                    }
                    key if IN_PLACE.contains(&key) || NAMED_IN_PLACE.contains(&key) => {
                        &mut in_place
                    }
                    key if WITHIN.contains(&key) || NAMED_WITHIN.contains(&key) => &mut within,
                    _ => continue,
                };
                let is_many = part.is_array()
                    || NAMED_IN_PLACE.contains(&key.as_str())
                    || NAMED_WITHIN.contains(&key.as_str());
                match is_many {
                    false => targets.extend(places.get(&below)),
                    true => {
                        let keys: Vec<String> = match part {
                            Value::Array(parts) => {
                                (0..parts.len()).map(|n| n.to_string()).collect()
                            }
                            Value::Object(parts) => parts.keys().map(|key| escaped(key)).collect(),
                            _ => Vec::new(),
                        };
                        let below = keys.iter().map(|key| format!("{below}/{key}"));
                        targets.extend(below.filter_map(|place| places.get(&place)));
                    }
                }
            }
            plan.in_place.push(in_place);
            plan.within.push(within);
        }
        plan.order = ordered(&plan.in_place)?;
        Ok(plan)
    }

    /// How often parts of the schema are applied to parts of the value, at most.
    fn work(&self, value: &Value) -> f64 {
        let (values, levels) = size(value);
        let mut at = vec![0.0; self.in_place.len()];
        if let Some(root) = at.first_mut() {
            *root = 1.0;
        }
        let mut most = 0.0f64;
        for _ in 0..levels {
            let mut below = vec![0.0; at.len()];
            for &part in &self.order {
                let times: f64 = at[part];
                if times == 0.0 {
                    continue;
                }
                for &other in &self.in_place[part] {
                    at[other] += times;
                }
                for &other in &self.within[part] {
                    below[other] += times;
                }
            }
            most = most.max(at.iter().sum());
            if most > MOST_WORK {
                break;
            }
            at = below;
        }
        most * values
    }
}

/// All objects and booleans of a schema with where they stand.
fn collect<'a>(
    node: &'a Value,
    pointer: String,
    level: usize,
    places: &mut HashMap<String, usize>,
    nodes: &mut Vec<(String, &'a Value)>,
) -> Result<(), String> {
    if level > MOST_LEVELS || nodes.len() >= MOST_NODES {
        return Err("it is too large".to_owned());
    }
    places.insert(pointer.clone(), nodes.len());
    nodes.push((pointer.clone(), node));
    match node {
        Value::Object(fields) => {
            for (key, part) in fields {
                if part.is_object() || part.is_array() || part.is_boolean() {
                    let below = format!("{pointer}/{}", escaped(key));
                    collect(part, below, level + 1, places, nodes)?;
                }
            }
        }
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                if part.is_object() || part.is_array() || part.is_boolean() {
                    collect(part, format!("{pointer}/{index}"), level + 1, places, nodes)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The part a reference means: only parts of the schema itself, by where they stand.
fn referred(reference: &Value, places: &HashMap<String, usize>) -> Result<usize, String> {
    let reference = reference.as_str().unwrap_or_default();
    let place = reference
        .strip_prefix('#')
        .filter(|place| !place.contains('%'))
        .and_then(|place| places.get(place));
    place.copied().ok_or_else(|| {
        let reference = super::shown(reference, 100);
        format!("it refers to `{reference}`, which is no part of it")
    })
}

/// The parts in an order in which each stands before those it leads to; there is none if one leads to
/// itself, which would never end.
fn ordered(edges: &[Vec<usize>]) -> Result<Vec<usize>, String> {
    let mut incoming = vec![0usize; edges.len()];
    for &to in edges.iter().flatten() {
        incoming[to] += 1;
    }
    let mut order: Vec<usize> = (0..edges.len())
        .filter(|&part| incoming[part] == 0)
        .collect();
    let mut next = 0;
    while let Some(&part) = order.get(next) {
        next += 1;
        for &to in &edges[part] {
            incoming[to] -= 1;
            if incoming[to] == 0 {
                order.push(to);
            }
        }
    }
    match order.len() == edges.len() {
        true => Ok(order),
        false => Err("a part of it refers to itself".to_owned()),
    }
}

/// How many values a value is made of, and how many levels deep. What was read from JSON is never so
/// deep that this could not be found out one in the other.
fn size(value: &Value) -> (f64, usize) {
    let mut parts: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(parts) => Box::new(parts.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => return (1.0, 1),
    };
    let (count, levels) = parts
        .by_ref()
        .map(size)
        .fold((1.0, 0), |(count, most), (more, levels)| {
            (count + more, most.max(levels))
        });
    (count, levels + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Result<(), String> {
        Schema::new(schema)?.check(value)
    }

    #[test]
    fn value_that_does_not_fit_is_told_where() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "$ref": "#/$defs/count" } },
            "required": ["n"],
            "$defs": { "count": { "type": "integer" } },
        });
        assert_eq!(check(&schema, &json!({ "n": 3 })), Ok(()));
        assert!(
            check(&schema, &json!({ "n": "x" }))
                .unwrap_err()
                .contains("`/n`")
        );
        assert!(check(&schema, &json!({})).is_err());
    }

    #[test]
    fn trees_may_refer_to_themselves_through_their_branches() {
        let schema = json!({
            "$ref": "#/$defs/tree",
            "$defs": { "tree": {
                "type": "object",
                "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/tree" } } },
            } },
        });
        let tree = json!({ "children": [{ "children": [] }, {}] });
        assert_eq!(check(&schema, &tree), Ok(()));
        assert!(check(&schema, &json!({ "children": [3] })).is_err());
    }

    #[test]
    fn schema_that_leads_to_itself_at_once_is_refused() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "not": { "$ref": "#/$defs/a" } } } }),
        ] {
            assert!(
                Schema::new(&schema).unwrap_err().contains("itself"),
                "{schema}"
            );
        }
    }

    #[test]
    fn foreign_references_are_refused() {
        for reference in [
            "http://127.0.0.1:1/x",
            "file:///etc/passwd",
            "other.json",
            "#anchor",
        ] {
            let schema = json!({ "properties": { "a": { "$ref": reference } } });
            assert!(Schema::new(&schema).is_err(), "{reference}");
        }
    }

    #[test]
    fn laughing_schemas_end_quickly() {
        // Every level doubles: in place, and along the value.
        let mut definitions = serde_json::Map::new();
        for n in 0..60 {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            definitions.insert(format!("d{n}"), json!({ "allOf": [next.clone(), next] }));
        }
        definitions.insert("d60".to_owned(), json!({ "type": "object" }));
        let in_place = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
        let along =
            json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        let begun = Instant::now();
        assert!(
            check(&in_place, &json!({}))
                .unwrap_err()
                .contains("too long")
        );
        assert!(check(&along, &deep).unwrap_err().contains("too long"));
        assert_eq!(check(&along, &json!({ "a": { "a": 1 } })), Ok(()));
        assert!(begun.elapsed().as_secs() < 5);
    }

    #[test]
    fn too_large_and_too_deep_schemas_are_refused() {
        let wide = json!({ "anyOf": vec![json!({ "type": "string" }); 30_000] });
        assert!(Schema::new(&wide).is_err());
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "items": deep });
        }
        assert!(Schema::new(&deep).is_err());
    }

    #[test]
    fn patterns_take_no_exponential_time() {
        let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
        let begun = Instant::now();
        assert!(check(&schema, &json!(format!("{}b", "a".repeat(50_000)))).is_err());
        assert!(begun.elapsed().as_secs() < 5);
    }
}
