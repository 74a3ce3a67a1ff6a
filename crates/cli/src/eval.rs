//! `windlass eval`: evaluates a model on labelled data.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use serde_json::json;
use windlass_learn::intent::LabelledTexts;
use windlass_reflex::evaluate::{Evaluation, evaluate, read_cases};
use windlass_service::RunOptions;

use super::Outcome;
use super::arguments::{Eval, EvalCommand, EvalGap, EvalSelect};
use super::live::bar;
use super::program::Program;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Eval) -> anyhow::Result<Outcome> {
    match &command.command {
        EvalCommand::Select(command) => select(program, command),
        EvalCommand::Risk { data, json } => risk(data, *json),
        EvalCommand::Intent { data, json } => intent(data, *json),
        EvalCommand::Gap(command) => gap(command),
    }
}

fn risk(data: &Path, as_json: bool) -> anyhow::Result<Outcome> {
    let place = data.display();
    let text = std::fs::read_to_string(data)
        .with_context(|| format!("cannot read the tools in `{place}`"))?;
    let rows = windlass_core::risk::read_rows(&text)
        .with_context(|| format!("`{place}` is not a file of labelled tools"))?;
    anyhow::ensure!(!rows.is_empty(), "there are no tools in `{place}`");
    let report = windlass_core::risk::evaluate(&rows);
    if as_json {
        print_json(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        print_line(&report.to_string())?;
    }
    Ok(Outcome::Done)
}

fn intent(data: &Path, as_json: bool) -> anyhow::Result<Outcome> {
    let place = data.display();
    let text = std::fs::read_to_string(data)
        .with_context(|| format!("cannot read the texts in `{place}`"))?;
    // The error contains its cause.
    let texts = LabelledTexts::read(&text)
        .map_err(|error| anyhow::anyhow!("`{place}` is not a file of labelled texts: {error}"))?;
    let spinner = indicatif::ProgressBar::new_spinner().with_message("training on the examples");
    spinner.enable_steady_tick(std::time::Duration::from_millis(100));
    let started = Instant::now();
    let classifier = texts.train()?;
    let train_seconds = started.elapsed().as_secs_f64();
    spinner.finish_and_clear();
    let mut times = Vec::with_capacity(texts.scored.len());
    let report = texts.evaluate(|text| {
        let started = Instant::now();
        let found = classifier.classify(text);
        times.push(started.elapsed().as_secs_f64() * 1e3);
        found
    });
    times.sort_by(f64::total_cmp);
    let p50_ms = times.get(times.len() / 2).copied().unwrap_or_default();
    if as_json {
        let mut object = serde_json::to_value(&report)?;
        object["train_seconds"] = json!(train_seconds);
        object["p50_ms"] = json!(p50_ms);
        print_json(&format!("{object}\n"))?;
    } else {
        print_line(report.to_string().trim_end())?;
        print_line(&format!("trained in     {train_seconds:.2} s"))?;
        print_line(&format!("median         {p50_ms:.3} ms"))?;
    }
    Ok(Outcome::Done)
}

fn gap(command: &EvalGap) -> anyhow::Result<Outcome> {
    let place = command.data.display();
    let text = std::fs::read_to_string(&command.data)
        .with_context(|| format!("cannot read the cases in `{place}`"))?;
    // The errors contain their causes.
    let wrong = |error| anyhow::anyhow!("`{place}` is not a file of labelled cases: {error}");
    let cases = windlass_learn::gap::read_cases(&text).map_err(wrong)?;
    let spinner = indicatif::ProgressBar::new_spinner().with_message("comparing tasks with tools");
    spinner.enable_steady_tick(std::time::Duration::from_millis(100));
    let report = windlass_learn::gap::evaluate(&cases).map_err(wrong)?;
    spinner.finish_and_clear();
    if let Some(path) = &command.failures {
        let lines = report.wrong.iter().map(|case| {
            let object = json!({"id": case.id, "gap": case.gap, "probability": case.probability});
            format!("{object}\n")
        });
        std::fs::write(path, lines.collect::<String>())
            .with_context(|| format!("cannot write the failures to `{}`", path.display()))?;
    }
    if command.json {
        print_json(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        print_line(report.to_string().trim_end())?;
    }
    Ok(Outcome::Done)
}

fn select(program: &Program, command: &EvalSelect) -> anyhow::Result<Outcome> {
    let place = command.data.display();
    let text = std::fs::read_to_string(&command.data)
        .with_context(|| format!("cannot read the cases in `{place}`"))?;
    let mut cases =
        read_cases(&text).with_context(|| format!("`{place}` is not a file of cases"))?;
    cases.truncate(command.limit.unwrap_or(usize::MAX));
    anyhow::ensure!(!cases.is_empty(), "there are no cases in `{place}`");
    let options = RunOptions {
        base_url: command.base_url.clone(),
        dialect: command.dialect,
        ..RunOptions::default()
    };
    let service = program.service(None);
    let model = service.evaluated_model(&program.identity()?, &command.model, &options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let bar = bar("cases", cases.len());
    let mut times = Vec::new();
    let mut problems = Vec::new();
    let evaluation = evaluate(&cases, |task, tools| {
        let started = Instant::now();
        let call = runtime.block_on(model.call(task, tools));
        times.push(started.elapsed().as_secs_f64() * 1e3);
        bar.inc(1);
        call.unwrap_or_else(|error| {
            problems.push(error.to_string());
            None
        })
    });
    bar.finish_and_clear();
    times.sort_by(f64::total_cmp);
    let p50_ms = times[times.len() / 2];
    if let Some(path) = &command.failures {
        write_failures(path, &evaluation)
            .with_context(|| format!("cannot write the failures to `{}`", path.display()))?;
    }
    show(command, &evaluation, p50_ms)?;
    if let Some(first) = problems.first() {
        eprint_line(&format!(
            "the model failed on {} of {} cases; the first error: {first}",
            problems.len(),
            cases.len()
        ))?;
    }
    Ok(Outcome::from_success(problems.is_empty()))
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
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
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
