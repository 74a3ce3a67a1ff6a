//! Makes the same agent run, two model calls and one tool call, in Windlass and in its peers against a
//! server on this machine. Prints the processor time and memory of a run for each of them, with
//! 1, 10 and 100 concurrent runs. Wall time is not measured, because it includes the server and other programs.

mod exit;
mod floor;
mod machine;
mod peers;
mod server;
mod step;
mod usage;
mod windlass_runs;
mod workers;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use peers::{Peer, PeerKind};
use server::Server;

/// The numbers of concurrent runs.
const LEVELS: [usize; 3] = [1, 10, 100];
const ROUNDS: usize = 3;

/// The goals, for each number of concurrent runs.
const MAX_OF_PYTHON: [f64; 3] = [1.0 / 8.0, 1.0 / 15.0, 1.0 / 20.0];
const MAX_OF_RIG: [f64; 3] = [1.0, 0.6, 0.5];
const MAX_OF_FLOOR: [f64; 3] = [2.5, 1.8, 1.8];
const MAX_MEGABYTES: [Option<f64>; 3] = [Some(16.0), None, Some(25.0)];
const MAX_START_MILLISECONDS: f64 = 20.0;
const MAX_STEP_MICROSECONDS: f64 = 5.0;

const USAGE: &str = "usage: bench-loop [--rounds NUMBER] [--peers PART-OF-NAME,...]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The first four are subprocesses of this program.
    let result = match &words[..] {
        ["serve"] => server::serve().map(|()| true),
        ["measure", ..] => usage::measure(&arguments[1..]).map(|()| true),
        ["windlass", url, at_once, total] => windlass(url, at_once, total).map(|()| true),
        ["floor", requests, url, at_once, total] => {
            floor(requests, url, at_once, total).map(|()| true)
        }
        options => compare(options),
    };
    exit::code(result)
}

fn windlass(url: &str, at_once: &str, total: &str) -> anyhow::Result<()> {
    windlass_runs::make(url, at_once.parse()?, total.parse()?)
}

fn floor(requests: &str, url: &str, at_once: &str, total: &str) -> anyhow::Result<()> {
    floor::make(Path::new(requests), url, at_once.parse()?, total.parse()?)
}

/// The costs of a peer, one value per round.
struct PeerCosts {
    peer: Peer,
    /// Processor seconds until the first run ends.
    start: Vec<f64>,
    levels: [Level; LEVELS.len()],
}

#[derive(Default)]
struct Level {
    /// Processor milliseconds per run.
    processor: Vec<f64>,
    /// Megabytes.
    memory: Vec<f64>,
}

/// Compares all peers. Returns whether all goals are met.
fn compare(options: &[&str]) -> anyhow::Result<bool> {
    let (rounds, chosen) = read_options(options)?;
    println!("machine: {}", machine::describe());
    println!("load before: {}", load());
    let requests = tempfile::tempdir()?;
    floor::record(requests.path())?;
    let mut all: Vec<PeerCosts> = peers::prepare(requests.path(), &chosen)?
        .into_iter()
        .map(|peer| PeerCosts {
            peer,
            start: Vec::new(),
            levels: Default::default(),
        })
        .collect();
    let server = Server::start()?;
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for costs in &mut all {
            measure_start(&server, costs)?;
        }
        for level in 0..LEVELS.len() {
            for costs in &mut all {
                measure_level(&server, costs, level)?;
            }
        }
    }
    show(&all);
    let steps = [step::microseconds(2)?, step::microseconds(10)?];
    println!("load after: {}\n", load());
    let is_met = judge(&all, steps);
    print_figures(&all, steps);
    Ok(is_met)
}

fn read_options<'o>(options: &[&'o str]) -> anyhow::Result<(usize, Vec<&'o str>)> {
    let (mut rounds, mut chosen) = (ROUNDS, Vec::new());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = options.next().context(USAGE)?;
        match *option {
            "--rounds" => rounds = value.parse().context(USAGE)?,
            "--peers" => chosen = value.split(',').collect(),
            _ => anyhow::bail!(USAGE),
        }
    }
    Ok((rounds.max(1), chosen))
}

fn measure_start(server: &Server, costs: &mut PeerCosts) -> anyhow::Result<()> {
    let usage = usage::measure_in_child(&costs.peer.command(server.url(), 1, 1))?;
    costs.start.push(usage.processor as f64 / 1e6);
    Ok(())
}

/// The cost of a run is the difference between many and few runs, so that starting, importing and
/// connecting do not count.
fn measure_level(server: &Server, costs: &mut PeerCosts, level: usize) -> anyhow::Result<()> {
    let peer = &costs.peer;
    let at_once = LEVELS[level];
    let few = (2 * at_once).max(20);
    let many = few + peer.runs;
    let short = usage::measure_in_child(&peer.command(server.url(), at_once, few))?;
    let long = usage::measure_in_child(&peer.command(server.url(), at_once, many))?;
    let spent = long.processor - short.processor;
    let found = &mut costs.levels[level];
    found.processor.push(spent as f64 / 1e3 / peer.runs as f64);
    found.memory.push(long.memory as f64 / 1e6);
    Ok(())
}

fn show(all: &[PeerCosts]) {
    println!("\nmedians; a run is two model calls and one tool call\n");
    println!(
        "{:<32}{:>10}  {:^30}  {:^21}",
        "", "start-up", "processor time per run, ms", "peak memory, MB"
    );
    print!("{:<32}{:>10}  ", "runs at once", "s");
    LEVELS.iter().for_each(|level| print!("{level:>10}"));
    print!("  ");
    LEVELS.iter().for_each(|level| print!("{level:>7}"));
    println!();
    for costs in all {
        print!("{:<32}{:>10.3}  ", costs.peer.name, median(&costs.start));
        for level in &costs.levels {
            print!("{:>10.3}", median(&level.processor));
        }
        print!("  ");
        for level in &costs.levels {
            print!("{:>7.1}", median(&level.memory));
        }
        println!();
    }
    let Some(own) = all.iter().find(|it| it.peer.kind == PeerKind::Windlass) else {
        return;
    };
    println!("\nprocessor time per run relative to Windlass, lowest and highest round\n");
    for costs in all {
        print!("{:<32}{:>10}  ", costs.peer.name, "");
        for (level, own) in costs.levels.iter().zip(&own.levels) {
            let ratio = median(&level.processor) / median(&own.processor);
            print!("{ratio:>9.2}x");
        }
        print!("    ");
        for level in &costs.levels {
            let (low, high) = extremes(&level.processor);
            print!("{:>16}", format!("{low:.3}–{high:.3}"));
        }
        println!();
    }
    println!();
}

/// Prints each goal and whether it is met. Returns whether all are; a goal that could not be tested counts as
/// met.
fn judge(all: &[PeerCosts], steps: [f64; 2]) -> bool {
    let mut all_met = true;
    let mut report = |is_met: bool, text: String| {
        all_met &= is_met;
        println!("{:<8} {text}", if is_met { "met" } else { "NOT MET" });
    };
    if let Some(own) = all.iter().find(|it| it.peer.kind == PeerKind::Windlass) {
        for (level, at_once) in LEVELS.iter().enumerate() {
            let mine = median(&own.levels[level].processor);
            for (kind, limits) in [
                (PeerKind::Rig, MAX_OF_RIG),
                (PeerKind::Floor, MAX_OF_FLOOR),
                (PeerKind::Python, MAX_OF_PYTHON),
            ] {
                let Some((theirs, name)) = cheapest(all, kind, level) else {
                    continue;
                };
                let (ratio, limit) = (mine / theirs, limits[level]);
                let text = format!(
                    "at most {limit:.2} times the processor time of {name}, {at_once} at once: {ratio:.2} times"
                );
                report(ratio <= limit, text);
            }
            if let Some(limit) = MAX_MEGABYTES[level] {
                let memory = median(&own.levels[level].memory);
                let text =
                    format!("at most {limit} MB resident, {at_once} at once: {memory:.1} MB");
                report(memory <= limit, text);
            }
        }
        let start = 1e3 * median(&own.start);
        let text = format!(
            "at most {MAX_START_MILLISECONDS} ms of processor time to start: {start:.1} ms"
        );
        report(start <= MAX_START_MILLISECONDS, text);
    }
    for (step, turns) in steps.into_iter().zip([2, 10]) {
        let text = format!(
            "a step of the machine under {MAX_STEP_MICROSECONDS} µs, in a run of {turns} turns: {step:.2} µs"
        );
        report(step < MAX_STEP_MICROSECONDS, text);
    }
    all_met
}

/// The least processor time of a run among the peers of a kind, with the name of the peer.
fn cheapest(all: &[PeerCosts], kind: PeerKind, level: usize) -> Option<(f64, &str)> {
    all.iter()
        .filter(|it| it.peer.kind == kind)
        .map(|it| (median(&it.levels[level].processor), it.peer.name.as_str()))
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Prints the figures for `cargo xtask bench all`, which reads the lines that begin with `=`.
fn print_figures(all: &[PeerCosts], steps: [f64; 2]) {
    println!();
    let kinds = [
        ("windlass", PeerKind::Windlass),
        ("rig", PeerKind::Rig),
        ("floor", PeerKind::Floor),
        ("python", PeerKind::Python),
    ];
    for (name, kind) in kinds {
        let peers = || all.iter().filter(|it| it.peer.kind == kind);
        let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
        if let Some(start) = least(&mut peers().map(|it| median(&it.start))) {
            println!("= loop_{name}_start_ms {:.2}", start * 1e3);
        }
        for (level, at_once) in LEVELS.iter().enumerate() {
            if let Some((processor, _)) = cheapest(all, kind, level) {
                println!("= loop_{name}_{at_once}_ms {processor:.4}");
            }
            let memory = &mut peers().map(|it| median(&it.levels[level].memory));
            if let Some(memory) = least(memory) {
                println!("= loop_{name}_{at_once}_mb {memory:.2}");
            }
        }
    }
    for (step, turns) in steps.into_iter().zip([2, 10]) {
        println!("= step_{turns}_us {step:.3}");
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn extremes(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// The load average of the machine.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = text.split_whitespace().take(3).collect();
    match load.is_empty() {
        true => "unknown".to_owned(),
        false => load.join(" "),
    }
}
