//! The parts of a task that no tool can do, as listed in a prompt, and the rest of the task.

use windlass_core::run::NO_TOOL_NOTE;

use crate::split::split;

/// A system message without the note about missing tools, and the items of the note.
pub(crate) fn split_note(system: &str) -> (&str, Vec<&str>) {
    let Some((before, listed)) = system.split_once(NO_TOOL_NOTE) else {
        return (system, Vec::new());
    };
    let lines = listed.trim_start().lines();
    let missing = lines.map_while(|line| line.strip_prefix("- "));
    (before.trim_end(), missing.collect())
}

/// The part of a task that tools may do. `None` if tools are missing for all of it.
pub(crate) fn possible_part(task: &str, missing: &[&str]) -> Option<String> {
    if missing.is_empty() {
        return Some(task.to_owned());
    }
    let is_missing = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        missing.contains(&words.join(" ").as_str())
    };
    if is_missing(task) {
        return None;
    }
    let parts = split(task).into_iter();
    let left: Vec<String> = parts.filter(|part| !is_missing(part)).collect();
    (!left.is_empty()).then(|| left.join(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_no_tool_can_do_are_removed_from_the_task() {
        let system = format!("Help.\n\n{NO_TOOL_NOTE}\n- book a table for 2\nSay so.");
        let (before, missing) = split_note(&system);
        assert_eq!(before, "Help.");
        assert_eq!(missing, ["book a table for 2"]);
        let task = "Find the weather in Paris, then book a table for 2";
        assert_eq!(
            possible_part(task, &missing).as_deref(),
            Some("Find the weather in Paris")
        );
        assert_eq!(possible_part("book a  table for 2", &missing), None);
        assert_eq!(possible_part(task, &[]).as_deref(), Some(task));
    }
}
