//! What no tool does, as a prompt says: what of a task is left to be done without it.

use windlass_core::run::NO_TOOL_NOTE;

use crate::split::split;

/// A system message without the note about what no tool does, and what it lists.
pub(crate) fn told(system: &str) -> (&str, Vec<&str>) {
    let Some((before, listed)) = system.split_once(NO_TOOL_NOTE) else {
        return (system, Vec::new());
    };
    let lines = listed.trim_start().lines();
    let missing = lines.map_while(|line| line.strip_prefix("- "));
    (before.trim_end(), missing.collect())
}

/// The part of a task that tools may do; nothing if all of it is missing.
pub(crate) fn possible(task: &str, missing: &[&str]) -> Option<String> {
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
    fn what_no_tool_does_is_left_out_of_the_task() {
        let system = format!("Help.\n\n{NO_TOOL_NOTE}\n- book a table for 2\nSay so.");
        let (before, missing) = told(&system);
        assert_eq!(before, "Help.");
        assert_eq!(missing, ["book a table for 2"]);
        let task = "Find the weather in Paris, then book a table for 2";
        assert_eq!(
            possible(task, &missing).as_deref(),
            Some("Find the weather in Paris")
        );
        assert_eq!(possible("book a  table for 2", &missing), None);
        assert_eq!(possible(task, &[]).as_deref(), Some(task));
    }
}
