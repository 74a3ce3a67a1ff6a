//! `windlass runs verify`: checks that journals are as Windlass wrote them.

use serde_json::json;
use windlass_service::types::{Alteration, RunVerification, SignatureState};
use windlass_service::{Identity, Service, alteration_to_json, verification_to_json};

use crate::CommandOutcome;
use crate::arguments::RunsVerify;
use crate::plural::counted;
use crate::terminal::{print_json, print_line};

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &RunsVerify,
) -> anyhow::Result<CommandOutcome> {
    let verified = service.verify_runs(identity, &command.runs)?;
    if command.json {
        for run in &verified.runs {
            print_json(&format!("{}\n", verification_to_json(run)))?;
        }
        if command.runs.is_empty() {
            let rest: Vec<_> = verified.rest.iter().map(alteration_to_json).collect();
            print_json(&format!("{}\n", json!({"rest": rest})))?;
        }
        return Ok(CommandOutcome::from_success(verified.is_unaltered()));
    }
    for run in &verified.runs {
        print_line(&describe(run))?;
        print_alterations(&run.alterations)?;
    }
    if command.runs.is_empty() {
        let state = match verified.rest.is_empty() {
            true => "unchanged",
            false => "changed",
        };
        print_line(&format!("what belongs to no run: {state}"))?;
        print_alterations(&verified.rest)?;
    }
    Ok(CommandOutcome::from_success(verified.is_unaltered()))
}

fn print_alterations(alterations: &[Alteration]) -> std::io::Result<()> {
    alterations
        .iter()
        .try_for_each(|found| print_line(&format!("   {}: {}", found.place, found.reason)))
}

/// One line about a run.
fn describe(run: &RunVerification) -> String {
    let count =
        |number: u64, one, many| counted(usize::try_from(number).unwrap_or(usize::MAX), one, many);
    let mut text = match (run.alterations.is_empty(), run.signature) {
        (false, _) => format!("run {}: changed outside Windlass", run.run),
        (true, SignatureState::Unsigned) => {
            format!(
                "run {}: unsigned, it ended before rows were signed",
                run.run
            )
        }
        (true, SignatureState::SignedFrom(last)) => format!(
            "run {}: unchanged, {}, unsigned until event {last}",
            run.run,
            count(run.events, "event", "events")
        ),
        (true, SignatureState::Signed) => format!(
            "run {}: unchanged, {}",
            run.run,
            count(run.events, "event", "events")
        ),
    };
    if run.purged_events > 0 {
        text += &format!(", {} purged", run.purged_events);
    }
    if let Some(damage) = &run.damage {
        text += &format!("; its last events may be missing ({damage})");
    }
    text
}
