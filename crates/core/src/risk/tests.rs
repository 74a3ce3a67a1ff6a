//! Tests of the risk assessment, one file for each topic.

mod arguments;
mod limits;
mod properties;
mod shell;
mod sources;
mod sql;
mod words;
