//! `windlass eval`: evaluates a model on labelled data.

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;
use windlass_service::types::Evaluation;
use windlass_service::{Identity, RunOptions, Service};

use super::CommandOutcome;
use super::arguments::{Eval, EvalCommand, EvalGap, EvalSelect};
use super::live::bar;
use super::program::Program;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Eval) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (program.service(None), program.identity()?);
    match &command.command {
        EvalCommand::Select(command) => select(&service, &identity, command),
        EvalCommand::Risk { data, json } => {
            let report = service.evaluate_risk(&identity, &read(data)?);
            show_report(&report.with_context(|| invalid(data))?, *json)
        }
        EvalCommand::Intent { data, json } => intent(&service, &identity, data, *json),
        EvalCommand::Gap(command) => gap(&service, &identity, command),
    }
}

fn read(data: &Path) -> anyhow::Result<String> {
    let place = data.display();
    std::fs::read_to_string(data).with_context(|| format!("cannot read `{place}`"))
}

fn invalid(data: &Path) -> String {
    format!("`{}` is not a file of labelled data", data.display())
}

fn show_report<R: Serialize + Display>(
    report: &R,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    if as_json {
        print_json(&format!("{}\n", serde_json::to_string(report)?))?;
    } else {
        print_line(report.to_string().trim_end())?;
    }
    Ok(CommandOutcome::Done)
}

/// Shows a spinner while `work` runs.
fn with_spinner<T>(message: &'static str, work: impl FnOnce() -> T) -> T {
    let spinner = indicatif::ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    spinner.finish_and_clear();
    result
}

fn intent(
    service: &Service,
    identity: &Identity,
    data: &Path,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let text = read(data)?;
    let evaluated = with_spinner("training on the examples", || {
        service.evaluate_intents(identity, &text)
    });
    let evaluated = evaluated.with_context(|| invalid(data))?;
    let (train_seconds, p50_ms) = (evaluated.train_seconds, evaluated.p50_ms);
    if as_json {
        let mut object = serde_json::to_value(&evaluated.report)?;
        object["train_seconds"] = json!(train_seconds);
        object["p50_ms"] = json!(p50_ms);
        print_json(&format!("{object}\n"))?;
    } else {
        print_line(evaluated.report.to_string().trim_end())?;
        print_line(&format!("trained in     {train_seconds:.2} s"))?;
        print_line(&format!("median         {p50_ms:.3} ms"))?;
    }
    Ok(CommandOutcome::Done)
}

fn gap(
    service: &Service,
    identity: &Identity,
    command: &EvalGap,
) -> anyhow::Result<CommandOutcome> {
    let text = read(&command.data)?;
    let report = with_spinner("comparing tasks with tools", || {
        service.evaluate_gaps(identity, &text)
    });
    let report = report.with_context(|| invalid(&command.data))?;
    if let Some(path) = &command.failures {
        let lines = report.wrong.iter().map(|case| {
            let object = json!({"id": case.id, "gap": case.gap, "probability": case.probability});
            format!("{object}\n")
        });
        windlass_files::write(path, lines.collect::<String>())
            .with_context(|| format!("cannot write the failures to `{}`", path.display()))?;
    }
    show_report(&report, command.json)
}

fn select(
    service: &Service,
    identity: &Identity,
    command: &EvalSelect,
) -> anyhow::Result<CommandOutcome> {
    let text = read(&command.data)?;
    let options = RunOptions {
        base_url: command.base_url.clone(),
        dialect: command.dialect,
        ..RunOptions::default()
    };
    let mut shown = None;
    let evaluated = service.evaluate_model(
        identity,
        &command.model,
        &options,
        &text,
        command.limit,
        |done, all| {
            shown
                .get_or_insert_with(|| bar("cases", all))
                .set_position(done as u64);
        },
    );
    if let Some(bar) = shown {
        bar.finish_and_clear();
    }
    let evaluated = evaluated.with_context(|| invalid(&command.data))?;
    if let Some(path) = &command.failures {
        write_failures(path, &evaluated.evaluation)
            .with_context(|| format!("cannot write the failures to `{}`", path.display()))?;
    }
    show(command, &evaluated.evaluation, evaluated.p50_ms)?;
    if let Some(first) = evaluated.problems.first() {
        eprint_line(&format!(
            "the model failed on {} of {} cases; the first error: {first}",
            evaluated.problems.len(),
            evaluated.evaluation.n
        ))?;
    }
    Ok(CommandOutcome::from_success(evaluated.problems.is_empty()))
}

fn show(command: &EvalSelect, evaluation: &Evaluation, p50_ms: f64) -> anyhow::Result<()> {
    if command.json {
        let object = json!({
            "model": command.model,
            "n": evaluation.n,
            "tool_accuracy": evaluation.tool_accuracy,
            "call_accuracy": evaluation.call_accuracy,
            "p50_ms": p50_ms,
        });
        print_json(&format!("{object}\n"))?;
        return Ok(());
    }
    print_line(&format!("model          {}", command.model))?;
    print_line(&format!("cases          {}", evaluation.n))?;
    print_line(&format!(
        "right tool     {:.1} %",
        evaluation.tool_accuracy * 100.0
    ))?;
    print_line(&format!(
        "right call     {:.1} %",
        evaluation.call_accuracy * 100.0
    ))?;
    print_line(&format!("median         {p50_ms:.2} ms"))?;
    if evaluation.reliability.iter().any(|row| row.count > 0) {
        print_line("\nstated confidence   calls   right")?;
        for row in evaluation.reliability.iter().filter(|row| row.count > 0) {
            print_line(&format!(
                "{:.1} to {:.1}          {:>5}   {:>4.0} %",
                row.from,
                row.from + 0.1,
                row.count,
                row.right * 100.0
            ))?;
        }
    }
    Ok(())
}

fn write_failures(path: &Path, evaluation: &Evaluation) -> anyhow::Result<()> {
    let mut file = std::io::BufWriter::new(windlass_files::create(path)?);
    for failure in &evaluation.failures {
        let object = json!({
            "id": failure.id,
            "class": failure.class.to_string(),
            "detail": failure.detail,
        });
        writeln!(file, "{object}")?;
    }
    file.flush()?;
    Ok(())
}
