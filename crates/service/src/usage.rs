//! What models and tools used up: tokens, and what they cost.

use serde_json::{Value, json};
use windlass_core::model::{Cost, Usage};
use windlass_spec::Timestamp;
use windlass_store::{UsageFilter, UsageGroup, UsageSum};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// Which usage to report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// Only that of this agent.
    pub agent: Option<String>,
    /// Only that of this principal.
    pub principal: Option<String>,
    /// Only that of this time or later.
    pub since: Option<Timestamp>,
    /// By what it is summed up.
    pub by: Option<UsageGroup>,
}

/// The usage of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// All of it.
    pub total: UsageSum,
    /// The sums by the asked group. A name is missing where it is not known.
    pub groups: Vec<(Option<String>, UsageSum)>,
}

/// Usage as JSON: the tokens, and the known part of the cost in dollars as a decimal text.
#[must_use]
pub fn usage_to_json(usage: &Usage) -> Value {
    let cost = match usage.cost() {
        Cost::Known(money) | Cost::AtLeast(money) => Some(money.to_decimal()),
        Cost::Unknown => None,
    };
    json!({
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": cost,
        "is_cost_complete": matches!(usage.cost(), Cost::Known(_)),
    })
}

/// A sum of usage as JSON.
#[must_use]
pub fn usage_sum_to_json(sum: &UsageSum) -> Value {
    let mut object = usage_to_json(&sum.usage);
    object["answers"] = json!(sum.answers);
    object["tools_usd"] = json!(sum.tools.to_decimal());
    object
}

impl UsageReport {
    /// The report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let groups = self.groups.iter().map(|(name, sum)| {
            let mut object = usage_sum_to_json(sum);
            object["name"] = json!(name);
            object
        });
        json!({"total": usage_sum_to_json(&self.total), "groups": groups.collect::<Vec<_>>()})
    }
}

impl Service {
    /// What models and tools used up in the runs of the tenant, as far as the records of the runs are kept.
    ///
    /// # Errors
    /// If the identity may not read, or the store cannot be read.
    pub fn usage(
        &self,
        identity: &Identity,
        query: &UsageQuery,
    ) -> Result<UsageReport, ServiceError> {
        identity.require(Scope::Read)?;
        let store = self.store()?;
        let filter = UsageFilter {
            tenant: Some(identity.tenant().to_string()),
            agent: query.agent.clone(),
            principal: query.principal.clone(),
            since: query.since,
        };
        Ok(UsageReport {
            total: store.usage(&filter)?,
            groups: match query.by {
                Some(by) => store.usage_by(&filter, by)?,
                None => Vec::new(),
            },
        })
    }
}
