//! The tasks: what a user says turn by turn, the APIs it is about and their first state, and the calls that
//! are expected.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::random::chance;

/// The APIs that a task can mainly be about.
const DOMAINS: [&str; 4] = [
    "GorillaFileSystem",
    "VehicleControlAPI",
    "TradingBot",
    "TravelAPI",
];

/// How many parts the tasks are split into; each is tested once with the others for training.
pub const FOLDS: usize = 5;

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Names it.
    pub id: String,
    /// What the user says, turn by turn.
    pub turns: Vec<String>,
    /// The APIs there are.
    pub classes: Vec<String>,
    /// Their first state.
    pub initial_config: Map<String, Value>,
    /// What is expected.
    pub expected: Expected,
}

/// What a task expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The calls of each turn, written as Python.
    pub calls: Vec<Vec<String>>,
}

impl Task {
    /// What it is mainly about.
    pub fn domain(&self) -> &str {
        let known = self
            .classes
            .iter()
            .find(|class| DOMAINS.contains(&class.as_str()));
        known.or(self.classes.first()).map_or("", String::as_str)
    }

    /// The fewest iterations it takes: the expected calls one by one, and in each turn one to finish.
    pub fn optimum(&self) -> u32 {
        let calls: usize = self.expected.calls.iter().map(Vec::len).sum();
        u32::try_from(calls + self.turns.len()).unwrap_or(u32::MAX)
    }
}

/// The tasks of a file with one JSON object a line.
pub fn from_file(path: &Path) -> anyhow::Result<Vec<Task>> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("`{shown}` cannot be read"))?;
    from_lines(&text).with_context(|| format!("`{shown}` cannot be used"))
}

/// The tasks of the package.
pub fn from_package(python: &Path, server: &Path) -> anyhow::Result<Vec<Task>> {
    let output = Command::new(python).arg(server).arg("tasks").output();
    let output = output.with_context(|| format!("`{}` cannot be started", python.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "the package's tasks cannot be had: {}",
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
            "line {}: there must be expected calls for each turn",
            index + 1
        );
        Ok(task)
    });
    tasks.collect()
}

/// Which fold each of so many tasks is in.
pub fn folds(tasks: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks).collect();
    chance(seed, "folds").shuffle(&mut order);
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
    fn the_domain_is_the_first_of_the_main_apis() {
        assert_eq!(task().domain(), "GorillaFileSystem");
        let other = Task {
            classes: vec!["MathAPI".to_owned()],
            ..task()
        };
        assert_eq!(other.domain(), "MathAPI");
    }

    #[test]
    fn the_optimum_has_one_finish_a_turn() {
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
    fn a_turn_without_expected_calls_is_refused() {
        let mut wrong = task();
        wrong.expected.calls.pop();
        let line = serde_json::to_string(&wrong).expect("JSON");
        assert!(from_lines(&line).is_err());
    }
}
