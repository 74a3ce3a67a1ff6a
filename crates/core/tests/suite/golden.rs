//! Journals of earlier versions must fold to the same state as when they were written. Never change a
//! journal; add another.

use std::path::Path;

use insta::assert_snapshot;
use windlass_core::run::{Event, Next, Run, RunEnd};
use windlass_spec::NonEmptyText;

/// The golden journals by name, in order.
#[allow(clippy::unwrap_used)]
fn journals() -> Vec<(String, Vec<Event>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .collect();
    files.sort();
    let read = |file: std::path::PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, events.collect())
    };
    files.into_iter().map(read).collect()
}

#[test]
fn only_a_run_at_its_limit_of_turns_says_that_the_limit_was_reached() {
    let mut ends = Vec::new();
    for (name, events) in journals() {
        // Also a run that was interrupted anywhere has an output.
        for length in 1..=events.len() {
            let run = Run::fold(&events[..length]).unwrap();
            let output = run.output(NonEmptyText::new("t1").unwrap());
            let output = output.unwrap_or_else(|error| panic!("{name} at {length}: {error}"));
            let is_at_limit = run.end() == Some(&RunEnd::IterationLimit);
            assert_eq!(output.iteration_limit_reached(), is_at_limit, "{name}");
            assert!(is_at_limit || !output.answer().trim().is_empty(), "{name}");
            ends.extend(run.end().map(|end| (end.exit_code(), is_at_limit)));
        }
    }
    assert!(ends.contains(&(1, true)) && ends.contains(&(1, false)));
}

#[test]
fn journals_of_earlier_versions_still_fold_to_the_same() {
    let mut summaries = String::new();
    for (name, events) in journals() {
        let run = Run::fold(&events).unwrap();
        summaries += &format!("{name}\n{}\n\n", summary(&run));
        // Without the last event the run is in progress: its next request must not change either.
        let before = Run::fold(&events[..events.len() - 1]).unwrap();
        if let Next::CallModel(request) = before.next() {
            let tools: Vec<&str> = request
                .tools
                .iter()
                .map(|tool| tool.name().as_str())
                .collect();
            summaries += &format!("next request: {:?} {tools:?}\n\n", request.messages);
        }
    }
    assert_snapshot!(summaries);
}

fn summary(run: &Run) -> String {
    let calls: Vec<String> = run
        .calls()
        .map(|call| format!("{} {}", call.tool_name(), call.state()))
        .collect();
    let mut more = String::new();
    for plan in run.plans() {
        let tasks: Vec<String> = plan
            .tasks()
            .map(|(task, state)| format!("{} {:?}", task.id, state.status))
            .collect();
        more += &format!("\nplan {:?}: {tasks:?}", plan.status());
    }
    for recalled in run.recalled().unwrap_or_default() {
        more += &format!("\nrecalled {}: {}", recalled.id, recalled.text);
    }
    if let Some(damage) = run.damage() {
        more += &format!("\ndamage {damage}");
    }
    format!(
        "end {:?}\nanswer {}\nturns {}, calls {calls:?}\nmistakes {:?}\nusage {:?}{more}",
        run.end(),
        run.response().answer(),
        run.turns().len(),
        run.mistakes(),
        run.usage(),
    )
}
