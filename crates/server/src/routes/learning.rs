//! What was learned: playbooks, missing tools, and the comparison of variants of tools.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_service::types::{Timestamp, ToolName};
use windlass_service::{Scope, StrategyChange, StrategyFilter, VariantQuery, strategy_to_json};

use crate::call::{Call, Nothing, Reply};
use crate::page::Page;
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{Shape, Time};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/playbooks"),
            ("list_strategies", "List the strategies learned from runs"),
            Scope::Read,
            strategies,
        ),
        Route::new(
            (Method::GET, "/v1/playbooks/strategies/{strategy}"),
            ("show_strategy", "Show a strategy"),
            Scope::Read,
            show_strategy,
        ),
        Route::new(
            (Method::POST, "/v1/playbooks/strategies/{strategy}/change"),
            ("change_strategy", "Pin or disable a strategy"),
            Scope::Operate,
            change_strategy,
        ),
        Route::new(
            (Method::POST, "/v1/playbooks/revert"),
            (
                "revert_playbook",
                "Revert a playbook to an earlier revision",
            ),
            Scope::Operate,
            revert,
        ),
        Route::new(
            (Method::GET, "/v1/statistics/playbooks"),
            ("playbook_statistics", "How strategies were used"),
            Scope::Read,
            playbook_statistics,
        ),
        Route::new(
            (Method::GET, "/v1/gaps"),
            (
                "list_gaps",
                "List the tools that agents lacked, the most frequent first",
            ),
            Scope::Read,
            gaps,
        ),
        Route::new(
            (Method::GET, "/v1/gaps/{gap}"),
            (
                "show_gap",
                "Show a missing tool with its occurrences and a proposed declaration",
            ),
            Scope::Read,
            show_gap,
        ),
        Route::new(
            (Method::GET, "/v1/experiments/variants"),
            (
                "compare_variants",
                "Compare the variants of tools that are in use",
            ),
            Scope::Read,
            variants,
        ),
    ]
}

/// A strategy of a playbook, with what is known of it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct StrategyItem {
    /// Its id.
    id: String,
    /// The domain of its playbook.
    domain: String,
    /// What to do or to avoid.
    content: String,
    /// `active`, `disabled` or `retired`.
    standing: String,
    /// The lower bound of the share of success.
    lower_bound: f64,
    /// In how many runs it was recalled.
    recalled: u64,
}

/// Which strategies are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StrategiesQuery {
    /// Only those of this domain.
    domain: Option<String>,
    /// Also those that are disabled or retired.
    #[serde(default)]
    all: bool,
}

async fn strategies(
    call: Call<StrategiesQuery>,
) -> Result<Reply<Page<Shape<StrategyItem>>>, Problem> {
    let domain = call.query.domain.clone();
    let filter = match call.query.all {
        true => StrategyFilter::All,
        false => StrategyFilter::InUse,
    };
    let listed = call
        .operate(move |service, identity, _| {
            let playbooks = service.list_playbooks(identity, domain.as_deref())?;
            let all = playbooks.iter().flat_map(|playbook| {
                let strategies = playbook.strategies(filter);
                strategies.map(|kept| Shape::of(strategy_to_json(&playbook.domain, kept)))
            });
            Ok(all.collect::<Vec<_>>())
        })
        .await?;
    Ok(Reply::ok(Page::whole(listed)))
}

async fn show_strategy(call: Call) -> Result<Reply<Shape<StrategyItem>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let (domain, kept) = service.show_strategy(identity, None, id)?;
            Ok(Shape::of(strategy_to_json(&domain, &kept)))
        })
        .await?;
    Ok(Reply::ok(shown))
}

/// What is changed.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChangeName {
    /// It is never retired.
    Pin,
    /// It may be retired again.
    Unpin,
    /// It is not recalled any more.
    Disable,
    /// It is recalled again.
    Enable,
}

/// A change of a strategy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StrategyChangeBody {
    /// What is changed.
    change: ChangeName,
}

/// A changed playbook.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ChangedPlaybook {
    /// Its revision now.
    revision: u64,
}

async fn change_strategy(
    call: Call<Nothing, StrategyChangeBody>,
) -> Result<Reply<ChangedPlaybook>, Problem> {
    let change = match call.body.change {
        ChangeName::Pin => StrategyChange::Pin,
        ChangeName::Unpin => StrategyChange::Unpin,
        ChangeName::Disable => StrategyChange::Disable,
        ChangeName::Enable => StrategyChange::Enable,
    };
    let changed = call
        .operate(move |service, identity, id| service.change_strategy(identity, None, id, change))
        .await?;
    Ok(Reply::ok(ChangedPlaybook {
        revision: changed.revision as u64,
    }))
}

/// A revision to revert to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevertBody {
    /// The domain; optional if there is only one.
    domain: Option<String>,
    /// The revision.
    revision: u32,
}

async fn revert(call: Call<Nothing, RevertBody>) -> Result<Reply<ChangedPlaybook>, Problem> {
    let (domain, revision) = (call.body.domain.clone(), call.body.revision as usize);
    let reverted = call
        .operate(move |service, identity, _| {
            service.revert_playbook(identity, domain.as_deref(), revision)
        })
        .await?;
    Ok(Reply::ok(ChangedPlaybook {
        revision: reverted.playbook.revision as u64,
    }))
}

/// Statistics of a playbook.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PlaybookStatisticsItem {
    /// The domain.
    domain: String,
    /// Its revision.
    revision: u64,
    /// The runs it was learned from.
    runs: Map<String, Value>,
    /// The strategies in use.
    active: Map<String, Value>,
    /// How many strategies are retired.
    retired: u64,
    /// The runs that succeeded, by what was recalled in them.
    successes: Map<String, Value>,
}

async fn playbook_statistics(
    call: Call,
) -> Result<Reply<Page<Shape<PlaybookStatisticsItem>>>, Problem> {
    let counted = call
        .operate(|service, identity, _| {
            let counted = service.playbook_statistics(identity, None)?;
            counted
                .iter()
                .map(Shape::from)
                .collect::<Result<Vec<_>, _>>()
        })
        .await?;
    Ok(Reply::ok(Page::whole(counted)))
}

/// A missing tool.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct GapItem {
    /// The name of a tool that would have the capability.
    tool: String,
    /// The capability.
    wish: String,
    /// How often it was missing.
    count: u64,
    /// How often in the last seven days.
    this_week: u64,
    /// When it was missing first.
    first_at: Option<Time>,
    /// When it was missing last.
    last_at: Time,
    /// The agents that lacked it.
    agents: Vec<String>,
    /// How often in which phase of a run.
    moments: Map<String, Value>,
}

/// A missing tool with its occurrences.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct GapDetails {
    #[serde(flatten)]
    gap: GapItem,
    /// Its occurrences, the latest first.
    times: Vec<Map<String, Value>>,
    /// A proposed declaration, as text of an agent file.
    proposed_tool: Option<String>,
}

/// Which missing tools are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GapsQuery {
    /// Only those of this agent.
    agent: Option<String>,
    /// Only those of the last days.
    days: Option<u32>,
}

async fn gaps(call: Call<GapsQuery>) -> Result<Reply<Page<Shape<GapItem>>>, Problem> {
    let (agent, days) = (call.query.agent.clone(), call.query.days);
    let listed = call
        .operate(move |service, identity, _| {
            let now = service.now();
            let listed = service.list_missing_tools(identity, agent.as_deref(), days)?;
            Ok(listed
                .iter()
                .map(|one| Shape::of(one.to_json(now)))
                .collect())
        })
        .await?;
    Ok(Reply::ok(Page::whole(listed)))
}

async fn show_gap(call: Call) -> Result<Reply<Shape<GapDetails>>, Problem> {
    let shown = call
        .operate(|service, identity, name| {
            let missing = service.show_missing_tool(identity, name)?;
            Ok(Shape::of(missing.to_json_in_full(service.now())))
        })
        .await?;
    Ok(Reply::ok(shown))
}

/// Which variants are compared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VariantsQuery {
    /// Only those of this tool.
    tool: Option<String>,
    /// Only calls that ended at this time or later, in RFC 3339.
    since: Option<String>,
    /// The significance level, 0.05 if absent.
    #[schemars(range(min = 0.000001, max = 0.5))]
    alpha: Option<f64>,
}

/// A tool with variants between which principals are split.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct VariantSplitItem {
    /// The tool.
    tool: String,
    /// The name of the experiment.
    experiment: String,
    /// The significance level.
    alpha: f64,
    /// Its variants, with their measurements.
    variants: Vec<Map<String, Value>>,
    /// The probability of a split at least this uneven, given the planned shares.
    sample_ratio: f64,
    /// Whether the shares were changed, so that no comparison is possible.
    is_changed: bool,
    /// How the variants compare.
    compared: Vec<Map<String, Value>>,
}

async fn variants(
    call: Call<VariantsQuery>,
) -> Result<Reply<Page<Shape<VariantSplitItem>>>, Problem> {
    let invalid = |detail: String| {
        Problem::new(400, "invalid_query", "The query is not valid").with_detail(detail)
    };
    let since = call
        .query
        .since
        .as_deref()
        .map(str::parse::<Timestamp>)
        .transpose();
    let tool = call.query.tool.as_deref().map(ToolName::new).transpose();
    let alpha = call.query.alpha.unwrap_or(0.05);
    if !(alpha > 0.0 && alpha <= 0.5) {
        return Err(invalid("`alpha` is more than 0 and at most 0.5".to_owned()));
    }
    let query = VariantQuery {
        tool: tool.map_err(|error| invalid(error.to_string()))?,
        since: since.map_err(|error| invalid(error.to_string()))?,
        alpha,
    };
    let compared = call
        .operate(move |service, identity, _| {
            let compared = service.compare_variants(identity, &query)?;
            compared
                .iter()
                .map(Shape::from)
                .collect::<Result<Vec<_>, _>>()
        })
        .await?;
    Ok(Reply::ok(Page::whole(compared)))
}
