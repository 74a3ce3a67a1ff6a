//! `windlass bind`: checks whether the tools of a file bind to a library, and reports every reason why not.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_service::{BindingReport, unknown_name_message};
use windlass_spec::{AgentFile, ToolSpecification};
use windlass_tools::{BindingReason, BoundTool};

use super::CommandOutcome;
use super::arguments::Bind;
use super::program::Program;
use super::report::Reporter;
use super::source::read_agent_file;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &Bind,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let Some(file) = read_agent_file(&command.file, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let tools = tools_to_bind(command, &file)?;
    let service = program.service(None);
    let identity = program.identity()?;
    let mode = command.mode.map(Into::into);
    let mut report = service.check_binding(&identity, &command.library, tools, mode)?;
    // As it was named, because two files can declare the same name.
    if !command.library.is_empty() {
        report.library = command.library.join("`, `");
    }
    match command.json {
        true => print_json(&format!("{}\n", json_report(command, &report)))?,
        false => print(&report)?,
    }
    Ok(CommandOutcome::from_success(report.failures.is_empty()))
}

fn tools_to_bind<'f>(
    command: &Bind,
    file: &'f AgentFile,
) -> anyhow::Result<&'f [Arc<ToolSpecification>]> {
    let Some(name) = &command.agent else {
        return Ok(file.tools());
    };
    match file.agent(name) {
        Some(agent) => Ok(agent.tools()),
        None => {
            let known: Vec<&str> = file
                .agents()
                .iter()
                .map(|agent| agent.name().as_str())
                .collect();
            anyhow::bail!(unknown_name_message(
                "agent",
                name,
                &known,
                &command.file.to_string_lossy()
            ))
        }
    }
}

fn print(report: &BindingReport) -> anyhow::Result<()> {
    let BindingReport {
        library,
        bound,
        failures,
        ..
    } = report;
    for tool in bound {
        let signature = tool.specification().signature();
        print_line(&format!(
            "{} {signature}  bound to `{library}`",
            tool.name()
        ))?;
        for note in tool.notes() {
            let note = note.to_string().replace('\n', "\n  ");
            eprint_line(&format!("note: {}: {note}", tool.name()))?;
        }
    }
    for failure in failures {
        eprint_line(&failure.to_string())?;
    }
    if !failures.is_empty() {
        let total = bound.len() + failures.len();
        eprint_line(&format!(
            "error: {} of {total} tools do not bind to the library `{library}`",
            failures.len()
        ))?;
    }
    Ok(())
}

fn json_report(command: &Bind, report: &BindingReport) -> Value {
    let reasons = |reasons: &[BindingReason]| -> Vec<Value> {
        let reasons = reasons.iter();
        reasons
            .map(|reason| json!({"kind": kind(reason), "message": reason.to_string()}))
            .collect()
    };
    let failures = report.failures.iter();
    let failures =
        failures.map(|failure| json!({"tool": failure.tool, "reasons": reasons(&failure.reasons)}));
    let bound = &report.bound;
    let mut object = json!({
        "file": command.file.to_string_lossy(),
        "library": report.library,
        "mode": report.mode,
        "bound": bound.iter().map(BoundTool::name).collect::<Vec<_>>(),
        "failures": failures.collect::<Vec<_>>(),
    });
    let noted = bound.iter().filter(|tool| !tool.notes().is_empty());
    let notes: Vec<Value> = noted
        .map(|tool| json!({"tool": tool.name(), "reasons": reasons(tool.notes())}))
        .collect();
    if !notes.is_empty() {
        object["notes"] = Value::Array(notes);
    }
    object
}

/// The stable name of a reason, for JSON.
fn kind(reason: &BindingReason) -> &'static str {
    match reason {
        BindingReason::Missing { .. } => "missing",
        BindingReason::DescriptionDiffers { .. } => "description_differs",
        BindingReason::SchemaDiffers { .. } => "schema_differs",
        BindingReason::ReturnDiffers { .. } => "return_differs",
        BindingReason::Incompatible { .. } => "incompatible",
        BindingReason::ReturnIncompatible { .. } => "return_incompatible",
        BindingReason::Undecidable { .. } => "cannot_tell",
        _ => "other",
    }
}
