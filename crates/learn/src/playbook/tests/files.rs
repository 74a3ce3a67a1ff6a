//! Log and strategies files: damaged lines lose nothing else, and revisions stay stable.

use super::*;

#[test]
fn truncated_log_is_read_up_to_its_last_complete_line() {
    let whole: String = (0..3)
        .map(|run| {
            let entry = entry(succeeded(&format!("r{run}"), "One", &["a"]));
            format!("{}\n", serde_json::to_string(&entry).unwrap())
        })
        .collect();
    for cut in 0..=whole.len() {
        let Some(text) = whole.get(..cut) else {
            continue;
        };
        let read = read_log(text);
        assert_eq!(read.entries.len(), text.matches('\n').count());
        assert!(read.errors.is_empty());
    }
    let read = read_log(whole.replacen("{", "", 1));
    assert_eq!(read.errors[0].line, 1);
    assert_eq!(read.entries.len(), 3);
    assert_eq!(read.entries[0], PlaybookEntry::Unreadable);
}

#[test]
fn length_of_complete_lines_is_right_for_invalid_utf8() {
    let line = log_line(&entry(succeeded("r1", "One", &["a"]))).unwrap();
    let mut log = b"\xff\xfe damaged\n".to_vec();
    log.extend(line.as_bytes());
    let whole = log.len();
    log.extend(b"{\"evidence\":\"run\", \xff");
    let read = read_log(&log);
    assert_eq!(read.complete_bytes, whole);
    assert_eq!(read.errors.len(), 1);
    assert_eq!(read.entries.len(), 2);
}

#[test]
fn damaged_line_does_not_shift_revisions() {
    let one = entry(succeeded("r1", "One", &["a"]));
    let two = entry(succeeded("r2", "Two", &["b"]));
    let three = entry(succeeded("r3", "Three", &["c"]));
    let back = PlaybookEntry::Reverted { to: 2, at: at(9) };
    let entries = [one, two, three, back];
    let log: String = entries
        .iter()
        .map(|entry| log_line(entry).unwrap())
        .collect();
    let read = read_log(log.replacen("{", "?", 1));
    assert_eq!(read.entries.len(), 4);
    let playbook = fold(&read.entries);
    assert_eq!(playbook.revision, 4);
    assert_eq!(playbook.strategies.len(), 1);
    with_tools(&playbook, &["b"]);
}

#[test]
fn entries_have_a_version_and_entries_without_one_are_read() {
    let entry = entry(succeeded("r1", "One", &["a"]));
    let line = log_line(&entry).unwrap();
    assert!(line.contains("\"data_model_version\":\"1.0.0\""), "{line}");
    assert_eq!(read_log(&line).entries, std::slice::from_ref(&entry));
    let old = format!("{}\n", serde_json::to_string(&entry).unwrap());
    assert_eq!(read_log(old).entries, [entry]);
    let newer = read_log(line.replace("1.0.0", "2.0.0"));
    assert!(newer.errors[0].reason.contains("data model 2.0.0"));
    assert_eq!(newer.entries, [PlaybookEntry::Unreadable]);
}

#[test]
fn unreadable_line_removes_no_strategy() {
    let entries = [
        entry(succeeded("r1", "One", &["a"])),
        entry(succeeded("r2", "Two", &["b"])),
    ];
    let written = fold(&entries);
    let text = written.to_lines();
    let lines: Vec<&str> = text.lines().collect();
    let edits = |file: &str| hand_edits(&written, &read_strategies(file), at(5));
    // The id is still readable.
    let broken = lines[0].replacen(":", ";", 1);
    assert!(broken.contains("\"id\""));
    assert_eq!(edits(&format!("{broken}\n{}\n", lines[1])), []);
    // Truncated before its id.
    for cut in [1, 20, 60] {
        assert_eq!(edits(&format!("{}\n{}", lines[1], &lines[0][..cut])), []);
        assert_eq!(edits(&format!("{}\n{}\n", &lines[0][..cut], lines[1])), []);
    }
    // A removal is found if all other lines are readable, or at least their ids.
    let removed = edits(&format!("{}\n", lines[1]));
    assert!(matches!(removed[..], [PlaybookEntry::Removed { .. }]));
    let removed = edits(&format!("{broken}\n"));
    assert!(
        matches!(&removed[..], [PlaybookEntry::Removed { strategy, .. }]
        if strategy == written.strategies[1].id())
    );
}

#[test]
fn file_has_a_limited_number_of_retired_strategies() {
    let settings = CurationSettings {
        max_items: 10,
        ..CurationSettings::default()
    };
    let entries: Vec<PlaybookEntry> = (0..400)
        .map(|run| {
            entry(succeeded(
                &format!("r{run:03}"),
                "One",
                &[&format!("t{run}")],
            ))
        })
        .collect();
    let playbook = SemanticCurator::new(settings).fold("orders", &entries);
    assert_eq!(playbook.strategies.len(), 400);
    assert_eq!(playbook.to_lines().lines().count(), 210);
    // Retired strategies that are not in the file do not count as removed.
    let file = read_strategies(&playbook.to_lines());
    assert_eq!(hand_edits(&playbook, &file, at(1)), []);
}

#[test]
fn strategy_is_recalled_as_soon_as_its_missing_tool_returns() {
    let mut later = succeeded("r2", "Find it", &["find"]);
    later.lacks = tools(&["refund"]);
    let entries = [
        entry(succeeded("r1", "Refund the order", &["find", "refund"])),
        entry(later),
    ];
    let playbook = fold(&entries);
    let status = &with_tools(&playbook, &["find", "refund"]).status;
    assert!(matches!(
        status,
        StrategyStatus::Retired(RetiredReason::MissingTool(_))
    ));
    let index = PlaybookIndex::from_lines(&read_strategies(&playbook.to_lines()));
    let recalled = |tools: Vec<&'static str>| {
        let query = RecallQuery {
            tools: Some(tools),
            ..RecallQuery::new("Refund the order")
        };
        let recalled = index.recall(&query);
        recalled.iter().any(|recalled| recalled.sequence.len() == 2)
    };
    assert!(!recalled(vec!["find"]));
    assert!(recalled(vec!["find", "refund"]));
}
