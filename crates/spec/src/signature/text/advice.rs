//! Hints for a type that does not exist, or that is written in the notation of another language.

use super::shortened;
use crate::nearest::nearest;
use crate::signature::Type;

/// Every type name with its type; the first name of each type is the canonical one.
const SCALARS: [(&str, Type); 12] = [
    ("Text", Type::Text),
    ("String", Type::Text),
    ("Int", Type::Integer),
    ("Integer", Type::Integer),
    ("Double", Type::Number),
    ("Number", Type::Number),
    ("Float", Type::Number),
    ("Bool", Type::Boolean),
    ("Boolean", Type::Boolean),
    ("Object", Type::Object),
    ("Array", Type::Array),
    ("Any", Type::Any),
];

/// Type names of other notations, in lower case, and the corresponding name here.
const FOREIGN: [(&str, &str); 30] = [
    ("str", "Text"),
    ("char", "Text"),
    ("varchar", "Text"),
    ("date", "Text"),
    ("datetime", "Text"),
    ("url", "Text"),
    ("uuid", "Text"),
    ("long", "Int"),
    ("i32", "Int"),
    ("i64", "Int"),
    ("u32", "Int"),
    ("u64", "Int"),
    ("usize", "Int"),
    ("int32", "Int"),
    ("int64", "Int"),
    ("f32", "Double"),
    ("f64", "Double"),
    ("decimal", "Double"),
    ("real", "Double"),
    ("dict", "Object"),
    ("map", "Object"),
    ("hashmap", "Object"),
    ("record", "Object"),
    ("json", "Object"),
    ("list", "Array"),
    ("vec", "Array"),
    ("maybe", "Maybe"),
    ("value", "Any"),
    ("unknown", "Any"),
    ("dynamic", "Any"),
];

/// The type of that name.
pub(super) fn scalar(name: &str) -> Option<Type> {
    let (_, ty) = SCALARS.iter().find(|(known, _)| *known == name)?;
    Some(ty.clone())
}

/// Whether the word followed by a type means a list of that type in other notations.
pub(super) fn means_list(word: &str) -> bool {
    matches_ignoring_case(
        word,
        &["list", "vec", "array", "seq", "set", "sequence", "listof"],
    )
}

/// Whether the word followed by a type means an optional value in other notations.
pub(super) fn means_optional(word: &str) -> bool {
    matches_ignoring_case(word, &["optional", "option", "nullable", "opt", "maybe"])
}

fn matches_ignoring_case(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The hint for an unknown type name without an argument.
pub(super) fn unknown_type(name: &str) -> String {
    let names = SCALARS.map(|(known, _)| known);
    let known = format!("the types are {}, [T] and {{name: T}}", names.join(", "));
    let nothing = [
        "unit",
        "void",
        "none",
        "null",
        "nil",
        "nothing",
        "undefined",
    ];
    if matches_ignoring_case(name, &nothing) {
        return format!("there is no type for an empty result; {known}");
    }
    if name.eq_ignore_ascii_case("io") {
        return format!(
            "`IO` is not a type; it is allowed only before the return type of a text signature; {known}"
        );
    }
    let exact = names
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name));
    let foreign = FOREIGN
        .iter()
        .find(|(foreign, _)| foreign.eq_ignore_ascii_case(name));
    let meant = exact
        .or(foreign.map(|(_, here)| *here))
        .or_else(|| nearest(name, names));
    match meant {
        Some(meant) => format!("did you mean `{meant}`? {known}"),
        None => known,
    }
}

/// The hint for `name` followed by a type, such as `List Text` or `Optional Int`.
pub(super) fn applied_type(name: &str, argument: Option<&str>) -> Option<String> {
    let argument = argument.map_or_else(|| "T".to_owned(), shortened);
    if means_list(name) {
        Some(format!("a list is written `[{argument}]`"))
    } else if means_optional(name) {
        Some(format!("write `Maybe {argument}`"))
    } else {
        None
    }
}
