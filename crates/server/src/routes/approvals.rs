//! Approvals: what agents ask people, and the decisions; and held calls, which can be undone.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_service::types::{ApprovalStatus, CallId, Digest, PersonDecision, Timestamp};
use windlass_service::{
    Always, ApprovalQuery, Confirmation, DecisionRequest, HoldChange, QuestionId, Scope,
    ServiceError,
};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, Time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/approvals"),
            ("list_approvals", "List what agents ask, the oldest first"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/approvals/{approval}"),
            ("show_approval", "Show what an agent asks"),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::POST, "/v1/approvals/{approval}/decision"),
            ("decide_approval", "Decide what an agent asks"),
            Scope::Approve,
            decide,
        ),
        Route::new(
            (Method::GET, "/v1/holds"),
            ("list_holds", "List the calls that wait before they run"),
            Scope::Read,
            list_holds,
        ),
        Route::new(
            (Method::GET, "/v1/holds/{hold}"),
            ("show_hold", "Show a held call"),
            Scope::Read,
            show_hold,
        ),
        Route::new(
            (Method::POST, "/v1/holds/{hold}/undo"),
            ("undo_hold", "Undo a held call: it never runs"),
            Scope::Approve,
            |call: Call| change_hold(call, HoldChange::Undo),
        ),
        Route::new(
            (Method::POST, "/v1/holds/{hold}/release"),
            ("release_hold", "Release a held call: it runs now"),
            Scope::Approve,
            |call: Call| change_hold(call, HoldChange::Release),
        ),
    ]
}

/// How far a question is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ApprovalStatusName {
    Pending,
    Approved,
    Rejected,
    Expired,
    Cancelled,
}

/// A question of an agent to a person about one exact call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ApprovalItem {
    /// Its id: that of the call.
    id: String,
    /// The run that waits for it.
    run: String,
    /// The run that a person or program started.
    outermost_run: String,
    /// How far it is.
    status: ApprovalStatusName,
    /// The tool of the call, or the text of the question.
    what: String,
    /// The digest of tool and arguments as they were asked about.
    digest: String,
    /// The digest as it is now, which a decision names.
    digest_now: Option<String>,
    /// The arguments as they are now.
    arguments_now: Option<Map<String, Value>>,
    /// When it was asked.
    asked_at: Time,
    /// When it expires.
    expires_at: Time,
    /// How many people still have to approve.
    still_needed: u32,
    /// How much time is left.
    seconds_left: Option<f64>,
}

/// Which questions are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApprovalsQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Only those with this status.
    status: Option<ApprovalStatusName>,
    /// Only those of this run and its sub-agents.
    run: Option<String>,
}

/// Where a question is in a list.
fn cursor(question: &QuestionId) -> String {
    format!("{}_{}", question.asked_at.as_microseconds(), question.call)
}

fn read_cursor(text: &str) -> Result<QuestionId, Problem> {
    let read = || {
        let (asked_at, call) = text.split_once('_')?;
        Some(QuestionId {
            call: call.parse::<CallId>().ok()?,
            asked_at: Timestamp::from_microseconds(asked_at.parse().ok()?),
        })
    };
    read().ok_or_else(|| {
        Problem::new(400, "invalid_query", "The query is not valid")
            .with_detail("`after` is not the `next` of a page")
    })
}

async fn list(call: Call<ApprovalsQuery>) -> Result<Reply<Page<Shape<ApprovalItem>>>, Problem> {
    let limit = limit(call.query.limit) as usize;
    let query = ApprovalQuery {
        status: call.query.status.as_ref().map(|status| match status {
            ApprovalStatusName::Pending => ApprovalStatus::Pending,
            ApprovalStatusName::Approved => ApprovalStatus::Approved,
            ApprovalStatusName::Rejected => ApprovalStatus::Rejected,
            ApprovalStatusName::Expired => ApprovalStatus::Expired,
            ApprovalStatusName::Cancelled => ApprovalStatus::Cancelled,
        }),
        run: call.query.run.clone(),
        limit: Some(limit + 1),
        after: call.query.after.as_deref().map(read_cursor).transpose()?,
    };
    let listed = call
        .operate(move |service, identity, _| {
            let listed = service.list_approvals(identity, &query)?.into_iter();
            let shown = listed.map(|one| {
                (
                    QuestionId::of(&one),
                    service.approval_to_json(identity, &one),
                )
            });
            Ok(shown.collect::<Vec<_>>())
        })
        .await?;
    Ok(Reply::ok(Page::new(
        listed,
        limit,
        |(id, _)| cursor(id),
        |(_, shown)| Shape::of(shown),
    )))
}

async fn show(call: Call) -> Result<Reply<Shape<ApprovalItem>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let details = service.show_approval(identity, id)?;
            Ok(Shape::of(
                service.approval_to_json(identity, &details.approval),
            ))
        })
        .await?;
    Ok(Reply::ok(shown))
}

/// What a person decides.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DecisionName {
    /// The call may run as it is.
    Approve,
    /// The call may run with `arguments`.
    ApproveEdited,
    /// The call may not run; `message` is for the model.
    Reject,
    /// The call does not run; the model gets `value` as its result.
    Respond,
    /// `text` is the answer to the question.
    Answer,
    /// The manual work is done; `note` is about it.
    Done,
}

/// Which later calls of the run an approval covers.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AlwaysName {
    /// The same tool with the same arguments.
    Call,
    /// The same tool.
    Tool,
}

/// A decision.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decision {
    /// The decision.
    decision: DecisionName,
    /// The `digest_now` of what the person was shown. Needed to approve a call of the security level HIGH or CRITICAL.
    digest: Option<String>,
    /// All arguments of the call, for `approve_edited`.
    arguments: Option<Map<String, Value>>,
    /// For the model, with `reject`.
    message: Option<String>,
    /// The result in place of the tool, for `respond`.
    value: Option<Value>,
    /// The answer, for `answer`.
    text: Option<String>,
    /// About the work, with `done`.
    note: Option<String>,
    /// Which later calls of the run the approval covers, too.
    always: Option<AlwaysName>,
}

impl Decision {
    fn request(self) -> Result<DecisionRequest, Problem> {
        let invalid = |detail: String| {
            Problem::new(422, "does_not_fit", "The body does not fit").with_detail(detail)
        };
        let (name, needed) = match self.decision {
            DecisionName::Approve => ("approve", None),
            DecisionName::ApproveEdited => ("approve_edited", Some("arguments")),
            DecisionName::Reject => ("reject", None),
            DecisionName::Respond => ("respond", Some("value")),
            DecisionName::Answer => ("answer", Some("text")),
            DecisionName::Done => ("done", None),
        };
        let fields = [
            ("arguments", self.arguments.map(Value::Object)),
            ("message", self.message.map(Value::String)),
            ("value", self.value),
            ("text", self.text.map(Value::String)),
            ("note", self.note.map(Value::String)),
        ];
        let mut decision = json!({"decision": name});
        for (field, value) in fields {
            let belongs = needed == Some(field)
                || matches!((name, field), ("reject", "message") | ("done", "note"));
            match (value, belongs) {
                (Some(value), true) => decision[field] = value,
                (Some(_), false) => {
                    return Err(invalid(format!("`{field}` does not belong to `{name}`")));
                }
                (None, _) if needed == Some(field) => {
                    return Err(invalid(format!("`{name}` needs `{field}`")));
                }
                (None, _) => {}
            }
        }
        let decision: PersonDecision =
            serde_json::from_value(decision).map_err(|error| invalid(error.to_string()))?;
        let digest = self.digest.as_deref().map(str::parse::<Digest>).transpose();
        Ok(DecisionRequest {
            decision,
            digest: digest.map_err(|error| invalid(error.to_string()))?,
            confirmation: Confirmation::Stated,
            on_behalf_of: None,
            always: self.always.map(|always| match always {
                AlwaysName::Call => Always::Call,
                AlwaysName::Tool => Always::Tool,
            }),
        })
    }
}

async fn decide(call: Call<Nothing, Decision>) -> Result<Reply<Shape<ApprovalItem>>, Problem> {
    let request = call.body.clone().request()?;
    let decided = call
        .operate(move |service, identity, id| {
            let found = service.show_approval(identity, id)?;
            let taken = service.decide(identity, found.approval.call(), request)?;
            Ok(Shape::of(
                service.approval_to_json(identity, &taken.approval),
            ))
        })
        .await?;
    Ok(Reply::ok(decided))
}

/// A call that waits out its undo window.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct HoldItem {
    /// Its id: that of the call.
    id: String,
    /// The run.
    run: String,
    /// The run that a person or program started.
    outermost_run: Option<String>,
    /// The tool.
    tool_name: String,
    /// Its arguments.
    tool_args: Map<String, Value>,
    /// How far it is, such as `held`.
    status: String,
    /// Since when it is held.
    held_at: Time,
    /// When it runs.
    due_at: Time,
    /// How much time is left to undo it.
    seconds_left: Option<f64>,
}

/// Which held calls are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HoldsQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Also those that are over.
    #[serde(default)]
    all: bool,
}

async fn list_holds(call: Call<HoldsQuery>) -> Result<Reply<Page<Shape<HoldItem>>>, Problem> {
    let limit = limit(call.query.limit) as usize;
    let (all, after) = (call.query.all, call.query.after.clone());
    let listed = call
        .operate(move |service, identity, _| {
            let holds = service.list_holds(identity, all)?;
            let begin = match &after {
                Some(after) => {
                    let place = holds
                        .iter()
                        .position(|hold| hold.call().to_string() == *after);
                    // One that is over is not listed any more: its place is found by its time.
                    match (place, service.show_hold(identity, after)) {
                        (Some(place), _) => place + 1,
                        (None, Ok(gone)) => {
                            let earlier = holds.iter();
                            earlier
                                .filter(|hold| hold.held_at() <= gone.held_at())
                                .count()
                        }
                        (None, Err(error)) => return Err(error),
                    }
                }
                None => 0,
            };
            let shown = holds.iter().skip(begin).take(limit + 1);
            let shown = shown.map(|hold| {
                (
                    hold.call().to_string(),
                    service.hold_to_json(identity, hold),
                )
            });
            Ok::<Vec<(String, Value)>, ServiceError>(shown.collect())
        })
        .await?;
    Ok(Reply::ok(Page::new(
        listed,
        limit,
        |(id, _)| id.clone(),
        |(_, shown)| Shape::of(shown),
    )))
}

async fn show_hold(call: Call) -> Result<Reply<Shape<HoldItem>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let hold = service.show_hold(identity, id)?;
            Ok(Shape::of(service.hold_to_json(identity, &hold)))
        })
        .await?;
    Ok(Reply::ok(shown))
}

async fn change_hold(call: Call, change: HoldChange) -> Result<Reply<Shape<HoldItem>>, Problem> {
    let changed = call
        .operate(move |service, identity, id| {
            let hold = service.change_hold(identity, id, change)?;
            Ok(Shape::of(service.hold_to_json(identity, &hold)))
        })
        .await?;
    Ok(Reply::ok(changed))
}
