//! Safe validation against untrusted JSON Schemas. No reference is fetched, cyclic references are refused,
//! and the work of a check is estimated before it starts.

use std::collections::HashMap;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The most nodes and levels of a schema.
const MOST_NODES: usize = 20_000;
const MOST_LEVELS: usize = 64;

/// The most applications of subschemas to parts of a value.
const MOST_WORK: f64 = 20_000_000.0;

/// The largest compiled pattern, in bytes.
const MOST_PATTERN_BYTES: usize = 1 << 20;

/// Keywords whose subschemas apply to the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Keywords whose subschemas apply to parts of the value.
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

/// Keywords with named subschemas, for the same value and for parts of it.
const NAMED_IN_PLACE: &[&str] = &["dependentSchemas", "dependencies"];
const NAMED_WITHIN: &[&str] = &["properties", "patternProperties"];

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    graph: SchemaGraph,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let graph = SchemaGraph::of(schema)?;
        let validator = jsonschema::options()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MOST_PATTERN_BYTES)
                    .dfa_size_limit(MOST_PATTERN_BYTES),
            )
            .build(schema)
            .map_err(|error| {
                format!(
                    "it is not a valid schema: {}",
                    super::shown(&error.to_string(), 300)
                )
            })?;
        Ok(Self { validator, graph })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Where the value does not match, or why it cannot be checked.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        if self.graph.work(value) > MOST_WORK {
            return Err("checking it against the schema would take too long".to_owned());
        }
        self.validator.validate(value).map_err(|error| {
            let place = error.instance_path().to_string();
            let what = super::shown(&error.masked().to_string(), 300);
            format!("at `{place}`: {what}")
        })
    }
}

/// The graph of the subschemas of a schema.
#[derive(Debug, Default)]
struct SchemaGraph {
    /// For each subschema, those that apply to the same value.
    in_place: Vec<Vec<usize>>,
    /// For each subschema, those that apply to parts of the value.
    within: Vec<Vec<usize>>,
    /// The subschemas in topological order of `in_place`.
    order: Vec<usize>,
}

impl SchemaGraph {
    fn of(schema: &Value) -> Result<Self, String> {
        let mut places = HashMap::new();
        let mut nodes = Vec::new();
        collect(schema, String::new(), 0, &mut places, &mut nodes)?;
        let mut graph = Self::default();
        for (pointer, node) in &nodes {
            let mut in_place = Vec::new();
            let mut within = Vec::new();
            let Some(node) = node.as_object() else {
                graph.in_place.push(in_place);
                graph.within.push(within);
                continue;
            };
            for (key, part) in node {
                let below = format!("{pointer}/{}", escaped(key));
                let targets = match key.as_str() {
                    // A property may have this name too; then the value is not a string.
                    "$ref" | "$dynamicRef" | "$recursiveRef" if part.is_string() => {
                        in_place.push(resolve(part, &places)?);
                        continue;
                    }
                    "$id" | "$anchor" | "$dynamicAnchor"
                        if part.is_string() && !pointer.is_empty() =>
                    {
                        return Err("it contains a nested `$id` or anchor".to_owned());
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
            graph.in_place.push(in_place);
            graph.within.push(within);
        }
        graph.order = topological_order(&graph.in_place)?;
        Ok(graph)
    }

    /// An upper bound of how often subschemas are applied to parts of the value.
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

/// All nodes of a schema with their JSON pointers.
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

/// The target of a reference, which must be a JSON pointer within the schema.
fn resolve(reference: &Value, places: &HashMap<String, usize>) -> Result<usize, String> {
    let reference = reference.as_str().unwrap_or_default();
    let place = reference
        .strip_prefix('#')
        .filter(|place| !place.contains('%'))
        .and_then(|place| places.get(place));
    place.copied().ok_or_else(|| {
        let reference = super::shown(reference, 100);
        format!("it refers to `{reference}`, which is not within the schema")
    })
}

/// The subschemas in topological order. Fails on a cycle, which would never end.
fn topological_order(edges: &[Vec<usize>]) -> Result<Vec<usize>, String> {
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
        false => Err("a subschema refers to itself".to_owned()),
    }
}

/// The number of values in a value, and its depth. Recursion is safe: the JSON parser limits the depth.
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
    fn a_mismatch_names_its_location() {
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
    fn recursive_types_are_allowed() {
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
    fn schemas_with_cyclic_references_are_refused() {
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
    fn external_references_are_refused() {
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
    fn exponential_schemas_are_refused_quickly() {
        // Every level doubles the work: in place, and along the value.
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
    fn patterns_do_not_take_exponential_time() {
        let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
        let begun = Instant::now();
        assert!(check(&schema, &json!(format!("{}b", "a".repeat(50_000)))).is_err());
        assert!(begun.elapsed().as_secs() < 5);
    }
}
