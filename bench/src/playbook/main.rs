//! Measures how many iterations playbook strategies in the prompt save, on the multi-turn
//! tasks of the Berkeley Function Calling Leaderboard, with a scripted policy in place of a model.
//! `cargo xtask bench playbook` fetches the dependencies and runs this.

mod arms;
mod book;
mod chart;
#[path = "../exit.rs"]
mod exit;
#[path = "../machine.rs"]
mod machine;
mod measure;
mod page;
mod policy;
mod random;
mod replay;
mod statistics;
mod tasks;
mod variant;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use arms::{Arm, Filler, Frequency, Leak, Nearest, OtherDomain, Shuffled};
use book::Book;
use measure::{Corpus, Regime, Workers};
use page::{ArmFindings, Baseline, Findings, RegimeFindings};
use policy::Policy;
use statistics::summary;
use tasks::Task;
use world::Chooser;

const USAGE: &str = "\
usage: bench-playbook [--python PYTHON] [--tasks FILE] [--first NUMBER] [--seeds NUMBER]
                      [--arms PART-OF-NAME,...] [--page FILE] [--chart FILE] [--replay]

  --python  a Python that has the package bfcl-eval (python3)
  --tasks   a file of tasks, one JSON object per line (default: the package's tasks)
  --first   use only the first NUMBER tasks
  --seeds   the number of random splits and variants (5)
  --arms    only arms whose names contain one of these texts, and the baseline
  --page    writes the results to this file, as Markdown
  --chart   writes the chart to this file, as SVG
  --replay  only makes the expected calls of all tasks and variants, and prints what fails";

/// The default number of lines of advice.
const K: usize = 3;

/// The playbook's ranking was tuned on this many of the package's first tasks.
const TUNED_ON: usize = 100;

#[derive(Debug)]
struct Options {
    python: PathBuf,
    tasks: Option<PathBuf>,
    first: usize,
    seeds: u64,
    arms: Option<Vec<String>>,
    page: Option<PathBuf>,
    chart: Option<PathBuf>,
    is_replay: bool,
}

fn main() -> ExitCode {
    let result = parse_options(std::env::args().skip(1)).and_then(|options| match options {
        Some(options) => run(&options),
        None => {
            println!("{USAGE}");
            Ok(true)
        }
    });
    exit::code(result)
}

/// Parses the options; `None` for help.
fn parse_options(mut words: impl Iterator<Item = String>) -> anyhow::Result<Option<Options>> {
    let mut options = Options {
        python: "python3".into(),
        tasks: None,
        first: usize::MAX,
        seeds: 5,
        arms: None,
        page: None,
        chart: None,
        is_replay: false,
    };
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value\n{USAGE}"))
        };
        match word.as_str() {
            "--python" => options.python = value()?.into(),
            "--tasks" => options.tasks = Some(value()?.into()),
            "--first" => options.first = value()?.parse()?,
            "--seeds" => options.seeds = value()?.parse()?,
            "--arms" => options.arms = Some(value()?.split(',').map(str::to_owned).collect()),
            "--page" => options.page = Some(value()?.into()),
            "--chart" => options.chart = Some(value()?.into()),
            "--replay" => options.is_replay = true,
            "--help" | "-h" => return Ok(None),
            other => bail!("unknown option `{other}`\n{USAGE}"),
        }
    }
    anyhow::ensure!(options.seeds > 0, "--seeds must be at least 1");
    Ok(Some(options))
}

fn run(options: &Options) -> anyhow::Result<bool> {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/bfcl/server.py");
    let (mut tasks, source) = match &options.tasks {
        Some(file) => {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            (tasks::from_file(file)?, format!("the file `{name}`"))
        }
        None => {
            let source = "`multi_turn_base` of the package `bfcl-eval`".to_owned();
            (tasks::from_package(&options.python, &server)?, source)
        }
    };
    tasks.truncate(options.first);
    if options.is_replay {
        return replay_all(options, &server, &tasks);
    }
    let mut workers = Workers::start(&options.python, &server, policy)?;
    let count = tasks.len();
    let corpus = Corpus::make(&mut workers, tasks, options.seeds)?;
    print_turns(&corpus);
    let mut findings = Findings {
        machine: machine::describe(),
        source,
        tasks: count,
        seeds: options.seeds,
        regimes: Vec::new(),
    };
    for regime in Regime::ALL {
        let wanted = options.arms.as_deref();
        let mut found = measure_regime(&mut workers, &corpus, regime, wanted)?;
        if options.tasks.is_some() {
            // For tasks from a file it is not known which ones were used for tuning.
            found.halves.clear();
        }
        findings.regimes.push(found);
    }
    workers.close();
    if let Some(path) = &options.chart {
        write(path, &chart::chart(&findings))?;
    }
    if let Some(path) = &options.page {
        let chart = options.chart.as_deref().and_then(Path::file_name);
        let chart = chart.map(|name| name.to_string_lossy());
        write(path, &page::page(&findings, chart.as_deref()))?;
    }
    Ok(true)
}

/// The arms of a regime. The controls for arms that learn are an equally long prompt without information, and
/// lines with wrong tools.
fn arms() -> Vec<Box<dyn Arm>> {
    vec![
        Box::new(Filler(Book { k: K })),
        Box::new(Shuffled(Book { k: K })),
        Box::new(Frequency { k: K }),
        Box::new(OtherDomain(Book { k: K })),
        Box::new(Nearest {
            k: K,
            is_filtered: false,
        }),
        Box::new(Nearest {
            k: K,
            is_filtered: true,
        }),
        Box::new(Book { k: 1 }),
        Box::new(Book { k: 3 }),
        Box::new(Book { k: 5 }),
        Box::new(Leak(Book { k: K })),
    ]
}

fn measure_regime(
    workers: &mut Workers,
    corpus: &Corpus,
    regime: Regime,
    wanted: Option<&[String]>,
) -> anyhow::Result<RegimeFindings> {
    let baseline = corpus.baseline(workers, regime)?;
    let without = Baseline::of(&baseline);
    println!("== {}", regime.name());
    println!(
        "none: {} of {} solved; iterations {:.2} (optimum {:.2}); calls {:.2}; tokens {:.0}; {:.0} s",
        page::percent(without.solved),
        without.tasks,
        without.iterations,
        without.optimum,
        without.calls,
        without.tokens,
        baseline.seconds
    );
    let (mut found, mut halves) = (Vec::new(), Vec::new());
    let is_wanted =
        |name: String| wanted.is_none_or(|parts| parts.iter().any(|part| name.contains(part)));
    let tasks = corpus.tasks.len();
    for arm in arms() {
        // In the other regimes the test tasks are in the training anyway.
        let may_leak = regime == Regime::NewTask;
        if !is_wanted(arm.name()) || arm.leaks() && !may_leak {
            continue;
        }
        let measured = corpus.measure(workers, regime, &*arm)?;
        let is_main_arm = arm.name() == Book { k: K }.name();
        if is_main_arm && regime == Regime::NewTask && tasks > TUNED_ON {
            let parts = [("tuned on", 0..TUNED_ON), ("others", TUNED_ON..tasks)];
            for (part, range) in parts {
                let of_part = summary(
                    &measured.for_tasks(range.clone()),
                    &baseline.for_tasks(range),
                );
                halves.push((format!("{}, {part}", measured.arm), of_part));
            }
        }
        let measured = ArmFindings::new(&measured, &baseline);
        println!("{}", page::summary_line(&measured));
        found.push(measured);
    }
    if regime == Regime::NewTask && is_wanted("more times".to_owned()) {
        for (passes, is_polluted) in [(0, true), (1, false), (1, true), (3, false), (3, true)] {
            let measured = corpus.measure_after_more_training(workers, K, passes, is_polluted)?;
            let measured = ArmFindings::new(&measured, &baseline);
            println!("{}", page::summary_line(&measured));
            found.push(measured);
        }
    }
    Ok(RegimeFindings {
        regime,
        without,
        arms: found,
        halves,
    })
}

/// Prints the results of the baseline turn by turn.
fn print_turns(corpus: &Corpus) {
    let most = corpus.tasks.iter().map(|task| task.turns.len()).max();
    for turn in 0..most.unwrap_or(0) {
        let runs = (0..corpus.tasks.len()).filter_map(|task| {
            let done = corpus.outcome(task).turns.get(turn)?;
            Some((
                done.iterations,
                corpus.tasks[task].expected.calls[turn].len() + 1,
            ))
        });
        let runs: Vec<(u32, usize)> = runs.collect();
        if runs.is_empty() {
            // No run reached this turn.
            break;
        }
        let mean = |sum: f64| sum / runs.len() as f64;
        println!(
            "turn {}: {} runs, iterations {:.2} (optimum {:.2}), {} at the cap",
            turn + 1,
            runs.len(),
            mean(runs.iter().map(|run| f64::from(run.0)).sum()),
            mean(runs.iter().map(|run| run.1 as f64).sum()),
            runs.iter().filter(|run| run.0 >= world::CAP).count()
        );
    }
    let made = corpus.variants.iter().flatten().flatten().count();
    println!(
        "variants: {made} of {} tasks and seeds",
        corpus.tasks.len() * corpus.variants.len()
    );
}

fn policy() -> Arc<dyn Chooser> {
    Arc::new(Policy::default())
}

fn replay_all(options: &Options, server: &Path, tasks: &[Task]) -> anyhow::Result<bool> {
    let mut workers = Workers::start(&options.python, server, replay::chooser)?;
    let (runtime, world) = workers.first()?;
    let wrong = runtime.block_on(async {
        let mut wrong = replay::replay(world, tasks).await?;
        for seed in 0..options.seeds {
            let (mut variants, mut turns, mut changed) = (Vec::new(), 0, 0);
            for task in tasks {
                let Some(variant) = variant::variant(world, task, seed).await? else {
                    continue;
                };
                turns += task.turns.len();
                let both = task.turns.iter().zip(&variant.turns);
                changed += both.filter(|(old, new)| old != new).count();
                variants.push(variant);
            }
            println!("variants of seed {seed}: {changed} of {turns} turns are changed");
            wrong += replay::replay(world, &variants).await?;
        }
        anyhow::Ok(wrong)
    })?;
    workers.close();
    Ok(wrong == 0)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}
