//! What models cost and what runs may use up, as it is configured.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use windlass_config::{BudgetLimits, BudgetSettings, Configuration, PriceTable};
use windlass_core::approval::TenantPrincipal;
use windlass_core::model::{ModelAnswer, ModelRequest, Usage};
use windlass_core::run::Settings;
use windlass_model::{ModelClient, ModelError, ModelEvent};
use windlass_spec::{AgentName, ModelPrice, Money, RunId, Timestamp};
use windlass_store::{NewUsage, UsagePurpose};

use crate::durable::Durable;

/// The prices and budgets of a configuration. The default has the shipped prices and no budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoneySettings {
    prices: PriceTable,
    configuration: Option<Configuration>,
}

/// A budget that applies to a run, and whose it is.
pub(crate) struct AppliedBudget {
    pub(crate) owner: BudgetOwner,
    pub(crate) limits: BudgetLimits,
}

/// Whose budget it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BudgetOwner {
    All,
    Agent(String),
    Principal(String),
}

impl MoneySettings {
    pub(crate) fn of(configuration: &Configuration) -> Self {
        Self {
            prices: configuration.prices().clone(),
            configuration: Some(configuration.clone()),
        }
    }

    /// What the answers of a model cost; `None` if that is not known.
    pub(crate) fn price(&self, model: &dyn ModelClient) -> Option<ModelPrice> {
        let name = model.priced_name().unwrap_or_default();
        match (self.prices.configured(name), model.is_free()) {
            (Some(configured), _) => Some(configured),
            (None, true) => Some(ModelPrice::default()),
            (None, false) => self.prices.price(name),
        }
    }

    /// An answer with the model that gave it and what it cost. This is where the cost of every answer of a model comes
    /// from.
    pub(crate) fn priced(&self, mut answer: ModelAnswer, model: &dyn ModelClient) -> ModelAnswer {
        answer.usage = answer.usage.priced(self.price(model).as_ref());
        answer.model = model.priced_name().map(str::to_owned);
        answer
    }

    /// The settings of a new run with the budgets that are configured for it.
    pub(crate) fn limit(
        &self,
        settings: Settings,
        agent: &AgentName,
        who: &TenantPrincipal,
    ) -> Settings {
        let budgets = self.budgets(agent, who).into_iter();
        budgets.fold(settings, |settings, (_, budget)| {
            settings.with_budgets(budget.run.tokens, budget.run.money)
        })
    }

    /// The budgets of a day that apply to a run.
    pub(crate) fn of_day(&self, agent: &AgentName, who: &TenantPrincipal) -> Vec<AppliedBudget> {
        let budgets = self.budgets(agent, who).into_iter();
        let budgets = budgets.map(|(owner, budgets)| AppliedBudget {
            owner,
            limits: budgets.day,
        });
        budgets
            .filter(|budget| !budget.limits.is_unlimited())
            .collect()
    }

    fn budgets(
        &self,
        agent: &AgentName,
        who: &TenantPrincipal,
    ) -> Vec<(BudgetOwner, BudgetSettings)> {
        let Some(configuration) = &self.configuration else {
            return Vec::new();
        };
        let principal = who.principal.as_str();
        let of_agent = configuration.agents().get(agent);
        vec![
            (BudgetOwner::All, configuration.budgets()),
            (
                BudgetOwner::Agent(agent.to_string()),
                of_agent.map(|agent| agent.budgets).unwrap_or_default(),
            ),
            (
                BudgetOwner::Principal(principal.to_owned()),
                configuration.principal(principal).budgets,
            ),
        ]
    }
}

/// The usage of one answer with its cost, by the prices of a configuration: for answers that no driver asks for.
#[must_use]
pub fn priced_usage(configuration: &Configuration, model: &dyn ModelClient, usage: Usage) -> Usage {
    let price = MoneySettings::of(configuration).price(model);
    usage.priced(price.as_ref())
}

/// The beginning of the day in UTC.
pub(crate) fn start_of_day(now: Timestamp) -> Timestamp {
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    let now = now.as_microseconds();
    Timestamp::from_microseconds(now - now.rem_euclid(DAY))
}

/// A model whose answers are recorded as usage that belongs to no turn of a run.
pub(crate) struct MeteredModel<'m> {
    pub(crate) model: &'m dyn ModelClient,
    pub(crate) money: &'m MoneySettings,
    pub(crate) durable: &'m dyn Durable,
    pub(crate) who: &'m TenantPrincipal,
    pub(crate) agent: &'m AgentName,
    pub(crate) run: &'m RunId,
    pub(crate) purpose: UsagePurpose,
}

impl ModelClient for MeteredModel<'_> {
    fn answer<'a>(
        &'a self,
        request: &'a ModelRequest,
        cancel: &'a CancellationToken,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let answer = self.model.answer(request, cancel, events).await?;
            let answer = self.money.priced(answer, self.model);
            let usage = answer.usage;
            let is_counted = usage.tokens() > 0
                || usage.unpriced_answers > 0
                || usage.microdollars.is_some_and(|cost| cost > Money::ZERO);
            if is_counted {
                let new = NewUsage {
                    who: self.who,
                    agent: self.agent.as_str(),
                    run: Some(self.run),
                    purpose: self.purpose,
                    model: answer.model.as_deref(),
                    usage,
                    at: self.durable.now(),
                };
                // The answer was paid for, and is used even if that cannot be stored.
                if let Err(error) = self.durable.note_usage(new).await {
                    tracing::warn!(%error, "usage_not_recorded");
                }
            }
            Ok(answer)
        })
    }

    fn name(&self) -> Option<&str> {
        self.model.name()
    }

    fn priced_name(&self) -> Option<&str> {
        self.model.priced_name()
    }

    fn is_free(&self) -> bool {
        self.model.is_free()
    }
}
