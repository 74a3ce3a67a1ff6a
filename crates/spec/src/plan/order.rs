//! Finds dependency cycles of tasks.

use std::collections::BTreeMap;

use super::PlanTask;

/// The ids of a cycle, each followed by the task it depends on, with the first one repeated at the end.
/// `None` if there is no cycle. All dependencies must exist.
pub(super) fn cycle(tasks: &[PlanTask]) -> Option<Vec<String>> {
    let indexes: BTreeMap<&str, usize> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (task.id.as_str(), index))
        .collect();
    let dependencies = |index: usize| {
        let names = tasks[index].depends_on.iter();
        names.filter_map(|name| indexes.get(name.as_str()).copied())
    };
    // Repeatedly removes tasks without remaining dependencies. Every task that is left depends on another
    // that is left, so following the dependencies leads to a cycle.
    let mut remaining: Vec<usize> = (0..tasks.len())
        .map(|index| dependencies(index).count())
        .collect();
    let mut dependents = vec![Vec::new(); tasks.len()];
    for index in 0..tasks.len() {
        for dependency in dependencies(index) {
            dependents[dependency].push(index);
        }
    }
    let mut ready: Vec<usize> = (0..tasks.len())
        .filter(|&index| remaining[index] == 0)
        .collect();
    let mut is_left = vec![true; tasks.len()];
    while let Some(index) = ready.pop() {
        is_left[index] = false;
        for &dependent in &dependents[index] {
            remaining[dependent] -= 1;
            if remaining[dependent] == 0 {
                ready.push(dependent);
            }
        }
    }
    let mut path = vec![is_left.iter().position(|&left| left)?];
    loop {
        let here = *path.last()?;
        let next = dependencies(here).find(|&index| is_left[index])?;
        if let Some(begin) = path.iter().position(|&index| index == next) {
            let cycle = path[begin..].iter().chain([&next]);
            return Some(cycle.map(|&index| tasks[index].id.to_string()).collect());
        }
        path.push(next);
    }
}
