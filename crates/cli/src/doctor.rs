//! `windlass doctor`: checks the local setup, and prints how to fix what is wrong.

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_service::{ExaminedFile, FileContent, FindingStatus, HealthFinding, HealthRequest};

use super::CommandOutcome;
use super::arguments::Doctor;
use super::program::Program;
use super::rendered::escape_indented;
use super::report::Reporter;
use super::run::block_on_until_interrupted;
use super::source::read_agent_file;
use super::terminal::{print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &Doctor,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    let files: Vec<PathBuf> = match command.agent_files.as_slice() {
        [] => service.project_agent_files(&identity)?,
        named => named.to_vec(),
    };
    let request = HealthRequest {
        agent_files: files.iter().map(|path| examined(path, reporter)).collect(),
        is_offline: command.offline,
    };
    let examining = service.examine(&identity, &request);
    let findings = block_on_until_interrupted(&service, examining)??;
    show(&findings, command.json)
}

/// Reads an agent file and reports its errors.
fn examined(path: &Path, reporter: &Reporter) -> ExaminedFile {
    let content = match path.exists() {
        false => FileContent::Missing,
        true => match read_agent_file(path, reporter) {
            Ok(Some(file)) => FileContent::Declared(Box::new(file)),
            _ => FileContent::Invalid,
        },
    };
    ExaminedFile {
        name: path.display().to_string(),
        content,
    }
}

fn show(findings: &[HealthFinding], as_json: bool) -> anyhow::Result<CommandOutcome> {
    let count = |status| findings.iter().filter(|one| one.status == status).count();
    let (errors, warnings) = (count(FindingStatus::Error), count(FindingStatus::Warning));
    if as_json {
        let objects: Vec<_> = findings
            .iter()
            .map(|one| {
                json!({
                    "about": one.about, "status": one.status.as_str(), "found": one.found,
                    "fix": one.fix,
                })
            })
            .collect();
        let object =
            json!({"ok": errors == 0, "errors": errors, "warnings": warnings, "findings": objects});
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::from_success(errors == 0));
    }
    for one in findings {
        let found = escape_indented(&one.found, "                         ");
        print_line(&format!(
            "{:<8} {:<15} {found}",
            one.status.as_str(),
            one.about
        ))?;
        if let Some(fix) = &one.fix {
            print_line(&format!(
                "{:<8} {:<15} fix: {}",
                "",
                "",
                escape_indented(fix, "                              ")
            ))?;
        }
    }
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    print_line(&match (errors, warnings) {
        (0, 0) => "no problems found".to_owned(),
        (errors, warnings) => format!(
            "{}, {}",
            counted(errors, "error"),
            counted(warnings, "warning")
        ),
    })?;
    Ok(CommandOutcome::from_success(errors == 0))
}
