//! Legacy errors, contradictory statuses, and status words of other tools.

use serde_json::{Value, json};

use super::legacy::success;
use super::{TIME, assert_normalised, normalised, rewritten};
use crate::envelope::DeprecationCode as Code;

fn foreign(error: &str, data: &Value) -> Value {
    json!({
        "status": "error",
        "action": "web_search",
        "data": data,
        "error": error,
        "category": "tool_failure",
        "retryable": false,
        "effect": "unknown",
        "model_message":
            "the tool failed (tool_failure): see the message; report it to the maintainer of the tool",
        "timestamp": TIME,
    })
}

#[test]
fn pattern_2_an_error_without_category_is_completed_and_its_message_withheld_from_the_model() {
    let json = json!({
        "status": "error", "action": "web_search", "data": {}, "error": "boom", "timestamp": TIME,
    });
    let expected_notices = [(Code::ErrorIncomplete, "/category")];
    assert_normalised(&json, &foreign("boom", &json!({})), &expected_notices);
    let instead = &normalised(&json).notices[0].instead;
    assert_eq!(instead, "`category`, `effect`, `retryable` next to `error`");
    assert!(
        !normalised(&json)
            .response
            .for_model()
            .to_string()
            .contains("boom")
    );
}

#[test]
fn an_error_is_found_in_data_and_under_other_names() {
    for (json, code, pointer, rest) in [
        (
            json!({"status": "error", "data": {"error": "boom", "page": 2}}),
            Code::ErrorInData,
            "/data/error",
            json!({"page": 2}),
        ),
        (
            json!({"status": "error", "data": {"error_message": "boom"}}),
            Code::ErrorInData,
            "/data/error_message",
            json!({}),
        ),
        (
            json!({"status": "error", "data": {}, "error_message": "boom"}),
            Code::ErrorMessageField,
            "/error_message",
            json!({}),
        ),
        (
            json!({"status": "error", "data": {}, "message": "boom"}),
            Code::ErrorMessageField,
            "/message",
            json!({}),
        ),
    ] {
        let mut json = json;
        json["action"] = json!("web_search");
        json["timestamp"] = json!(TIME);
        let expected_notices = [(code, pointer), (Code::ErrorIncomplete, "/category")];
        assert_normalised(&json, &foreign("boom", &rest), &expected_notices);
    }
}

#[test]
fn an_error_that_is_an_object_keeps_its_details() {
    let json = json!({
        "status": "error", "action": "web_search", "data": {}, "timestamp": TIME,
        "error": {"code": 5, "message": "boom"},
    });
    let rest = json!({"reported_error": {"code": 5, "message": "boom"}});
    let expected_notices = [
        (Code::ErrorNotText, "/error"),
        (Code::ErrorIncomplete, "/category"),
    ];
    assert_normalised(&json, &foreign("boom", &rest), &expected_notices);
}

#[test]
fn an_error_without_a_message_gets_a_default_message() {
    let json = json!({"status": "error", "action": "web_search", "data": null, "timestamp": TIME});
    let expected_notices = [
        (Code::ErrorTextMissing, "/error"),
        (Code::ErrorIncomplete, "/category"),
        (Code::DataNotObject, "/data"),
    ];
    let text = "the tool reported an error without a message";
    assert_normalised(&json, &foreign(text, &json!({})), &expected_notices);
}

#[test]
fn an_unknown_category_is_kept_as_reported() {
    let json = json!({
        "status": "error", "action": "web_search", "data": {}, "timestamp": TIME, "error": "boom",
        "category": "weather", "retryable": false, "effect": "UNKNOWN",
    });
    let expected_notices = [
        (Code::WordUnknown, "/category"),
        (Code::WordSpelling, "/effect"),
    ];
    assert_normalised(
        &json,
        &foreign("boom", &json!({"reported_category": "weather"})),
        &expected_notices,
    );
}

#[test]
fn a_success_with_an_error_field_is_an_error() {
    for status in ["success", "created", "pending", "in_progress"] {
        let json = json!({
            "status": status, "action": "web_search", "data": {"hits": 0}, "error": "boom",
            "timestamp": TIME,
        });
        let expected_notices = [
            (Code::SuccessWithError, "/status"),
            (Code::ErrorIncomplete, "/category"),
        ];
        assert_normalised(
            &json,
            &foreign("boom", &json!({"hits": 0})),
            &expected_notices,
        );
    }
}

#[test]
fn an_error_inside_the_data_of_a_success_is_kept() {
    let json = success(&json!({"error": "E0308", "line": 3}));
    assert_normalised(&json, &json, &[]);
}

#[test]
fn an_empty_error_field_of_a_success_is_dropped() {
    for error in [json!(null), json!(""), json!(false)] {
        let mut json = success(&json!({}));
        json["error"] = error;
        assert_normalised(&json, &success(&json!({})), &[(Code::EmptyError, "/error")]);
    }
}

#[test]
fn status_synonyms_become_success_or_error_with_a_category() {
    for (word, status, category) in [
        ("ok", "success", None),
        ("COMPLETED", "success", None),
        ("failed", "error", Some("tool_failure")),
        ("timeout", "error", Some("timeout")),
        ("cancelled", "error", Some("cancelled")),
    ] {
        let json = json!({"status": word, "action": "a", "data": {}, "timestamp": TIME});
        let (written, expected_notices) = rewritten(&json);
        assert_eq!(written["status"], status);
        assert_eq!(written.get("category").and_then(Value::as_str), category);
        assert_eq!(written["data"]["reported_status"], word);
        assert_eq!(
            expected_notices[0],
            ("status-unknown", "/status".to_owned())
        );
    }
}

#[test]
fn a_missing_status_is_inferred_from_the_other_fields() {
    for (json, status) in [
        (
            json!({"action": "a", "data": {"hits": 1}, "timestamp": TIME}),
            "success",
        ),
        (json!({"data": {"error": "boom"}}), "error"),
        (json!({"error": "boom"}), "error"),
        (json!({"success": true, "rows": 3}), "success"),
        (json!({"success": false, "message": "boom"}), "error"),
    ] {
        let (written, expected_notices) = rewritten(&json);
        assert_eq!(written["status"], status, "{json}");
        assert_eq!(
            expected_notices[0],
            ("status-missing", "/status".to_owned())
        );
    }
}
