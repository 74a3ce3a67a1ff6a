//! Tests of the risk assessment: a file a subject.

mod arguments;
mod limits;
mod properties;
mod shell;
mod sources;
mod sql;
mod words;
