//! `windlass legal-hold`: keeps everything of runs, whatever the retention is.

use serde_json::json;
use windlass_service::{LegalHoldChange, legal_hold_to_json};

use super::CommandOutcome;
use super::arguments::{LegalHold, LegalHoldCommand};
use super::program::{Program, ended};
use super::table::print_table;
use super::terminal::{print_json, print_line};

pub(super) fn run(program: &Program, command: &LegalHold) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    match &command.command {
        LegalHoldCommand::Add(held) => {
            let added = || {
                let changed = service.add_legal_holds(&identity, &held.runs, &held.reason)?;
                show(&changed, ["kept", "was kept already"], held.json)
            };
            ended(added(), held.json)
        }
        LegalHoldCommand::Remove(held) => {
            let removed = || {
                let changed = service.remove_legal_holds(&identity, &held.runs, &held.reason)?;
                show(&changed, ["no longer kept", "was under no hold"], held.json)
            };
            ended(removed(), held.json)
        }
        LegalHoldCommand::List { json } => {
            let listed = || {
                let holds = service.legal_holds(&identity)?;
                if *json {
                    for hold in &holds {
                        print_json(&format!("{}\n", legal_hold_to_json(hold)))?;
                    }
                } else if holds.is_empty() {
                    print_line("no run is under a legal hold")?;
                } else {
                    let rows: Vec<[String; 4]> = holds
                        .iter()
                        .map(|hold| {
                            [
                                hold.run.to_string(),
                                hold.placed_at.to_string(),
                                hold.placed_by.clone(),
                                hold.reason.clone(),
                            ]
                        })
                        .collect();
                    print_table(["run", "since", "by", "reason"], &rows)?;
                }
                Ok(CommandOutcome::Done)
            };
            ended(listed(), *json)
        }
    }
}

fn show(
    changed: &[LegalHoldChange],
    [done, before]: [&str; 2],
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    for change in changed {
        if as_json {
            print_json(&format!("{}\n", json!(change)))?;
            continue;
        }
        let what = if change.changed { done } else { before };
        print_line(&format!("{}: {what}", change.run))?;
    }
    Ok(CommandOutcome::Done)
}
