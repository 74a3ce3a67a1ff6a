//! `windlass holds`: calls that wait for a while before they run, so that they can be undone.

use serde_json::{Value, json};
use windlass_core::approval::{Hold, HoldStatus, Identity};
use windlass_runtime::{local_identity, now};
use windlass_spec::Timestamp;
use windlass_store::{HoldFilter, Store};

use super::arguments::{Holds, HoldsCommand, OneHold};
use super::call_ids::{Candidate, Sought, pick};
use super::moments::{ago, left, seconds_left};
use super::outermost::{self, Onward};
use super::refusal::{refused, told};
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};
use super::{Outcome, data};

/// How much of the arguments is listed.
const ARGUMENTS: usize = 60;

pub(super) fn run(command: &Holds) -> anyhow::Result<Outcome> {
    let stored = data::open(command.data.as_deref())?;
    let (store, person) = (stored.store(), local_identity()?);
    let (result, as_json) = match &command.command {
        HoldsCommand::List { all, json } => (list(store, &person, *all, *json), *json),
        HoldsCommand::Undo(hold) => (change(store, &person, hold, Change::Undo), hold.json),
        HoldsCommand::Release(hold) => (change(store, &person, hold, Change::Release), hold.json),
    };
    told(result, as_json)
}

/// The held calls of the person's tenant, the oldest first.
fn holds(store: &Store, person: &Identity) -> anyhow::Result<Vec<Hold>> {
    let filter = HoldFilter {
        tenant: Some(person.tenant.as_str().to_owned()),
        ..HoldFilter::default()
    };
    store.holds(&filter).map_err(refused)
}

fn list(store: &Store, person: &Identity, all: bool, as_json: bool) -> anyhow::Result<Outcome> {
    let mut holds = holds(store, person)?;
    holds.retain(|hold| all || hold.status().is_open());
    let now = now();
    if as_json {
        for hold in &holds {
            put(&format!("{}\n", as_object(store, hold, now)))?;
        }
    } else if holds.is_empty() {
        complain(match all {
            true => "no call was ever held",
            false => "no calls are held",
        })?;
    } else {
        let rows: Vec<[String; 6]> = holds.iter().map(|hold| row(hold, now)).collect();
        let headings = ["ID", "TOOL", "STATUS", "HELD", "TIME LEFT", "ARGUMENTS"];
        say_table(headings, &rows)?;
    }
    Ok(Outcome::Done)
}

fn row(hold: &Hold, now: Timestamp) -> [String; 6] {
    let time_left = match hold.status() {
        HoldStatus::Held => left(hold.due_at(), now).unwrap_or_else(|| "none".to_owned()),
        _ => "-".to_owned(),
    };
    let arguments = Value::Object(hold.tool_args().clone());
    [
        hold.call().to_string(),
        hold.tool_name().to_string(),
        hold.status().to_string(),
        ago(hold.held_at(), now),
        time_left,
        one_line(&arguments.to_string(), ARGUMENTS),
    ]
}

fn as_object(store: &Store, hold: &Hold, now: Timestamp) -> Value {
    let mut told = json!(hold);
    told["id"] = json!(hold.call());
    told["run"] = json!(hold.run());
    told["outermost_run"] = json!(outermost::of(store, hold.run()).ok());
    if hold.status() == HoldStatus::Held {
        told["seconds_left"] = json!(seconds_left(hold.due_at(), now));
    }
    told
}

/// What a person does about a held call.
#[derive(Debug, Clone, Copy)]
enum Change {
    Undo,
    Release,
}

fn change(
    store: &Store,
    person: &Identity,
    command: &OneHold,
    change: Change,
) -> anyhow::Result<Outcome> {
    let sought = Sought {
        word: "no_such_hold",
        what: "held call",
        listed_by: "windlass holds list --all",
    };
    let candidates = holds(store, person)?.into_iter().map(|hold| Candidate {
        call: hold.call().clone(),
        is_open: hold.status() == HoldStatus::Held,
    });
    let call = pick(&command.id, candidates, &sought)?;
    let changed = match change {
        Change::Undo => store.undo(&call, person, now()),
        Change::Release => store.release(&call, person, now()),
    };
    let hold = changed.map_err(refused)?;
    let onward = Onward::of(store, hold.run()).ok();
    if command.json {
        let mut told = as_object(store, &hold, now());
        told["next"] = json!(onward.as_ref().and_then(Onward::next));
        put(&format!("{told}\n"))?;
        return Ok(Outcome::Done);
    }
    let (word, what) = match change {
        Change::Undo => ("undone", "it never runs, and the model is told"),
        Change::Release => ("released", "it runs as soon as its run goes on"),
    };
    say(&format!("{word}: {} ({call}); {what}", hold.tool_name()))?;
    if let Some(onward) = onward {
        say(&onward.told())?;
    }
    Ok(Outcome::Done)
}
