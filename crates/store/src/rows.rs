//! Reading the rows of a query.

use rusqlite::{Row, Rows};
use serde::de::DeserializeOwned;

use crate::error::Error;

/// All rows, in their order.
pub(crate) fn all<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row, if there is one.
pub(crate) fn first<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    rows.next()?.map(read).transpose()
}

/// The columns of a row about a call that its body repeats.
pub(crate) struct CallColumns {
    pub(crate) run: String,
    pub(crate) call: String,
    pub(crate) status: String,
}

/// The body of a row about a call. Lists and rules use the columns, runs use the body: they must agree.
pub(crate) fn body_of_call<T: DeserializeOwned>(
    row: &Row<'_>,
    what: &str,
    agrees: impl Fn(&T, &CallColumns) -> bool,
) -> Result<T, Error> {
    let columns = CallColumns {
        run: row.get("run")?,
        call: row.get("call")?,
        status: row.get("status")?,
    };
    let text: String = row.get("body")?;
    let place = || format!("the {what} the call `{}`", columns.call);
    let body = serde_json::from_str(&text).map_err(|error| Error::unreadable(place(), error))?;
    match agrees(&body, &columns) {
        true => Ok(body),
        false => Err(Error::unreadable(
            place(),
            "its columns and its body do not agree",
        )),
    }
}
