//! What models and tools used up.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::types::{Timestamp, UsageGroup};
use windlass_service::{Scope, UsageQuery};

use crate::call::{Call, Reply};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, UsageItem};

pub(super) fn routes() -> Vec<Route> {
    vec![Route::new(
        (Method::GET, "/v1/usage"),
        (
            "show_usage",
            "Sum up the tokens of models, and what models and tools cost",
        ),
        Scope::Read,
        show,
    )]
}

/// Which usage is summed up.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsageParameters {
    /// By what it is summed up.
    by: Option<GroupName>,
    /// Only that of the agent of this name.
    agent: Option<String>,
    /// Only that of the principal of this name.
    principal: Option<String>,
    /// Only that of this time or later, in RFC 3339.
    since: Option<String>,
}

/// By what usage is summed up.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GroupName {
    /// The agent.
    Agent,
    /// The principal.
    Principal,
    /// The day in UTC.
    Day,
    /// The model.
    Model,
}

impl From<GroupName> for UsageGroup {
    fn from(name: GroupName) -> Self {
        match name {
            GroupName::Agent => Self::Agent,
            GroupName::Principal => Self::Principal,
            GroupName::Day => Self::Day,
            GroupName::Model => Self::Model,
        }
    }
}

/// The usage of a tenant.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct UsageSummary {
    /// All of it.
    total: UsageItem,
    /// The sums by `by`; none without it.
    groups: Vec<UsageOfGroup>,
}

/// The usage of an agent, a principal, a day or a model.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct UsageOfGroup {
    /// Its name. Absent if it is not known.
    name: Option<String>,
    #[serde(flatten)]
    usage: UsageItem,
}

async fn show(call: Call<UsageParameters>) -> Result<Reply<Shape<UsageSummary>>, Problem> {
    let since = call.query.since.as_deref().map(str::parse::<Timestamp>);
    let since = since.transpose().map_err(|error| {
        Problem::new(400, "invalid_query", "The query is not valid").with_detail(error.to_string())
    })?;
    let query = UsageQuery {
        agent: call.query.agent.clone(),
        principal: call.query.principal.clone(),
        since,
        by: call.query.by.map(Into::into),
    };
    let report = call
        .operate(move |service, identity, _| service.usage(identity, &query))
        .await?;
    Ok(Reply::ok(Shape::of(report.to_json())))
}
