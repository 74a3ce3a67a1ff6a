//! The conditions of a list. Only those that were asked for are part of the query: a condition that may
//! or may not hold would keep the database from using an index.

use rusqlite::types::Value;

/// What is listed, as the end of a query.
#[derive(Default)]
pub(crate) struct Conditions {
    text: String,
    values: Vec<Value>,
}

impl Conditions {
    /// Only rows that have this value in that column, if one is given.
    pub(crate) fn equal(mut self, column: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.values.push(value.to_owned().into());
            let number = self.values.len();
            self.add(&format!("{column} = ?{number}"));
        }
        self
    }

    /// Only rows that have this word in that column, if one is given. It becomes part of the text, for
    /// indexes that are about one word only.
    pub(crate) fn word(mut self, column: &str, word: Option<&'static str>) -> Self {
        if let Some(word) = word {
            self.add(&format!("{column} = '{word}'"));
        }
        self
    }

    fn add(&mut self, condition: &str) {
        self.text += if self.text.is_empty() {
            "WHERE "
        } else {
            " AND "
        };
        self.text += condition;
    }

    /// The query with these conditions, in that order, at most so many.
    pub(crate) fn query(&self, select: &str, order: &str, limit: Option<u32>) -> String {
        let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
        format!("{select} {} ORDER BY {order}{limit}", self.text)
    }

    /// How many there are.
    pub(crate) fn count(&self, table: &str) -> String {
        format!("SELECT count(*) FROM {table} {}", self.text)
    }

    pub(crate) fn values(&self) -> impl rusqlite::Params + '_ {
        rusqlite::params_from_iter(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use crate::{ApprovalFilter, RunFilter, Store};

    /// How the database goes about a query.
    fn plan(query: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("windlass.db")).unwrap();
        let plan = store.readers.read(|connection| {
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
            let steps = explain.query_map([], |row| row.get(3))?;
            let steps: Result<Vec<String>, _> = steps.collect();
            Ok(steps?.join("\n"))
        });
        plan.unwrap()
    }

    #[test]
    fn lists_of_what_waits_use_the_indexes_made_for_them() {
        let waiting = plan(&RunFilter::waiting().query());
        assert!(waiting.contains("INDEX runs_waiting"), "{waiting}");
        assert!(!waiting.contains("TEMP B-TREE"), "{waiting}");
        let pending = plan(&ApprovalFilter::pending().summary_query());
        assert!(
            pending.contains("COVERING INDEX approvals_pending"),
            "{pending}"
        );
        assert!(!pending.contains("TEMP B-TREE"), "{pending}");
    }
}
