//! Converts JSON values to Cedar values. A value without an exact representation is never rounded or
//! cut: it is [`Unfit`], and the call is denied.

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Number, Value};
use windlass_spec::{Confidence, Presence};

use crate::shape::{Attribute, Shape};

/// The number of decimal places.
const PLACES: usize = 4;

/// Why a value cannot be represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It does not have the declared type.
    Misfit,
    /// It has the declared type, but no exact representation.
    Inexpressible,
}

/// The value of an attribute in `object`; `None` if it is absent and optional.
pub(crate) fn attribute(
    attribute: &Attribute,
    object: &Map<String, Value>,
) -> Result<Option<RestrictedExpression>, Unfit> {
    match (object.get(&attribute.name), &attribute.presence) {
        (Some(value), _) | (None, Presence::Default(value)) => {
            express(&attribute.shape, value).map(Some)
        }
        (None, Presence::Optional) => Ok(None),
        (None, Presence::Required) => Err(Unfit::Misfit),
    }
}

/// A value of that shape.
fn express(shape: &Shape, value: &Value) -> Result<RestrictedExpression, Unfit> {
    match (shape, value) {
        (Shape::Text, Value::String(text)) => Ok(RestrictedExpression::new_string(text.clone())),
        (Shape::Words(words), Value::String(text)) if words.contains(text) => {
            Ok(RestrictedExpression::new_string(text.clone()))
        }
        (Shape::Long, Value::Number(number)) => long(number).map(RestrictedExpression::new_long),
        (Shape::Decimal, Value::Number(number)) => {
            decimal(number).map(RestrictedExpression::new_decimal)
        }
        (Shape::Bool, Value::Bool(truth)) => Ok(RestrictedExpression::new_bool(*truth)),
        (Shape::Set(item), Value::Array(items)) => {
            let items: Result<Vec<_>, _> = items.iter().map(|value| express(item, value)).collect();
            Ok(RestrictedExpression::new_set(items?))
        }
        (Shape::Record(attributes), Value::Object(object)) => record(attributes, object),
        _ => Err(Unfit::Misfit),
    }
}

fn record(
    attributes: &[Attribute],
    object: &Map<String, Value>,
) -> Result<RestrictedExpression, Unfit> {
    let mut fields = Vec::with_capacity(attributes.len());
    for field in attributes {
        if let Some(value) = attribute(field, object)? {
            fields.push((field.name.clone(), value));
        }
    }
    RestrictedExpression::new_record(fields).map_err(|_| Unfit::Misfit)
}

/// A number without a fractional part, in any notation.
fn long(number: &Number) -> Result<i64, Unfit> {
    /// Beyond this, not every integer has an exact floating-point representation.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(number) = number.as_i64() {
        return Ok(number);
    }
    match number.as_f64() {
        Some(float) if float.fract() != 0.0 => Err(Unfit::Misfit),
        // Within these bounds the conversion is exact.
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits")]
        Some(float) if float.abs() <= EXACT => Ok(float as i64),
        _ => Err(Unfit::Inexpressible),
    }
}

/// A number as a decimal literal: up to four places, within 64 bits.
fn decimal(number: &Number) -> Result<String, Unfit> {
    let digits = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        // The shortest digits that parse back to the same number.
        (None, Some(float)) if !number.is_u64() => (float + 0.0).to_string(),
        _ => return Err(Unfit::Inexpressible),
    };
    let (whole, places) = digits.split_once('.').unwrap_or((&digits, "0"));
    let scaled = format!("{whole}{places:0<PLACES$}");
    if places.len() > PLACES || scaled.parse::<i64>().is_err() {
        return Err(Unfit::Inexpressible);
    }
    Ok(format!("{whole}.{places}"))
}

/// A confidence as a decimal literal, truncated: a lower confidence only makes decisions stricter.
pub(crate) fn digits(confidence: Confidence) -> String {
    let digits = confidence.get().to_string();
    let (whole, places) = digits.split_once('.').unwrap_or((&digits, "0"));
    let places: String = places.chars().take(PLACES).collect();
    format!("{whole}.{places}")
}

#[cfg(test)]
mod tests;
