//! Tests of `web_automation` with a configured service.

use serde_json::json;
use windlass_core::run::QuestionSubject;
use windlass_tools::{
    AutomationSettings, BuiltinSettings, DispatchOptions, DispatchOutcome, dispatch,
};

use super::super::permits::permit;
use super::server::{MockServer, response};
use super::{done, tool};

fn settings_for(server: &MockServer) -> BuiltinSettings {
    BuiltinSettings {
        automation: Some(AutomationSettings::new(&server.url("/automate")).unwrap()),
        ..BuiltinSettings::default()
    }
}

#[tokio::test]
async fn automation_calls_the_configured_service() {
    let body = r#"{"title": "Signed in"}"#;
    let server = MockServer::answering(move |_| response("200 OK", "application/json", body)).await;
    let arguments = json!({"url": "https://example.org/", "task": "Sign in"});
    let answer = done(&settings_for(&server), "web_automation", arguments.clone()).await;
    assert_eq!(answer, json!({"title": "Signed in"}));
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /automate "), "{request}");
    assert!(request.ends_with(&arguments.to_string()), "{request}");
}

#[tokio::test]
async fn use_of_credentials_asks_a_person() {
    let body = json!({
        "hil_required": true, "status": "authorization_required", "action": "request_authorization",
        "message": "Found stored credentials for Google. Authorize usage?",
        "data": {"auth_type": "social", "provider": "google", "url": "https://example.org/",
                 "credential_preview": {"provider": "google", "vault_id": "vault_1", "stored_at": "2025-01-15"}},
        "timestamp": "2026-01-01T00:00:00Z",
    });
    let body = body.to_string();
    let server =
        MockServer::answering(move |_| response("200 OK", "application/json", &body)).await;
    let tool = tool(&settings_for(&server), "web_automation");
    let arguments = json!({"url": "https://example.org/", "task": "Sign in"});
    let permit = permit(tool.specification(), arguments);
    let DispatchOutcome::Question(question) =
        dispatch(&tool, permit, DispatchOptions::default()).await
    else {
        panic!("the call asked no question");
    };
    assert!(
        matches!(
            question.subject,
            QuestionSubject::Authorization {
                credentials: Some(_),
                ..
            }
        ),
        "{question:?}"
    );
}
