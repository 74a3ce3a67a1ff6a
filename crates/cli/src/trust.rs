//! `windlass trust`: shows what a project would be allowed, and records the user's decision.

use std::io::{IsTerminal as _, stdin};

use serde_json::json;
use windlass_service::types::{TrustDifference, TrustGrants};
use windlass_service::{TrustReview, TrustState};

use super::CommandOutcome;
use super::arguments::Trust;
use super::program::{Program, ended};
use super::prompt::{PromptError, read_text};
use super::rendered::escape_exact_line;
use super::table::print_table;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Trust) -> anyhow::Result<CommandOutcome> {
    let done = match (command.list, command.revoke) {
        (true, _) => list(program, command),
        (_, true) => revoke(program, command),
        _ => trust(program, command),
    };
    ended(done, command.json)
}

fn list(program: &Program, command: &Trust) -> anyhow::Result<CommandOutcome> {
    let projects = program
        .service(None)
        .trusted_projects(&program.identity()?)?;
    if command.json {
        for project in &projects {
            print_json(&format!("{}\n", serde_json::to_string(project)?))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 3]> = projects
        .iter()
        .map(|project| {
            let state = if project.is_unchanged {
                "trusted"
            } else {
                "changed"
            };
            [
                state.to_owned(),
                project.trusted_at.to_string(),
                project.directory.display().to_string(),
            ]
        })
        .collect();
    print_table(["STATE", "SINCE", "DIRECTORY"], &rows)?;
    Ok(CommandOutcome::Done)
}

fn revoke(program: &Program, command: &Trust) -> anyhow::Result<CommandOutcome> {
    let service = program.service(None);
    let (directory, was_trusted) =
        service.revoke_trust(&program.identity()?, &command.directory)?;
    let shown = escape_exact_line(&directory.display().to_string());
    match (command.json, was_trusted) {
        (true, _) => print_json(&format!(
            "{}\n",
            json!({"directory": directory, "was_trusted": was_trusted})
        ))?,
        (false, true) => print_line(&format!("{shown}: not trusted any more"))?,
        (false, false) => print_line(&format!("{shown}: was not trusted"))?,
    }
    Ok(CommandOutcome::Done)
}

fn trust(program: &Program, command: &Trust) -> anyhow::Result<CommandOutcome> {
    let service = program.service(None);
    let identity = program.identity()?;
    let review = service.review_trust(&identity, &command.directory)?;
    let directory = escape_exact_line(&review.directory.display().to_string());
    let is_trusted = matches!(
        review.state,
        TrustState::Trusted | TrustState::TrustedDirectory
    );
    if command.json {
        if !is_trusted && command.yes {
            service.grant_trust(&identity, &review)?;
        }
        let mut object = serde_json::to_value(&review)?;
        object["trusted"] = json!(is_trusted || command.yes);
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::from_success(is_trusted || command.yes));
    }
    show(&review)?;
    if is_trusted {
        let reason = match review.state {
            TrustState::TrustedDirectory => {
                "trusted, because your configuration trusts its directory"
            }
            _ => "trusted",
        };
        print_line(&format!("{directory}: {reason}"))?;
        return Ok(CommandOutcome::Done);
    }
    if !command.yes && !confirm(&directory)? {
        print_line(&format!("{directory}: not trusted"))?;
        return Ok(CommandOutcome::Failed);
    }
    service.grant_trust(&identity, &review)?;
    print_line(&format!("{directory}: trusted"))?;
    Ok(CommandOutcome::Done)
}

/// Asks at the terminal.
fn confirm(directory: &str) -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        eprint_line("No terminal to ask at. To trust the project, run `windlass trust --yes`.")?;
        return Ok(false);
    }
    let question = format!("Trust {directory}? Type `yes` to allow all of this:");
    match read_text(&question, "") {
        Ok(answer) => Ok(answer.trim() == "yes"),
        Err(PromptError::Cancelled | PromptError::Over) => Ok(false),
        Err(PromptError::Terminal(error)) => Err(error.into()),
    }
}

/// Shows what the project would be allowed, and what changed. Everything of the project is indented, so that it cannot
/// pass for a line of this program.
fn show(review: &TrustReview) -> anyhow::Result<()> {
    let directory = review.directory.display().to_string();
    print_line(&escape_exact_line(&directory))?;
    if review.grants.is_empty() {
        print_line(
            "The project needs no trust: it starts no program, sends no data and loosens no rule.",
        )?;
    }
    show_grants(&review.grants)?;
    print_line("files, which are trusted as they are now:")?;
    for path in review.files.keys() {
        print_line(&format!(
            "  {}",
            escape_exact_line(&path.display().to_string())
        ))?;
    }
    if let Some(difference) = &review.difference {
        show_difference(difference)?;
    }
    Ok(())
}

fn show_grants(grants: &TrustGrants) -> anyhow::Result<()> {
    for (kind, granted) in grants.kinds() {
        if granted.is_empty() {
            continue;
        }
        print_line(match kind {
            "programs" => "programs it starts:",
            "hosts" => "hosts it sends data or credentials to:",
            "roots" => "directories that file tools may access:",
            "risks" => "risks it lowers:",
            "policies" => "policies that replace the built-in ones:",
            "environment" => "environment variables it reads:",
            _ => "other settings:",
        })?;
        for one in granted {
            print_line(&format!("  {}", escape_exact_line(one)))?;
        }
    }
    Ok(())
}

fn show_difference(difference: &TrustDifference) -> anyhow::Result<()> {
    print_line("changes since you trusted it:")?;
    for (sign, changed) in [("+", &difference.added), ("-", &difference.removed)] {
        for (kind, one) in changed {
            print_line(&format!("  {sign} {kind}: {}", escape_exact_line(one)))?;
        }
    }
    for (path, lines) in &difference.files {
        print_line(&format!(
            "  {}",
            escape_exact_line(&path.display().to_string())
        ))?;
        for line in lines {
            print_line(&format!("    {}", escape_exact_line(line)))?;
        }
    }
    Ok(())
}
