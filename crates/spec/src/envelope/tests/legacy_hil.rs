//! Legacy answers that wait for a person, in both dialects.

use serde_json::{Value, json};

use super::patterns::credential_request;
use super::{TIME, assert_normalised, normalised, rewritten};
use crate::envelope::DeprecationCode as Code;
use crate::envelope::{Answer, ToolStatus};
use crate::failure::ErrorCategory;

fn question(message: &str, data: &Value) -> Value {
    json!({
        "status": "human_input_requested", "action": "ask_human", "hil_required": true,
        "message": message, "data": data, "timestamp": TIME,
    })
}

fn authorization_data() -> Value {
    json!({
        "request_id": "r-1",
        "tool_name": "delete_file",
        "tool_args": {"path": "/tmp/a"},
        "reason": "no longer needed",
        "security_level": "HIGH",
        "user_id": "u-1",
        "expires_at": "2025-10-19T09:30:00Z",
        "instruction": "answer yes or no",
    })
}

fn authorization(message: &str) -> Value {
    json!({
        "status": "authorization_requested", "action": "request_authorization",
        "hil_required": true, "message": message, "data": authorization_data(), "timestamp": TIME,
    })
}

#[test]
fn pattern_3_a_question_by_status_gets_hil_required_and_the_question_as_message() {
    let data = json!({
        "question": "Which?", "context": "two match", "user_id": "u-1", "instruction": "a number",
    });
    let json = json!({
        "status": "human_input_requested", "action": "ask_human", "data": data, "timestamp": TIME,
    });
    let expected_notices = [
        (Code::HilFlagMissing, "/hil_required"),
        (Code::MessageMissing, "/message"),
    ];
    assert_normalised(&json, &question("Which?", &data), &expected_notices);
}

#[test]
fn pattern_4_an_authorization_by_status_gets_hil_required_and_the_reason_as_message() {
    let json = json!({
        "status": "authorization_requested", "action": "request_authorization",
        "data": authorization_data(), "timestamp": TIME,
    });
    let expected_notices = [
        (Code::HilFlagMissing, "/hil_required"),
        (Code::MessageMissing, "/message"),
    ];
    assert_normalised(&json, &authorization("no longer needed"), &expected_notices);
}

#[test]
fn pattern_5_credential_usage_only_lacks_its_timestamp() {
    let mut json = credential_request();
    let (written, expected_notices) = rewritten(&json);
    assert_eq!(
        expected_notices,
        [("timestamp-missing", "/timestamp".to_owned())]
    );
    json["timestamp"] = json!("2030-01-01T00:00:00Z");
    assert_eq!(written, json);
    let response = normalised(&json).response;
    let Answer::Credential(request) = response.answer() else {
        panic!("not about credentials: {response:?}");
    };
    let preview = request.credential_preview.as_ref().unwrap();
    assert_eq!(preview.get("vault_id"), Some("vault_xxx"));
}

#[test]
fn pattern_6_instructions_of_an_intervention_become_instruction() {
    for status in ["credential_required", "human_required"] {
        for kind in ["captcha", "login", "payment", "wallet", "verification"] {
            let json = json!({
                "hil_required": true,
                "status": status,
                "action": "ask_human",
                "message": "CAPTCHA detected. Please solve manually.",
                "data": {
                    "intervention_type": kind,
                    "provider": "example",
                    "url": "https://example.com",
                    "screenshot": "shot",
                    "details": "frame 2",
                    "instructions": "solve it",
                },
                "timestamp": TIME,
            });
            let mut canonical = json.clone();
            let data = canonical["data"].as_object_mut().unwrap();
            let instruction = data.remove("instructions").unwrap();
            data.insert("instruction".into(), instruction);
            assert_normalised(
                &json,
                &canonical,
                &[(Code::Instructions, "/data/instructions")],
            );
        }
    }
}

#[test]
fn instructions_in_steps_become_lines() {
    let data = json!({"question": "Ready?", "instructions": ["open it", "sign it"]});
    let canonical = question(
        "m",
        &json!({"question": "Ready?", "instruction": "open it\nsign it"}),
    );
    let expected_notices = [(Code::Instructions, "/data/instructions")];
    assert_normalised(&question("m", &data), &canonical, &expected_notices);
}

#[test]
fn instructions_next_to_an_instruction_are_kept_as_reported() {
    let data = json!({"question": "Ready?", "instruction": "sign", "instructions": "open"});
    let canonical = json!({
        "question": "Ready?", "instruction": "sign", "reported_instructions": "open",
    });
    let expected_notices = [(Code::Instructions, "/data/instructions")];
    assert_normalised(
        &question("m", &data),
        &question("m", &canonical),
        &expected_notices,
    );
}

#[test]
fn instructions_in_a_success_are_kept() {
    let json = json!({
        "status": "success", "action": "recipe", "data": {"instructions": "stir"},
        "timestamp": TIME,
    });
    assert_normalised(&json, &json, &[]);
}

#[test]
fn hil_fields_at_the_top_move_into_data() {
    let json = json!({
        "status": "human_input_requested", "action": "ask_human", "hil_required": true,
        "question": "Which?", "context": "two match", "message": "m", "timestamp": TIME,
    });
    let canonical = question("m", &json!({"question": "Which?", "context": "two match"}));
    let expected_notices = [
        (Code::FlatField, "/question"),
        (Code::FlatField, "/context"),
    ];
    assert_normalised(&json, &canonical, &expected_notices);
}

#[test]
fn hil_required_without_a_status_is_classified_by_action_and_fields() {
    for (json, status) in [
        (
            json!({"action": "ask_human", "message": "Which?"}),
            "human_input_requested",
        ),
        (json!({"question": "Which?"}), "human_input_requested"),
        (
            json!({"action": "ask_human", "intervention_type": "captcha"}),
            "human_required",
        ),
        (
            json!({"data": {"intervention_type": "captcha"}}),
            "human_required",
        ),
        (
            json!({"action": "request_authorization", "message": "May I?"}),
            "authorization_required",
        ),
        (
            json!({"data": {"credential_preview": {"provider": "google"}}}),
            "authorization_required",
        ),
        (
            json!({"data": authorization_data()}),
            "authorization_requested",
        ),
    ] {
        for stated in [None, Some("success"), Some("pending"), Some("whatever")] {
            let mut json = json.clone();
            json["hil_required"] = json!(true);
            if let Some(stated) = stated {
                json["status"] = json!(stated);
            }
            let (written, expected_notices) = rewritten(&json);
            assert_eq!(written["status"], status, "{json}");
            assert!(
                expected_notices.contains(&("hil-status-missing", "/status".to_owned())),
                "{expected_notices:?}"
            );
        }
    }
}

#[test]
fn an_error_with_hil_required_stays_an_error() {
    let json = json!({"status": "error", "error": "boom", "hil_required": true, "data": {}});
    let (written, expected_notices) = rewritten(&json);
    assert_eq!(written["status"], "error");
    assert!(expected_notices.contains(&("hil-flag-misplaced", "/hil_required".to_owned())));
}

#[test]
fn hil_required_false_is_dropped_or_corrected_by_status() {
    let mut json = json!({"status": "success", "action": "a", "data": {}, "timestamp": TIME});
    let canonical = json.clone();
    json["hil_required"] = json!(false);
    assert_normalised(
        &json,
        &canonical,
        &[(Code::HilFlagMisplaced, "/hil_required")],
    );

    let canonical = question("Which?", &json!({"question": "Which?"}));
    let mut json = canonical.clone();
    json["hil_required"] = json!(false);
    assert_normalised(
        &json,
        &canonical,
        &[(Code::HilFlagMissing, "/hil_required")],
    );
}

#[test]
fn the_action_of_a_request_is_corrected_and_the_old_one_kept_as_reported() {
    let mut json = question("Which?", &json!({"question": "Which?"}));
    json["action"] = json!("web_automation");
    let data = json!({"question": "Which?", "reported_action": "web_automation"});
    let canonical = question("Which?", &data);
    assert_normalised(&json, &canonical, &[(Code::HilAction, "/action")]);

    json["action"] = json!("ASK_HUMAN");
    let canonical = question("Which?", &json!({"question": "Which?"}));
    assert_normalised(&json, &canonical, &[(Code::WordSpelling, "/action")]);

    json.as_object_mut().unwrap().remove("action");
    assert_normalised(&json, &canonical, &[(Code::ActionMissing, "/action")]);
}

#[test]
fn a_missing_question_is_taken_from_the_message() {
    let canonical = question("Which?", &json!({"question": "Which?"}));
    let json = question("Which?", &json!({}));
    assert_normalised(
        &json,
        &canonical,
        &[(Code::QuestionMissing, "/data/question")],
    );
}

#[test]
fn a_question_without_question_and_message_is_an_error_with_the_raw_answer() {
    let json = json!({
        "status": "human_input_requested", "action": "ask_human", "data": {"context": "c"},
        "timestamp": TIME,
    });
    let (written, expected_notices) = rewritten(&json);
    assert_eq!(written["data"]["raw"], json);
    assert_eq!(written["status"], "error");
    assert_eq!(written["category"], "invalid_output");
    assert_eq!(
        written["error"],
        "the tool's answer is invalid: `/message` is missing"
    );
    assert_eq!(
        expected_notices.last().unwrap(),
        &("unreadable-envelope", "/message".to_owned())
    );
    let failure = normalised(&json).response.failure().cloned().unwrap();
    assert_eq!(failure.category, ErrorCategory::InvalidOutput);
}

#[test]
fn fields_that_are_not_texts_become_texts() {
    let data = json!({"question": "Which?", "context": {"a": 1}, "user_id": 7});
    let canonical = json!({"question": "Which?", "context": "{\"a\":1}", "user_id": "7"});
    let expected_notices = [
        (Code::FieldNotText, "/data/context"),
        (Code::FieldNotText, "/data/user_id"),
    ];
    assert_normalised(
        &question("Which?", &data),
        &question("Which?", &canonical),
        &expected_notices,
    );
}

#[test]
fn authorization_required_for_one_exact_call_is_authorization_requested() {
    let canonical = authorization("May I?");
    let mut json = canonical.clone();
    json["status"] = json!("authorization_required");
    assert_normalised(&json, &canonical, &[(Code::AuthorizationStatus, "/status")]);
}

#[test]
fn a_credential_request_that_names_a_call_stays_a_credential_request() {
    let mut canonical = authorization("May I?");
    canonical["status"] = json!("authorization_required");
    canonical["data"]["auth_type"] = json!("social");
    assert_normalised(&canonical, &canonical, &[]);
    let mut json = canonical.clone();
    json["status"] = json!("AUTHORIZATION_REQUIRED");
    assert_normalised(&json, &canonical, &[(Code::WordSpelling, "/status")]);
}

#[test]
fn authorization_required_with_missing_fields_is_canonical() {
    let json = json!({
        "status": "authorization_required", "action": "request_authorization",
        "hil_required": true, "message": "May I?", "timestamp": TIME,
        "data": {"tool_name": "delete_file"},
    });
    assert_normalised(&json, &json, &[]);
    assert_eq!(
        normalised(&json).response.status(),
        ToolStatus::AuthorizationRequired
    );
}

#[test]
fn an_authorization_request_with_missing_fields_becomes_authorization_required() {
    for name in [
        "request_id",
        "tool_name",
        "tool_args",
        "security_level",
        "expires_at",
    ] {
        let mut json = authorization("May I?");
        json["data"].as_object_mut().unwrap().remove(name);
        let mut canonical = json.clone();
        canonical["status"] = json!("authorization_required");
        let pointer = format!("/data/{name}");
        assert_normalised(
            &json,
            &canonical,
            &[(Code::AuthorizationIncomplete, &pointer)],
        );
    }
}

#[test]
fn a_missing_reason_is_taken_from_the_message() {
    let mut json = authorization("May I?");
    let mut canonical = json.clone();
    json["data"].as_object_mut().unwrap().remove("reason");
    canonical["data"]["reason"] = json!("May I?");
    assert_normalised(&json, &canonical, &[(Code::FieldMissing, "/data/reason")]);
}

#[test]
fn arguments_that_are_not_an_object_are_not_parsed() {
    let mut json = authorization("May I?");
    json["data"]["tool_args"] = json!("{\"path\": \"/\"}");
    let (written, expected_notices) = rewritten(&json);
    assert_eq!(written["status"], "authorization_required");
    assert_eq!(
        written["data"]["reported_tool_args"],
        json["data"]["tool_args"]
    );
    assert_eq!(
        expected_notices[0],
        ("field-invalid", "/data/tool_args".to_owned())
    );
}

#[test]
fn levels_in_any_case_and_expiry_times_without_a_zone_are_read() {
    let mut json = authorization("May I?");
    json["data"]["security_level"] = json!("high");
    json["data"]["expires_at"] = json!("2025-10-19T09:30:00");
    let expected_notices = [
        (Code::WordSpelling, "/data/security_level"),
        (Code::NaiveTimestamp, "/data/expires_at"),
    ];
    assert_normalised(&json, &authorization("May I?"), &expected_notices);
}

#[test]
fn oauth_url_moves_into_the_data_of_an_intervention() {
    let json = json!({
        "status": "credential_required", "action": "ask_human", "hil_required": true,
        "message": "Log in", "oauth_url": "https://a.example/oauth", "timestamp": TIME,
        "data": {"intervention_type": "LOGIN", "provider": "a"},
    });
    let canonical = json!({
        "status": "credential_required", "action": "ask_human", "hil_required": true,
        "message": "Log in", "timestamp": TIME,
        "data": {
            "intervention_type": "login", "provider": "a", "oauth_url": "https://a.example/oauth",
        },
    });
    let expected_notices = [
        (Code::FlatField, "/oauth_url"),
        (Code::WordSpelling, "/data/intervention_type"),
    ];
    assert_normalised(&json, &canonical, &expected_notices);
    let response = normalised(&json).response;
    let Answer::Intervention(intervention) = response.answer() else {
        panic!("no intervention: {response:?}");
    };
    assert_eq!(
        intervention.oauth_url.as_deref(),
        Some("https://a.example/oauth")
    );
}

#[test]
fn missing_fields_of_an_intervention_are_filled_from_the_others() {
    let json = json!({
        "status": "human_required", "hil_required": true, "action": "ask_human", "timestamp": TIME,
        "data": {"intervention_type": "2fa", "url": "https://me@a.example:8080/x", "details": "Code?"},
    });
    let canonical = json!({
        "status": "human_required", "hil_required": true, "action": "ask_human", "timestamp": TIME,
        "message": "Code?",
        "data": {
            "intervention_type": "verification", "reported_intervention_type": "2fa",
            "provider": "a.example", "url": "https://me@a.example:8080/x", "details": "Code?",
        },
    });
    let expected_notices = [
        (Code::WordUnknown, "/data/intervention_type"),
        (Code::FieldMissing, "/data/provider"),
        (Code::MessageMissing, "/message"),
    ];
    assert_normalised(&json, &canonical, &expected_notices);

    let json = json!({"status": "credential_required"});
    let (written, _) = rewritten(&json);
    assert_eq!(
        written["data"],
        json!({"intervention_type": "login", "provider": "unknown"})
    );
    assert_eq!(written["message"], "Manual work is needed: login.");
}
