//! Legal holds: runs that nothing is removed of.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::{Scope, legal_hold_to_json};

use crate::call::{Call, Nothing, Reply};
use crate::page::Page;
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, Time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/legal-holds"),
            ("list_legal_holds", "List the runs under a legal hold"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::PUT, "/v1/runs/{run}/legal-hold"),
            (
                "add_legal_hold",
                "Keep everything of a run and of the runs that work for it",
            ),
            Scope::Admin,
            add,
        ),
        Route::new(
            (Method::POST, "/v1/runs/{run}/legal-hold/remove"),
            (
                "remove_legal_hold",
                "Let the retention apply to a run again",
            ),
            Scope::Admin,
            remove,
        ),
    ]
}

/// A legal hold.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct LegalHoldItem {
    /// The outermost run. The runs that work for it are kept too.
    run: String,
    /// Why it is kept.
    reason: String,
    /// Who decided that.
    placed_by: String,
    /// When.
    placed_at: Time,
}

/// Why a hold is placed or removed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HoldReason {
    /// Why. It is recorded with the principal of the token.
    #[schemars(length(min = 1, max = 1000), regex(pattern = r"\S"))]
    reason: String,
}

/// What became of a request about a legal hold.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct LegalHoldOutcome {
    /// The outermost run.
    run: String,
    /// Whether anything changed.
    changed: bool,
}

async fn list(call: Call) -> Result<Reply<Page<Shape<LegalHoldItem>>>, Problem> {
    let holds = call
        .operate(move |service, identity, _| {
            let holds = service.legal_holds(identity)?;
            Ok(holds
                .iter()
                .map(|hold| Shape::of(legal_hold_to_json(hold)))
                .collect())
        })
        .await?;
    Ok(Reply::ok(Page::whole(holds)))
}

async fn add(call: Call<Nothing, HoldReason>) -> Result<Reply<Shape<LegalHoldOutcome>>, Problem> {
    let reason = call.body.reason.clone();
    let changed = call
        .operate(move |service, identity, run| {
            let changed = service.add_legal_holds(identity, &[run.to_owned()], &reason)?;
            Shape::from(&changed.first())
        })
        .await?;
    Ok(Reply::ok(changed))
}

async fn remove(
    call: Call<Nothing, HoldReason>,
) -> Result<Reply<Shape<LegalHoldOutcome>>, Problem> {
    let reason = call.body.reason.clone();
    let changed = call
        .operate(move |service, identity, run| {
            let changed = service.remove_legal_holds(identity, &[run.to_owned()], &reason)?;
            Shape::from(&changed.first())
        })
        .await?;
    Ok(Reply::ok(changed))
}
