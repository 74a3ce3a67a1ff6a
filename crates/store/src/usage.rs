//! Tokens and money that models and tools used up. A row is stored in the transaction of the event that it is for, and
//! it stays when the payloads of the run are purged.

use rusqlite::{Connection, Row, params};
use windlass_core::approval::TenantPrincipal;
use windlass_core::model::Usage;
use windlass_core::run::Event;
use windlass_spec::{CallId, Money, RunId, Timestamp};

use crate::conditions::Conditions;
use crate::error::Error;
use crate::read::count;
use crate::rows;
use crate::store::Store;

windlass_spec::word_set! {
    /// What a model was asked for, or that a tool cost something.
    UsagePurpose, "purpose of usage" {
        /// The answer of a run's model.
        Answer = "answer",
        /// The cost that a tool states.
        Tool = "tool",
        /// Which capabilities a task needs.
        Gap = "gap",
        /// The wording of what was learned.
        Learning = "learning",
        /// An MCP server asked for it.
        Sampling = "sampling",
    }
}

windlass_spec::word_set! {
    /// By what usage is summed up.
    UsageGroup, "group of usage" {
        /// The agent.
        Agent = "agent",
        /// The principal.
        Principal = "principal",
        /// The day in UTC.
        Day = "day",
        /// The model.
        Model = "model",
    }
}

/// The usage of an answer that belongs to no turn of a run.
#[derive(Debug, Clone)]
pub struct NewUsage<'a> {
    /// The identity on whose behalf the model was asked.
    pub who: &'a TenantPrincipal,
    /// The agent.
    pub agent: &'a str,
    /// The run, if there is one.
    pub run: Option<&'a RunId>,
    /// What the model was asked for.
    pub purpose: UsagePurpose,
    /// The model, as `Provider/id`.
    pub model: Option<&'a str>,
    /// The usage, with its cost.
    pub usage: Usage,
    /// When it answered.
    pub at: Timestamp,
}

/// Which usage to sum up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// Only that of this tenant.
    pub tenant: Option<String>,
    /// Only that of this agent.
    pub agent: Option<String>,
    /// Only that of this principal.
    pub principal: Option<String>,
    /// Only that of this time or later.
    pub since: Option<Timestamp>,
}

impl UsageFilter {
    fn conditions(&self) -> Conditions {
        Conditions::default()
            .equal("tenant", self.tenant.as_deref())
            .equal("agent", self.agent.as_deref())
            .equal("principal", self.principal.as_deref())
            .at_least("at", self.since.map(Timestamp::as_microseconds))
    }
}

/// The largest count of a row: a million of them can be summed.
const LARGEST_COUNT: u64 = 9_000_000_000_000;

/// A sum of usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// The tokens and the whole cost.
    pub usage: Usage,
    /// How many answers of models are in it.
    pub answers: u64,
    /// The part of the cost that tools state.
    pub tools: Money,
}

/// The columns of a sum. Dollars and their parts are summed separately, because SQLite refuses a sum that overflows.
const SUMS: &str = "count(*) FILTER (WHERE purpose <> 'tool') AS answers,
     coalesce(sum(input_tokens), 0) AS input_tokens,
     coalesce(sum(cached_tokens), 0) AS cached_tokens,
     coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens,
     coalesce(sum(output_tokens), 0) AS output_tokens,
     sum(microdollars / 1000000) AS dollars,
     sum(microdollars % 1000000) AS rest,
     coalesce(sum(microdollars / 1000000) FILTER (WHERE purpose = 'tool'), 0) AS tool_dollars,
     coalesce(sum(microdollars % 1000000) FILTER (WHERE purpose = 'tool'), 0) AS tool_rest,
     count(*) FILTER (WHERE microdollars IS NULL) AS unpriced";

impl Store {
    /// The sum of usage.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn usage(&self, filter: &UsageFilter) -> Result<UsageSum, Error> {
        let conditions = filter.conditions();
        let query = conditions.query(&format!("SELECT {SUMS} FROM usage"), "1", None);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            let found = rows::first(select.query(conditions.values())?, sum)?;
            Ok(found.unwrap_or_default())
        })
    }

    /// The sums of usage by agent, principal, day or model, in the order of their names; days with the latest first. The
    /// name is missing where the model is not known.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn usage_by(
        &self,
        filter: &UsageFilter,
        group: UsageGroup,
    ) -> Result<Vec<(Option<String>, UsageSum)>, Error> {
        let conditions = filter.conditions();
        let (key, order) = match group {
            UsageGroup::Agent => ("agent", "agent"),
            UsageGroup::Principal => ("principal", "principal"),
            UsageGroup::Model => ("model", "model IS NULL, model"),
            UsageGroup::Day => (
                "strftime('%Y-%m-%d', at / 1000000, 'unixepoch')",
                "name DESC",
            ),
        };
        let select = format!("SELECT {key} AS name, {SUMS} FROM usage");
        let query = conditions.grouped_query(&select, "name", order);
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            rows::all(select.query(conditions.values())?, |row| {
                Ok((row.get("name")?, sum(row)?))
            })
        })
    }

    /// The usage of a run and of the runs that work for it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn usage_of_run(&self, run: &RunId) -> Result<UsageSum, Error> {
        self.readers.read(|connection| {
            // A run that works for another one is named after its call: `/` follows `.`.
            let mut select = connection.prepare_cached(&format!(
                "SELECT {SUMS} FROM usage
                 WHERE run = ?1 OR (run > ?1 || '.' AND run < ?1 || '/')"
            ))?;
            let found = rows::first(select.query([run.as_str()])?, sum)?;
            Ok(found.unwrap_or_default())
        })
    }

    /// Stores usage that belongs to no event, and waits for the disk.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn record_usage(&self, new: &NewUsage<'_>) -> Result<(), Error> {
        let row = UsageRow {
            owner: RowOwner::Of {
                tenant: new.who.tenant.to_string(),
                principal: new.who.principal.to_string(),
                agent: new.agent.to_owned(),
                run: new.run.cloned(),
            },
            call: None,
            purpose: new.purpose,
            model: new.model.map(|model| self.redactor.text(model)),
            usage: new.usage,
            at: new.at,
        };
        self.transact("usage", move |database| row.insert(database))
    }
}

fn sum(row: &Row<'_>) -> Result<UsageSum, Error> {
    let number = |name: &str| -> Result<u64, Error> { Ok(count(row.get(name)?)) };
    let money = |dollars: Option<i64>, rest: Option<i64>| {
        let dollars = count(dollars?).saturating_mul(1_000_000);
        let rest = count(rest.unwrap_or_default());
        Some(Money::from_microdollars(dollars.saturating_add(rest)))
    };
    let usage = Usage {
        input_tokens: number("input_tokens")?,
        output_tokens: number("output_tokens")?,
        cached_tokens: number("cached_tokens")?,
        cache_write_tokens: number("cache_write_tokens")?,
        microdollars: money(row.get("dollars")?, row.get("rest")?),
        unpriced_answers: number("unpriced")?,
    };
    let tools = money(row.get("tool_dollars")?, row.get("tool_rest")?);
    Ok(UsageSum {
        usage,
        answers: number("answers")?,
        tools: tools.unwrap_or_default(),
    })
}

/// Whose usage a row is.
enum RowOwner {
    /// That of a stored run.
    Run(RunId),
    /// Another one.
    Of {
        tenant: String,
        principal: String,
        agent: String,
        run: Option<RunId>,
    },
}

/// Usage to be stored.
pub(crate) struct UsageRow {
    owner: RowOwner,
    call: Option<CallId>,
    purpose: UsagePurpose,
    model: Option<String>,
    usage: Usage,
    at: Timestamp,
}

impl UsageRow {
    /// The usage that an event of a run reports, to be stored in the same transaction. Answers that no model gave, and
    /// free ones whose tokens are not counted, are not worth a row.
    pub(crate) fn of(event: &Event, run: &RunId) -> Option<Self> {
        let row = |call, purpose, model, usage, at| Self {
            owner: RowOwner::Run(run.clone()),
            call,
            purpose,
            model,
            usage,
            at,
        };
        match event {
            Event::ModelAnswered { answer, at, .. } => {
                let usage = answer.usage;
                let costs = usage.unpriced_answers > 0
                    || usage.microdollars.is_some_and(|cost| cost > Money::ZERO);
                (costs || usage.tokens() > 0)
                    .then(|| row(None, UsagePurpose::Answer, answer.model.clone(), usage, *at))
            }
            Event::CostReported { call, cost, at } => {
                let usage = Usage {
                    microdollars: Some(*cost),
                    ..Usage::default()
                };
                Some(row(
                    Some(call.clone()),
                    UsagePurpose::Tool,
                    None,
                    usage,
                    *at,
                ))
            }
            _ => None,
        }
    }

    /// Stores it.
    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), Error> {
        // A provider that counts nonsense must not make the sums overflow.
        let number = |count: u64| i64::try_from(count.min(LARGEST_COUNT)).unwrap_or(i64::MAX);
        let usage = &self.usage;
        let numbers = [
            number(usage.input_tokens),
            number(usage.cached_tokens),
            number(usage.cache_write_tokens),
            number(usage.output_tokens),
        ];
        let microdollars = usage
            .microdollars
            .map(|cost| i64::try_from(cost.as_microdollars()).unwrap_or(i64::MAX));
        let call = self.call.as_ref().map(CallId::to_string);
        const COLUMNS: &str = "INSERT INTO usage
            (tenant, principal, agent, run, call, purpose, model, at, input_tokens, cached_tokens,
             cache_write_tokens, output_tokens, microdollars)";
        match &self.owner {
            RowOwner::Run(run) => {
                let mut insert = connection.prepare_cached(&format!(
                    "{COLUMNS} SELECT tenant, principal, agent, run, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10
                     FROM runs WHERE run = ?1"
                ))?;
                insert.execute(params![
                    run.as_str(),
                    call,
                    self.purpose.as_str(),
                    self.model,
                    self.at.as_microseconds(),
                    numbers[0],
                    numbers[1],
                    numbers[2],
                    numbers[3],
                    microdollars
                ])?;
            }
            RowOwner::Of {
                tenant,
                principal,
                agent,
                run,
            } => {
                let mut insert = connection.prepare_cached(&format!(
                    "{COLUMNS} VALUES (?1, ?2, ?3, ?4, NULL, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
                ))?;
                insert.execute(params![
                    tenant,
                    principal,
                    agent,
                    run.as_ref().map(RunId::as_str),
                    self.purpose.as_str(),
                    self.model,
                    self.at.as_microseconds(),
                    numbers[0],
                    numbers[1],
                    numbers[2],
                    numbers[3],
                    microdollars
                ])?;
            }
        }
        Ok(())
    }
}
