//! Tests of signatures: rules one by one, and properties over generated signatures.

mod compatible;
mod construction;
mod exactness;
mod from_schema;
mod generate;
mod properties;
mod text;
mod text_errors;
