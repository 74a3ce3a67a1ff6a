//! Journals of earlier versions must fold to the same state as when they were written. Never change a
//! journal; add another.

use std::path::Path;

use insta::assert_snapshot;
use windlass_core::run::{Event, Next, Run};

#[test]
fn journals_of_earlier_versions_still_fold_to_the_same() {
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
    let mut summaries = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let events: Vec<Event> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let run = Run::fold(&events).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
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
