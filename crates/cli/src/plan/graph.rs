//! Plans as graphs for other programs: Graphviz and Mermaid.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use windlass_core::run::{PlanState, PlanTaskStatus};

use crate::arguments::Graph;
use crate::table::one_line;

/// The maximum length of a shown description.
const SHOWN: usize = 50;

pub(super) fn draw_graph(plan: &PlanState, graph: Graph) -> String {
    // Task ids may start with digits or be keywords of the language, so nodes are numbered.
    let numbers: BTreeMap<&str, String> = plan
        .tasks()
        .enumerate()
        .map(|(number, (task, _))| (task.id.as_str(), format!("t{number}")))
        .collect();
    let mut text = String::new();
    text.push_str(match graph {
        Graph::Dot => "digraph plan {\n  rankdir=LR;\n  node [shape=box, style=filled];\n",
        Graph::Mermaid => "flowchart LR\n",
    });
    for (task, state) in plan.tasks() {
        let node = &numbers[task.id.as_str()];
        let label = one_line(task.description.as_str(), SHOWN);
        let (id, status) = (&task.id, state.status.as_str());
        let _ = match graph {
            Graph::Dot => writeln!(
                text,
                "  {node} [label=\"{id}\\n{}\\n{status}\", fillcolor={}];",
                label.replace('\\', "\\\\").replace('"', "\\\""),
                colour(state.status)
            ),
            Graph::Mermaid => writeln!(
                text,
                "  {node}[\"{id}<br/>{}<br/>{status}\"]:::{status}",
                escape_mermaid(&label)
            ),
        };
    }
    for (task, _) in plan.tasks() {
        for before in &task.depends_on {
            let (Some(from), Some(to)) =
                (numbers.get(before.as_str()), numbers.get(task.id.as_str()))
            else {
                continue;
            };
            let _ = match graph {
                Graph::Dot => writeln!(text, "  {from} -> {to};"),
                Graph::Mermaid => writeln!(text, "  {from} --> {to}"),
            };
        }
    }
    match graph {
        Graph::Dot => text.push_str("}\n"),
        Graph::Mermaid => {
            for status in PlanTaskStatus::ALL {
                let _ = writeln!(
                    text,
                    "  classDef {} fill:{}",
                    status.as_str(),
                    colour(status)
                );
            }
        }
    }
    text
}

/// Escapes a text for Mermaid.
fn escape_mermaid(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '"' | '<' | '>' | '&' | '#' | '`' => {
                let _ = write!(escaped, "#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

const fn colour(status: PlanTaskStatus) -> &'static str {
    match status {
        PlanTaskStatus::Pending => "white",
        PlanTaskStatus::InProgress => "lightblue",
        PlanTaskStatus::Success => "palegreen",
        PlanTaskStatus::Error => "salmon",
        PlanTaskStatus::Skipped => "lightgray",
        PlanTaskStatus::Cancelled => "orange",
    }
}
