//! Budgets of tokens and money, which are checked before the model is asked.
//!
//! How many tokens an answer takes is known afterwards. Before, it is known how long the request is, and so the least
//! that it costs. A request that would exceed a budget even then is not made. Requests that are under way at the same
//! time count when they are answered.

use windlass_config::BudgetLimits;
use windlass_core::durable::Durability;
use windlass_core::model::{ModelRequest, Usage};
use windlass_core::run::{Budget, Event};
use windlass_spec::{ModelPrice, Money, TokenCounts};

use super::{Drive, DriveError};
use crate::durable::UsageOf;
use crate::money::{BudgetOwner, start_of_day};

/// A token of a text has at most about this many bytes on average, so a longer request has more tokens.
const BYTES_OF_A_TOKEN: usize = 6;

/// The least that the next request and its answer take.
struct LeastUse {
    tokens: u64,
    /// `None` if the model has no price.
    money: Option<Money>,
}

impl LeastUse {
    fn of(request: &ModelRequest, price: Option<&ModelPrice>) -> Self {
        let bytes: usize = request.messages.iter().map(|one| one.characters()).sum();
        let input = (bytes / BYTES_OF_A_TOKEN) as u64;
        // The least for a request whose input the provider has in its cache, if that is cheaper.
        let money = price.map(|price| {
            let counts = |cached| TokenCounts {
                input,
                cached,
                output: 1,
                ..TokenCounts::default()
            };
            price.cost(counts(0)).min(price.cost(counts(input)))
        });
        Self {
            tokens: input.saturating_add(1),
            money,
        }
    }

    /// Why a budget does not allow the request.
    fn refusal(&self, whose: &str, limits: BudgetLimits, used: Usage) -> Option<(Budget, String)> {
        if let Some(limit) = limits.tokens
            && used.tokens().saturating_add(self.tokens) > limit
        {
            let message = format!(
                "{whose} of {limit} tokens does not allow the next request to the model: {} are used, and it takes at \
                 least {}",
                used.tokens(),
                self.tokens
            );
            return Some((Budget::Tokens, message));
        }
        let limit = limits.money?;
        let spent = used.microdollars.unwrap_or_default();
        let least = self.money.unwrap_or_default();
        let is_allowed =
            spent.saturating_add(least) <= limit && (spent < limit || least == Money::ZERO);
        (!is_allowed).then(|| {
            let message = format!(
                "{whose} of {limit} does not allow the next request to the model: {spent} are spent, and it costs at \
                 least {least}"
            );
            (Budget::Money, message)
        })
    }
}

impl Drive<'_> {
    /// Ends the run if a budget does not allow a request to its model. Returns whether that is so.
    pub(super) async fn is_over_budget(
        &mut self,
        request: &ModelRequest,
    ) -> Result<bool, DriveError> {
        let intake = self.driver.crew.intake();
        let model = &*self.member.model;
        let price = intake.money.price(model);
        let least = LeastUse::of(request, price.as_ref());
        let settings = self.run.settings();
        let of_run = BudgetLimits {
            tokens: settings.max_tokens,
            money: settings.max_microdollars,
        };
        let of_day = intake
            .money
            .of_day(self.run.agent().name(), self.journal.who());
        let limits_money =
            of_run.money.is_some() || of_day.iter().any(|budget| budget.limits.money.is_some());
        let mut refused = None;
        if limits_money && price.is_none() {
            let name = model.priced_name().unwrap_or("without a name");
            let message = format!(
                "a budget of money applies, and the model `{name}` has no price; set `input` and `output` of \
                 `[prices.\"{name}\"]` in the configuration"
            );
            refused = Some((Budget::Money, message));
        }
        if refused.is_none() && !of_run.is_unlimited() {
            refused = least.refusal("the budget of this run", of_run, self.run.usage());
        }
        if refused.is_none() && !of_day.is_empty() {
            // What this run used up last counts too.
            self.journal.sync().await?;
            let tenant = self.journal.who().tenant.to_string();
            let since = start_of_day(self.driver.durable.now());
            for budget in of_day {
                let (agent, principal, whose) = match &budget.owner {
                    BudgetOwner::All => (None, None, "the budget of a day".to_owned()),
                    BudgetOwner::Agent(agent) => {
                        let whose = format!("the budget of the agent `{agent}` for a day");
                        (Some(agent.as_str()), None, whose)
                    }
                    BudgetOwner::Principal(principal) => {
                        let whose = format!("the budget of `{principal}` for a day");
                        (None, Some(principal.as_str()), whose)
                    }
                };
                let of = UsageOf {
                    tenant: &tenant,
                    agent,
                    principal,
                    since,
                };
                let used = self.driver.durable.usage(of).await?;
                refused = least.refusal(&whose, budget.limits, used);
                if refused.is_some() {
                    break;
                }
            }
        }
        let Some((budget, message)) = refused else {
            return Ok(false);
        };
        let at = self.driver.durable.now();
        let event = Event::BudgetReached {
            budget,
            message,
            at,
        };
        self.record(event, Durability::Relaxed).await?;
        Ok(true)
    }
}
