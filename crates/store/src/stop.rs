//! What operators stopped. It is one row, which is checked each time it is read, and changed together with the record of
//! changes by administrators.

use windlass_core::stop::{StopOrder, StopOrders, StoppableWork};
use windlass_spec::NonEmptyText;

use crate::admin::{self, AdminChange};
use crate::error::Error;
use crate::evidence::{Database, STOPS};
use crate::read::count;
use crate::store::Store;

/// The kind of the change that stops something, and of the one that starts it again.
const STOPPED: &str = "stopped";
const STARTED: &str = "started";

impl Store {
    /// All stops that have not ended.
    ///
    /// # Errors
    /// If they cannot be read, or were changed outside Windlass. Nothing may begin then.
    pub fn stops(&self) -> Result<StopOrders, Error> {
        self.readers.read(|database| {
            // Its two queries see the same state.
            let transaction = database.unchecked_transaction()?;
            let stops = read(database);
            drop(transaction);
            stops
        })
    }

    /// Stops something, and records it as a change by an administrator of `recorded_by`, with the same reason. A stop of the
    /// same is replaced. When this returns, no call that it covers is recorded as started any more, in no process.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn stop(&self, recorded_by: &NonEmptyText, stop: StopOrder) -> Result<StopOrder, Error> {
        let stop = self.without_secrets(stop);
        let change = change(STOPPED, &stop)?;
        let tenant = recorded_by.to_string();
        self.transact("stop", move |database| {
            let mut stops = read(database)?;
            stops
                .orders
                .retain(|earlier| !earlier.is_about(stop.tenant.as_ref(), &stop.target));
            stops.orders.push(stop.clone());
            store(database, &stops)?;
            admin::append(database, &tenant, &change, &change.subject.to_string())?;
            Ok(stop.clone())
        })
    }

    /// Ends a stop, and records it. Returns the stop; `None` if there is none of that for the tenant.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn start_again(
        &self,
        recorded_by: &NonEmptyText,
        started: StopOrder,
    ) -> Result<Option<StopOrder>, Error> {
        let tenant = recorded_by.to_string();
        let started = self.without_secrets(started);
        let change = change(STARTED, &started)?;
        self.transact("start_again", move |database| {
            let mut stops = read(database)?;
            let is_meant =
                |stop: &StopOrder| stop.is_about(started.tenant.as_ref(), &started.target);
            let Some(place) = stops.orders.iter().position(is_meant) else {
                return Ok(None);
            };
            let ended = stops.orders.remove(place);
            store(database, &stops)?;
            admin::append(database, &tenant, &change, &change.subject.to_string())?;
            Ok(Some(ended))
        })
    }

    fn without_secrets(&self, stop: StopOrder) -> StopOrder {
        let reason = stop.reason.map(|text| self.redactor.text(text.as_str()));
        StopOrder {
            reason: reason.and_then(|text| NonEmptyText::new(text).ok()),
            ..stop
        }
    }
}

/// What the record of changes says about a stop, or about its end.
fn change(kind: &str, stop: &StopOrder) -> Result<AdminChange, Error> {
    let mut subject = serde_json::to_value(stop)
        .map_err(|error| Error::unreadable("a stop to be stored", error))?;
    if let Some(fields) = subject.as_object_mut() {
        // The change itself has them.
        fields.remove("by");
        fields.remove("at");
    }
    Ok(AdminChange {
        kind: kind.to_owned(),
        by: Some(stop.by.to_string()),
        at: stop.at,
        subject,
    })
}

/// Refuses work that a stop covers.
pub(crate) fn check(database: &Database, work: &StoppableWork) -> Result<(), Error> {
    match read(database)?.covering(work) {
        None => Ok(()),
        Some(stop) => Err(Error::Stopped(Box::new(stop.clone()))),
    }
}

/// The stops as they are now, checked.
pub(crate) fn read(database: &Database) -> Result<StopOrders, Error> {
    let altered = |reason: &str| Err(Error::altered("the list of what is stopped", reason));
    let changes: i64 = database
        .prepare_cached("SELECT count(*) FROM admin_changes WHERE kind IN ('stopped', 'started')")?
        .query_row([], |row| row.get(0))?;
    let mut select = database.prepare_cached(&STOPS.select())?;
    let mut rows = select.query([])?;
    let Some(row) = rows.next()? else {
        return match changes {
            0 => Ok(StopOrders::default()),
            _ => altered("it is missing"),
        };
    };
    STOPS.check(&database.evidence, row)?;
    let revision: i64 = row.get("revision")?;
    if revision != changes {
        return altered("it does not agree with the record of changes by administrators");
    }
    let body: String = row.get("body")?;
    let orders = serde_json::from_str(&body)
        .map_err(|error| Error::unreadable("the list of what is stopped", error))?;
    Ok(StopOrders {
        revision: count(revision),
        orders,
    })
}

/// Stores the stops after one change.
fn store(database: &Database, stops: &StopOrders) -> Result<(), Error> {
    let body = serde_json::to_string(&stops.orders)
        .map_err(|error| Error::unreadable("the list of what is stopped", error))?;
    let revision = i64::try_from(stops.revision).unwrap_or(i64::MAX);
    let mut insert = database.prepare_cached(
        "INSERT OR REPLACE INTO stops (only_row, revision, body) VALUES (1, ?1, ?2)",
    )?;
    insert.execute((revision.saturating_add(1), body))?;
    STOPS.seal(database, 1)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use windlass_core::approval::Principal;
    use windlass_core::stop::StopTarget;
    use windlass_keys::JournalKey;
    use windlass_spec::{Timestamp, ToolName};

    use super::*;
    use crate::evidence::Authentication;
    use crate::store::Options;

    fn acme() -> NonEmptyText {
        NonEmptyText::new("acme").unwrap()
    }

    fn stop(target: StopTarget) -> StopOrder {
        StopOrder {
            tenant: Some(acme()),
            target,
            by: Principal::new("ada").unwrap(),
            at: Timestamp::from_microseconds(5),
            reason: NonEmptyText::new("bad prices").ok(),
        }
    }

    fn opened(directory: &tempfile::TempDir) -> Store {
        let options = Options {
            authentication: Authentication::Key(JournalKey::new(&[7; 32])),
            ..Options::default()
        };
        Store::open_with(directory.path().join("windlass.db"), options).unwrap()
    }

    fn forge(store: &Store, statements: &str) {
        let database = Connection::open(store.path()).unwrap();
        database.execute_batch(statements).unwrap();
    }

    #[test]
    fn what_was_stopped_stays_stopped_until_it_is_started() {
        let directory = tempfile::tempdir().unwrap();
        let store = opened(&directory);
        assert_eq!(store.stops().unwrap(), StopOrders::default());
        let tool = StopTarget::Tool(ToolName::new("deploy").unwrap());
        store.stop(&acme(), stop(tool.clone())).unwrap();
        store.stop(&acme(), stop(StopTarget::All)).unwrap();
        store.stop(&acme(), stop(StopTarget::All)).unwrap();
        drop(store);
        let store = opened(&directory);
        let stops = store.stops().unwrap();
        assert_eq!((stops.orders.len(), stops.revision), (2, 3));
        let ended = store.start_again(&acme(), stop(tool.clone())).unwrap();
        assert_eq!(ended, Some(stop(tool.clone())));
        assert_eq!(store.start_again(&acme(), stop(tool)).unwrap(), None);
        let other = StopOrder {
            tenant: NonEmptyText::new("other").ok(),
            ..stop(StopTarget::All)
        };
        assert_eq!(store.start_again(&acme(), other).unwrap(), None);
        let changes = store.admin_changes("acme").unwrap();
        let kinds: Vec<&str> = changes.iter().map(|one| one.change.kind.as_str()).collect();
        assert_eq!(kinds, ["stopped", "stopped", "stopped", "started"]);
        assert_eq!(changes[0].change.subject["reason"], "bad prices");
        assert_eq!(changes[0].change.by.as_deref(), Some("ada"));
    }

    #[test]
    fn a_list_of_stops_that_was_changed_by_hand_is_not_read() {
        let forgeries = [
            "UPDATE stops SET body = '[]'",
            "DELETE FROM stops",
            "UPDATE stops SET revision = 7",
            "INSERT INTO admin_changes (tenant, seq, kind, at, body) VALUES ('other', 1, 'started', 0, '{}')",
        ];
        for forgery in forgeries {
            let directory = tempfile::tempdir().unwrap();
            let store = opened(&directory);
            store.stop(&acme(), stop(StopTarget::All)).unwrap();
            forge(&store, forgery);
            let refused = store.stops().unwrap_err();
            assert!(
                matches!(refused, Error::Altered { .. }),
                "{forgery}: {refused}"
            );
            let found = store.verify_rest().unwrap();
            assert!(!found.is_empty(), "{forgery}");
        }
    }

    #[test]
    fn an_older_list_of_stops_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let store = opened(&directory);
        store.stop(&acme(), stop(StopTarget::All)).unwrap();
        store.start_again(&acme(), stop(StopTarget::All)).unwrap();
        forge(&store, "CREATE TABLE kept AS SELECT * FROM stops");
        store.stop(&acme(), stop(StopTarget::All)).unwrap();
        forge(&store, "REPLACE INTO stops SELECT * FROM kept");
        assert!(matches!(store.stops(), Err(Error::Altered { .. })));
    }
}
