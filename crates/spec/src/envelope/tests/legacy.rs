//! Legacy answers that do not wait for a person: words, times, actions, data, plans, and no envelope.

use serde_json::{Value, json};

use super::{TIME, action, assert_normalised, normalised, received_at, rewritten};
use crate::envelope::DeprecationCode as Code;
use crate::envelope::{Answer, DeprecationCode, SuccessData, normalise_for};

const RECEIVED: &str = "2030-01-01T00:00:00Z";

pub(super) fn success(data: &Value) -> Value {
    json!({"status": "success", "action": "web_search", "data": data, "timestamp": TIME})
}

#[test]
fn upper_case_statuses_are_read_and_written_in_lower_case() {
    let mut json = success(&json!({}));
    json["status"] = json!("SUCCESS");
    assert_normalised(
        &json,
        &success(&json!({})),
        &[(Code::WordSpelling, "/status")],
    );
}

#[test]
fn a_notice_has_the_found_value_its_place_and_the_replacement() {
    let mut json = success(&json!({}));
    json["status"] = json!("SUCCESS");
    let notice = &normalised(&json).notices[0];
    let message = "word-spelling at `/status`: found \"SUCCESS\"; write `success`";
    assert_eq!(notice.to_string(), message);
    let written = json!({
        "code": "word-spelling", "pointer": "/status", "found": "\"SUCCESS\"",
        "instead": "`success`",
    });
    assert_eq!(serde_json::to_value(notice).unwrap(), written);
}

#[test]
fn codes_are_kebab_case_and_unique() {
    let mut codes: Vec<_> = DeprecationCode::ALL
        .iter()
        .map(|code| code.as_str())
        .collect();
    for code in DeprecationCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert!(
            code.as_str()
                .chars()
                .all(|c| c.is_ascii_lowercase() || c == '-')
        );
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), DeprecationCode::ALL.len());
}

#[test]
fn created_at_is_the_timestamp_if_there_is_no_other() {
    let mut json = success(&json!({}));
    json.as_object_mut().unwrap().remove("timestamp");
    json["created_at"] = json!(TIME);
    assert_normalised(
        &json,
        &success(&json!({})),
        &[(Code::CreatedAt, "/created_at")],
    );

    json["timestamp"] = json!(TIME);
    json["created_at"] = json!("2020-01-01T00:00:00Z");
    let canonical = success(&json!({"created_at": "2020-01-01T00:00:00Z"}));
    assert_normalised(&json, &canonical, &[(Code::FlatField, "/created_at")]);
}

#[test]
fn a_missing_timestamp_becomes_the_time_of_receipt() {
    let mut json = success(&json!({}));
    json.as_object_mut().unwrap().remove("timestamp");
    let mut canonical = success(&json!({}));
    canonical["timestamp"] = json!(RECEIVED);
    assert_normalised(&json, &canonical, &[(Code::TimestampMissing, "/timestamp")]);
}

#[test]
fn times_without_a_zone_are_utc_and_numbers_are_unix_times() {
    let micro = "2025-10-18T09:30:00.123456Z";
    for (given, expected, code) in [
        (json!("2025-10-18T09:30:00"), TIME, Code::NaiveTimestamp),
        (
            json!("2025-10-18T09:30:00.123456"),
            micro,
            Code::NaiveTimestamp,
        ),
        (
            json!("2025-10-18"),
            "2025-10-18T00:00:00Z",
            Code::NaiveTimestamp,
        ),
        (json!(1_760_779_800), TIME, Code::UnixTimestamp),
        (json!(1_760_779_800_000_u64), TIME, Code::UnixTimestamp),
        (json!(1_760_779_800_123_456_u64), micro, Code::UnixTimestamp),
        (
            json!(1_760_779_800.5),
            "2025-10-18T09:30:00.5Z",
            Code::UnixTimestamp,
        ),
    ] {
        let (mut json, mut canonical) = (success(&json!({})), success(&json!({})));
        json["timestamp"] = given;
        canonical["timestamp"] = json!(expected);
        assert_normalised(&json, &canonical, &[(code, "/timestamp")]);
    }
}

#[test]
fn another_time_zone_gets_no_notice() {
    let mut json = success(&json!({}));
    json["timestamp"] = json!("2025-10-18T11:30:00+02:00");
    assert_normalised(&json, &success(&json!({})), &[]);
}

#[test]
fn an_unreadable_time_is_kept_as_reported() {
    for given in [json!("yesterday"), json!(-5), json!(1e300), json!(true)] {
        let mut json = success(&json!({}));
        json["timestamp"] = given.clone();
        let mut canonical = success(&json!({"reported_timestamp": given}));
        canonical["timestamp"] = json!(RECEIVED);
        assert_normalised(
            &json,
            &canonical,
            &[(Code::UnreadableTimestamp, "/timestamp")],
        );
    }
}

#[test]
fn a_missing_action_becomes_the_called_tool_or_unknown() {
    let mut json = success(&json!({}));
    json.as_object_mut().unwrap().remove("action");
    let mut canonical = success(&json!({}));
    canonical["action"] = json!("unknown");
    assert_normalised(&json, &canonical, &[(Code::ActionMissing, "/action")]);

    let known = normalise_for(&action("web_search"), &json, received_at());
    assert_eq!(known.response.action(), "web_search");
    assert_eq!(known.notices.len(), 1);

    json["action"] = json!(7);
    canonical["data"] = json!({"reported_action": 7});
    assert_normalised(&json, &canonical, &[(Code::ActionInvalid, "/action")]);
}

#[test]
fn billing_becomes_the_cost_of_the_call_with_a_notice() {
    for (billing, cost) in [
        (json!({"cost": 0.1}), Some("0.10")),
        (
            json!({"total": "$0.0042", "currency": "usd"}),
            Some("0.0042"),
        ),
        (json!({"amount": 0.30000000000000004}), Some("0.30")),
        (json!({"amount": 0.0000001}), Some("0.000001")),
        (json!(2), Some("2.00")),
        (json!({"amount": 1, "currency": "EUR"}), None),
        (json!({"amount": -1}), None),
        (json!({"plan": "free"}), None),
        (json!(null), None),
    ] {
        let mut json = success(&json!({"hits": 1}));
        json["billing"] = billing;
        let mut canonical = success(&json!({"hits": 1}));
        if let Some(cost) = cost {
            canonical["cost_usd"] = json!(cost);
        }
        assert_normalised(&json, &canonical, &[(Code::Billing, "/billing")]);
    }
}

#[test]
fn a_cost_is_read_as_text_or_number_and_one_that_is_none_does_not_fail_the_answer() {
    let mut canonical = success(&json!({"hits": 1}));
    canonical["cost_usd"] = json!("0.10");
    assert_normalised(&canonical, &canonical, &[]);
    let mut json = canonical.clone();
    json["cost_usd"] = json!("0.1");
    assert_normalised(&json, &canonical, &[]);
    json["cost_usd"] = json!(0.1);
    assert_normalised(&json, &canonical, &[(Code::FieldNotText, "/cost_usd")]);
    json["cost_usd"] = json!("cheap");
    let canonical = success(&json!({"hits": 1, "reported_cost_usd": "cheap"}));
    assert_normalised(&json, &canonical, &[(Code::FieldInvalid, "/cost_usd")]);
}

#[test]
fn a_failed_call_can_state_its_cost_too() {
    let json = json!({
        "status": "error", "action": "search", "data": {}, "error": "quota", "category": "unavailable",
        "retryable": true, "effect": "none", "timestamp": TIME, "cost_usd": "0.02",
    });
    let response = normalised(&json).response;
    assert_eq!(response.cost(), Some("0.02".parse().unwrap()));
}

#[test]
fn billing_inside_data_is_kept() {
    let json = success(&json!({"billing": {"address": "x"}}));
    assert_normalised(&json, &json, &[]);
}

#[test]
fn flat_fields_move_into_data() {
    let json = json!({
        "status": "success", "action": "web_search", "timestamp": TIME,
        "hits": 3, "message": "found",
    });
    let canonical = success(&json!({"hits": 3, "message": "found"}));
    let expected_notices = [(Code::FlatField, "/hits"), (Code::FlatField, "/message")];
    assert_normalised(&json, &canonical, &expected_notices);
}

#[test]
fn a_flat_field_never_overwrites_data() {
    let mut json = success(&json!({"hits": 3, "same": 1}));
    json["hits"] = json!(4);
    json["same"] = json!(1);
    let canonical = success(&json!({"hits": 3, "same": 1, "reported_hits": 4}));
    let expected_notices = [(Code::FlatField, "/hits"), (Code::FlatField, "/same")];
    assert_normalised(&json, &canonical, &expected_notices);
}

#[test]
fn flat_fields_next_to_plain_data_become_metadata() {
    let mut json = success(&json!([1, 2]));
    json["took"] = json!(5);
    let canonical = success(&json!({"result": [1, 2], "metadata": {"took": 5}}));
    assert_normalised(&json, &canonical, &[(Code::FlatField, "/took")]);
}

#[test]
fn missing_data_becomes_an_empty_object() {
    let json = json!({"status": "success", "action": "web_search", "timestamp": TIME});
    assert_normalised(&json, &success(&json!({})), &[(Code::DataMissing, "/data")]);
}

#[test]
fn plain_data_of_accepted_work_is_wrapped_in_an_object() {
    let mut json = success(&json!("id-7"));
    json["status"] = json!("created");
    let mut canonical = success(&json!({"value": "id-7"}));
    canonical["status"] = json!("created");
    assert_normalised(&json, &canonical, &[(Code::DataNotObject, "/data")]);
}

/// The form that the data of a success takes.
fn form(json: &Value) -> &'static str {
    match normalised(json).response.into_answer() {
        Answer::Success {
            data: SuccessData::Page(_),
            ..
        } => "page",
        Answer::Success {
            data: SuccessData::Nested(_),
            ..
        } => "nested",
        Answer::Success {
            data: SuccessData::Batch(_),
            ..
        } => "batch",
        Answer::Success { .. } => "plain",
        _ => "no success",
    }
}

#[test]
fn pages_nested_answers_and_batches_are_recognised_in_data_flat_and_bare() {
    for (data, expected) in [
        (
            json!({"total": 10, "results": [1], "aggregation": {"mean": 1}}),
            "page",
        ),
        (json!({"total": 10, "results": [1]}), "page"),
        (
            json!({"result": {"a": 1}, "metadata": {"model": "m"}}),
            "nested",
        ),
        (
            json!({"total_processed": 5, "successful": 4, "failed": 1, "results": [1]}),
            "batch",
        ),
    ] {
        let documented = json!({"status": "success", "data": data});
        assert_eq!(form(&documented), expected);
        let (written, expected_notices) = rewritten(&documented);
        assert_eq!(written["data"], data);
        let codes: Vec<_> = expected_notices.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, ["timestamp-missing", "action-missing"]);

        let mut flat = data.clone();
        flat["status"] = json!("success");
        assert_eq!(form(&flat), expected);
        assert_eq!(rewritten(&flat).0["data"], data);

        assert_eq!(form(&data), expected);
        assert_eq!(rewritten(&data).0["data"], data);
    }
}

#[test]
fn pattern_7_a_plan_is_completed_and_its_words_get_their_canonical_spelling() {
    let json = json!({
        "status": "in_progress", "action": "create_execution_plan",
        "timestamp": TIME,
        "data": {
            "plan_id": 7, "tasks": [{"id": 1}], "execution_mode": "PARALLEL",
            "dependencies": {"2": [1], "3": "2", "4": null},
        },
    });
    let canonical = json!({
        "status": "in_progress", "action": "create_execution_plan",
        "timestamp": TIME,
        "data": {
            "plan_id": "7", "tasks": [{"id": 1}], "execution_mode": "parallel",
            "dependencies": {"2": ["1"], "3": ["2"], "4": []},
        },
    });
    let expected_notices = [
        (Code::FieldNotText, "/data/plan_id"),
        (Code::WordSpelling, "/data/execution_mode"),
        (Code::FieldNotText, "/data/dependencies"),
    ];
    assert_normalised(&json, &canonical, &expected_notices);
}

#[test]
fn a_plan_with_missing_parts_runs_in_sequence() {
    let json = json!({
        "status": "created", "action": "create_execution_plan", "timestamp": TIME,
        "data": {"plan_id": "p", "dependencies": ["a"]},
    });
    let canonical = json!({
        "status": "created", "action": "create_execution_plan", "timestamp": TIME,
        "data": {
            "plan_id": "p", "tasks": [], "execution_mode": "sequential", "dependencies": {},
            "reported_dependencies": ["a"],
        },
    });
    let expected_notices = [
        (Code::FieldMissing, "/data/tasks"),
        (Code::FieldMissing, "/data/execution_mode"),
        (Code::FieldInvalid, "/data/dependencies"),
    ];
    assert_normalised(&json, &canonical, &expected_notices);
}

#[test]
fn a_value_that_is_not_an_envelope_is_the_data_of_a_success() {
    for json in [
        json!("plain text"),
        json!(7),
        json!([1, 2]),
        json!(null),
        json!(true),
        json!({}),
        json!({"temperature": 20}),
        json!({"status": "active", "name": "server"}),
        json!({"status": "failed", "job": 5}),
        json!({"error": null, "rows": 1}),
        json!({"billing": {"cost": 1}, "name": "x"}),
    ] {
        let canonical = json!({
            "status": "success", "action": "unknown", "data": json, "timestamp": RECEIVED,
        });
        assert_normalised(&json, &canonical, &[(Code::NoEnvelope, "")]);
    }
}
