//! The role of a parameter's values, derived from its name, else from its description.

use serde_json::Value;

use super::Kind;
use crate::text::{Text, Token};

/// The role of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    City,
    State,
    Country,
    /// Any other place.
    Place,
    Date,
    Time,
    Year,
    Month,
    Weekday,
    Person,
    Organisation,
    Email,
    Url,
    Path,
    Code,
    Phone,
    Currency,
    Language,
    Unit,
    Colour,
    Formula,
    Money,
    Rate,
    Count,
    /// A text that a person wrote or wants written.
    FreeText,
    Other,
}

/// Whether a parameter is the start or the end of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    From,
    To,
    None,
}

/// The role of a parameter.
pub(crate) fn role(kind: &Kind, name: &[String], meaning: &str, schema: &Value) -> Role {
    if let Some(format) = schema.get("format").and_then(Value::as_str) {
        match format {
            "date" | "date-time" => return Role::Date,
            "time" => return Role::Time,
            "email" => return Role::Email,
            "uri" | "url" => return Role::Url,
            _ => {}
        }
    }
    let tokens: Vec<String> = Text::new(meaning)
        .tokens
        .into_iter()
        .filter(Token::is_word)
        .map(|token| token.lower)
        .collect();
    let item = match kind {
        Kind::List(item) => item,
        other => other,
    };
    if item.is_numeric() {
        return numeric(name, &tokens);
    }
    if meaning.to_lowercase().contains("time zone")
        || name.iter().any(|word| word == "timezone" || word == "tz")
    {
        return Role::Place;
    }
    // The last word of a name decides, except `name`: `company_location` is a location.
    let head = name
        .iter()
        .rev()
        .filter(|word| !matches!(word.as_str(), "name" | "names" | "1" | "2" | "3" | "value"))
        .find_map(|word| textual(word));
    if let Some(role) = head {
        return role;
    }
    let is_a_name = name.len() == 1
        || name
            .last()
            .is_some_and(|last| last == "name" || last == "names");
    if is_a_name && tokens.iter().any(|word| is_person(word)) {
        return Role::Person;
    }
    // The first words of the description decide: `The city that you want the weather for`.
    tokens
        .iter()
        .take(8)
        .find_map(|word| textual(word))
        .unwrap_or(Role::Other)
}

fn numeric(name: &[String], meaning: &[String]) -> Role {
    let named = |wanted: &[&str]| name.iter().any(|word| wanted.contains(&word.as_str()));
    let described = |wanted: &[&str]| meaning.iter().any(|word| wanted.contains(&word.as_str()));
    if named(&["year"]) || name.len() == 1 && named(&["date"]) && described(&["year"]) {
        return Role::Year;
    }
    if named(&["id", "identifier", "code", "zip", "zipcode"]) {
        return Role::Code;
    }
    if named(&[
        "rate",
        "percentage",
        "percent",
        "yield",
        "interest",
        "discount",
        "probability",
        "ratio",
        "return",
    ]) {
        return Role::Rate;
    }
    if named(&[
        "price",
        "budget",
        "cost",
        "amount",
        "principal",
        "investment",
        "salary",
        "income",
        "payment",
        "fee",
        "deposit",
        "payout",
        "equity",
        "revenue",
        "balance",
    ]) || described(&[
        "dollars", "money", "price", "usd", "budget", "cost", "currency",
    ]) {
        return Role::Money;
    }
    if named(&[
        "num", "number", "count", "limit", "quantity", "top", "n", "max", "size", "total",
        "nights", "guests", "people", "rooms",
    ]) || described(&["number", "count", "quantity", "many"])
    {
        return Role::Count;
    }
    Role::Other
}

fn textual(word: &str) -> Option<Role> {
    Some(match word {
        "city" | "town" | "cities" => Role::City,
        "state" | "province" => Role::State,
        "country" | "nation" | "countries" => Role::Country,
        "location" | "locations" | "place" | "places" | "region" | "area" | "county"
        | "address" | "destination" | "origin" | "venue" | "district" | "neighborhood"
        | "pickup" | "dropoff" | "where" | "loc" => Role::Place,
        "date" | "dates" | "when" | "datetime" | "deadline" | "birthday" | "checkin"
        | "checkout" => Role::Date,
        "time" | "times" => Role::Time,
        "month" => Role::Month,
        "weekday" | "day" => Role::Weekday,
        "year" => Role::Year,
        "email" | "mail" => Role::Email,
        "url" | "link" | "website" | "uri" | "webpage" => Role::Url,
        "path" | "paths" | "files" | "attachments" | "attachment" | "file" | "filename"
        | "folder" | "directory" | "filepath" => Role::Path,
        "id" | "identifier" | "code" | "sku" | "isbn" | "zip" | "zipcode" | "docket" | "key"
        | "token" | "hash" | "username" | "repo" | "repos" | "repository" | "ids" => {
            if word == "key" {
                return None;
            }
            Role::Code
        }
        "phone" | "telephone" => Role::Phone,
        "currency" | "currencies" => Role::Currency,
        "language" | "lang" | "languages" => Role::Language,
        "unit" | "units" => Role::Unit,
        "color" | "colour" | "colors" => Role::Colour,
        "equation" | "formula" | "expression" | "function" | "polynomial" => Role::Formula,
        "message" | "command" | "text" | "content" | "body" | "query" | "prompt" | "question"
        | "comment" | "note" | "sentence" | "statement" | "instruction" | "instructions"
        | "keyword" | "keywords" | "request" => Role::FreeText,
        "company" | "brand" | "manufacturer" | "store" | "team" | "organization"
        | "organisation" | "employer" | "league" | "airline" | "restaurant" | "hotel" | "bank" => {
            Role::Organisation
        }
        word if is_person(word) => Role::Person,
        _ => return None,
    })
}

fn is_person(word: &str) -> bool {
    matches!(
        word,
        "actor"
            | "actress"
            | "author"
            | "artist"
            | "player"
            | "person"
            | "director"
            | "singer"
            | "celebrity"
            | "employee"
            | "customer"
            | "patient"
            | "user"
            | "scientist"
            | "inventor"
            | "composer"
            | "writer"
            | "composers"
            | "painter"
            | "athlete"
            | "musician"
            | "recipient"
            | "sender"
            | "contact"
            | "friend"
            | "driver"
            | "judge"
            | "lawyer"
            | "doctor"
            | "leader"
            | "politician"
            | "guest"
            | "cast"
            | "starring"
    )
}

/// The direction of a parameter.
pub(crate) fn direction(kind: &Kind, name: &[String], meaning: &str) -> Direction {
    let is = |word: &str, wanted: &[&str]| wanted.contains(&word);
    const FROM: &[&str] = &[
        "from",
        "start",
        "starting",
        "origin",
        "source",
        "departure",
        "begin",
        "beginning",
        "initial",
        "base",
        "min",
        "minimum",
        "src",
        "pickup",
        "checkin",
        "old",
        "since",
        "after",
    ];
    const TO: &[&str] = &[
        "to",
        "end",
        "ending",
        "destination",
        "target",
        "arrival",
        "final",
        "finish",
        "max",
        "maximum",
        "dest",
        "dropoff",
        "checkout",
        "new",
        "until",
        "before",
    ];
    for word in name {
        // An initial speed or a maximum size is a value of its own, not the end of a range.
        let loose = is(
            word,
            &[
                "initial", "final", "base", "min", "max", "minimum", "maximum", "old", "new",
                "target",
            ],
        );
        if loose && kind.is_numeric() {
            continue;
        }
        if is(word, FROM) {
            return Direction::From;
        }
        if is(word, TO) {
            return Direction::To;
        }
    }
    let lower = meaning.to_lowercase();
    if [
        "convert from",
        "converting from",
        "depart from",
        "starting point",
        "travel from",
        "start of",
        "start from",
    ]
    .iter()
    .any(|cue| lower.contains(cue))
    {
        Direction::From
    } else if [
        "convert to",
        "converting to",
        "end point",
        "ending point",
        "travel to",
        "end of the",
        "convert into",
    ]
    .iter()
    .any(|cue| lower.contains(cue))
    {
        Direction::To
    } else {
        Direction::None
    }
}

/// The number of a parameter among similar ones: `number2`, `the first body`, `dataset_B`.
pub(crate) fn ordinal(name: &[String], meaning: &str) -> Option<u32> {
    if name.len() > 1
        && let Some(number) = name
            .last()
            .and_then(|last| last.parse::<u32>().ok())
            .filter(|number| (1..=20).contains(number))
    {
        return Some(number);
    }
    let of_word = |word: &str| match word {
        "first" => Some(1),
        "second" => Some(2),
        "third" => Some(3),
        "fourth" => Some(4),
        _ => None,
    };
    let in_meaning = || {
        meaning
            .split_whitespace()
            .take(6)
            .find_map(|word| of_word(&word.to_lowercase()))
    };
    let by_letter = match name {
        [_, .., last] => match last.as_str() {
            "a" => Some(1),
            "b" => Some(2),
            "c" => Some(3),
            _ => None,
        },
        _ => None,
    };
    name.iter()
        .find_map(|word| of_word(word))
        .or_else(in_meaning)
        .or(by_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::name_words;
    use serde_json::json;

    fn role_of(kind: Kind, name: &str, meaning: &str) -> Role {
        role(&kind, &name_words(name), meaning, &json!({}))
    }

    #[test]
    fn roles_come_from_names_before_descriptions() {
        assert_eq!(
            role_of(Kind::Text, "court_location", "The court"),
            Role::Place
        );
        assert_eq!(
            role_of(Kind::Text, "start", "Starting location for the route."),
            Role::Place
        );
        assert_eq!(
            role_of(Kind::Text, "actor_name", "The name of the actor."),
            Role::Person
        );
        assert_eq!(role_of(Kind::Integer, "year", "The year"), Role::Year);
        assert_eq!(role_of(Kind::Number, "annual_rate", ""), Role::Rate);
    }

    #[test]
    fn directions_and_ordinals_distinguish_similar_parameters() {
        assert_eq!(
            direction(&Kind::Text, &name_words("from_currency"), ""),
            Direction::From
        );
        assert_eq!(
            direction(&Kind::Text, &name_words("end_city"), ""),
            Direction::To
        );
        assert_eq!(ordinal(&name_words("number2"), ""), Some(2));
        assert_eq!(ordinal(&name_words("sign"), "The first sign"), Some(1));
        assert_eq!(ordinal(&name_words("dataset_B"), ""), Some(2));
    }
}
