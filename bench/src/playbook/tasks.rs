//! The tasks: the user's text of each turn, the APIs with their initial state, and the expected calls.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::random::seeded;

/// The main APIs of tasks.
const DOMAINS: [&str; 4] = [
    "GorillaFileSystem",
    "VehicleControlAPI",
    "TradingBot",
    "TravelAPI",
];

/// The number of folds; each is tested once with the others for training.
pub const FOLDS: usize = 5;

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The id.
    pub id: String,
    /// The user's text of each turn.
    pub turns: Vec<String>,
    /// The available APIs.
    pub classes: Vec<String>,
    /// Their initial state.
    pub initial_config: Map<String, Value>,
    /// The expected calls.
    pub expected: Expected,
}

/// The expected calls of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The calls of each turn, written as Python.
    pub calls: Vec<Vec<String>>,
}

impl Task {
    /// Its main API.
    pub fn domain(&self) -> &str {
        let known = self
            .classes
            .iter()
            .find(|class| DOMAINS.contains(&class.as_str()));
        known.or(self.classes.first()).map_or("", String::as_str)
    }

    /// The fewest iterations: the expected calls one by one, and one finish per turn.
    pub fn optimum(&self) -> u32 {
        let calls: usize = self.expected.calls.iter().map(Vec::len).sum();
        u32::try_from(calls + self.turns.len()).unwrap_or(u32::MAX)
    }
}

/// The tasks of a file with one JSON object per line.
pub fn from_file(path: &Path) -> anyhow::Result<Vec<Task>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{shown}`"))?;
    from_lines(&text).with_context(|| format!("invalid tasks in `{shown}`"))
}

/// The tasks of the package.
pub fn from_package(python: &Path, server: &Path) -> anyhow::Result<Vec<Task>> {
    let output = Command::new(python).arg(server).arg("tasks").output();
    let output = output.with_context(|| format!("cannot start `{}`", python.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "cannot read the package's tasks: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    from_lines(&String::from_utf8(output.stdout)?)
}

fn from_lines(text: &str) -> anyhow::Result<Vec<Task>> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let tasks = lines.map(|(index, line)| {
        let place = || format!("line {}", index + 1);
        let task: Task = serde_json::from_str(line).with_context(place)?;
        anyhow::ensure!(
            !task.turns.is_empty() && task.turns.len() == task.expected.calls.len(),
            "line {}: each turn needs expected calls",
            index + 1
        );
        Ok(task)
    });
    tasks.collect()
}

/// The fold of each task.
pub fn folds(tasks: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks).collect();
    seeded(seed, "folds").shuffle(&mut order);
    let mut folds = vec![0; tasks];
    for (place, task) in order.into_iter().enumerate() {
        folds[task] = place % FOLDS;
    }
    folds
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// A task about files.
    pub fn task() -> Task {
        let task = json!({
            "id": "one",
            "turns": ["Move 'final_report.pdf' to the 'temp' directory.", "Show its last 20 lines."],
            "classes": ["TwitterAPI", "GorillaFileSystem"],
            "initial_config": {"GorillaFileSystem": {"root": {
                "final_report.pdf": {"content": "final_report.pdf has 20 or 2000 lines", "size": 20}
            }}},
            "expected": {"calls": [
                ["mkdir(dir_name='temp')", "mv('final_report.pdf', 'temp')"],
                ["tail(file_name='final_report.pdf', lines=20)"]
            ]}
        });
        serde_json::from_value(task).expect("a task")
    }

    #[test]
    fn domain_is_the_first_main_api() {
        assert_eq!(task().domain(), "GorillaFileSystem");
        let other = Task {
            classes: vec!["MathAPI".to_owned()],
            ..task()
        };
        assert_eq!(other.domain(), "MathAPI");
    }

    #[test]
    fn optimum_includes_one_finish_per_turn() {
        assert_eq!(task().optimum(), 5);
    }

    #[test]
    fn folds_are_of_equal_size_and_differ_by_seed() {
        let folds = super::folds(100, 1);
        for fold in 0..FOLDS {
            assert_eq!(folds.iter().filter(|&&of| of == fold).count(), 20);
        }
        assert_ne!(folds, super::folds(100, 2));
    }

    #[test]
    fn turn_without_expected_calls_is_rejected() {
        let mut wrong = task();
        wrong.expected.calls.pop();
        let line = serde_json::to_string(&wrong).expect("JSON");
        assert!(from_lines(&line).is_err());
    }
}
