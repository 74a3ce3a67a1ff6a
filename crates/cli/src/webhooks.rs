//! `windlass webhooks`: the webhooks, and the events that are sent to them.

use serde_json::json;
use windlass_service::types::{DeliveryState, WebhookDelivery};
use windlass_service::{DeliveryQuery, Identity, Service, WebhookStatus, delivery_to_json};

use super::CommandOutcome;
use super::arguments::{Webhooks, WebhooksCommand, WebhooksList, WebhooksRetry, WebhooksShow};
use super::program::{Program, ended};
use super::table::print_table;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Webhooks) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    match &command.command {
        WebhooksCommand::List(list) => ended(show_list(&service, &identity, list), list.json),
        WebhooksCommand::Show(show) => ended(show_one(&service, &identity, show), show.json),
        WebhooksCommand::Retry(retry) => ended(send_again(&service, &identity, retry), retry.json),
        WebhooksCommand::Secret => {
            let made = || {
                print_line(&service.new_webhook_secret()?)?;
                Ok(CommandOutcome::Done)
            };
            ended(made(), false)
        }
    }
}

fn show_list(
    service: &Service,
    identity: &Identity,
    list: &WebhooksList,
) -> anyhow::Result<CommandOutcome> {
    let of_state = |state| {
        let query = DeliveryQuery {
            webhook: list.webhook.clone(),
            state: Some(state),
            limit: Some(list.limit),
            ..DeliveryQuery::default()
        };
        service.list_deliveries(identity, &query)
    };
    let deliveries = match list.state {
        Some(state) => of_state(state)?,
        None => {
            let mut unreceived = of_state(DeliveryState::Dead)?;
            unreceived.extend(of_state(DeliveryState::Pending)?);
            unreceived.sort_by_key(|delivery| std::cmp::Reverse(delivery.number));
            unreceived.truncate(usize::try_from(list.limit).unwrap_or(usize::MAX));
            unreceived
        }
    };
    if list.json {
        for delivery in &deliveries {
            print_json(&format!("{}\n", delivery_to_json(delivery)))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let webhooks = service.list_webhooks(identity)?;
    if webhooks.is_empty() {
        eprint_line(
            "there are no webhooks\nhint: add `[webhooks.NAME]` to windlass.toml; see `windlass config schema`",
        )?;
    } else {
        print_webhooks(&webhooks)?;
    }
    match (deliveries.is_empty(), list.state) {
        (true, None) if webhooks.is_empty() => {}
        (true, None) => eprint_line("all events were received")?,
        (true, Some(_)) => eprint_line("there are no such events")?,
        (false, _) => {
            print_line("")?;
            print_deliveries(&deliveries)?;
        }
    }
    Ok(CommandOutcome::Done)
}

fn print_webhooks(webhooks: &[WebhookStatus]) -> anyhow::Result<()> {
    let rows: Vec<[String; 6]> = webhooks
        .iter()
        .map(|webhook| {
            [
                webhook.name.clone(),
                match webhook.is_enabled {
                    true => "on".to_owned(),
                    false => "off".to_owned(),
                },
                webhook.counts.pending.to_string(),
                webhook.counts.dead.to_string(),
                webhook.target.clone(),
                webhook.events.join(","),
            ]
        })
        .collect();
    print_table(
        ["WEBHOOK", "STATE", "PENDING", "DEAD", "TARGET", "EVENTS"],
        &rows,
    )
}

fn print_deliveries(deliveries: &[WebhookDelivery]) -> anyhow::Result<()> {
    let rows: Vec<[String; 7]> = deliveries
        .iter()
        .map(|delivery| {
            [
                delivery.id.clone(),
                delivery.webhook.clone(),
                delivery.event.clone(),
                delivery.state.to_string(),
                delivery.attempts.to_string(),
                delivery.at.to_string(),
                delivery.error.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        })
        .collect();
    print_table(
        ["ID", "WEBHOOK", "EVENT", "STATE", "ATTEMPTS", "AT", "ERROR"],
        &rows,
    )
}

fn show_one(
    service: &Service,
    identity: &Identity,
    show: &WebhooksShow,
) -> anyhow::Result<CommandOutcome> {
    let delivery = service.show_delivery(identity, &show.id)?;
    let message = service.delivery_message(identity, &show.id);
    if show.json {
        let mut object = delivery_to_json(&delivery);
        object["message"] = json!(message.ok());
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    print_line(&format!("event: {} ({})", delivery.event, delivery.at))?;
    print_line(&format!("webhook: {}", delivery.webhook))?;
    print_line(&format!(
        "state: {}, after {} attempts",
        delivery.state, delivery.attempts
    ))?;
    if let Some(error) = &delivery.error {
        print_line(&format!("error: {error}"))?;
    }
    match message {
        Ok(message) => print_json(&format!("{message:#}\n"))?,
        Err(error) => eprint_line(&format!("its content cannot be made: {error}"))?,
    }
    if delivery.state == DeliveryState::Dead {
        eprint_line(&format!("hint: windlass webhooks retry {}", delivery.id))?;
    }
    Ok(CommandOutcome::Done)
}

fn send_again(
    service: &Service,
    identity: &Identity,
    retry: &WebhooksRetry,
) -> anyhow::Result<CommandOutcome> {
    let ids = match retry.all {
        true => {
            let query = DeliveryQuery {
                webhook: retry.webhook.clone(),
                state: Some(DeliveryState::Dead),
                ..DeliveryQuery::default()
            };
            let dead = service.list_deliveries(identity, &query)?;
            dead.into_iter().map(|delivery| delivery.id).collect()
        }
        false => retry.ids.clone(),
    };
    for id in &ids {
        let retried = service.retry_delivery(identity, id)?;
        match retry.json {
            true => print_json(&format!("{}\n", delivery_to_json(&retried)))?,
            false => print_line(&format!("sent again: {} ({})", retried.id, retried.event))?,
        }
    }
    if ids.is_empty() {
        eprint_line("no event was given up")?;
    } else if !service.has_worker(identity)? {
        eprint_line("hint: no worker is running; start `windlass serve` or `windlass worker`")?;
    }
    Ok(CommandOutcome::Done)
}
