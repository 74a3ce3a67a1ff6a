//! `windlass stop` and `windlass start`: stop work in every process of the store, and start it again.

use windlass_runtime::now;
use windlass_service::types::{StopOrder, StopTarget};
use windlass_service::{StopRequest, StopSelector, stop_to_json};

use super::CommandOutcome;
use super::arguments::{Start, Stop, StopOptions};
use super::moments::ago;
use super::paste;
use super::program::{Program, ended};
use super::rendered::escape_exact_line;
use super::table::print_table;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn stop(program: &Program, command: &Stop) -> anyhow::Result<CommandOutcome> {
    let options = &command.options;
    let service = program.service(options.data.as_deref());
    let identity = program.identity()?;
    let stopped = || {
        if command.list {
            return show_list(&service.list_stops(&identity)?, options.json);
        }
        let stopped = service.stop(&identity, &request(options))?;
        let order = &stopped.order;
        if stopped.is_unknown {
            eprint_line(&format!(
                "warning: no run of this store knows {}; check the name",
                order.target
            ))?;
        }
        match options.json {
            true => print_json(&format!("{}\n", stop_to_json(order)))?,
            false => {
                print_line(&format!("stopped: {}{}", order.target, scope(order)))?;
                let start = paste::command(
                    &start_command(order),
                    service.given_data_directory().as_deref(),
                );
                eprint_line(&format!("start it again with: {start}"))?;
            }
        }
        Ok(CommandOutcome::Done)
    };
    ended(stopped(), options.json)
}

pub(super) fn start(program: &Program, command: &Start) -> anyhow::Result<CommandOutcome> {
    let options = &command.options;
    let service = program.service(options.data.as_deref());
    let identity = program.identity()?;
    let started = || {
        let order = service.start_again(&identity, &request(options))?;
        match options.json {
            true => print_json(&format!("{}\n", stop_to_json(&order)))?,
            false => {
                print_line(&format!("started: {}{}", order.target, scope(&order)))?;
                if !service.has_worker(&identity)? {
                    let worker =
                        paste::command("worker", service.given_data_directory().as_deref());
                    eprint_line(&format!(
                        "no worker is running; resume the suspended runs with: {worker}"
                    ))?;
                }
            }
        }
        Ok(CommandOutcome::Done)
    };
    ended(started(), options.json)
}

/// The command that ends a stop, without the name of the program.
pub(super) fn start_command(order: &StopOrder) -> String {
    let what = match &order.target {
        StopTarget::All => "--all".to_owned(),
        target => format!(
            "--{} {}",
            target.kind(),
            paste::quoted(target.name().unwrap_or_default())
        ),
    };
    let tenants = match order.tenant {
        Some(_) => "",
        None => " --every-tenant",
    };
    format!("start {what}{tenants}")
}

fn scope(order: &StopOrder) -> &'static str {
    match order.tenant {
        Some(_) => "",
        None => " of every tenant",
    }
}

fn request(options: &StopOptions) -> StopRequest {
    let StopOptions {
        agent,
        tool,
        principal,
        run,
        ..
    } = options;
    let named = [
        agent.clone().map(StopSelector::Agent),
        tool.clone().map(StopSelector::Tool),
        principal.clone().map(StopSelector::Principal),
        run.clone().map(StopSelector::Run),
    ];
    StopRequest {
        selector: named
            .into_iter()
            .flatten()
            .next()
            .unwrap_or(StopSelector::All),
        reason: options.reason.clone(),
        every_tenant: options.every_tenant,
    }
}

fn show_list(orders: &[StopOrder], as_json: bool) -> anyhow::Result<CommandOutcome> {
    if as_json {
        for order in orders {
            print_json(&format!("{}\n", stop_to_json(order)))?;
        }
        return Ok(CommandOutcome::Done);
    }
    if orders.is_empty() {
        eprint_line("nothing is stopped")?;
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 5]> = orders
        .iter()
        .map(|order| {
            let reason = order.reason.as_ref().map_or("-", |reason| reason.as_str());
            [
                escape_exact_line(&order.target.to_string()),
                order
                    .tenant
                    .as_ref()
                    .map_or_else(|| "every tenant".to_owned(), ToString::to_string),
                order.by.to_string(),
                ago(order.at, now()),
                escape_exact_line(reason),
            ]
        })
        .collect();
    print_table(["STOPPED", "TENANT", "BY", "WHEN", "REASON"], &rows)?;
    Ok(CommandOutcome::Done)
}
