//! Converts a number to the format of a parameter: its unit, fraction or per cent, integer or not.

use serde_json::{Number, Value};

use super::number::Quantity;
use crate::lexicon::units::{self, Dimension, Unit};

/// The format of a parameter's numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NumberFormat {
    /// The unit.
    pub(crate) unit: Option<Unit>,
    /// Whether it must be an integer.
    pub(crate) whole: bool,
    /// Whether percentages are kept instead of converted to fractions.
    pub(crate) percent: bool,
}

/// The number in this format. `None` if it does not fit.
pub(crate) fn fitted(quantity: &Quantity, format: &NumberFormat) -> Option<f64> {
    let value = match quantity.unit {
        Some(unit) if unit.dimension == Dimension::Ratio => {
            if format.percent || format.whole {
                quantity.value
            } else {
                units::tidy(quantity.value / 100.0)
            }
        }
        Some(unit) => match format.unit {
            Some(target) => units::convert(quantity.value, unit, target).unwrap_or(quantity.value),
            None => quantity.value,
        },
        None => quantity.value,
    };
    (!format.whole || value.fract() == 0.0).then_some(value)
}

/// A number as JSON: integers without a decimal point.
pub(crate) fn json_number(value: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within the exact range"
        )]
        let whole = value as i64;
        return Some(Value::from(whole));
    }
    Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::number::numbers;
    use crate::text::Text;

    fn first(text: &str, format: &NumberFormat) -> Option<f64> {
        fitted(&numbers(&Text::new(text))[0], format)
    }

    #[test]
    fn quantities_are_converted_to_the_unit_of_the_format() {
        let metres = NumberFormat {
            unit: units::unit("meters"),
            ..NumberFormat::default()
        };
        assert_eq!(first("180 cm", &metres), Some(1.8));
        assert_eq!(first("180", &metres), Some(180.0));
        let whole = NumberFormat {
            whole: true,
            ..metres
        };
        assert_eq!(first("180 cm", &whole), None);
    }

    #[test]
    fn percentages_become_fractions_unless_the_format_keeps_them() {
        assert_eq!(first("5%", &NumberFormat::default()), Some(0.05));
        let percent = NumberFormat {
            percent: true,
            ..NumberFormat::default()
        };
        assert_eq!(first("5%", &percent), Some(5.0));
    }

    #[test]
    fn integers_have_no_decimal_point() {
        assert_eq!(
            json_number(5.0).map(|n| n.to_string()).as_deref(),
            Some("5")
        );
        assert_eq!(json_number(f64::INFINITY), None);
    }
}
