//! Tests of the envelope: each documented shape as output and as input, each rule, and property tests
//! over generated answers.

mod documentation;
mod faces;
mod generate;
mod legacy;
mod legacy_errors;
mod legacy_hil;
mod patterns;
mod properties;
mod schemas;
mod stream;
mod strict;
mod words;

use serde_json::Value;

use super::{Action, DeprecationCode, Normalised, ToolResponse, normalise};
use crate::names::NonEmptyText;
use crate::time::Timestamp;

const TIME: &str = "2025-10-18T09:30:00Z";

fn time() -> Timestamp {
    TIME.parse().unwrap()
}

fn received_at() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn text(text: &str) -> NonEmptyText {
    NonEmptyText::new(text).unwrap()
}

fn action(name: &str) -> Action {
    Action::new(name).unwrap()
}

fn normalised(json: &Value) -> Normalised {
    normalise(json, received_at())
}

/// The canonical JSON that `json` becomes, and the codes and pointers of its notices. Also checks that
/// the result is canonical.
fn rewritten(json: &Value) -> (Value, Vec<(&'static str, String)>) {
    let Normalised { response, notices } = normalised(json);
    let written = response.for_operator();
    schemas::assert_valid(&written);
    let again = normalised(&written);
    assert_eq!(again.response, response);
    assert_eq!(again.notices, []);
    let notices = notices.into_iter().map(|n| (n.code.as_str(), n.pointer));
    (written, notices.collect())
}

/// Checks that `json` becomes `canonical`, with exactly these notices in this order.
fn assert_normalised(
    json: &Value,
    canonical: &Value,
    expected_notices: &[(DeprecationCode, &str)],
) {
    let (written, notices) = rewritten(json);
    assert_eq!(written, *canonical);
    let expected_notices: Vec<_> = expected_notices
        .iter()
        .map(|(code, pointer)| (code.as_str(), (*pointer).to_owned()))
        .collect();
    assert_eq!(notices, expected_notices);
}

/// Checks that an answer is written as `json`, reads back, is valid, and is not changed by `normalise`.
fn assert_canonical(response: &ToolResponse, json: &Value) {
    assert_eq!(response.for_operator(), *json);
    assert_eq!(
        ToolResponse::from_value(json.clone()).as_ref(),
        Ok(response)
    );
    let through_text: ToolResponse = serde_json::from_str(&json.to_string()).unwrap();
    assert_eq!(through_text, *response);
    schemas::assert_valid(json);
    let normalised = normalised(json);
    assert_eq!(normalised.response, *response);
    assert_eq!(normalised.notices, []);
}
