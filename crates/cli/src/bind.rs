//! `windlass bind`: checks whether the tools of a file bind to a library, and reports every reason why not.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_service::unknown_name_message;
use windlass_spec::{AgentFile, ToolSpecification};
use windlass_tools::{BindingFailure, BindingReason, BoundTool};

use super::CommandOutcome;
use super::arguments::{Bind, Mode};
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
    let report = service.check_binding(&identity, &command.library, tools, command.mode.into())?;
    let (bound, failures) = (report.bound, report.failures);
    if command.json {
        let report = json_report(command, &bound, &failures);
        print_json(&format!("{report}\n"))?;
    } else {
        print(command, &bound, &failures)?;
    }
    Ok(CommandOutcome::from_success(failures.is_empty()))
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

fn print(command: &Bind, bound: &[BoundTool], failures: &[BindingFailure]) -> anyhow::Result<()> {
    let library = &command.library;
    for tool in bound {
        let signature = tool.specification().signature();
        print_line(&format!(
            "{} {signature}  bound to `{library}`",
            tool.name()
        ))?;
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

fn json_report(command: &Bind, bound: &[BoundTool], failures: &[BindingFailure]) -> Value {
    let mode = match command.mode {
        Mode::Exact => "exact",
        Mode::Compatible => "compatible",
    };
    let failures: Vec<Value> = failures
        .iter()
        .map(|failure| {
            let reasons = failure
                .reasons
                .iter()
                .map(|reason| json!({"kind": kind(reason), "message": reason.to_string()}));
            json!({"tool": failure.tool, "reasons": reasons.collect::<Vec<_>>()})
        })
        .collect();
    json!({
        "file": command.file.to_string_lossy(),
        "library": command.library,
        "mode": mode,
        "bound": bound.iter().map(BoundTool::name).collect::<Vec<_>>(),
        "failures": failures,
    })
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
