//! `cargo xtask bench all`: runs the benchmarks that have goals, and prints one table of what was measured, what it
//! is compared with, the goals, and whether they hold. With `--page`, the table replaces the one in
//! `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, bail, ensure};

use crate::figures::{Figures, collect, machine, medians};
use crate::{cargo, example, memory, root, run, start, target};

/// How often a benchmark runs whose program makes no rounds itself.
const ROUNDS: usize = 3;

/// A benchmark: its name, whether its program makes rounds itself, and how it runs.
type Benchmark = (&'static str, bool, fn() -> anyhow::Result<Figures>);

const BENCHMARKS: [Benchmark; 6] = [
    ("loop", true, || bench_program("bench-loop", &[])),
    ("start", false, measure_program),
    ("long", false, || {
        collect(example("windlass-runtime", "long"))
    }),
    ("mcp", false, mcp),
    ("store", false, || bench_program("bench-store", &[])),
    ("memory", true, memory::measure),
];

/// Where the table begins and ends in the page.
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench all --page` -->";
const END: &str = "<!-- end of figures -->";

/// Runs the benchmarks. `words` are `--page`, and the names of the benchmarks to run; all if there are none.
pub fn run_all(words: &[&str]) -> anyhow::Result<()> {
    let (mut chosen, mut writes_page) = (Vec::new(), false);
    for word in words {
        match *word {
            "--page" => writes_page = true,
            name if BENCHMARKS.iter().any(|(known, ..)| *known == name) => chosen.push(name),
            other => bail!(
                "there is no benchmark `{other}`; use {}",
                names().join(", ")
            ),
        }
    }
    let before = machine();
    let (mut figures, mut failures) = (Figures::new(), Vec::new());
    for (name, makes_rounds, measure) in BENCHMARKS {
        if !chosen.is_empty() && !chosen.contains(&name) {
            continue;
        }
        println!("== {name}");
        let rounds = if makes_rounds { 1 } else { ROUNDS };
        let found: anyhow::Result<Vec<Figures>> = (0..rounds).map(|_| measure()).collect();
        match found {
            Ok(found) => figures.extend(medians(&found)),
            Err(error) => failures.push(format!("{name}: {error:#}")),
        }
    }
    let table = table(&figures);
    println!(
        "\nmachine before: {before}\nmachine after:  {}\n\n{table}",
        machine()
    );
    if writes_page {
        write_page(&format!("Measured on {before}.\n\n{table}"))?;
    }
    ensure!(failures.is_empty(), "not measured: {}", failures.join("; "));
    Ok(())
}

fn names() -> Vec<&'static str> {
    BENCHMARKS.map(|(name, ..)| name).to_vec()
}

/// Runs a program of the package `windlass-bench`.
pub fn bench_program(name: &str, arguments: &[&str]) -> anyhow::Result<Figures> {
    let mut program = cargo([
        "run",
        "--release",
        "--package",
        "windlass-bench",
        "--bin",
        name,
    ]);
    program.arg("--").args(arguments);
    collect(program)
}

fn mcp() -> anyhow::Result<Figures> {
    let bins = ["build", "--release", "--package", "windlass-mcp", "--bins"];
    run(cargo(bins))?;
    collect(example("windlass-mcp", "overhead"))
}

fn measure_program() -> anyhow::Result<Figures> {
    run(cargo(["build", "--release", "--package", "windlass-cli"]))?;
    let figures = start::measure_all(
        &target().join("release/windlass"),
        &target().join("bench-start"),
    )?;
    start::print(&figures);
    Ok(figures)
}

/// What a row shows.
enum Value {
    /// A figure, with its unit.
    Plain(&'static str, &'static str),
    /// The first figure divided by the second.
    Ratio(&'static str, &'static str),
    /// The first figure less the second, with the unit.
    More(&'static str, &'static str, &'static str),
    /// So many in a second, from milliseconds for one.
    PerSecond(&'static str),
}

/// A goal.
#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// What was measured, what it is compared with, the value, and the goal.
type Row = (&'static str, &'static str, Value, Goal);

use Goal::{AtLeast, AtMost};
use Value::{More, PerSecond, Plain, Ratio};

const RIG: &str = "rig 0.44, streamed, no journal";
const FLOOR: &str = "bare `hyper`, nothing parsed";
const PYTHON: &str = "the best Python library, no journal";
const LOOP: [&str; 3] = [
    "processor time of a run, 1 at once",
    "processor time of a run, 10 at once",
    "processor time of a run, 100 at once",
];

const ROWS: [Row; 29] = [
    (
        LOOP[0],
        RIG,
        Ratio("loop_windlass_1_ms", "loop_rig_1_ms"),
        AtMost(1.0),
    ),
    (
        LOOP[1],
        RIG,
        Ratio("loop_windlass_10_ms", "loop_rig_10_ms"),
        AtMost(0.6),
    ),
    (
        LOOP[2],
        RIG,
        Ratio("loop_windlass_100_ms", "loop_rig_100_ms"),
        AtMost(0.5),
    ),
    (
        LOOP[0],
        FLOOR,
        Ratio("loop_windlass_1_ms", "loop_floor_1_ms"),
        AtMost(2.5),
    ),
    (
        LOOP[1],
        FLOOR,
        Ratio("loop_windlass_10_ms", "loop_floor_10_ms"),
        AtMost(1.8),
    ),
    (
        LOOP[2],
        FLOOR,
        Ratio("loop_windlass_100_ms", "loop_floor_100_ms"),
        AtMost(1.8),
    ),
    (
        LOOP[0],
        PYTHON,
        Ratio("loop_windlass_1_ms", "loop_python_1_ms"),
        AtMost(1.0 / 8.0),
    ),
    (
        LOOP[1],
        PYTHON,
        Ratio("loop_windlass_10_ms", "loop_python_10_ms"),
        AtMost(1.0 / 15.0),
    ),
    (
        LOOP[2],
        PYTHON,
        Ratio("loop_windlass_100_ms", "loop_python_100_ms"),
        AtMost(1.0 / 20.0),
    ),
    (
        "resident memory, 1 at once",
        "",
        Plain("loop_windlass_1_mb", "MB"),
        AtMost(16.0),
    ),
    (
        "resident memory, 100 at once",
        "",
        Plain("loop_windlass_100_mb", "MB"),
        AtMost(25.0),
    ),
    (
        "the same, 1 at once",
        RIG,
        Ratio("loop_windlass_1_mb", "loop_rig_1_mb"),
        AtMost(1.3),
    ),
    (
        "the same, 100 at once",
        RIG,
        Ratio("loop_windlass_100_mb", "loop_rig_100_mb"),
        AtMost(1.0),
    ),
    (
        "processor time until the first run ends",
        "",
        Plain("loop_windlass_start_ms", "ms"),
        AtMost(20.0),
    ),
    (
        "an event of a run of 100,000, driven",
        "a run of 1,000",
        Plain("long_drive_100000_ratio", "times"),
        AtMost(3.0),
    ),
    (
        "an event of a run of 100,000, resumed",
        "a run of 1,000",
        Plain("long_resume_100000_ratio", "times"),
        AtMost(3.0),
    ),
    (
        "governed MCP call, default rules",
        "the call alone",
        Plain("mcp_governed_added_us", "µs more"),
        AtMost(100.0),
    ),
    (
        "governed MCP call, 200 rules over 20 tools",
        "the call alone",
        Plain("mcp_governed_spread_added_us", "µs more"),
        AtMost(100.0),
    ),
    (
        "governed MCP call, 200 rules on every tool",
        "the call alone",
        Plain("mcp_governed_crowded_added_us", "µs more"),
        AtMost(200.0),
    ),
    (
        "tasks of `--tasks`, 10,000, embedded model",
        "",
        PerSecond("task_ms"),
        AtLeast(3_000.0),
    ),
    (
        "the same with `--no-learning`",
        "",
        PerSecond("task_unlearned_ms"),
        AtLeast(3_000.0),
    ),
    (
        "the smallest run, start to exit",
        "`true`",
        More("hello_ms", "true_ms", "ms"),
        AtMost(12.0),
    ),
    (
        "`windlass --help`, start to exit",
        "",
        Plain("help_ms", "ms"),
        AtMost(8.0),
    ),
    (
        "`windlass approvals list`, start to exit",
        "",
        Plain("approvals_ms", "ms"),
        AtMost(8.0),
    ),
    ("the program", "", Plain("program_mb", "MB"), AtMost(40.0)),
    (
        "waits of the journal for the disk in a resumed run",
        "",
        Plain("resume_syncs", "syncs"),
        AtMost(4.0),
    ),
    (
        "a filtered list of 100,000 runs",
        "",
        Plain("list_filtered_ms", "ms"),
        AtMost(50.0),
    ),
    (
        "search of 1,000,000 vectors",
        "FAISS flat",
        Ratio("memory_windlass_ms", "memory_faiss_ms"),
        AtMost(1.0 / 1.8),
    ),
    (
        "its resident memory",
        "",
        Plain("memory_windlass_mb", "MB"),
        AtMost(400.0),
    ),
];

/// The table, in Markdown. What was not measured says so.
fn table(figures: &Figures) -> String {
    let mut table =
        String::from("| what | compared with | measured | goal | holds |\n|---|---|--:|--:|---|\n");
    for (what, compared, value, goal) in &ROWS {
        let (measured, holds) = match value.of(figures) {
            Some((number, text)) => (text, if goal.holds(number) { "yes" } else { "**no**" }),
            None => ("not measured".to_owned(), ""),
        };
        let goal = goal.describe(value);
        let _ = writeln!(
            table,
            "| {what} | {compared} | {measured} | {goal} | {holds} |"
        );
    }
    table
}

impl Value {
    /// The number that the goal is about, and how it is shown.
    fn of(&self, figures: &Figures) -> Option<(f64, String)> {
        let figure = |name: &str| figures.get(name).copied();
        Some(match self {
            Plain(name, unit) => {
                let value = figure(name)?;
                (value, format!("{} {unit}", rounded(value)))
            }
            Ratio(of, to) => {
                let (of, to) = (figure(of)?, figure(to)?);
                let text = format!("{} ({} / {})", times(of / to), rounded(of), rounded(to));
                (of / to, text)
            }
            More(of, than, unit) => {
                let (of, than) = (figure(of)?, figure(than)?);
                let more = of - than;
                (
                    more,
                    format!(
                        "{} {unit} more ({} / {})",
                        rounded(more),
                        rounded(of),
                        rounded(than)
                    ),
                )
            }
            PerSecond(name) => {
                let rate = 1e3 / figure(name)?;
                (rate, format!("{rate:.0} a second"))
            }
        })
    }

    /// The unit of a goal about this value.
    fn unit(&self) -> &'static str {
        match self {
            Plain(_, unit) | More(_, _, unit) => unit,
            Ratio(..) => "",
            PerSecond(_) => "a second",
        }
    }
}

impl Goal {
    fn holds(self, value: f64) -> bool {
        match self {
            AtMost(limit) => value <= limit,
            AtLeast(limit) => value >= limit,
        }
    }

    fn describe(self, value: &Value) -> String {
        let (word, limit) = match self {
            AtMost(limit) => ("at most", limit),
            AtLeast(limit) => ("at least", limit),
        };
        match value {
            Ratio(..) => format!("{word} {}", times(limit)),
            _ => format!("{word} {limit} {}", value.unit()),
        }
    }
}

/// A ratio as people say it: 1.2 times, or 1/8.
fn times(ratio: f64) -> String {
    match ratio < 0.4 {
        true => format!("1/{:.1}", 1.0 / ratio),
        false => format!("{ratio:.2} times"),
    }
}

/// Three digits.
fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        value if value < 1.0 => 3,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

fn write_page(text: &str) -> anyhow::Result<()> {
    let page = root().join("docs/benchmarks.md");
    let old = fs::read_to_string(&page)?;
    let (before, rest) = old.split_once(BEGIN).context("the page has no figures")?;
    let (_, after) = rest.split_once(END).context("the figures have no end")?;
    fs::write(&page, format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))?;
    println!("written to {}", page.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_without_a_figure_is_not_measured() {
        let table = table(&Figures::new());
        assert_eq!(table.matches("not measured").count(), ROWS.len());
        assert!(!table.contains("yes") && !table.contains("**no**"));
    }

    #[test]
    fn goals_hold_up_to_their_limits() {
        let figures = |value: f64| {
            [
                ("help_ms", value),
                ("task_ms", value),
                ("hello_ms", value),
                ("true_ms", 1.0),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
        };
        let line = |figures: &Figures, what: &str| {
            let table = table(figures);
            let mut lines = table.lines().map(str::to_owned);
            lines.find(|line| line.contains(what)).unwrap()
        };
        let fast = figures(0.25);
        assert!(line(&fast, "`windlass --help`").ends_with("| 0.250 ms | at most 8 ms | yes |"));
        assert!(
            line(&fast, "10,000").ends_with("| 4000 a second | at least 3000 a second | yes |")
        );
        let slow = figures(13.5);
        assert!(line(&slow, "`windlass --help`").ends_with("| 13.5 ms | at most 8 ms | **no** |"));
        assert!(
            line(&slow, "10,000").ends_with("| 74 a second | at least 3000 a second | **no** |")
        );
        let smallest = line(&slow, "smallest run");
        assert!(smallest.ends_with("| 12.5 ms more (13.5 / 1.00) | at most 12 ms | **no** |"));
    }

    #[test]
    fn page_has_a_place_for_the_figures() {
        let page = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
        let (_, rest) = page.split_once(BEGIN).unwrap();
        let (figures, _) = rest.split_once(END).unwrap();
        for (what, ..) in ROWS {
            assert!(figures.contains(what), "the page has no row `{what}`");
        }
    }
}
