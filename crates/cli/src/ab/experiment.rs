//! `windlass ab`: does an experiment, shows how far it is, and prints what it shows.

use std::path::Path;

use anyhow::Context as _;
use windlass_service::{ExperimentFindings, ExperimentMetric, ExperimentRequest};

use super::{page, words};
use crate::Outcome;
use crate::arguments::AbRun;
use crate::interrupt::stop_on_interrupt;
use crate::live::bar;
use crate::program::{Notices, Program};
use crate::report::Reporter;
use crate::run::{block_on, choose};
use crate::tasks::Tasks;
use crate::terminal::{complain, put};

/// The exit code of what was stopped.
const INTERRUPTED: u8 = 130;

/// The exit code of what waits for a person.
const WAITING: u8 = 4;

pub(super) fn run(
    program: &Program,
    command: &AbRun,
    data: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let options = command.crew.run_options();
    let Some(declared) = choose(command.file(), &options, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let metrics = ExperimentMetric::parse_all(&command.metric)?;
    let read = Tasks::read(command.tasks(), &declared)?;
    let service = program.service_for(data, &options, Notices::Text);
    let request = ExperimentRequest {
        name: command.name.clone(),
        a: command.a().to_owned(),
        b: command.b().to_owned(),
        tasks: read.tasks.clone(),
        runs: command.runs,
        metrics,
        seed: command.seed,
        alpha: command.alpha,
        is_resumed: command.resume,
        stops_early: command.early_stop,
        jobs: command.jobs.into(),
        options,
        settings: command.limits.settings(),
    };
    let experiment = service.prepare_experiment(&program.identity()?, &declared, request)?;
    let bar = bar("pairs", experiment.pairs());
    let findings = block_on(&service, async {
        let stop = stop_on_interrupt();
        experiment.run(&stop, || bar.inc(1)).await
    })??;
    bar.finish_and_clear();
    Ok(read.ended(show(command, &findings)?))
}

fn show(command: &AbRun, findings: &ExperimentFindings) -> anyhow::Result<Outcome> {
    if let Some(path) = &command.report {
        std::fs::write(path, page::of_experiment(path, findings))
            .with_context(|| format!("the report `{}` cannot be written", path.display()))?;
    }
    match command.json {
        true => put(&format!("{}\n", serde_json::to_string(findings)?))?,
        false => words::say_findings(findings)?,
    }
    let pairs = &findings.pairs;
    if pairs.waiting > 0 {
        complain(&format!(
            "{} pairs wait for a person: `windlass approvals list` shows what is asked; the same command \
             with `--resume` goes on with them",
            pairs.waiting
        ))?;
    }
    if pairs.broken_off > 0 {
        complain(&format!(
            "{} pairs were broken off; the same command with `--resume` does them again",
            pairs.broken_off
        ))?;
    }
    if pairs.not_done > 0 && !findings.is_stopped_early {
        complain("the rest was not done; the same command with `--resume` goes on with it")?;
        return Ok(Outcome::Code(INTERRUPTED));
    }
    if pairs.waiting > 0 {
        return Ok(Outcome::Code(WAITING));
    }
    Ok(Outcome::from_success(!findings.is_invalid()))
}
