//! A number as a parameter wants it: in its unit, as a fraction or in per cent, whole or not.

use serde_json::{Number, Value};

use super::number::Quantity;
use crate::lexicon::units::{self, Dimension, Unit};

/// What a description says about the numbers it wants.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Wanted {
    /// The unit.
    pub(crate) unit: Option<Unit>,
    /// Whether it must be a whole number.
    pub(crate) whole: bool,
    /// Whether per cents stay per cents instead of becoming fractions.
    pub(crate) percent: bool,
}

/// The number in the wanted form; nothing if it does not fit.
pub(crate) fn fitted(quantity: &Quantity, wanted: &Wanted) -> Option<f64> {
    let value = match quantity.unit {
        Some(unit) if unit.dimension == Dimension::Ratio => {
            if wanted.percent || wanted.whole {
                quantity.value
            } else {
                units::tidy(quantity.value / 100.0)
            }
        }
        Some(unit) => match wanted.unit {
            Some(target) => units::convert(quantity.value, unit, target).unwrap_or(quantity.value),
            None => quantity.value,
        },
        None => quantity.value,
    };
    (!wanted.whole || value.fract() == 0.0).then_some(value)
}

/// A number as JSON: whole numbers without a point.
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

    fn first(text: &str, wanted: &Wanted) -> Option<f64> {
        fitted(&numbers(&Text::new(text))[0], wanted)
    }

    #[test]
    fn quantities_take_the_wanted_unit() {
        let metres = Wanted {
            unit: units::unit("meters"),
            ..Wanted::default()
        };
        assert_eq!(first("180 cm", &metres), Some(1.8));
        assert_eq!(first("180", &metres), Some(180.0));
        let whole = Wanted {
            whole: true,
            ..metres
        };
        assert_eq!(first("180 cm", &whole), None);
    }

    #[test]
    fn per_cents_are_fractions_unless_per_cents_are_wanted() {
        assert_eq!(first("5%", &Wanted::default()), Some(0.05));
        let percent = Wanted {
            percent: true,
            ..Wanted::default()
        };
        assert_eq!(first("5%", &percent), Some(5.0));
    }

    #[test]
    fn whole_numbers_have_no_point() {
        assert_eq!(
            json_number(5.0).map(|n| n.to_string()).as_deref(),
            Some("5")
        );
        assert_eq!(json_number(f64::INFINITY), None);
    }
}
