//! The outcomes of calls to tools with several implementations, for comparing the implementations.

use rusqlite::{Row, named_params};
use windlass_core::run::Variant;
use windlass_spec::{CallState, Timestamp, ToolName};

use crate::error::Error;
use crate::execution::{ExecutionFilter, state, tool};
use crate::store::Store;

/// An execution of one of several implementations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantExecution {
    /// The tool.
    pub tool: ToolName,
    /// The implementation.
    pub variant: Variant,
    /// The principal on whose behalf it ran.
    pub principal: String,
    /// How it ended.
    pub state: CallState,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// How many calls of a tool were stopped for a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedCalls {
    /// The tool.
    pub tool: ToolName,
    /// The principal on whose behalf they were requested.
    pub principal: String,
    /// How many calls the gate denied.
    pub denials: u64,
    /// How many calls people undid.
    pub undos: u64,
}

impl Store {
    /// The executions of tools with several implementations, in the order they began.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn variant_executions(
        &self,
        filter: &ExecutionFilter,
    ) -> Result<Vec<VariantExecution>, Error> {
        let select =
            "SELECT tool, experiment, variant, share_millionths, principal, state, started_at,
                 ended_at
             FROM executions
             WHERE variant IS NOT NULL
                 AND (:tenant IS NULL OR tenant = :tenant) AND (:tool IS NULL OR tool = :tool)
                 AND (:since IS NULL OR ended_at >= :since)
             ORDER BY started_at, call";
        self.query_filtered(select, filter, variant_execution_from_row)
    }

    /// How many calls were denied or undone, by tool and principal. Such calls never ran, so they have
    /// no implementation.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn count_denied_and_undone(
        &self,
        filter: &ExecutionFilter,
    ) -> Result<Vec<StoppedCalls>, Error> {
        let select = "SELECT tool_name AS tool, principal, sum(verdict = 'deny') AS denials,
                 sum(coalesce(hold = 'undone', 0)) AS undos
             FROM tool_call_log
             WHERE tool_name IS NOT NULL
                 AND (:tenant IS NULL OR tenant = :tenant)
                 AND (:tool IS NULL OR tool_name = :tool)
                 AND (:since IS NULL OR requested_at >= :since)
             GROUP BY tool_name, principal
             HAVING denials > 0 OR undos > 0";
        self.query_filtered(select, filter, stopped_from_row)
    }

    fn query_filtered<T>(
        &self,
        select: &str,
        filter: &ExecutionFilter,
        from_row: fn(&Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(select)?;
            let mut rows = select.query(named_params! {
                ":tenant": filter.tenant,
                ":tool": filter.tool.as_ref().map(ToolName::as_str),
                ":since": filter.since.map(Timestamp::as_microseconds),
            })?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(from_row(row)?);
            }
            Ok(found)
        })
    }
}

fn stopped_from_row(row: &Row<'_>) -> Result<StoppedCalls, Error> {
    let count = |column| -> Result<u64, Error> {
        let count: i64 = row.get(column)?;
        Ok(count.unsigned_abs())
    };
    Ok(StoppedCalls {
        tool: tool(row)?,
        principal: row.get("principal")?,
        denials: count("denials")?,
        undos: count("undos")?,
    })
}

fn variant_execution_from_row(row: &Row<'_>) -> Result<VariantExecution, Error> {
    let timestamp = |column| row.get(column).map(Timestamp::from_microseconds);
    Ok(VariantExecution {
        tool: tool(row)?,
        variant: Variant {
            experiment: row.get("experiment")?,
            name: row.get("variant")?,
            share_millionths: row.get("share_millionths")?,
        },
        principal: row.get("principal")?,
        state: state(row)?,
        started_at: timestamp("started_at")?,
        ended_at: timestamp("ended_at")?,
    })
}
