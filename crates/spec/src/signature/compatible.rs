//! Checks that one type accepts every value of another. This decides whether an implementation fits a
//! specification: it must accept all arguments that the specification allows.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::check::join;
use super::{Field, MAX_DEPTH, Type, shortened};

/// One place where two types disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The place, such as `address.zip` or `tags[]`; empty for the whole.
    pub path: String,
    /// The difference, as a message for people.
    pub message: String,
}

impl Mismatch {
    pub(super) fn new(path: &str, message: String) -> Self {
        Self {
            path: path.to_owned(),
            message,
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "`{}`: {}", self.path, self.message)
        }
    }
}

impl Type {
    /// Checks that every value of `other`, the specified type, is a value of this one.
    ///
    /// # Errors
    /// Every place where a value of `other` may not be a value of this type.
    pub fn accepts(&self, other: &Type) -> Result<(), Vec<Mismatch>> {
        let mut mismatches = Vec::new();
        compare(self, other, "", MAX_DEPTH, &mut mismatches);
        if mismatches.is_empty() {
            Ok(())
        } else {
            Err(mismatches)
        }
    }
}

/// Checks that all arguments that fit `theirs`, the specified parameters, also fit `ours`.
///
/// # Errors
/// Every place where arguments that fit `theirs` may not fit `ours`.
pub fn accepts_parameters(ours: &[Field], theirs: &[Field]) -> Result<(), Vec<Mismatch>> {
    let mut mismatches = Vec::new();
    compare_fields(ours, theirs, "", MAX_DEPTH, &mut mismatches);
    if mismatches.is_empty() {
        Ok(())
    } else {
        Err(mismatches)
    }
}

fn compare(ours: &Type, theirs: &Type, path: &str, levels: usize, found: &mut Vec<Mismatch>) {
    let Some(below) = levels.checked_sub(1) else {
        found.push(Mismatch::new(
            path,
            format!("is nested deeper than {MAX_DEPTH} levels"),
        ));
        return;
    };
    match (ours, theirs) {
        (Type::Any, _) => {}
        // Being nullable is a property of a level, not a level of its own.
        (Type::Nullable(ours), Type::Nullable(theirs)) => {
            compare_present(ours, theirs, path, below, found);
        }
        (Type::Nullable(ours), theirs) => compare_present(ours, theirs, path, below, found),
        (ours, Type::Nullable(theirs)) => {
            let taken = shortened(&ours.to_string());
            let message = format!("takes {taken}, the specification allows null as well");
            found.push(Mismatch::new(path, message));
            compare_present(ours, theirs, path, below, found);
        }
        (ours, theirs) => compare_present(ours, theirs, path, below, found),
    }
}

/// Compares the types without `null`.
fn compare_present(
    ours: &Type,
    theirs: &Type,
    path: &str,
    below: usize,
    found: &mut Vec<Mismatch>,
) {
    match (ours, theirs) {
        (Type::Any, _)
        | (Type::Text, Type::Text | Type::Enum(_))
        | (Type::Number, Type::Number | Type::Integer)
        | (Type::Integer, Type::Integer)
        | (Type::Boolean, Type::Boolean)
        | (Type::Object, Type::Object | Type::Record(_))
        | (Type::Array, Type::Array | Type::List(_)) => {}
        (Type::Enum(ours), Type::Enum(theirs)) => compare_options(ours, theirs, path, found),
        (Type::List(ours), Type::List(theirs)) => {
            compare(ours, theirs, &format!("{path}[]"), below, found);
        }
        (Type::Record(ours), Type::Record(theirs)) => {
            compare_fields(ours, theirs, path, below, found);
        }
        (ours, theirs) => {
            let taken = shortened(&ours.to_string());
            let allowed = shortened(&theirs.to_string());
            let message = format!("takes {taken}, the specification allows {allowed}");
            found.push(Mismatch::new(path, message));
        }
    }
}

fn compare_options(ours: &[String], theirs: &[String], path: &str, found: &mut Vec<Mismatch>) {
    let taken: HashSet<&str> = ours.iter().map(String::as_str).collect();
    let refused: Vec<String> = theirs
        .iter()
        .filter(|option| !taken.contains(option.as_str()))
        .map(|option| format!("\"{}\"", shortened(option)))
        .collect();
    if !refused.is_empty() {
        let refused = shortened(&refused.join(", "));
        let message = format!("does not take {refused}, which the specification allows");
        found.push(Mismatch::new(path, message));
    }
}

fn compare_fields(
    ours: &[Field],
    theirs: &[Field],
    path: &str,
    levels: usize,
    found: &mut Vec<Mismatch>,
) {
    let by_name = |fields| -> HashMap<&str, &Field> {
        let fields: &[Field] = fields;
        fields
            .iter()
            .map(|field| (field.name.as_str(), field))
            .collect()
    };
    let (taken, specified) = (by_name(ours), by_name(theirs));
    for field in theirs {
        let path = join(path, &field.name);
        let Some(counterpart) = taken.get(field.name.as_str()) else {
            let message = "is allowed by the specification, but not taken".to_owned();
            found.push(Mismatch::new(&path, message));
            continue;
        };
        if counterpart.is_required() && !field.is_required() {
            let message = "is required, but the specification lets it be left out".to_owned();
            found.push(Mismatch::new(&path, message));
        }
        compare(&counterpart.ty, &field.ty, &path, levels, found);
    }
    for field in ours {
        if field.is_required() && !specified.contains_key(field.name.as_str()) {
            let message = "is required, but the specification does not have it".to_owned();
            found.push(Mismatch::new(&join(path, &field.name), message));
        }
    }
}
