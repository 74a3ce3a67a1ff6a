//! `windlass runs cancel`: cancels a run, whichever process owns it.

use serde_json::json;
use windlass_service::types::RunState;
use windlass_service::{CANCEL_TIMEOUT, Cancellation, Identity, Service};

use super::chosen;
use crate::CommandOutcome;
use crate::arguments::OneRun;
use crate::paste;
use crate::run::block_on_until_interrupted;
use crate::terminal::{eprint_line, print_json, print_line};

/// The exit code for a run that was not stopped in time.
const OUT_OF_TIME: u8 = 5;

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &OneRun,
) -> anyhow::Result<CommandOutcome> {
    let id = chosen(&command.run, service, identity)?;
    let cancelled = service.cancel_run(identity, &id);
    let Cancellation { summary, was_owned } = block_on_until_interrupted(service, cancelled)??;
    let (id, as_json) = (&summary.run, command.json);
    let end = summary
        .end
        .as_ref()
        .filter(|_| summary.state == RunState::Ended);
    let Some(end) = end else {
        if as_json {
            let object =
                json!({"run": id, "state": summary.state.as_str(), "end": null, "was_owned": true});
            print_json(&format!("{object}\n"))?;
        }
        let show = paste::command(
            &format!("runs show {id}"),
            service.given_data_directory().as_deref(),
        );
        eprint_line(&format!(
            "the process that drives the run {id} has not stopped within {} s; it stops when it reads its inbox\n\
             hint: `{show}` shows its state",
            CANCEL_TIMEOUT.as_secs()
        ))?;
        return Ok(CommandOutcome::Code(OUT_OF_TIME));
    };
    if as_json {
        let object =
            json!({"run": id, "state": summary.state.as_str(), "end": end, "was_owned": was_owned});
        print_json(&format!("{object}\n"))?;
    } else if was_owned {
        print_line(&format!("cancelled: {id}, by the process that drives it"))?;
    } else {
        print_line(&format!("cancelled: {id}"))?;
    }
    Ok(CommandOutcome::Done)
}
