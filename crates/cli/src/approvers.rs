//! `windlass approvers`: shows and changes who may decide.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::Context as _;
use inquire::{InquireError, Password, PasswordDisplayMode};
use serde::Serialize;
use windlass_service::types::{KeyProtection, Principal, PublicKey};
use windlass_service::{
    ApproverEntry, ApproverSummary, Identity, NewApprover, Service, ServiceError,
};
use windlass_spec::Timestamp;

use super::CommandOutcome;
use super::arguments::{
    ApproverOptions, Approvers, ApproversAdd, ApproversCommand, ApproversDelegate,
};
use super::moments::time_or_duration;
use super::program::{Program, ended};
use super::table::print_table;
use super::terminal::{eprint_line, is_interactive, print_json, print_line, visible_line};

pub(super) fn run(program: &Program, command: &Approvers) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    let (result, as_json) = match &command.command {
        ApproversCommand::List { json } => (list(&service, &identity, *json), *json),
        ApproversCommand::Show { name, json } => (show(&service, &identity, name, *json), *json),
        ApproversCommand::Add(command) => (add(&service, &identity, command), command.json),
        ApproversCommand::Remove { name, json } => {
            (remove(&service, &identity, name, *json), *json)
        }
        ApproversCommand::Delegate(command) => {
            (delegate(&service, &identity, command), command.json)
        }
    };
    ended(result, as_json)
}

fn list(service: &Service, identity: &Identity, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let Some(listed) = service.list_approvers(identity)? else {
        eprint_line("there are no approvers yet")?;
        return Ok(CommandOutcome::Done);
    };
    if as_json {
        return print_object(&listed);
    }
    let rows: Vec<[String; 5]> = listed
        .approvers
        .iter()
        .map(|approver| {
            [
                visible_line(&approver.name),
                private_key(approver).to_owned(),
                if approver.unattended { "yes" } else { "no" }.to_owned(),
                approver.groups.join(", "),
                approver.fingerprint.clone().unwrap_or_default(),
            ]
        })
        .collect();
    print_table(
        ["NAME", "PRIVATE KEY", "UNATTENDED", "GROUPS", "FINGERPRINT"],
        &rows,
    )?;
    for delegation in &listed.delegations {
        print_line(&format!(
            "{}: decides for {} until {}{}",
            visible_line(&delegation.to),
            visible_line(&delegation.from),
            delegation.until,
            if delegation.is_active { "" } else { " (over)" }
        ))?;
    }
    Ok(CommandOutcome::Done)
}

fn show(
    service: &Service,
    identity: &Identity,
    name: &str,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let listed = service.list_approvers(identity)?;
    let found = listed.as_ref().and_then(|listed| find(listed, name));
    let (Some(listed), Some(approver)) = (&listed, found) else {
        let message = format!("there is no approver `{name}`");
        return Err(ServiceError::not_found("no_such_approver", message)
            .with_hint("`windlass approvers list` lists the approvers")
            .into());
    };
    if as_json {
        return print_object(approver);
    }
    let field = |name: &str, value: &str| print_line(&format!("{name:<14}{value}"));
    field("name", &visible_line(&approver.name))?;
    field("private key", private_key(approver))?;
    field(
        "public key",
        &approver
            .key
            .map_or_else(|| "none".to_owned(), |key| key.to_string()),
    )?;
    field(
        "fingerprint",
        approver.fingerprint.as_deref().unwrap_or("none"),
    )?;
    field("unattended", if approver.unattended { "yes" } else { "no" })?;
    field("added at", &approver.added_at.to_string())?;
    if !approver.groups.is_empty() {
        field("groups", &approver.groups.join(", "))?;
    }
    for delegation in &listed.delegations {
        if delegation.from == approver.name && delegation.is_active {
            let text = format!("to {} until {}", delegation.to, delegation.until);
            field("delegated", &visible_line(&text))?;
        }
    }
    Ok(CommandOutcome::Done)
}

fn add(
    service: &Service,
    identity: &Identity,
    command: &ApproversAdd,
) -> anyhow::Result<CommandOutcome> {
    let name = Principal::new(command.name.as_str())
        .map_err(|error| ServiceError::invalid("invalid", error.to_string()))?;
    let key = match &command.public_key {
        None => None,
        Some(text) => Some(PublicKey::parse(text).ok_or_else(|| {
            let message = "the public key is not a text that `windlass approvers show` prints";
            ServiceError::invalid("invalid", message)
        })?),
    };
    let known = service.list_approvers(identity)?;
    let is_known = known.is_some_and(|listed| find(&listed, name.as_str()).is_some());
    let makes_key = key.is_none() && !command.without_key && !is_known;
    let passphrase = match &command.passphrase_file {
        Some(file) => Some(read_passphrase(file)?),
        None if makes_key && !command.no_passphrase && is_terminal() => new_passphrase()?,
        None => None,
    };
    let new = NewApprover {
        name,
        passphrase,
        key,
        is_without_key: command.without_key,
        unattended: command.unattended,
    };
    let listed = service.add_approver(identity, new)?;
    let Some(added) = find(&listed, &command.name) else {
        return Ok(CommandOutcome::Failed);
    };
    if command.json {
        return print_object(added);
    }
    let done = match is_known {
        true => "may approve unattended",
        false => "added",
    };
    print_line(&format!("{}: {done}", visible_line(&added.name)))?;
    if let Some(fingerprint) = &added.fingerprint {
        print_line(&format!("fingerprint: {fingerprint}"))?;
    }
    let of_file = |one: &&ApproverEntry| one.private_key == "file";
    if !is_known && listed.approvers.iter().filter(of_file).count() > 1 {
        eprint_line(
            "warning: several keys on this machine have no passphrase, so anyone who can read its files can decide as \
             each of these approvers",
        )?;
    }
    Ok(CommandOutcome::Done)
}

fn remove(
    service: &Service,
    identity: &Identity,
    name: &str,
    as_json: bool,
) -> anyhow::Result<CommandOutcome> {
    let listed = service.remove_approver(identity, name)?;
    match as_json {
        true => print_object(&listed),
        false => {
            print_line(&format!("{}: removed", visible_line(name)))?;
            Ok(CommandOutcome::Done)
        }
    }
}

fn delegate(
    service: &Service,
    identity: &Identity,
    command: &ApproversDelegate,
) -> anyhow::Result<CommandOutcome> {
    let until: Timestamp = time_or_duration(&command.until, service.now())
        .map_err(|error| ServiceError::invalid("invalid", error.to_string()))?;
    let approver = approver(service, identity, &command.approver)?;
    let listed = service.delegate_approvals(&approver, &command.to, until)?;
    match command.json {
        true => print_object(&listed),
        false => {
            print_line(&format!(
                "{}: decides for {} until {until}",
                visible_line(&command.to),
                approver.principal()
            ))?;
            Ok(CommandOutcome::Done)
        }
    }
}

/// The approver who decides, with their key. The passphrase is read from the file, or asked for at the terminal.
pub(crate) fn approver(
    service: &Service,
    identity: &Identity,
    options: &ApproverOptions,
) -> anyhow::Result<Identity> {
    let own = identity.principal().as_str();
    let name = options.name.as_deref().unwrap_or(own);
    let passphrase = match (
        &options.passphrase_file,
        service.key_protection(identity, name)?,
    ) {
        (Some(file), _) => Some(read_passphrase(file)?),
        (None, Some(KeyProtection::Passphrase)) if is_terminal() => {
            let prompt = format!("Passphrase of the approver {}:", visible_line(name));
            Some(
                Password::new(&prompt)
                    .without_confirmation()
                    .with_display_mode(PasswordDisplayMode::Hidden)
                    .prompt()
                    .map_err(not_typed)?,
            )
        }
        (None, _) => None,
    };
    Ok(service.unlock_approver(identity, name, passphrase.as_deref())?)
}

/// Asks for the passphrase of a new key; `None` if it shall have none.
fn new_passphrase() -> anyhow::Result<Option<String>> {
    let typed = Password::new("Passphrase for the new key (empty for none):")
        .with_display_mode(PasswordDisplayMode::Hidden)
        .with_custom_confirmation_message("Again:")
        .prompt()
        .map_err(not_typed)?;
    Ok(Some(typed).filter(|typed| !typed.is_empty()))
}

fn not_typed(error: InquireError) -> anyhow::Error {
    match error {
        InquireError::OperationCanceled | InquireError::OperationInterrupted => {
            ServiceError::denied("passphrase", "no passphrase was typed").into()
        }
        other => other.into(),
    }
}

/// The first line of a file.
fn read_passphrase(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the passphrase in `{}`", file.display()))
        .map_err(|error| ServiceError::invalid("passphrase", format!("{error:#}")))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn is_terminal() -> bool {
    io::stdin().is_terminal() && is_interactive()
}

fn find<'l>(listed: &'l ApproverSummary, name: &str) -> Option<&'l ApproverEntry> {
    let mut approvers = listed.approvers.iter();
    approvers.find(|approver| approver.name.to_lowercase() == name.to_lowercase())
}

fn private_key(approver: &ApproverEntry) -> &'static str {
    match (approver.private_key, approver.key) {
        ("file", _) => "here",
        ("passphrase", _) => "here, with a passphrase",
        (_, Some(_)) => "elsewhere",
        (_, None) => "none",
    }
}

fn print_object(value: &impl Serialize) -> anyhow::Result<CommandOutcome> {
    print_json(&format!("{}\n", serde_json::to_string(value)?))?;
    Ok(CommandOutcome::Done)
}
