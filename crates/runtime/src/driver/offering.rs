//! Selects the tools that a model is shown, and lets it search for the others.

use std::sync::Arc;

use serde_json::Value;
use windlass_core::durable::Durability;
use windlass_core::gate::Permit;
use windlass_core::run::{CallEnd, Event, tool_search_result};
use windlass_spec::registry::Environment;
use windlass_store::UsagePurpose;

use super::{Drive, DriveError};
use crate::gap::{GapCheck, Lacking, UnconfiguredTool, before_run, before_run_by_model};
use crate::intake::{ToolSelection, find};
use crate::intents::UnderstoodTask;
use crate::money::MeteredModel;

/// The number of tools that a search returns by default.
const DEFAULT_LIMIT: u64 = 5;

/// The largest number of tools that a search returns.
const MAX_LIMIT: u64 = 20;

impl Drive<'_> {
    /// Updates the tool set that the model is shown. Returns true if it changed.
    pub(super) async fn offer(&mut self) -> Result<bool, DriveError> {
        self.take_rules()?;
        let found = self.run.found_tools().len();
        let is_known = self
            .offered
            .as_ref()
            .is_some_and(|(rules, known)| Arc::ptr_eq(rules, &self.rules) && *known == found);
        if is_known {
            return Ok(false);
        }
        self.offered = Some((Arc::clone(&self.rules), found));
        let intake = self.driver.crew.intake();
        // What is chosen below is chosen in this context.
        let environment: Option<Environment> = self.rules.environment().parse().ok();
        let context = environment.and_then(|environment| {
            let tools = self.run.allowed_tools().map(|tool| tool.name().clone());
            self.run.task().context(environment, tools).ok()?
        });
        // Intents are classified once. A task that is a single call has no intent.
        let is_new = self.run.offer().is_none()
            && self.run.turns().is_empty()
            && self.run.task().call.is_none();
        let intents = intake.intents.as_ref().filter(|_| is_new);
        let understood = intents
            .zip(context.as_ref())
            .and_then(|(intents, context)| {
                let tools: Vec<_> = self.run.allowed_tools().collect();
                (!tools.is_empty())
                    .then(|| intents.understand_with(context, &tools, &intake.indexes))?
            });
        let new_intent = understood.as_ref().map(UnderstoodTask::recorded);
        let intent = new_intent.as_ref();
        let known = self.run.offer().and_then(|offer| offer.intent.as_ref());
        let suggested = intent.or(known).map(|intent| intent.suggested_tools.iter());
        let suggested: Vec<&str> = suggested
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let context = context.as_ref();
        let offered = ToolSelection::of(&self.run, context, &self.rules, &intake, &suggested);
        let is_set_by_person = self.run.parent().is_none();
        let is_usable = |tool: &str| offered.tools.iter().any(|usable| usable.as_str() == tool);
        let advice = understood
            .as_ref()
            .and_then(|understood| understood.advice(is_usable, is_set_by_person));
        let Lacking { gap, disabled } = match intake.gaps.filter(|_| is_new && is_set_by_person) {
            Some(check) => self.lacking_before_run(check).await,
            None => Lacking::default(),
        };
        let is_same_environment = self.run.environment() == self.rules.environment();
        let is_known = offered.is_shown(&self.run) && is_same_environment;
        if is_known && new_intent.is_none() && gap.is_none() && disabled.is_empty() {
            return Ok(false);
        }
        let event = Event::Offered {
            intent: new_intent.map(Box::new),
            tools: offered.tools,
            left_out: offered.left_out,
            set: offered.set,
            gap: gap.map(Box::new),
            disabled,
            advice: advice.map(Box::new),
            environment: Some(self.rules.environment().to_owned()),
            at: self.driver.durable.now(),
        };
        self.record(event, Durability::Relaxed).await?;
        Ok(true)
    }

    /// The capabilities that the task needs and no tool seems to have, or only one that is switched off. If the
    /// model is to be asked and does not answer, only the matcher decides.
    async fn lacking_before_run(&self, check: GapCheck) -> Lacking {
        let (run, rules) = (&self.run, &self.rules);
        let unconfigured = self.unconfigured_tools();
        if check.ask_model {
            let cancel = self.driver.stop.at_once.child_token();
            let intake = self.driver.crew.intake();
            let model = MeteredModel {
                model: &*self.member.model,
                money: &intake.money,
                durable: &*self.driver.durable,
                who: self.journal.who(),
                agent: run.agent().name(),
                run: run.id(),
                purpose: UsagePurpose::Gap,
            };
            let asked = before_run_by_model(run, rules, check, &unconfigured, &model, &cancel);
            if let Some(found) = asked.await {
                return found;
            }
        }
        before_run(run, rules, check, &unconfigured)
    }

    /// The tools that can do nothing until they are configured.
    fn unconfigured_tools(&self) -> Vec<UnconfiguredTool> {
        let tools = self.run.allowed_tools();
        let unconfigured = tools.filter_map(|declared| {
            let tool = self
                .driver
                .crew
                .tool(self.member, declared.name().as_str())?;
            Some(UnconfiguredTool {
                tool: declared.name().clone(),
                because: tool.tool().not_configured()?.to_owned(),
            })
        });
        unconfigured.collect()
    }

    /// The result of a search for tools.
    pub(super) fn find_tools(&self, permit: &Permit) -> CallEnd {
        let arguments = permit.arguments();
        let query = arguments.get("query").and_then(Value::as_str);
        let limit = arguments.get("limit").and_then(Value::as_u64);
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let intake = self.driver.crew.intake();
        let wanted = (query.unwrap_or_default(), limit);
        let tools = find(&self.run, &self.rules, &intake.indexes, wanted);
        CallEnd::Success(tool_search_result(&tools))
    }
}
