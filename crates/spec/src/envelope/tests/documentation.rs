//! The guide names every word, category and code.

use crate::envelope::{
    DeprecationCode, ExecutionMode, HilAction, InterventionType, SecurityLevel, ToolStatus,
};
use crate::failure::ErrorCategory;

const GUIDE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/envelope.md"
));

#[test]
fn the_guide_names_every_word() {
    let words = ToolStatus::ALL.map(ToolStatus::as_str).into_iter();
    let words = words
        .chain(HilAction::ALL.map(HilAction::as_str))
        .chain(InterventionType::ALL.map(InterventionType::as_str))
        .chain(SecurityLevel::ALL.map(SecurityLevel::as_str))
        .chain(ExecutionMode::ALL.map(ExecutionMode::as_str));
    for word in words {
        assert!(GUIDE.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn the_guide_has_a_row_for_every_category() {
    for category in ErrorCategory::ALL {
        let again = if category.is_retryable() { "yes" } else { "no" };
        let row = format!("| `{category}` | {} | {again} |", category.guidance());
        assert!(GUIDE.contains(&row), "{row}");
    }
}

#[test]
fn the_guide_has_a_row_for_every_notice() {
    for code in DeprecationCode::ALL {
        assert!(GUIDE.contains(&format!("| `{code}` |\n")), "{code}");
    }
    let rows = GUIDE.split("### In four phases").next().unwrap();
    let rows = rows.split("| older shape |").nth(1).unwrap();
    let rows = rows.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, DeprecationCode::ALL.len());
}
