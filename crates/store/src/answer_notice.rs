//! What tools should write differently in their answers, counted by tool and rule. It holds no content of an answer.

use rusqlite::{Connection, params};
use serde::Serialize;
use windlass_core::approval::QuestionAuthor;
use windlass_core::run::Event;
use windlass_spec::{Deprecation, DeprecationCode, Timestamp, ToolName};

use crate::error::Error;
use crate::execution::tool;
use crate::store::Store;

/// How often the answers of a tool violated a rule of the envelope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerNoticeCount {
    /// The tool.
    pub tool: ToolName,
    /// The rule.
    pub code: DeprecationCode,
    /// How often.
    pub count: u64,
    /// When it was last.
    pub last_at: Timestamp,
}

impl Store {
    /// What the tools of a tenant should write differently in their answers, by tool and rule.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn answer_notices(&self, tenant: &str) -> Result<Vec<AnswerNoticeCount>, Error> {
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT tool, code, count, last_at FROM answer_notices
                 WHERE tenant = ?1 ORDER BY tool, code",
            )?;
            let mut rows = select.query([tenant])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let code: String = row.get("code")?;
                let count: i64 = row.get("count")?;
                // A rule of a later version is not known here.
                let Ok(code) = code.parse() else {
                    continue;
                };
                found.push(AnswerNoticeCount {
                    tool: tool(row)?,
                    code,
                    count: u64::try_from(count).unwrap_or_default(),
                    last_at: Timestamp::from_microseconds(row.get("last_at")?),
                });
            }
            Ok(found)
        })
    }
}

/// The notices of an event, to be counted in the same transaction.
pub(crate) struct AnswerNotices {
    run: String,
    tool: String,
    codes: Vec<&'static str>,
    at: i64,
}

impl AnswerNotices {
    /// The notices of an event; `None` if it has none.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let (call, tool, notices): (_, _, &[Deprecation]) = match event {
            Event::CallEnded {
                call,
                ran: Some(ran),
                ..
            } => (call, &ran.tool, &ran.notices),
            Event::Asked { approval, .. } => match &approval.request().asked_by {
                Some(QuestionAuthor::Tool(tool)) => {
                    (approval.call(), tool, &approval.request().notices)
                }
                _ => return None,
            },
            _ => return None,
        };
        (!notices.is_empty()).then(|| Self {
            run: call.run.to_string(),
            tool: tool.to_string(),
            codes: notices.iter().map(|notice| notice.code.as_str()).collect(),
            at: event.at().as_microseconds(),
        })
    }

    /// Counts them.
    pub(crate) fn insert(&self, connection: &Connection) -> Result<(), Error> {
        let mut insert = connection.prepare_cached(
            "INSERT INTO answer_notices (tenant, tool, code, count, first_at, last_at)
             SELECT tenant, ?2, ?3, 1, ?4, ?4 FROM runs WHERE run = ?1
             ON CONFLICT (tenant, tool, code)
             DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)",
        )?;
        for code in &self.codes {
            insert.execute(params![self.run, self.tool, code, self.at])?;
        }
        Ok(())
    }
}
