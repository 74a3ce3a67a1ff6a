//! Every documented pattern: the constructors write exactly its shape, and it reads back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{TIME, action, assert_canonical, text, time};
use crate::envelope::{
    Answer, AskHuman, AuthorizationRequest, Batch, CredentialAuthorization, CredentialPreview,
    ExecutionMode, Intervention, InterventionStatus, InterventionType, Nested, Page, PendingCall,
    PlanReport, SecurityLevel, SuccessData, ToolResponse, ToolStatus, WorkData, WorkStatus,
};
use crate::failure::{Effect, ErrorCategory, Failure};
use crate::names::ToolName;

#[test]
fn pattern_1_a_success_has_status_action_data_and_timestamp() {
    let response = ToolResponse::success(action("web_search"), json!({"hits": 3}), time());
    let json = json!({
        "status": "success",
        "action": "web_search",
        "data": {"hits": 3},
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
}

#[test]
fn a_success_may_hold_any_json() {
    for data in [
        json!(null),
        json!("text"),
        json!(2.5),
        json!([1, 2]),
        json!({}),
    ] {
        let response = ToolResponse::success(action("read_file"), data.clone(), time());
        let json = json!({
            "status": "success", "action": "read_file", "data": data, "timestamp": TIME,
        });
        assert_canonical(&response, &json);
    }
}

#[test]
fn pattern_2_an_error_has_message_category_retryable_and_effect() {
    let failure = Failure::new(ErrorCategory::Timeout, Effect::Unknown, "no answer in 30 s");
    let response = ToolResponse::error(action("web_crawl"), failure, time());
    let json = json!({
        "status": "error",
        "action": "web_crawl",
        "data": {},
        "error": "no answer in 30 s",
        "category": "timeout",
        "retryable": false,
        "effect": "unknown",
        "model_message": "no answer in 30 s",
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
    let guidance = "find out whether the call took effect before you repeat it";
    assert_eq!(response.guidance(), Some(guidance));
}

#[test]
fn an_error_may_carry_data() {
    let answer = Answer::Error {
        action: action("web_crawl"),
        failure: Failure::new(ErrorCategory::NotFound, Effect::None, "no such page"),
        data: json!({"pages": 2}).as_object().unwrap().clone(),
    };
    let response = ToolResponse::new(answer, time());
    let json = json!({
        "status": "error",
        "action": "web_crawl",
        "data": {"pages": 2},
        "error": "no such page",
        "category": "not_found",
        "retryable": false,
        "effect": "none",
        "model_message": "no such page",
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
}

#[test]
fn an_error_without_a_message_gets_that_of_its_category() {
    let failure = Failure::new(ErrorCategory::NotFound, Effect::None, "  ");
    let response = ToolResponse::error(action("recall"), failure, time());
    let message = "the tool failed (not_found): check that what you asked for exists";
    assert_eq!(response.for_operator()["error"], message);
    assert_eq!(response.for_model()["error"], message);
}

#[test]
fn pattern_3_a_question_is_asked_with_context_and_instruction_in_data() {
    let ask = AskHuman {
        context: Some("two accounts match".into()),
        user_id: Some("u-1".into()),
        instruction: Some("answer with a number".into()),
        ..AskHuman::new(text("Which account?"))
    };
    let response = ToolResponse::ask_human(ask, time());
    let json = json!({
        "status": "human_input_requested",
        "action": "ask_human",
        "hil_required": true,
        "message": "Which account?",
        "data": {
            "question": "Which account?",
            "context": "two accounts match",
            "user_id": "u-1",
            "instruction": "answer with a number",
        },
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
}

#[test]
fn the_default_message_of_a_question_is_the_question() {
    let mut ask = AskHuman::new(text("Which account?"));
    let response = ToolResponse::ask_human(ask.clone(), time());
    assert_eq!(response.message(), Some("Which account?"));

    ask.message = Some(text("Which account?"));
    assert_eq!(ToolResponse::ask_human(ask.clone(), time()), response);

    ask.message = Some(text("One thing is unclear"));
    let json = json!({
        "status": "human_input_requested",
        "action": "ask_human",
        "hil_required": true,
        "message": "One thing is unclear",
        "data": {"question": "Which account?"},
        "timestamp": TIME,
    });
    assert_canonical(&ToolResponse::ask_human(ask, time()), &json);
}

fn call() -> PendingCall {
    PendingCall {
        request_id: text("req-1"),
        tool_name: ToolName::new("delete_file").unwrap(),
        tool_args: json!({"path": "/tmp/a"}).as_object().unwrap().clone(),
        security_level: SecurityLevel::High,
        expires_at: "2025-10-19T09:30:00Z".parse().unwrap(),
    }
}

#[test]
fn pattern_4_an_authorization_request_names_the_exact_call() {
    let request = AuthorizationRequest {
        user_id: Some("u-1".into()),
        instruction: Some("type DELETE".into()),
        ..AuthorizationRequest::new(call(), text("it is no longer needed"))
    };
    let response = ToolResponse::authorization(request, time());
    let json = json!({
        "status": "authorization_requested",
        "action": "request_authorization",
        "hil_required": true,
        "message": "it is no longer needed",
        "data": {
            "request_id": "req-1",
            "tool_name": "delete_file",
            "tool_args": {"path": "/tmp/a"},
            "reason": "it is no longer needed",
            "security_level": "HIGH",
            "user_id": "u-1",
            "expires_at": "2025-10-19T09:30:00Z",
            "instruction": "type DELETE",
        },
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
}

/// The JSON of a request to use stored credentials, without its timestamp.
pub(super) fn credential_request() -> Value {
    json!({
        "hil_required": true,
        "status": "authorization_required",
        "action": "request_authorization",
        "message": "Found stored credentials for Google. Authorize usage?",
        "data": {
            "auth_type": "social",
            "provider": "google",
            "url": "https://accounts.google.com",
            "credential_preview": {
                "provider": "google",
                "vault_id": "vault_xxx",
                "stored_at": "2025-01-15",
            },
            "screenshot": "shot.png",
            "details": "login form",
        },
    })
}

#[test]
fn pattern_5_a_credential_request_has_a_preview_of_the_credentials() {
    let preview = CredentialPreview::new(&text("google"), &text("vault_xxx"));
    let request = CredentialAuthorization {
        auth_type: Some("social".into()),
        provider: Some("google".into()),
        url: Some("https://accounts.google.com".into()),
        credential_preview: Some(preview.stored_at("2025-01-15")),
        screenshot: Some("shot.png".into()),
        details: Some("login form".into()),
        ..CredentialAuthorization::new(text(
            "Found stored credentials for Google. Authorize usage?",
        ))
    };
    let response = ToolResponse::credential(request, time());
    let mut json = credential_request();
    json["timestamp"] = json!(TIME);
    assert_canonical(&response, &json);
}

#[test]
fn a_credential_request_becomes_an_authorization_request_with_the_message_as_reason() {
    let request = CredentialAuthorization::new(text("Use the stored login?"));
    let request = request.into_request(call());
    assert_eq!(
        request,
        AuthorizationRequest::new(call(), text("Use the stored login?"))
    );
}

#[test]
fn pattern_6_an_intervention_has_a_type_a_provider_and_a_url() {
    for (kind, status) in [
        (InterventionType::Captcha, "human_required"),
        (InterventionType::Login, "credential_required"),
        (InterventionType::Payment, "human_required"),
        (InterventionType::Wallet, "human_required"),
        (InterventionType::Verification, "human_required"),
    ] {
        let message = text("CAPTCHA detected. Please solve manually.");
        let intervention = Intervention {
            url: Some("https://example.com".into()),
            screenshot: Some("shot.png".into()),
            oauth_url: Some("https://example.com/oauth".into()),
            details: Some(json!({"frame": 2})),
            instruction: Some("solve it, then go on".into()),
            ..Intervention::new(kind, text("example"), message)
        };
        let response = ToolResponse::intervention(intervention, time());
        let json = json!({
            "hil_required": true,
            "status": status,
            "action": "ask_human",
            "message": "CAPTCHA detected. Please solve manually.",
            "data": {
                "intervention_type": kind.as_str(),
                "provider": "example",
                "url": "https://example.com",
                "screenshot": "shot.png",
                "oauth_url": "https://example.com/oauth",
                "details": {"frame": 2},
                "instruction": "solve it, then go on",
            },
            "timestamp": TIME,
        });
        assert_canonical(&response, &json);
    }
}

#[test]
fn an_intervention_of_any_type_may_have_either_status() {
    for status in InterventionStatus::ALL {
        let intervention = Intervention {
            status,
            ..Intervention::new(InterventionType::Wallet, text("metamask"), text("Sign"))
        };
        let response = ToolResponse::intervention(intervention, time());
        assert_eq!(response.status(), ToolStatus::from(status));
        let json = response.for_operator();
        assert_eq!(ToolResponse::from_value(json), Ok(response));
    }
}

#[test]
fn pattern_7_a_plan_is_in_progress_created_or_pending() {
    for status in WorkStatus::ALL {
        for (mode, word) in [
            (ExecutionMode::Parallel, "parallel"),
            (ExecutionMode::Sequential, "sequential"),
        ] {
            let plan = PlanReport {
                plan_id: text("plan-1"),
                tasks: vec![json!({"id": "a"}), json!({"id": "b"})],
                execution_mode: mode,
                dependencies: BTreeMap::from([("b".to_owned(), vec!["a".to_owned()])]),
            };
            let response =
                ToolResponse::plan(action("create_execution_plan"), status, plan, time());
            let json = json!({
                "status": status.as_str(),
                "action": "create_execution_plan",
                "data": {
                    "plan_id": "plan-1",
                    "tasks": [{"id": "a"}, {"id": "b"}],
                    "execution_mode": word,
                    "dependencies": {"b": ["a"]},
                },
                "timestamp": TIME,
            });
            assert_canonical(&response, &json);
        }
    }
}

#[test]
fn other_work_is_in_progress_created_or_pending_too() {
    for status in WorkStatus::ALL {
        let data = WorkData::new(json!({"id": 7}).as_object().unwrap().clone()).unwrap();
        let response = ToolResponse::work(action("remember"), status, data, time());
        let json = json!({
            "status": status.as_str(), "action": "remember", "data": {"id": 7}, "timestamp": TIME,
        });
        assert_canonical(&response, &json);
    }
}

#[test]
fn a_page_has_results_a_total_and_an_aggregation() {
    let page = Page::new(vec![json!({"title": "a"})])
        .of_total(10)
        .with_aggregation(json!({"mean": 2.5}));
    let response = ToolResponse::page(action("search_memories"), page.clone(), time());
    let json = json!({
        "status": "success",
        "action": "search_memories",
        "data": {"total": 10, "results": [{"title": "a"}], "aggregation": {"mean": 2.5}},
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
    assert_eq!((page.total(), page.results().len()), (10, 1));
    assert_eq!(page.aggregation(), Some(&json!({"mean": 2.5})));
}

#[test]
fn the_total_of_a_page_is_at_least_its_number_of_results() {
    assert_eq!(Page::new(vec![json!(1), json!(2)]).total(), 2);
    assert_eq!(Page::new(vec![json!(1), json!(2)]).of_total(1).total(), 2);
}

#[test]
fn a_nested_service_answer_has_a_result_and_metadata() {
    let nested = Nested {
        result: json!({"text": "hello"}),
        metadata: json!({"model": "m"}).as_object().unwrap().clone(),
    };
    let response = ToolResponse::success(action("transcribe"), nested, time());
    let json = json!({
        "status": "success",
        "action": "transcribe",
        "data": {"result": {"text": "hello"}, "metadata": {"model": "m"}},
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
}

#[test]
fn the_total_of_a_batch_is_the_sum_of_successes_and_failures() {
    let batch = Batch {
        successful: 4,
        failed: 1,
        results: vec![json!("a"), json!("b")],
    };
    let response = ToolResponse::batch(action("forget"), batch, time());
    let json = json!({
        "status": "success",
        "action": "forget",
        "data": {"total_processed": 5, "successful": 4, "failed": 1, "results": ["a", "b"]},
        "timestamp": TIME,
    });
    assert_canonical(&response, &json);
}

#[test]
fn forms_are_recognised_in_plain_data_and_keep_unknown_fields() {
    let data = json!({"query": "q", "total": 1, "results": [5]});
    let response = ToolResponse::success(action("web_search"), data.clone(), time());
    let Answer::Success {
        data: SuccessData::Page(page),
        ..
    } = response.answer()
    else {
        panic!("not a page: {response:?}");
    };
    assert_eq!(page.results(), [json!(5)]);
    assert_eq!(response.extra()["query"], "q");
    assert_eq!(response.for_operator()["data"], data);
}

#[test]
fn data_that_only_resembles_a_form_stays_plain() {
    for data in [
        json!({"total": 1, "results": [5, 6]}),
        json!({"total": 2.5, "results": []}),
        json!({"total": 2, "results": "many"}),
        json!({"total_processed": 9, "successful": 4, "failed": 1, "results": []}),
        json!({"result": 1, "metadata": "none"}),
        json!({"result": 1}),
    ] {
        let response = ToolResponse::success(action("count"), data.clone(), time());
        let json = json!({
            "status": "success", "action": "count", "data": data, "timestamp": TIME,
        });
        assert_canonical(&response, &json);
        let Answer::Success { data: found, .. } = response.into_answer() else {
            panic!("not a success");
        };
        assert_eq!(found, SuccessData::Plain(data));
    }
}
