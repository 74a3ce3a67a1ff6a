//! Who waits for whom: finds tasks that, directly or not, wait for themselves.

use std::collections::BTreeMap;

use super::PlanTask;

/// Tasks that wait for each other, each followed by what it waits for, the first named again at the end.
/// `None` if there are none. All names are known to exist.
pub(super) fn cycle(tasks: &[PlanTask]) -> Option<Vec<String>> {
    let places: BTreeMap<&str, usize> = tasks
        .iter()
        .enumerate()
        .map(|(place, task)| (task.id.as_str(), place))
        .collect();
    let waits_for = |place: usize| {
        let names = tasks[place].depends_on.iter();
        names.filter_map(|name| places.get(name.as_str()).copied())
    };
    // Takes away, again and again, what waits for nothing that is left. What then is left waits for
    // something that is left, so following that leads round in a circle.
    let mut open: Vec<usize> = (0..tasks.len())
        .map(|place| waits_for(place).count())
        .collect();
    let mut dependents = vec![Vec::new(); tasks.len()];
    for place in 0..tasks.len() {
        for dependency in waits_for(place) {
            dependents[dependency].push(place);
        }
    }
    let mut free: Vec<usize> = (0..tasks.len()).filter(|&place| open[place] == 0).collect();
    let mut is_left = vec![true; tasks.len()];
    while let Some(place) = free.pop() {
        is_left[place] = false;
        for &dependent in &dependents[place] {
            open[dependent] -= 1;
            if open[dependent] == 0 {
                free.push(dependent);
            }
        }
    }
    let mut path = vec![is_left.iter().position(|&left| left)?];
    loop {
        let here = *path.last()?;
        let next = waits_for(here).find(|&place| is_left[place])?;
        if let Some(begin) = path.iter().position(|&place| place == next) {
            let circle = path[begin..].iter().chain([&next]);
            return Some(circle.map(|&place| tasks[place].id.to_string()).collect());
        }
        path.push(next);
    }
}
