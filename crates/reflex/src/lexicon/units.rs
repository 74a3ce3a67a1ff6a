//! Units of measurement: their dimensions and conversions.

/// The dimension of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    Length,
    Area,
    Volume,
    Mass,
    Time,
    Speed,
    Acceleration,
    Temperature,
    Energy,
    Power,
    Pressure,
    Frequency,
    Angle,
    Current,
    Voltage,
    Resistance,
    Charge,
    Capacitance,
    Inductance,
    Force,
    Data,
    Ratio,
    /// Counted things, such as pixels or calories.
    Other,
}

/// A unit: its dimension, and its size in the dimension's base unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    /// Its usual name in the singular.
    pub(crate) name: &'static str,
    pub(crate) dimension: Dimension,
    pub(crate) factor: f64,
}

use Dimension as D;

/// (spellings, dimension, factor); the first spelling is the name. Spellings of one letter or with
/// capitals are compared exactly, the others without regard to case.
const UNITS: &[(&[&str], Dimension, f64)] = &[
    (&["meter", "meters", "metre", "metres", "m"], D::Length, 1.0),
    (
        &[
            "kilometer",
            "kilometers",
            "kilometre",
            "kilometres",
            "km",
            "kms",
        ],
        D::Length,
        1e3,
    ),
    (
        &[
            "centimeter",
            "centimeters",
            "centimetre",
            "centimetres",
            "cm",
            "cms",
        ],
        D::Length,
        1e-2,
    ),
    (&["millimeter", "millimeters", "mm"], D::Length, 1e-3),
    (&["micrometer", "micrometers", "µm", "um"], D::Length, 1e-6),
    (&["nanometer", "nanometers", "nm"], D::Length, 1e-9),
    (&["mile", "miles", "mi"], D::Length, 1609.344),
    (&["foot", "feet", "ft"], D::Length, 0.3048),
    (&["inch", "inches"], D::Length, 0.0254),
    (&["yard", "yards", "yd"], D::Length, 0.9144),
    (
        &["light year", "light years", "lightyears"],
        D::Length,
        9.460_730_472_580_8e15,
    ),
    (
        &["square meter", "square meters", "sqm", "m²", "m^2"],
        D::Area,
        1.0,
    ),
    (
        &["square kilometer", "square kilometers", "km²", "km^2"],
        D::Area,
        1e6,
    ),
    (
        &[
            "square foot",
            "square feet",
            "sqft",
            "sq ft",
            "sq.ft",
            "ft²",
            "ft^2",
        ],
        D::Area,
        0.092_903_04,
    ),
    (&["square mile", "square miles"], D::Area, 2_589_988.110_336),
    (&["acre", "acres"], D::Area, 4_046.856_422_4),
    (&["hectare", "hectares", "ha"], D::Area, 1e4),
    (
        &["cubic meter", "cubic meters", "m³", "m^3"],
        D::Volume,
        1.0,
    ),
    (
        &["liter", "liters", "litre", "litres", "L"],
        D::Volume,
        1e-3,
    ),
    (
        &[
            "milliliter",
            "milliliters",
            "millilitre",
            "millilitres",
            "ml",
            "mL",
        ],
        D::Volume,
        1e-6,
    ),
    (&["gallon", "gallons", "gal"], D::Volume, 0.003_785_411_784),
    (&["cup", "cups"], D::Volume, 0.000_236_588_236_5),
    (
        &["tablespoon", "tablespoons", "tbsp"],
        D::Volume,
        0.000_014_786_764_781_25,
    ),
    (
        &["teaspoon", "teaspoons", "tsp"],
        D::Volume,
        0.000_004_928_921_593_75,
    ),
    (
        &["kilogram", "kilograms", "kg", "kgs", "kilo", "kilos"],
        D::Mass,
        1.0,
    ),
    (&["gram", "grams", "g"], D::Mass, 1e-3),
    (&["milligram", "milligrams", "mg"], D::Mass, 1e-6),
    (&["tonne", "tonnes", "metric tons"], D::Mass, 1e3),
    (&["pound", "pounds", "lb", "lbs"], D::Mass, 0.453_592_37),
    (&["ounce", "ounces", "oz"], D::Mass, 0.028_349_523_125),
    (&["second", "seconds", "sec", "secs", "s"], D::Time, 1.0),
    (&["millisecond", "milliseconds", "ms"], D::Time, 1e-3),
    (&["minute", "minutes", "min", "mins"], D::Time, 60.0),
    (&["hour", "hours", "hr", "hrs", "h"], D::Time, 3600.0),
    (&["day", "days"], D::Time, 86_400.0),
    (&["night", "nights"], D::Time, 86_400.0),
    (&["week", "weeks"], D::Time, 604_800.0),
    (&["month", "months"], D::Time, 2_629_800.0),
    (&["quarter", "quarters"], D::Time, 7_889_400.0),
    (&["year", "years", "yr", "yrs"], D::Time, 31_557_600.0),
    (&["decade", "decades"], D::Time, 315_576_000.0),
    (
        &["meter per second", "meters per second", "m/s"],
        D::Speed,
        1.0,
    ),
    (
        &[
            "kilometer per hour",
            "kilometers per hour",
            "km/h",
            "kmh",
            "kph",
        ],
        D::Speed,
        1.0 / 3.6,
    ),
    (
        &["mile per hour", "miles per hour", "mph"],
        D::Speed,
        0.447_04,
    ),
    (&["knot", "knots"], D::Speed, 0.514_444),
    (
        &[
            "meter per second squared",
            "meters per second squared",
            "m/s^2",
            "m/s²",
            "m/s2",
        ],
        D::Acceleration,
        1.0,
    ),
    (
        &["celsius", "°c", "degree celsius", "degrees celsius", "C"],
        D::Temperature,
        1.0,
    ),
    (
        &[
            "fahrenheit",
            "°f",
            "degree fahrenheit",
            "degrees fahrenheit",
            "F",
        ],
        D::Temperature,
        2.0,
    ),
    (&["kelvin", "kelvins", "K"], D::Temperature, 3.0),
    (&["joule", "joules", "J"], D::Energy, 1.0),
    (&["kilojoule", "kilojoules", "kJ"], D::Energy, 1e3),
    (&["calorie", "calories", "cal"], D::Other, 1.0),
    (&["kilocalorie", "kilocalories", "kcal"], D::Other, 1.0),
    (
        &["kilowatt hour", "kilowatt hours", "kWh"],
        D::Energy,
        3.6e6,
    ),
    (&["watt", "watts", "W"], D::Power, 1.0),
    (&["kilowatt", "kilowatts", "kW"], D::Power, 1e3),
    (&["pascal", "pascals", "Pa"], D::Pressure, 1.0),
    (&["kilopascal", "kilopascals", "kPa"], D::Pressure, 1e3),
    (
        &["atmosphere", "atmospheres", "atm"],
        D::Pressure,
        101_325.0,
    ),
    (&["bar", "bars"], D::Pressure, 1e5),
    (&["hertz", "Hz", "hz"], D::Frequency, 1.0),
    (&["kilohertz", "kHz"], D::Frequency, 1e3),
    (&["megahertz", "MHz"], D::Frequency, 1e6),
    (&["gigahertz", "GHz"], D::Frequency, 1e9),
    (&["degree", "degrees", "°", "deg"], D::Angle, 1.0),
    (
        &["radian", "radians", "rad"],
        D::Angle,
        57.295_779_513_082_32,
    ),
    (&["ampere", "amperes", "amp", "amps", "A"], D::Current, 1.0),
    (&["milliampere", "milliamperes", "mA"], D::Current, 1e-3),
    (&["volt", "volts", "V"], D::Voltage, 1.0),
    (&["millivolt", "millivolts", "mV"], D::Voltage, 1e-3),
    (&["kilovolt", "kilovolts", "kV"], D::Voltage, 1e3),
    (&["ohm", "ohms", "Ω"], D::Resistance, 1.0),
    (&["coulomb", "coulombs"], D::Charge, 1.0),
    (
        &["microcoulomb", "microcoulombs", "µC", "uC"],
        D::Charge,
        1e-6,
    ),
    (&["farad", "farads"], D::Capacitance, 1.0),
    (&["millifarad", "millifarads", "mF"], D::Capacitance, 1e-3),
    (
        &["microfarad", "microfarads", "µF", "uF", "μF"],
        D::Capacitance,
        1e-6,
    ),
    (&["nanofarad", "nanofarads", "nF"], D::Capacitance, 1e-9),
    (&["picofarad", "picofarads", "pF"], D::Capacitance, 1e-12),
    (&["henry", "henries", "henrys", "H"], D::Inductance, 1.0),
    (&["millihenry", "millihenries", "mH"], D::Inductance, 1e-3),
    (
        &["microhenry", "microhenries", "µH", "uH"],
        D::Inductance,
        1e-6,
    ),
    (&["newton", "newtons", "N"], D::Force, 1.0),
    (&["byte", "bytes"], D::Data, 1.0),
    (&["kilobyte", "kilobytes", "KB", "kB"], D::Data, 1e3),
    (&["megabyte", "megabytes", "MB"], D::Data, 1e6),
    (&["gigabyte", "gigabytes", "GB"], D::Data, 1e9),
    (&["terabyte", "terabytes", "TB"], D::Data, 1e12),
    (
        &["percent", "%", "percentage", "per cent", "pct"],
        D::Ratio,
        1.0,
    ),
    (&["pixel", "pixels", "px"], D::Other, 1.0),
    (
        &["mile per gallon", "miles per gallon", "mpg"],
        D::Other,
        1.0,
    ),
    (
        &["beat per minute", "beats per minute", "bpm"],
        D::Other,
        1.0,
    ),
];

/// The unit with this spelling.
pub(crate) fn unit(spelling: &str) -> Option<Unit> {
    if spelling.is_empty()
        || spelling.len() > 32
        || !spelling.starts_with(|c: char| c.is_alphabetic() || matches!(c, '°' | '%'))
    {
        return None;
    }
    let exact = |known: &&str| *known == spelling;
    let find = |matches: &dyn Fn(&&str) -> bool| {
        UNITS
            .iter()
            .find(|(spellings, ..)| spellings.iter().any(matches))
            .map(|(spellings, dimension, factor)| Unit {
                name: spellings[0],
                dimension: *dimension,
                factor: *factor,
            })
    };
    find(&exact).or_else(|| {
        let lower = spelling.to_lowercase();
        find(&|known: &&str| {
            **known == *lower
                && known.chars().count() > 1
                && !known.chars().any(|c| c.is_ascii_uppercase())
        })
    })
}

/// Converts a value to another unit. `None` if that is not possible.
pub(crate) fn convert(value: f64, from: Unit, to: Unit) -> Option<f64> {
    if from == to {
        return Some(value);
    }
    if from.dimension != to.dimension || from.dimension == Dimension::Other {
        return None;
    }
    let converted = if from.dimension == Dimension::Temperature {
        let celsius = match from.name {
            "celsius" => value,
            "fahrenheit" => (value - 32.0) / 1.8,
            _ => value - 273.15,
        };
        match to.name {
            "celsius" => celsius,
            "fahrenheit" => celsius * 1.8 + 32.0,
            _ => celsius + 273.15,
        }
    } else if from.factor >= to.factor {
        value * (from.factor / to.factor)
    } else {
        value / (to.factor / from.factor)
    };
    Some(tidy(converted))
}

/// Rounds off the errors of binary arithmetic.
pub(crate) fn tidy(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(value: f64, from: &str, to: &str) -> Option<f64> {
        convert(value, unit(from).unwrap(), unit(to).unwrap())
    }

    #[test]
    fn quantities_convert_within_a_dimension_only() {
        assert_eq!(converted(100.0, "µF", "farads"), Some(1e-4));
        assert_eq!(converted(50.0, "mH", "henries"), Some(0.05));
        assert_eq!(converted(2.0, "hours", "minutes"), Some(120.0));
        assert_eq!(converted(100.0, "°C", "fahrenheit"), Some(212.0));
        assert_eq!(converted(3.0, "kg", "meters"), None);
    }

    #[test]
    fn short_unit_symbols_are_case_sensitive() {
        assert_eq!(unit("MB").map(|unit| unit.name), Some("megabyte"));
        assert_eq!(unit("K").map(|unit| unit.name), Some("kelvin"));
        assert_eq!(unit("k"), None);
        assert_eq!(unit("KM").map(|unit| unit.name), Some("kilometer"));
    }
}
