//! Places in the form that a parameter expects: the city alone, with its state, with its country, or as a code.

use crate::lexicon::places::{self, PlaceKind};
use crate::parameter::{Parameter, Role};

/// How well a kind of place fits a parameter about places.
pub(crate) fn fit(kind: PlaceKind, composed: bool, parameter: &Parameter) -> f32 {
    match (parameter.role, kind) {
        (Role::Place, PlaceKind::Address) => 0.9,
        (_, PlaceKind::Address) => -0.2,
        (Role::City, PlaceKind::City) => 0.7,
        (Role::City, _) => -0.3,
        (Role::State, PlaceKind::State) => 0.9,
        (Role::State, PlaceKind::City) => -0.2,
        (Role::State, PlaceKind::Country) => -0.4,
        (Role::Country, PlaceKind::Country) => 0.9,
        (Role::Country, _) => -0.4,
        _ if composed => 0.75,
        _ => 0.6,
    }
}

/// A place in the form that the parameter expects.
pub(crate) fn written(
    place: &str,
    parameter: &Parameter,
    has_state: bool,
    has_country: bool,
) -> String {
    let place = places::capitalised(place);
    let description = parameter.description.to_lowercase();
    let wants_state = [
        "city and state",
        "city, state",
        "city and the state",
        ", ca",
        ", ny",
        ", il",
        ", wa",
        ", tx",
        ", ma",
        "city/state",
    ]
    .iter()
    .any(|cue| description.contains(cue));
    let wants_country = [
        "city, country",
        "city and country",
        "country code",
        ", uk",
        ", france",
        ", japan",
        ", us",
    ]
    .iter()
    .any(|cue| description.contains(cue));
    if place.starts_with(|c: char| c.is_ascii_digit()) {
        return place.to_owned();
    }
    let first = place.split(',').next().unwrap_or(place).trim();
    if place.contains(',') {
        let alone = has_state || has_country || description.contains("city name");
        let city_only = parameter.role == Role::City && !wants_state && !wants_country;
        if alone && !wants_state || city_only {
            return first.to_owned();
        }
        if wants_state {
            // `Denver, Colorado` becomes `Denver, CO` if the description shows codes.
            let rest = place[first.len()..].trim_start_matches([',', ' ']);
            let shows_code = [", ca", ", ny", ", il", ", wa", ", tx", ", ma", ", co"]
                .iter()
                .any(|cue| description.contains(cue));
            if let Some(code) = places::state_code(rest).filter(|_| shows_code) {
                return format!("{first}, {code}");
            }
        }
        return place.to_owned();
    }
    if (wants_state || wants_country) && !has_state && !has_country {
        if let Some(state) = places::state_of(place).filter(|_| wants_state) {
            return format!("{place}, {state}");
        }
        if let Some(country) = places::country_of(place) {
            return format!("{place}, {country}");
        }
    }
    if parameter.role == Role::Country
        && (description.contains("iso") || description.contains("code"))
        && let Some(code) = places::country_code(place)
    {
        return code.to_owned();
    }
    if parameter.role == Role::State {
        let wants_code = description.contains("abbreviat")
            || description.contains("code")
            || description.contains("two-letter")
            || description.contains("two letter");
        if wants_code && let Some(code) = places::state_code(place) {
            return code.to_owned();
        }
        if !wants_code && let Some(name) = places::state_name(place) {
            return name.to_owned();
        }
    }
    place.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::parameters;
    use serde_json::json;

    fn place(name: &str, description: &str, place: &str) -> String {
        let schema = json!({"type": "object", "properties": {name: {"type": "string", "description": description}}});
        written(place, &parameters(&schema)[0], false, false)
    }

    #[test]
    fn a_city_gets_its_state_if_the_description_asks_for_both() {
        assert_eq!(
            place(
                "location",
                "The city and state, e.g. San Francisco, CA",
                "Chicago"
            ),
            "Chicago, IL"
        );
        assert_eq!(
            place(
                "location",
                "The city and state, e.g. San Francisco, CA",
                "Paris"
            ),
            "Paris, France"
        );
        assert_eq!(
            place(
                "location",
                "The city and state, e.g. San Francisco, CA",
                "Denver, Colorado"
            ),
            "Denver, CO"
        );
        assert_eq!(place("city", "The city", "Tokyo, Japan"), "Tokyo");
        assert_eq!(place("location", "The location", "Chicago"), "Chicago");
    }
}
