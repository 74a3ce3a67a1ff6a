//! Converts Rust results to the JSON of a tool's return schema. A field without a value
//! becomes an absent field; everything else stays unchanged.

use serde::Serialize;
use serde_json::Value;
use windlass_spec::Type;

use crate::error::ToolError;

/// `result` as JSON of the type `declared`, if it is known.
pub(crate) fn answer(result: impl Serialize, declared: Option<&Type>) -> Result<Value, ToolError> {
    let mut value = serde_json::to_value(result).map_err(|error| {
        ToolError::new(format!("the result cannot be written as JSON: {error}"))
    })?;
    if let Some(declared) = declared {
        remove_absent(&mut value, declared);
    }
    Ok(value)
}

/// Removes the fields that are `null` where the type allows them to be absent but not `null`. Serde writes
/// an `Option` without a value as `null` unless every field has an attribute against it.
fn remove_absent(value: &mut Value, ty: &Type) {
    match (value, ty) {
        (Value::Object(entries), Type::Record(fields)) => {
            for field in fields {
                match entries.get_mut(&field.name) {
                    Some(Value::Null) if !field.is_required() => {
                        entries.shift_remove(&field.name);
                    }
                    Some(entry) => remove_absent(entry, &field.ty),
                    None => {}
                }
            }
        }
        (Value::Array(items), Type::List(item)) => {
            for entry in items {
                remove_absent(entry, item);
            }
        }
        (value, Type::Nullable(inner)) if !value.is_null() => remove_absent(value, inner),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use windlass_spec::{Field, Type};

    use super::answer;

    #[test]
    fn a_field_without_a_value_is_omitted_and_a_null_item_stays() {
        let entry = Type::Record(vec![
            Field::required("path", Type::Text),
            Field::optional("size", Type::Integer),
        ]);
        let declared = Type::list(Type::nullable(entry));
        let result = json!([{"path": "a", "size": null}, null, {"path": "b", "size": 1}]);
        assert_eq!(
            answer(&result, Some(&declared)),
            Ok(json!([{"path": "a"}, null, {"path": "b", "size": 1}]))
        );
        assert_eq!(answer(&result, None), Ok(result));
    }

    #[test]
    fn a_result_that_is_not_json_is_an_error_of_the_tool() {
        let error = answer(BTreeMap::from([(vec![1], 2)]), None).unwrap_err();
        assert_eq!(
            error.message(),
            "the result cannot be written as JSON: key must be a string"
        );
    }
}
