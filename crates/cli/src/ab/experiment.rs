//! `windlass ab`: runs an experiment, shows its progress, and prints its findings.

use std::path::Path;

use anyhow::Context as _;
use windlass_service::{ExperimentFindings, ExperimentMetric, ExperimentRequest};

use super::{page, words};
use crate::CommandOutcome;
use crate::arguments::AbRun;
use crate::interrupt::stop_on_interrupt;
use crate::live::bar;
use crate::program::{Notices, Program};
use crate::report::Reporter;
use crate::run::{block_on, choose};
use crate::tasks::Tasks;
use crate::terminal::{eprint_line, print_json};

/// The exit code of an interrupted command.
const INTERRUPTED: u8 = 130;

/// The exit code of a command whose runs wait for an approval or answer.
const WAITING: u8 = 4;

pub(super) fn run(
    program: &Program,
    command: &AbRun,
    data: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let options = command.agent.run_options();
    let Some(declared) = choose(command.file(), &options, reporter)? else {
        return Ok(CommandOutcome::Failed);
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

fn show(command: &AbRun, findings: &ExperimentFindings) -> anyhow::Result<CommandOutcome> {
    if let Some(path) = &command.report {
        windlass_files::write(path, page::of_experiment(path, findings))
            .with_context(|| format!("cannot write the report `{}`", path.display()))?;
    }
    match command.json {
        true => print_json(&format!("{}\n", serde_json::to_string(findings)?))?,
        false => words::print_findings(findings)?,
    }
    let pairs = &findings.pairs;
    if pairs.waiting > 0 {
        eprint_line(&format!(
            "{} pairs wait for an approval or answer: see `windlass approvals list`, then repeat this command \
             with `--resume`",
            pairs.waiting
        ))?;
    }
    if pairs.broken_off > 0 {
        eprint_line(&format!(
            "{} pairs were aborted: repeat this command with `--resume` to run them again",
            pairs.broken_off
        ))?;
    }
    if pairs.not_done > 0 && !findings.is_stopped_early {
        eprint_line(
            "the remaining pairs did not run: repeat this command with `--resume` to continue",
        )?;
        return Ok(CommandOutcome::Code(INTERRUPTED));
    }
    if pairs.waiting > 0 {
        return Ok(CommandOutcome::Code(WAITING));
    }
    Ok(CommandOutcome::from_success(!findings.is_invalid()))
}
