//! Reports as self-contained HTML or SVG files, without scripts and external resources.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use windlass_learn::ab::{Analysis, Arm, ExperimentVerdict};
use windlass_service::{ExperimentFindings, PairResult, RunMeasurements};

use super::svg::{Drawing, Effect, Kind, Unit, draw_svg, escape_xml};
use super::words;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#1b1f24}\
table{border-collapse:collapse;margin:1rem 0;width:100%}\
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #d1d9e0;vertical-align:top}\
th{font-size:12px;color:#59636e}svg{max-width:100%;height:auto}p.note{color:#59636e}\
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#f0f6fc}\
th,td{border-color:#3d444d}th,p.note{color:#9198a1}}";

/// A table of a page.
pub(super) struct Table {
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) -> Self {
        Self {
            headings: headings.map(str::to_owned).into(),
            rows: rows.into_iter().map(Vec::from).collect(),
        }
    }
}

/// One section of a page.
pub(super) struct Section {
    pub(super) drawing: Drawing,
    pub(super) lines: Vec<String>,
    pub(super) tables: Vec<Table>,
    pub(super) notes: Vec<String>,
}

/// Renders the report of an experiment, in the format that the file extension selects.
pub(super) fn of_experiment(path: &Path, findings: &ExperimentFindings) -> String {
    let section = Section {
        drawing: drawing(findings),
        lines: words::preamble(findings),
        tables: vec![
            Table::new(words::METRIC_HEADINGS, words::metric_rows(findings)),
            Table::new(words::GUARD_HEADINGS, words::guard_rows(findings)),
        ],
        notes: words::notes(findings),
    };
    render(path, "A/B test", &[section])
}

/// Renders a report with these sections. An SVG file shows only the first.
pub(super) fn render(path: &Path, title: &str, sections: &[Section]) -> String {
    let is_drawing = path.extension().is_some_and(|extension| extension == "svg");
    if is_drawing && let Some(first) = sections.first() {
        return draw_svg(&first.drawing) + "\n";
    }
    let mut body = String::new();
    for section in sections {
        let _ = writeln!(body, "<h1>{}</h1>", escape_xml(&section.drawing.title));
        for line in &section.lines {
            let _ = writeln!(body, "<div>{}</div>", escape_xml(line));
        }
        for table in &section.tables {
            let cells = |tag: &str, cells: &[String]| -> String {
                let cell = |cell: &String| format!("<{tag}>{}</{tag}>", escape_xml(cell));
                cells.iter().map(cell).collect()
            };
            let _ = writeln!(body, "<table><tr>{}</tr>", cells("th", &table.headings));
            for row in &table.rows {
                let _ = writeln!(body, "<tr>{}</tr>", cells("td", row));
            }
            body.push_str("</table>\n");
        }
        let _ = writeln!(body, "{}", draw_svg(&section.drawing));
        for note in &section.notes {
            let _ = writeln!(body, "<p class=\"note\">{}</p>", escape_xml(note));
        }
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width\"/>\
         <title>{}</title><style>{STYLE}</style></head><body>\n{body}</body></html>\n",
        escape_xml(title)
    )
}

/// A row of the drawing for an analysis.
pub(super) fn effect(name: String, analysis: &Analysis, verdict: String) -> Effect {
    Effect {
        name,
        effect: analysis.effect,
        interval: analysis.interval,
        verdict,
        kind: match analysis.verdict {
            ExperimentVerdict::Better { arm: Arm::A } => Kind::A,
            ExperimentVerdict::Better { arm: Arm::B } => Kind::B,
            _ => Kind::Neither,
        },
    }
}

fn drawing(findings: &ExperimentFindings) -> Drawing {
    let effects = findings.metrics.iter().map(|by| {
        let label = format!(
            "{}  ({} to {}, {})",
            words::verdict(&by.analysis.verdict, ["A", "B"], "runs", 2),
            words::amount(by.analysis.a, by.unit),
            words::amount(by.analysis.b, by.unit),
            words::interval(&by.analysis)
        );
        effect(by.metric.clone(), &by.analysis, label)
    });
    let first = findings.metrics.first().map_or("", |by| by.metric.as_str());
    Drawing {
        title: format!("{} against {}", findings.b.name, findings.a.name),
        subtitle: format!(
            "experiment {}: agent {}, {} pairs of runs",
            findings.experiment, findings.agent, findings.pairs.complete
        ),
        effects: effects.collect(),
        unit_title: format!("{first}, task by task"),
        units: units(&findings.results, first),
    }
}

/// The means of the first metric per task, in the order of the task ids.
fn units(results: &[PairResult], metric: &str) -> Vec<Unit> {
    let of = |measured: &RunMeasurements| match metric {
        "iterations" => measured.iterations as f64,
        "latency" => measured.latency_ms as f64,
        "cost" => measured.microdollars.unwrap_or(measured.tokens) as f64,
        "success" => f64::from(u8::from(measured.success)),
        check => {
            let matching = |(name, is_good): &(String, bool)| {
                (Some(name.as_str()) == check.strip_prefix("check:")).then_some(*is_good)
            };
            let is_good = measured.checks.iter().find_map(matching).unwrap_or(false);
            f64::from(u8::from(is_good))
        }
    };
    let mut tasks: BTreeMap<&str, (f64, f64, f64)> = BTreeMap::new();
    for result in results {
        let sums = tasks.entry(result.task_id.as_str()).or_default();
        sums.0 += of(&result.a);
        sums.1 += of(&result.b);
        sums.2 += 1.0;
    }
    let unit = |(task, (a, b, count)): (&str, (f64, f64, f64))| Unit {
        name: task.to_owned(),
        a: a / count,
        b: b / count,
    };
    tasks.into_iter().map(unit).collect()
}
