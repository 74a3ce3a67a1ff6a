//! The views of an answer for operators and for models.

use serde_json::json;

use super::{TIME, action, schemas, text, time};
use crate::envelope::{
    Answer, CredentialAuthorization, CredentialPreview, Intervention, InterventionType,
    ToolResponse,
};
use crate::failure::{Effect, ErrorCategory, Failure};

const SECRET: &str = "postgres://root:hunter2@db";

#[test]
fn external_error_messages_are_shown_to_the_operator_but_not_to_the_model() {
    let failure = Failure::foreign(ErrorCategory::Unavailable, Effect::None, SECRET);
    let answer = Answer::Error {
        action: action("query"),
        failure,
        data: json!({"trace": SECRET}).as_object().unwrap().clone(),
    };
    let response = ToolResponse::new(answer, time());
    let operator = response.for_operator();
    assert_eq!(operator["error"], SECRET);
    assert_eq!(operator["data"]["trace"], SECRET);

    let model = response.for_model();
    let message = "the tool failed (unavailable): check that the service is up, then try again";
    let expected = json!({
        "status": "error",
        "action": "query",
        "data": {},
        "error": message,
        "category": "unavailable",
        "retryable": true,
        "effect": "none",
        "timestamp": TIME,
    });
    assert_eq!(model, expected);
    schemas::assert_valid(&model);
}

#[test]
fn an_error_of_windlass_has_the_same_message_for_the_model() {
    let answer = Answer::Error {
        action: action("query"),
        failure: Failure::new(
            ErrorCategory::InvalidArguments,
            Effect::None,
            "`limit` is negative",
        ),
        data: json!({"argument": "limit"}).as_object().unwrap().clone(),
    };
    let model = ToolResponse::new(answer, time()).for_model();
    assert_eq!(model["error"], "`limit` is negative");
    assert_eq!(model["data"]["argument"], "limit");
}

#[test]
fn a_read_error_without_model_message_is_withheld_from_the_model() {
    let mut json = json!({
        "status": "error", "action": "query", "data": {}, "error": SECRET,
        "category": "tool_failure", "retryable": false, "effect": "unknown", "timestamp": TIME,
    });
    let response = ToolResponse::from_value(json.clone()).unwrap();
    assert!(!response.for_model().to_string().contains("hunter2"));

    json["model_message"] = json!("the database rejected the query");
    let response = ToolResponse::from_value(json).unwrap();
    assert_eq!(
        response.for_model()["error"],
        "the database rejected the query"
    );
    assert_eq!(response.for_operator()["error"], SECRET);
}

#[test]
fn credentials_screenshots_and_login_urls_are_not_shown_to_models() {
    let preview = CredentialPreview::new(&text("google"), &text("vault_9"));
    let credential = CredentialAuthorization {
        credential_preview: Some(preview),
        screenshot: Some("shot".into()),
        ..CredentialAuthorization::new(text("Use the stored login?"))
    };
    let model = ToolResponse::credential(credential, time()).for_model();
    assert_eq!(model["data"], json!({}));
    assert_eq!(model["message"], "Use the stored login?");
    schemas::assert_valid(&model);

    let intervention = Intervention {
        screenshot: Some("shot".into()),
        oauth_url: Some("https://a.example/?state=s".into()),
        url: Some("https://a.example".into()),
        ..Intervention::new(InterventionType::Login, text("a"), text("Log in"))
    };
    let model = ToolResponse::intervention(intervention, time()).for_model();
    let expected = json!({
        "intervention_type": "login", "provider": "a", "url": "https://a.example",
    });
    assert_eq!(model["data"], expected);
    schemas::assert_valid(&model);
}

#[test]
fn unknown_fields_of_a_request_are_not_shown_to_models() {
    let json = json!({
        "status": "human_input_requested", "action": "ask_human", "hil_required": true,
        "message": "q", "data": {"question": "q", "cookie": SECRET}, "timestamp": TIME,
    });
    let response = ToolResponse::from_value(json).unwrap();
    assert_eq!(response.for_model()["data"], json!({"question": "q"}));
    assert_eq!(response.for_operator()["data"]["cookie"], SECRET);
}

#[test]
fn a_model_sees_all_of_a_success() {
    let data = json!({"total": 1, "results": [1], "query": "q"});
    let response = ToolResponse::success(action("search"), data, time());
    assert_eq!(response.for_model(), response.for_operator());
}
