//! `windlass holds`: calls that are held for a time before they run, so that they can be undone.

use serde_json::{Value, json};
use windlass_core::approval::{Hold, HoldStatus};
use windlass_runtime::now;
use windlass_service::{HoldChange, Identity, Service, ServiceError};
use windlass_spec::Timestamp;

use super::CommandOutcome;
use super::arguments::{Holds, HoldsCommand, OneHold};
use super::ending::{next_command, next_step_message};
use super::moments::{ago, left};
use super::program::{Program, ended};
use super::table::{listed_ids, one_line, print_table};
use super::terminal::{eprint_line, print_json, print_line};

/// The maximum length of listed arguments.
const ARGUMENTS: usize = 60;

pub(super) fn run(program: &Program, command: &Holds) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    let change = |hold, change| self::change(&service, &identity, hold, change);
    let (result, as_json) = match &command.command {
        HoldsCommand::List { all, json } => (list(&service, &identity, *all, *json), *json),
        HoldsCommand::Undo(hold) => (change(hold, HoldChange::Undo), hold.json),
        HoldsCommand::Release(hold) => (change(hold, HoldChange::Release), hold.json),
    };
    ended(result, as_json)
}

fn list(
    service: &Service,
    identity: &Identity,
    all: bool,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let holds = service.list_holds(identity, all)?;
    let now = now();
    if as_json {
        for hold in &holds {
            print_json(&format!("{}\n", service.hold_to_json(identity, hold)))?;
        }
    } else if holds.is_empty() {
        eprint_line(match all {
            true => "no calls have been held",
            false => "no calls are held",
        })?;
    } else {
        let ids = listed_ids(holds.iter().map(|hold| hold.call().to_string()));
        let rows = holds.iter().zip(ids);
        let rows: Vec<[String; 6]> = rows.map(|(hold, id)| row(hold, id, now)).collect();
        let headings = ["ID", "TOOL", "STATUS", "HELD", "TIME LEFT", "ARGUMENTS"];
        print_table(headings, &rows)?;
    }
    Ok(CommandOutcome::Done)
}

fn row(hold: &Hold, id: String, now: Timestamp) -> [String; 6] {
    let time_left = match hold.status() {
        HoldStatus::Held => left(hold.due_at(), now).unwrap_or_else(|| "none".to_owned()),
        _ => "-".to_owned(),
    };
    let arguments = Value::Object(hold.tool_args().clone());
    [
        id,
        hold.tool_name().to_string(),
        hold.status().to_string(),
        ago(hold.held_at(), now),
        time_left,
        one_line(&arguments.to_string(), ARGUMENTS),
    ]
}

fn change(
    service: &Service,
    identity: &Identity,
    command: &OneHold,
    change: HoldChange,
) -> anyhow::Result<CommandOutcome> {
    let id = match &command.id {
        Some(id) => id.clone(),
        None => {
            let held = service.list_holds(identity, false)?;
            let last = held.iter().max_by_key(|hold| hold.held_at());
            let none = || ServiceError::not_found("no_such_hold", "no calls are held");
            last.ok_or_else(none)?.call().to_string()
        }
    };
    let hold = service.change_hold(identity, &id, change)?;
    let onward = service.outermost_run_state(identity, hold.run()).ok();
    if command.json {
        let mut object = service.hold_to_json(identity, &hold);
        object["next"] = json!(onward.as_ref().and_then(next_command));
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let (word, what) = match change {
        HoldChange::Undo => ("undone", "it never runs, and the model is informed"),
        HoldChange::Release => ("released", "it runs when its run resumes"),
    };
    print_line(&format!(
        "{word}: {} ({}); {what}",
        hold.tool_name(),
        hold.call()
    ))?;
    if let Some(onward) = onward {
        print_line(&next_step_message(&onward))?;
    }
    Ok(CommandOutcome::Done)
}
