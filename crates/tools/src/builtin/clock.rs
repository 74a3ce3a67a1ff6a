//! The tool `get_current_time`. Time zones are bundled, so that every machine has the same ones.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};
use windlass_spec::nearest;

use super::{declared, invalid};
use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::tool::Tool;

pub(super) fn get_current_time() -> Result<Tool, ToolBuildError> {
    let zones = TimeZoneDatabase::bundled();
    declared::GET_CURRENT_TIME
        .builder()
        .typed(move |arguments: Arguments| {
            let time = time_in_zone(&zones, &arguments.timezone, Timestamp::now());
            async move { time }
        })
        .build()
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default = "utc")]
    timezone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

#[derive(Debug, PartialEq, Serialize)]
struct Time {
    time: String,
    timezone: String,
    weekday: String,
}

fn time_in_zone(
    zones: &TimeZoneDatabase,
    requested: &str,
    now: Timestamp,
) -> Result<Time, ToolError> {
    let (timezone, zone) = find_zone(zones, requested)?;
    let time = now.to_zoned(zone);
    Ok(Time {
        time: time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        weekday: time.strftime("%A").to_string(),
        timezone,
    })
}

/// The requested zone: by its name in any case, or by its city if only one zone has it.
fn find_zone(zones: &TimeZoneDatabase, requested: &str) -> Result<(String, TimeZone), ToolError> {
    const SUGGESTIONS: usize = 3;
    let written = requested.trim().replace(' ', "_");
    let names: Vec<String> = zones.available().map(|name| name.to_string()).collect();
    let named = |name: &&String| name.eq_ignore_ascii_case(&written);
    let city_of = |name: &String| name.rsplit_once('/').map(|(_, city)| city.to_owned());
    let in_city =
        |name: &&String| city_of(name).is_some_and(|city| city.eq_ignore_ascii_case(&written));
    let mut cities = names.iter().filter(in_city);
    let found = match (names.iter().find(named), cities.next(), cities.next()) {
        (Some(name), _, _) | (None, Some(name), None) => Some(name),
        _ => None,
    };
    if let Some(name) = found
        && let Ok(zone) = zones.get(name)
    {
        return Ok((name.clone(), zone));
    }
    let mut near: Vec<String> = names
        .iter()
        .filter(in_city)
        .take(SUGGESTIONS)
        .cloned()
        .collect();
    if near.is_empty() {
        let name = nearest(&written, names.iter().map(String::as_str));
        near.extend(name.map(str::to_owned));
    }
    if near.is_empty() {
        let cities: Vec<(String, &String)> = names
            .iter()
            .filter_map(|name| Some((city_of(name)?, name)))
            .collect();
        let city = nearest(&written, cities.iter().map(|(city, _)| city.as_str()));
        let zone = cities
            .iter()
            .find(|(known, _)| Some(known.as_str()) == city);
        near.extend(zone.map(|(_, name)| (*name).clone()));
    }
    let help = if near.is_empty() {
        "give an IANA name such as `Europe/Berlin`".to_owned()
    } else {
        format!("did you mean `{}`?", near.join("` or `"))
    };
    let shown: String = requested.chars().take(60).collect();
    Err(invalid(format!("there is no time zone {shown:?}; {help}")))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZoneDatabase;

    use super::{Time, time_in_zone};

    fn at_noon(zone: &str) -> Result<Time, String> {
        let now: Timestamp = "2026-07-01T12:00:00Z".parse().unwrap();
        time_in_zone(&TimeZoneDatabase::bundled(), zone, now)
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn the_time_has_its_offset_and_weekday() {
        let berlin = at_noon("Europe/Berlin").unwrap();
        assert_eq!(berlin.time, "2026-07-01T14:00:00+02:00");
        assert_eq!(berlin.weekday, "Wednesday");
        assert_eq!(at_noon("UTC").unwrap().time, "2026-07-01T12:00:00+00:00");
    }

    #[test]
    fn a_zone_is_found_in_any_case_and_by_its_city() {
        assert_eq!(at_noon("europe/berlin").unwrap().timezone, "Europe/Berlin");
        assert_eq!(at_noon("utc").unwrap().timezone, "UTC");
        assert_eq!(at_noon("New York").unwrap().timezone, "America/New_York");
        assert_eq!(at_noon(" tokyo ").unwrap().timezone, "Asia/Tokyo");
    }

    #[test]
    fn an_unknown_zone_is_reported_with_a_suggestion() {
        assert_eq!(
            at_noon("Europe/Berln").unwrap_err(),
            "there is no time zone \"Europe/Berln\"; did you mean `Europe/Berlin`?"
        );
        let city = at_noon("Berln").unwrap_err();
        assert!(city.contains("`Europe/Berlin`"), "{city}");
        assert_eq!(
            at_noon("the moon of a far planet").unwrap_err(),
            "there is no time zone \"the moon of a far planet\"; give an IANA name such as `Europe/Berlin`"
        );
        assert!(at_noon("").is_err());
    }
}
