//! The conditions of a list query. Only the conditions that are set become part of the query: a condition
//! such as `?1 IS NULL OR ...` would keep the database from using an index.

use rusqlite::types::Value;

/// The `WHERE` clause of a list query, with its values.
#[derive(Default)]
pub(crate) struct Conditions {
    text: String,
    values: Vec<Value>,
}

impl Conditions {
    /// Keeps only rows with this value in the column, if one is given.
    pub(crate) fn equal(mut self, column: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.values.push(value.to_owned().into());
            let number = self.values.len();
            self.add(&format!("{column} = ?{number}"));
        }
        self
    }

    /// Keeps only rows with at least this value in the column, if one is given.
    pub(crate) fn at_least(mut self, column: &str, value: Option<i64>) -> Self {
        if let Some(value) = value {
            self.values.push(value.into());
            let number = self.values.len();
            self.add(&format!("{column} >= ?{number}"));
        }
        self
    }

    /// Keeps only rows that come after the row with this key in a list that is ordered by `time` and `key`,
    /// both descending, if a key is given. There are none if no row has the key.
    pub(crate) fn after(
        mut self,
        table: &str,
        (time, key): (&str, &str),
        value: Option<&str>,
    ) -> Self {
        if let Some(value) = value {
            self.values.push(value.to_owned().into());
            let number = self.values.len();
            self.add(&format!(
                "({time}, {key}) < (SELECT {time}, {key} FROM {table} WHERE {key} = ?{number})"
            ));
        }
        self
    }

    /// Keeps only rows with this word in the column, if one is given. The word becomes part of the query
    /// text, so that partial indexes on one word apply.
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

    /// The query with these conditions, order and limit.
    pub(crate) fn query(&self, select: &str, order: &str, limit: Option<u32>) -> String {
        let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
        format!("{select} {} ORDER BY {order}{limit}", self.text)
    }

    /// The query with these conditions, for groups of rows.
    pub(crate) fn grouped_query(&self, select: &str, group: &str, order: &str) -> String {
        format!("{select} {} GROUP BY {group} ORDER BY {order}", self.text)
    }

    /// The query that counts the matching rows.
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

    /// The query plan of the database.
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
    fn lists_of_waiting_runs_and_pending_approvals_use_their_indexes() {
        let waiting = plan(&RunFilter::waiting().query());
        assert!(waiting.contains("INDEX runs_waiting"), "{waiting}");
        assert!(!waiting.contains("TEMP B-TREE"), "{waiting}");
        let pending = plan(&ApprovalFilter::pending().summary_query());
        assert!(
            pending.contains("COVERING INDEX approvals_pending"),
            "{pending}"
        );
        assert!(!pending.contains("TEMP B-TREE"), "{pending}");
        let next_page = RunFilter {
            after: Some("r1".parse().unwrap()),
            limit: Some(10),
            ..RunFilter::default()
        };
        let next_page = plan(&next_page.query().replace("?1", "'r1'"));
        assert!(next_page.contains("INDEX runs_by_start"), "{next_page}");
        assert!(!next_page.contains("TEMP B-TREE"), "{next_page}");
    }
}
