//! Strategies that generate answers, and JSON that resembles one.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::envelope::normalise::ENVELOPE_FIELDS;
use crate::envelope::{
    Action, Answer, AskHuman, AuthorizationRequest, Batch, CredentialAuthorization,
    CredentialPreview, ExecutionMode, Intervention, InterventionStatus, InterventionType, Nested,
    Page, PendingCall, PlanReport, SecurityLevel, SuccessData, ToolResponse, ToolStatus, WorkData,
    WorkStatus,
};
use crate::failure::{Effect, ErrorCategory, Failure};
use crate::names::{NonEmptyText, ToolName};
use crate::time::Timestamp;

/// Field names, mostly known ones.
fn names() -> impl Strategy<Value = String> {
    let mut known = vec![
        "success",
        "category",
        "retryable",
        "effect",
        "model_message",
        "question",
        "context",
        "user_id",
        "instruction",
        "instructions",
        "auth_type",
        "provider",
        "url",
        "credential_preview",
        "screenshot",
        "details",
        "intervention_type",
        "oauth_url",
        "plan_id",
        "tasks",
        "execution_mode",
        "dependencies",
        "total",
        "results",
        "aggregation",
        "result",
        "metadata",
        "total_processed",
        "successful",
        "failed",
        "value",
        "reported_status",
        "reported_action",
    ];
    known.extend(ENVELOPE_FIELDS);
    known.extend(AuthorizationRequest::REQUIRED);
    prop_oneof![
        9 => prop::sample::select(known).prop_map(str::to_owned),
        1 => "[a-z/~]{0,3}",
    ]
}

fn strings() -> impl Strategy<Value = String> {
    let mut known = vec![
        "",
        " ",
        "x",
        "SUCCESS",
        "Human_Required",
        "ok",
        "failed",
        "timeout",
        "ask_human",
        "request_authorization",
        "captcha",
        "LOGIN",
        "high",
        "CRITICAL",
        "parallel",
        "Sequential",
        "2025-10-18T09:30:00",
        "2025-10-18T09:30:00Z",
        "2025-10-18",
        "not_found",
        "unknown",
        "https://a.example/b",
    ];
    known.extend(ToolStatus::ALL.map(ToolStatus::as_str));
    prop_oneof![
        9 => prop::sample::select(known).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::from),
        1 => (0..6_u8).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => prop::num::f64::NORMAL.prop_map(Value::from),
        6 => strings().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            3 => prop::collection::vec((names(), inner), 0..6).prop_map(into_object),
        ]
    })
}

fn into_object(entries: Vec<(String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect())
}

fn objects() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((names(), any_json()), 0..4)
        .prop_map(|entries| entries.into_iter().collect())
}

/// JSON that resembles an envelope more or less.
pub(super) fn any_envelope_like() -> impl Strategy<Value = Value> {
    let fields = prop::collection::vec((names(), any_json()), 0..8);
    (
        prop::option::of(strings()),
        prop::option::of(objects()),
        fields,
    )
        .prop_map(|(status, data, fields)| {
            let mut object: Map<String, Value> = fields.into_iter().collect();
            if let Some(status) = status {
                object.insert("status".into(), status.into());
            }
            if let Some(data) = data {
                object.insert("data".into(), data.into());
            }
            object.into()
        })
}

fn texts() -> impl Strategy<Value = NonEmptyText> {
    strings().prop_filter_map("blank", |text| NonEmptyText::new(text).ok())
}

fn actions() -> impl Strategy<Value = Action> {
    strings().prop_filter_map("no name", |name| Action::new(name).ok())
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    prop::option::of(strings())
}

fn times() -> impl Strategy<Value = Timestamp> {
    // The years 0 to 9999, the range of dates in JSON Schema.
    (-62_167_219_200_000_000..253_402_207_200_000_000_i64).prop_map(Timestamp::from_microseconds)
}

fn failures() -> impl Strategy<Value = Failure> {
    let effects = prop::sample::select(vec![Effect::None, Effect::Applied, Effect::Unknown]);
    let categories = prop::sample::select(ErrorCategory::ALL.to_vec());
    (categories, any::<bool>(), effects, strings(), strings()).prop_map(
        |(category, retryable, effect, operator_message, model_message)| Failure {
            category,
            retryable,
            effect,
            operator_message,
            model_message,
            retry_after_seconds: None,
        },
    )
}

fn success_data() -> impl Strategy<Value = SuccessData> {
    let list = || prop::collection::vec(any_json(), 0..3);
    prop_oneof![
        any_json().prop_map(SuccessData::Plain),
        objects().prop_map(|object| SuccessData::Plain(object.into())),
        (list(), 0..9_u64, prop::option::of(any_json())).prop_map(|(results, total, sum)| {
            let page = Page::new(results).of_total(total);
            SuccessData::Page(match sum {
                Some(sum) => page.with_aggregation(sum),
                None => page,
            })
        }),
        (any_json(), objects())
            .prop_map(|(result, metadata)| SuccessData::Nested(Nested { result, metadata })),
        (any::<u32>(), any::<u32>(), list()).prop_map(|(successful, failed, results)| {
            SuccessData::Batch(Batch {
                successful,
                failed,
                results,
            })
        }),
    ]
}

fn questions() -> impl Strategy<Value = Answer> {
    (
        texts(),
        maybe(),
        maybe(),
        maybe(),
        prop::option::of(texts()),
    )
        .prop_map(|(question, context, user_id, instruction, message)| {
            Answer::AskHuman(AskHuman {
                question,
                context,
                user_id,
                instruction,
                message,
            })
        })
}

fn authorizations() -> impl Strategy<Value = Answer> {
    let call = (
        texts(),
        "[a-z_]{1,9}",
        objects(),
        prop::sample::select(SecurityLevel::ALL.to_vec()),
        times(),
    );
    let call = call.prop_map(
        |(request_id, name, tool_args, security_level, expires_at)| PendingCall {
            request_id,
            tool_name: ToolName::new(name).unwrap(),
            tool_args,
            security_level,
            expires_at,
        },
    );
    (call, texts(), maybe(), maybe(), prop::option::of(texts())).prop_map(
        |(call, reason, user_id, instruction, message)| {
            Answer::Authorization(AuthorizationRequest {
                call,
                reason,
                user_id,
                instruction,
                message,
            })
        },
    )
}

fn credentials() -> impl Strategy<Value = Answer> {
    let preview = prop::option::of((texts(), texts(), strings()));
    let page = (maybe(), maybe(), prop::option::of(any_json()), maybe());
    (texts(), maybe(), maybe(), preview, page).prop_map(
        |(message, auth_type, provider, preview, (url, screenshot, details, instruction))| {
            Answer::Credential(CredentialAuthorization {
                message,
                auth_type,
                provider,
                url,
                credential_preview: preview.map(|(provider, vault_id, stored_at)| {
                    CredentialPreview::new(&provider, &vault_id).stored_at(stored_at)
                }),
                screenshot,
                details,
                instruction,
            })
        },
    )
}

fn interventions() -> impl Strategy<Value = Answer> {
    let page = (
        maybe(),
        maybe(),
        maybe(),
        prop::option::of(any_json()),
        maybe(),
    );
    (
        prop::sample::select(InterventionStatus::ALL.to_vec()),
        prop::sample::select(InterventionType::ALL.to_vec()),
        texts(),
        texts(),
        page,
    )
        .prop_map(|(status, intervention_type, provider, message, page)| {
            let (url, screenshot, oauth_url, details, instruction) = page;
            Answer::Intervention(Intervention {
                status,
                message,
                intervention_type,
                provider,
                url,
                screenshot,
                oauth_url,
                details,
                instruction,
            })
        })
}

fn plans() -> impl Strategy<Value = Answer> {
    let dependencies =
        prop::collection::btree_map(strings(), prop::collection::vec(strings(), 0..3), 0..3);
    (
        actions(),
        prop::sample::select(WorkStatus::ALL.to_vec()),
        texts(),
        prop::collection::vec(any_json(), 0..3),
        prop::sample::select(ExecutionMode::ALL.to_vec()),
        dependencies,
    )
        .prop_map(
            |(action, status, plan_id, tasks, execution_mode, dependencies)| {
                let plan = PlanReport {
                    plan_id,
                    tasks,
                    execution_mode,
                    dependencies,
                };
                Answer::Plan {
                    action,
                    status,
                    plan,
                }
            },
        )
}

fn work() -> impl Strategy<Value = Answer> {
    let status = prop::sample::select(WorkStatus::ALL.to_vec());
    (actions(), status, objects()).prop_filter_map("a plan", |(action, status, data)| {
        let data = WorkData::new(data).ok()?;
        Some(Answer::Work {
            action,
            status,
            data,
        })
    })
}

/// Any answer, with unknown fields where they are allowed.
pub(super) fn any_response() -> impl Strategy<Value = ToolResponse> {
    let answers = prop_oneof![
        (actions(), success_data()).prop_map(|(action, data)| Answer::Success { action, data }),
        (actions(), failures(), objects()).prop_map(|(action, failure, data)| Answer::Error {
            action,
            failure,
            data
        }),
        questions(),
        authorizations(),
        credentials(),
        interventions(),
        plans(),
        work(),
    ];
    (answers, times(), prop::option::of(any_json())).prop_map(|(answer, timestamp, extra)| {
        let response = ToolResponse::new(answer, timestamp);
        let mut json = response.for_operator();
        match (extra, json["data"].as_object_mut()) {
            (Some(extra), Some(data)) => {
                data.insert("thread".to_owned(), json!({ "of": extra }));
                ToolResponse::from_value(json).unwrap()
            }
            _ => response,
        }
    })
}
