//! Tests of an operator's settings, one per rule.

mod categories;
mod context;
mod limits;
mod schemas;
mod words;

use serde_json::Value;

/// The error of reading a value as `T`.
fn read_error<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
    match serde_json::from_value::<T>(value.clone()) {
        Ok(read) => panic!("{value} was read as {read:?}"),
        Err(error) => error.to_string(),
    }
}
