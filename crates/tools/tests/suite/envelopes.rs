//! Tests of envelopes at the edge of tools: every documented pattern and every older shape, whatever wide type the tool
//! declares. The answers are written as the tools write them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use windlass_core::run::{CallEnd, QuestionSubject, ToolQuestion};
use windlass_spec::envelope::{Action, InterventionStatus, InterventionType, Page};
use windlass_spec::{
    DeprecationCode, EnvelopeUse, NonEmptyText, RiskLevel, SecurityLevel, Timestamp,
    ToolAttributes, ToolResponse,
};
use windlass_tools::{
    ApprovalStatement, BoundTool, CallContext, CommandLine, DispatchOptions, DispatchOutcome,
    HttpEndpoint, HttpMethod, Tool, ToolError, dispatch, tool,
};

use super::DESCRIPTION;
use super::builtin::server::{MockServer, response};
use super::permits::{bound, permit, risk};

const SUCCESS: &str = r#"{
    "status": "success",
    "action": "tool_name",
    "data": {...},
    "timestamp": "2025-10-18T..."
}"#;

const ERROR: &str = r#"{
    "status": "error",
    "action": "tool_name",
    "data": {},
    "error": "Error message",
    "timestamp": "2025-10-18T..."
}"#;

const ASK_HUMAN: &str = r#"{
    "status": "human_input_requested",
    "action": "ask_human",
    "data": {
        "question": "...",
        "context": "...",
        "user_id": "...",
        "instruction": "..."
    },
    "timestamp": "..."
}"#;

const AUTHORIZATION: &str = r#"{
    "status": "authorization_requested",
    "action": "request_authorization",
    "data": {
        "request_id": "...",
        "tool_name": "...",
        "tool_args": {...},
        "reason": "...",
        "security_level": "HIGH",
        "user_id": "...",
        "expires_at": "...",
        "instruction": "..."
    },
    "timestamp": "..."
}"#;

const CREDENTIALS: &str = r#"{
    "hil_required": true,
    "status": "authorization_required",
    "action": "request_authorization",
    "message": "Found stored credentials for Google. Authorize usage?",
    "data": {
        "auth_type": "social",
        "provider": "google",
        "url": "...",
        "credential_preview": {
            "provider": "google",
            "vault_id": "vault_xxx",
            "stored_at": "2025-01-15"
        },
        "screenshot": "...",
        "details": "..."
    }
}"#;

const INTERVENTION: &str = r#"{
    "hil_required": true,
    "status": "credential_required" | "human_required",
    "action": "ask_human",
    "message": "CAPTCHA detected. Please solve manually.",
    "data": {
        "intervention_type": "captcha|login|payment|wallet|verification",
        "provider": "...",
        "url": "...",
        "screenshot": "...",
        "details": "...",
        "instructions": "..."
    }
}"#;

const PLAN: &str = r#"{
    "status": "in_progress" | "created" | "pending",
    "action": "create_execution_plan",
    "data": {
        "plan_id": "...",
        "tasks": [...],
        "execution_mode": "parallel|sequential",
        "dependencies": {...}
    },
    "timestamp": "..."
}"#;

const STREAM: &str = r#"data: {"type": "progress", "content": "Processing...", "step": 1, "total": 5}
data: {"type": "content", "content": "Result data..."}
data: {"type": "done"}
"#;

const PAGE: &str = r#"{
    "status": "success",
    "data": {
        "total": 10,
        "results": [...],
        "aggregation": {...}
    }
}"#;

const NESTED: &str = r#"{
    "status": "success",
    "data": {
        "result": {...},  # Actual result
        "metadata": {...}  # Service metadata
    }
}"#;

const BATCH: &str = r#"{
    "status": "success",
    "data": {
        "total_processed": 5,
        "successful": 4,
        "failed": 1,
        "results": [...]
    }
}"#;

/// The types that every envelope matches, and whether the answer is a text of them.
const WIDE: [(&str, bool); 5] = [
    ("Object", false),
    ("Any", false),
    ("Maybe Object", false),
    ("Text", true),
    ("Text", false),
];

/// The JSON of a pattern, with the alternative of this number wherever it has several.
fn read(pattern: &str, choice: usize) -> Value {
    let lines = pattern.lines().map(|line| {
        let line = line.split("  #").next().unwrap_or_default();
        let Some((name, value)) = line.split_once(": ") else {
            return line.to_owned();
        };
        let words: Vec<&str> = match value.contains("\" | \"") {
            true => value.trim_end_matches(',').split(" | ").collect(),
            false if value.contains('|') => {
                let words = value.trim_end_matches(',').trim_matches('"').split('|');
                let word = words
                    .clone()
                    .nth(choice % words.count())
                    .unwrap_or_default();
                return format!("{name}: \"{word}\",");
            }
            false => return line.to_owned(),
        };
        format!("{name}: {},", words[choice % words.len()])
    });
    let text = lines.collect::<Vec<String>>().join("\n");
    let text = text.replace("{...}", "{}").replace("[...]", "[]");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn tool_answering(returns: &str, answer: Value, attributes: ToolAttributes) -> BoundTool {
    let signature = format!("() --> IO {returns}");
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature(signature.as_str())
        .handler(move |_| std::future::ready(Ok(answer.clone())))
        .build();
    bound(tool.unwrap(), &signature, attributes)
}

async fn answer_of(tool: &BoundTool) -> (DispatchOutcome, Vec<DeprecationCode>) {
    let options = DispatchOptions::default();
    let notices = options.notices.clone();
    let outcome = dispatch(tool, permit(tool.specification(), json!({})), options).await;
    let codes = notices.take().into_iter().map(|notice| notice.code);
    (outcome, codes.collect())
}

/// What a tool of each wide type returns for an answer.
async fn at_every_edge(answer: &Value) -> Vec<DispatchOutcome> {
    let mut outcomes = Vec::new();
    for (returns, is_text) in WIDE {
        let answer = match is_text {
            true => Value::String(format!("{answer:#}\n")),
            false => answer.clone(),
        };
        let tool = tool_answering(returns, answer, risk(RiskLevel::Reversible));
        outcomes.push(answer_of(&tool).await.0);
    }
    outcomes
}

async fn results(answer: &Value) -> Vec<Value> {
    let result = |outcome| match outcome {
        // The JSON of the data, where a text is declared.
        DispatchOutcome::Ended(CallEnd::Success(Value::String(text))) => {
            serde_json::from_str(&text).unwrap()
        }
        DispatchOutcome::Ended(CallEnd::Success(value)) => value,
        other => panic!("{other:?}"),
    };
    at_every_edge(answer)
        .await
        .into_iter()
        .map(result)
        .collect()
}

async fn questions(answer: &Value) -> Vec<ToolQuestion> {
    let question = |outcome| match outcome {
        DispatchOutcome::Question(question) => *question,
        other @ DispatchOutcome::Ended(_) => panic!("{other:?}"),
    };
    let outcomes = at_every_edge(answer).await.into_iter();
    outcomes.map(question).collect()
}

#[tokio::test]
async fn pattern_1_is_a_success() {
    for result in results(&read(SUCCESS, 0)).await {
        assert_eq!(result, json!({"reported_timestamp": "2025-10-18T..."}));
    }
}

#[tokio::test]
async fn pattern_2_and_every_place_of_an_error_is_an_error() {
    let mut without_timestamp = read(ERROR, 0);
    without_timestamp
        .as_object_mut()
        .unwrap()
        .remove("timestamp");
    for answer in [
        read(ERROR, 0),
        without_timestamp,
        json!({"status": "error", "action": "tool_name", "data": {"error": "Error message"}}),
        json!({"status": "error", "error_message": "Error message"}),
        json!({"error": "Error message"}),
        json!({"success": false, "error_message": "Error message"}),
    ] {
        for outcome in at_every_edge(&answer).await {
            let DispatchOutcome::Ended(CallEnd::Error(failure)) = outcome else {
                panic!("{answer}: {outcome:?}");
            };
            assert_eq!(failure.operator_message, "Error message", "{answer}");
        }
    }
}

#[tokio::test]
async fn pattern_3_asks_and_shows_user_and_instruction() {
    for question in questions(&read(ASK_HUMAN, 0)).await {
        let QuestionSubject::Ask(ask) = &question.subject else {
            panic!("{question:?}");
        };
        assert_eq!(ask.question.as_str(), "...");
        assert_eq!(ask.context.as_deref(), Some("..."));
        assert_eq!(question.user_id.as_deref(), Some("..."));
        assert_eq!(question.instruction.as_deref(), Some("..."));
    }
}

#[tokio::test]
async fn pattern_4_asks_for_authorization_and_shows_the_call_that_the_tool_names() {
    // As it is documented, and with values.
    let mut filled = read(AUTHORIZATION, 0);
    filled["data"]["tool_name"] = json!("delete_file");
    filled["data"]["tool_args"] = json!({"path": "/tmp/a"});
    filled["data"]["expires_at"] = json!("2030-01-01T00:00:00Z");
    filled["message"] = json!("Please look at this.");
    for (answer, expires, name) in [
        (read(AUTHORIZATION, 0), None, "..."),
        (filled, Some("2030-01-01T00:00:00Z"), "delete_file"),
    ] {
        for question in questions(&answer).await {
            let QuestionSubject::Authorization {
                reason,
                security_level,
                credentials,
            } = &question.subject
            else {
                panic!("{question:?}");
            };
            assert_eq!(reason.as_str(), "...");
            assert_eq!(*security_level, Some(SecurityLevel::High));
            assert_eq!(*credentials, None);
            assert_eq!(question.user_id.as_deref(), Some("..."));
            assert_eq!(question.instruction.as_deref(), Some("..."));
            let expires_at = question.expires_at.map(|at| at.to_string());
            assert_eq!(expires_at.is_some(), expires.is_some(), "{expires_at:?}");
            let named = question.named_call.as_ref().unwrap();
            assert_eq!(named.tool_name, name);
            assert_eq!(named.tool_args.is_empty(), name == "...");
            let message = question.message.as_ref().map(NonEmptyText::as_str);
            let has_message = name == "delete_file";
            assert_eq!(message, has_message.then_some("Please look at this."));
        }
    }
}

#[tokio::test]
async fn pattern_5_asks_to_use_stored_credentials() {
    for question in questions(&read(CREDENTIALS, 0)).await {
        let QuestionSubject::Authorization {
            reason,
            credentials: Some(credentials),
            ..
        } = &question.subject
        else {
            panic!("{question:?}");
        };
        assert_eq!(
            reason.as_str(),
            "Found stored credentials for Google. Authorize usage?"
        );
        assert_eq!(credentials.auth_type.as_deref(), Some("social"));
        assert_eq!(credentials.screenshot.as_deref(), Some("..."));
        let preview = credentials.credential_preview.as_ref().unwrap();
        assert_eq!(preview["vault_id"], "vault_xxx");
        // Sealed, nothing of it is readable.
        let mut sealed = question.clone();
        sealed.seal(|_| "sealed".to_owned());
        let sealed = format!("{sealed:?}");
        assert!(!sealed.contains("vault_xxx"), "{sealed}");
        assert!(!sealed.contains("2025-01-15"), "{sealed}");
    }
}

#[tokio::test]
async fn pattern_6_asks_for_manual_work() {
    for choice in 0..10 {
        let answer = read(INTERVENTION, choice);
        for question in questions(&answer).await {
            let QuestionSubject::Intervene(work) = &question.subject else {
                panic!("{question:?}");
            };
            assert_eq!(work.intervention_type, InterventionType::ALL[choice % 5]);
            assert_eq!(work.status, InterventionStatus::ALL[choice % 2]);
            assert_eq!(
                work.message.as_str(),
                "CAPTCHA detected. Please solve manually."
            );
            assert_eq!(work.screenshot.as_deref(), Some("..."));
            assert_eq!(question.instruction.as_deref(), Some("..."));
        }
    }
}

#[tokio::test]
async fn pattern_7_keeps_its_status() {
    for (choice, status) in ["in_progress", "created", "pending"].iter().enumerate() {
        for result in results(&read(PLAN, choice)).await {
            assert_eq!(result["status"], *status);
            assert_eq!(result["action"], "create_execution_plan");
            assert_eq!(result["data"]["plan_id"], "...");
        }
    }
}

#[tokio::test]
async fn pattern_8_is_a_result_with_progress() {
    let tool = tool_answering("Text", json!(STREAM), risk(RiskLevel::Reversible));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&reported);
    let options = DispatchOptions {
        context: CallContext {
            progress: Some(Arc::new(move |progress| {
                heard.lock().unwrap().push(progress);
            })),
            ..CallContext::default()
        },
        ..DispatchOptions::default()
    };
    let outcome = dispatch(&tool, permit(tool.specification(), json!({})), options).await;
    assert_eq!(
        outcome,
        DispatchOutcome::Ended(CallEnd::Success(json!("Result data...")))
    );
    let reported = reported.lock().unwrap();
    assert_eq!(reported.len(), 1);
    assert_eq!((reported[0].done, reported[0].total), (1.0, Some(5.0)));
    assert_eq!(reported[0].message.as_deref(), Some("Processing..."));
}

#[tokio::test]
async fn nothing_next_to_a_result_is_lost() {
    let mut page = read(PAGE, 0);
    page["data"]["query"] = json!("capital of France");
    for (answer, fields) in [
        (
            page,
            ["total", "results", "aggregation", "query"].as_slice(),
        ),
        (read(NESTED, 0), &["result", "metadata"]),
        (
            read(BATCH, 0),
            &["total_processed", "successful", "failed", "results"],
        ),
    ] {
        for result in results(&answer).await {
            let names: Vec<&String> = result.as_object().unwrap().keys().collect();
            assert_eq!(names, *fields);
            assert_eq!(result, answer["data"]);
        }
    }
}

#[tokio::test]
async fn a_declared_type_may_describe_the_data_or_the_result_in_it() {
    let page = json!({"status": "success", "data": {"query": "q", "total": 9, "results": ["a"]}});
    let nested = json!({"status": "success", "data": {"result": {"n": 1}, "metadata": {"ms": 2}}});
    let batch = json!({"status": "success", "data": {
        "total_processed": 5, "successful": 4, "failed": 1, "results": ["a"], "took": 3,
    }});
    for (answer, declared) in [
        (&page, "[Text]"),
        (&page, "{total: Int, results: [Text]}"),
        (&page, "{query: Text, total: Int, results: [Text]}"),
        (&nested, "{n: Int}"),
        (&nested, "{result: {n: Int}, metadata: Object}"),
        (&batch, "[Text]"),
        (
            &batch,
            "{total_processed: Int, successful: Int, failed: Int, results: [Text]}",
        ),
    ] {
        let tool = tool_answering(declared, answer.clone(), risk(RiskLevel::Reversible));
        let (outcome, _) = answer_of(&tool).await;
        let DispatchOutcome::Ended(CallEnd::Success(value)) = outcome else {
            panic!("{declared}: {outcome:?}");
        };
        assert_eq!(value, answer["data"], "{declared}");
    }
    let tool = tool_answering("[Int]", page, risk(RiskLevel::Reversible));
    let (outcome, _) = answer_of(&tool).await;
    assert!(
        matches!(outcome, DispatchOutcome::Ended(CallEnd::Error(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_value_of_a_precise_type_and_a_tool_that_opts_out_are_not_read_as_envelopes() {
    let answer = json!({"status": "error", "data": 1});
    let never = ToolAttributes {
        envelope: Some(EnvelopeUse::Never),
        ..risk(RiskLevel::Reversible)
    };
    for tool in [
        tool_answering(
            "{status: Text, data: Int}",
            answer.clone(),
            risk(RiskLevel::Reversible),
        ),
        tool_answering("Object", answer.clone(), never),
    ] {
        let (outcome, notices) = answer_of(&tool).await;
        assert_eq!(
            outcome,
            DispatchOutcome::Ended(CallEnd::Success(answer.clone()))
        );
        assert_eq!(notices, []);
    }
}

#[tokio::test]
async fn an_older_shape_is_noticed_and_a_bare_result_is_not() {
    let older = json!({"status": "SUCCESS", "data": {"a": 1}});
    for (answer, expected) in [
        (
            older,
            vec![
                DeprecationCode::WordSpelling,
                DeprecationCode::TimestampMissing,
                DeprecationCode::ActionMissing,
            ],
        ),
        (json!({"a": 1}), vec![]),
        (
            json!({
                "status": "success", "action": "tried", "data": {"a": 1},
                "timestamp": "2026-01-01T00:00:00Z",
            }),
            vec![],
        ),
    ] {
        let tool = tool_answering("Object", answer, risk(RiskLevel::Reversible));
        let (outcome, notices) = answer_of(&tool).await;
        assert_eq!(
            outcome,
            DispatchOutcome::Ended(CallEnd::Success(json!({"a": 1})))
        );
        assert_eq!(notices, expected);
    }
}

/// Options of a call with the proof of an approval.
fn approved() -> DispatchOptions {
    let approval = ApprovalStatement {
        approval: "r1:1:0".parse().unwrap(),
        id: "r1:1:0@1".to_owned(),
        call_digest: windlass_core::approval::Digest::of_json(&json!({})),
        signed: Some("header.claims.signature".to_owned()),
    };
    DispatchOptions {
        context: CallContext {
            approval: Some(approval),
            ..CallContext::default()
        },
        ..DispatchOptions::default()
    }
}

#[tokio::test]
async fn a_command_gets_the_proof_of_an_approval_as_variable_and_input() {
    let script = "printf '%s ' \"${WINDLASS_APPROVAL-none}\"; cat";
    let command = CommandLine::new(["sh", "-c", script]).unwrap();
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature("() --> IO Text")
        .command(command)
        .build();
    let tool = bound(tool.unwrap(), "() --> IO Text", risk(RiskLevel::Reversible));
    for (options, expected) in [
        (
            approved(),
            "header.claims.signature {\"windlass_approval\":\"header.claims.signature\"}",
        ),
        (DispatchOptions::default(), "none {}"),
    ] {
        let outcome = dispatch(&tool, permit(tool.specification(), json!({})), options).await;
        assert_eq!(
            outcome,
            DispatchOutcome::Ended(CallEnd::Success(json!(expected)))
        );
    }
}

#[tokio::test]
async fn a_server_gets_the_proof_of_an_approval_as_header() {
    let server =
        MockServer::answering(|_| response("200 OK", "application/json", "\"done\"")).await;
    let host = server.address.to_string();
    let url = format!("http://{host}/call");
    let endpoint = HttpEndpoint::new(HttpMethod::Post, &url, [host]).unwrap();
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature("() --> IO Text")
        .http(endpoint)
        .build();
    let tool = bound(tool.unwrap(), "() --> IO Text", risk(RiskLevel::Reversible));
    for options in [approved(), DispatchOptions::default()] {
        let is_approved = options.context.approval.is_some();
        dispatch(&tool, permit(tool.specification(), json!({})), options).await;
        let request = server.requests().pop().unwrap().to_lowercase();
        let header = "windlass-approval: header.claims.signature";
        assert_eq!(request.contains(header), is_approved, "{request}");
    }
}

#[tokio::test]
async fn a_native_tool_gets_the_proof_of_an_approval_in_its_context() {
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature("() --> IO Text")
        .handler_with_context(|_, context: CallContext| async move {
            let approval = context.approval.map(|approval| approval.id);
            Ok(json!(approval.unwrap_or_default()))
        })
        .build();
    let tool = bound(tool.unwrap(), "() --> IO Text", risk(RiskLevel::Reversible));
    let outcome = dispatch(&tool, permit(tool.specification(), json!({})), approved()).await;
    assert_eq!(
        outcome,
        DispatchOutcome::Ended(CallEnd::Success(json!("r1:1:0@1")))
    );
}

/// Searches the index and returns a page of results
#[tool]
fn search_index(query: String) -> Result<ToolResponse, ToolError> {
    if query == "everything" {
        let reason = NonEmptyText::new("Reading everything is slow.").unwrap();
        return Err(ToolError::from_question(ToolQuestion::authorization(
            reason,
        )));
    }
    let action = Action::new("search_index").map_err(ToolError::from_display)?;
    let page = Page::new(vec![json!(query)]).of_total(10);
    Ok(ToolResponse::page(
        action,
        page,
        Timestamp::from_microseconds(0),
    ))
}

#[tokio::test]
async fn a_function_may_return_an_envelope_or_a_question() {
    const SIGNATURE: &str = "(query: Text) --> IO Any";
    let tool = bound(
        search_index_tool().unwrap(),
        SIGNATURE,
        risk(RiskLevel::Reversible),
    );
    let run = async |query: &str| {
        let permit = permit(tool.specification(), json!({"query": query}));
        dispatch(&tool, permit, DispatchOptions::default()).await
    };
    assert_eq!(
        run("a").await,
        DispatchOutcome::Ended(CallEnd::Success(json!({"total": 10, "results": ["a"]})))
    );
    let DispatchOutcome::Question(question) = run("everything").await else {
        panic!("the tool asks");
    };
    assert!(matches!(
        question.subject,
        QuestionSubject::Authorization { .. }
    ));
}

#[tokio::test]
async fn a_notice_does_not_quote_what_only_the_approver_may_read() {
    let answer = json!({
        "status": "authorization_required", "message": "Use it?", "vault_id": "vault_xxx",
        "data": {"auth_type": "social", "credential_preview": "vault_xxx", "screenshot": 5},
    });
    let tool = tool_answering("Object", answer, risk(RiskLevel::Reversible));
    let options = DispatchOptions::default();
    let notices = options.notices.clone();
    let outcome = dispatch(&tool, permit(tool.specification(), json!({})), options).await;
    assert!(
        matches!(outcome, DispatchOutcome::Question(_)),
        "{outcome:?}"
    );
    let notices = format!("{:?}", notices.take());
    assert!(notices.contains("/data/credential_preview"), "{notices}");
    assert!(!notices.contains("vault_xxx"), "{notices}");
}
