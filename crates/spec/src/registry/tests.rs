//! Tests of what an operator lays down, one a rule.

mod categories;
mod context;
mod limits;
mod schemas;
mod words;

use serde_json::Value;

/// What reading a value as `T` says against it.
fn refusal<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
    match serde_json::from_value::<T>(value.clone()) {
        Ok(read) => panic!("{value} was read as {read:?}"),
        Err(error) => error.to_string(),
    }
}
