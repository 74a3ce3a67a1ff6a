//! What is sent for an event. It is made anew for each attempt, from records that do not change, so that every attempt
//! sends the same.

use serde_json::{Value, json};
use windlass_core::approval::{Approval, ApprovalStatus};
use windlass_spec::RunId;
use windlass_store::{Error, Store, WebhookDelivery};

use crate::error::ServiceError;
use crate::json::subject_of;
use crate::outermost;

/// The largest message. Arguments that make it larger are left out.
const MAX_MESSAGE: usize = 256 << 10;

/// The message for an event. `server` is the address with which its links begin.
pub(super) fn message(
    store: &Store,
    delivery: &WebhookDelivery,
    server: Option<&str>,
    has_arguments: bool,
) -> Result<Value, ServiceError> {
    let message = make(store, delivery, server, has_arguments)?;
    match has_arguments && message.to_string().len() > MAX_MESSAGE {
        true => {
            let mut without = make(store, delivery, server, false)?;
            without["data"]["arguments_omitted"] = json!(true);
            Ok(without)
        }
        false => Ok(message),
    }
}

fn make(
    store: &Store,
    delivery: &WebhookDelivery,
    server: Option<&str>,
    has_arguments: bool,
) -> Result<Value, ServiceError> {
    let mut data = json!({"tenant": delivery.tenant, "run": delivery.run});
    let mut links = json!({});
    let link = |path: &str, id: &str| json!(format!("{}/v1/{path}/{id}", server.unwrap_or("")));
    if let Some(run) = &delivery.run {
        links["run"] = link("runs", run.as_str());
        run_data(store, run, &mut data)?;
    }
    if let (Some(call), Some(number)) = (&delivery.call, delivery.question) {
        links["approval"] = link("approvals", &call.to_string());
        let question = store.numbered_approval(call, number)?;
        question_data(&question, delivery, has_arguments, &mut data);
        data["outermost_run"] = json!(outermost::of(store, &call.run)?);
    } else if let Some(number) = delivery.gap {
        let gap = store.numbered_gap(number)?.ok_or_else(gone)?;
        data["agent"] = json!(gap.agent);
        data["principal"] = json!(gap.principal);
        data["moment"] = json!(gap.moment);
        data["missing_tools"] = json!(gap.wanted);
        if has_arguments {
            data["report"] = json!(gap.report);
        }
    } else if let Some(run) = &delivery.run {
        let run = store.summary(run)?;
        let end = json!(run.end);
        data["task_id"] = json!(run.task_id);
        data["started_at"] = json!(run.started_at);
        data["ended_at"] = json!(run.ended_at);
        data["end"] = end["end"].clone();
        if let Some(category) = end.get("category") {
            data["error_category"] = category.clone();
        }
    }
    data["links"] = links;
    Ok(json!({"type": delivery.event, "timestamp": delivery.at, "data": data}))
}

fn run_data(store: &Store, run: &RunId, data: &mut Value) -> Result<(), ServiceError> {
    let run = match store.summary(run) {
        Ok(run) => run,
        Err(Error::NoSuchRun(_)) => return Err(gone()),
        Err(error) => return Err(error.into()),
    };
    data["agent"] = json!(run.agent);
    data["principal"] = json!(run.principal);
    Ok(())
}

fn question_data(
    question: &Approval,
    delivery: &WebhookDelivery,
    has_arguments: bool,
    data: &mut Value,
) {
    let request = question.request();
    data["approval"] = json!(question.call());
    data["kind"] = json!(request.question.kind());
    data["asked_at"] = json!(request.asked_at);
    data["expires_at"] = json!(request.expires_at);
    if let Some(call) = request.question.authorize() {
        data["tool"] = json!(call.tool_name);
        data["risk"] = json!(call.risk);
        data["security_level"] = json!(call.security_level);
        if has_arguments {
            data["arguments"] = json!(call.tool_args);
        }
    } else if has_arguments {
        data["question"] = json!(subject_of(&request.question));
    }
    let is_over = |status: ApprovalStatus| {
        matches!(status, ApprovalStatus::Approved | ApprovalStatus::Rejected)
    };
    let decisions = question.decisions();
    let number = delivery
        .decision
        .and_then(|number| usize::try_from(number).ok());
    if let Some((number, decided)) =
        number.and_then(|number| Some((number, decisions.get(number)?)))
    {
        // Only the last decision settles a question.
        let settles = number + 1 == decisions.len() && is_over(question.status());
        data["status"] = match settles {
            true => json!(question.status()),
            false => json!(ApprovalStatus::Pending),
        };
        data["decided_by"] = json!(decided.by);
        data["decision"] = json!(decided.decision)["decision"].clone();
    } else if delivery.event == "approval.closed" {
        data["status"] = json!(question.status());
    } else {
        data["status"] = json!(ApprovalStatus::Pending);
    }
}

fn gone() -> ServiceError {
    ServiceError::not_found("purged", "what the event is about is not stored any more")
}
