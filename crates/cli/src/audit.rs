//! `windlass audit`: writes and checks signed files of evidence.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_service::types::PublicKey;
use windlass_service::{AuditQuery, check_audit_file};

use super::CommandOutcome;
use super::arguments::{Audit, AuditCommand, AuditExport, AuditVerify};
use super::moments::time_or_age;
use super::plural::counted;
use super::program::{Program, ended};
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Audit) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        AuditCommand::Export(options) => export(program, command, options),
        AuditCommand::Verify(options) => ended(verify(options), options.json),
        AuditCommand::Key { json } => key(program, command, *json),
    }
}

fn export(
    program: &Program,
    command: &Audit,
    options: &AuditExport,
) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let now = service.now();
    let query = AuditQuery {
        from: time_or_age(&options.from, now)?,
        to: match &options.to {
            Some(text) => time_or_age(text, now)?,
            None => now,
        },
        format: options.format.into(),
    };
    let exported = service.export_audit(&program.identity()?, &query)?;
    match &options.output {
        Some(path) => {
            windlass_files::write(path, &exported.text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            let records = usize::try_from(exported.records).unwrap_or(usize::MAX);
            print_line(&format!(
                "{} written to {}",
                counted(records, "record", "records"),
                path.display()
            ))?;
        }
        None => print_json(&exported.text)?,
    }
    if exported.alterations > 0 {
        eprint_line(&format!(
            "error: the journal was changed outside Windlass in {} places, which the file reports\n\
             hint: `windlass runs verify` lists them",
            exported.alterations
        ))?;
    }
    Ok(CommandOutcome::from_success(exported.alterations == 0))
}

fn verify(options: &AuditVerify) -> anyhow::Result<CommandOutcome> {
    let text = fs::read_to_string(&options.file)
        .with_context(|| format!("cannot read `{}`", options.file.display()))?;
    let expected = options.key.as_deref().map(read_key).transpose()?;
    let checked = check_audit_file(&text, expected)?;
    let (checkpoint, fingerprint) = (&checked.checkpoint, checked.key.fingerprint());
    if options.json {
        let printed = json!({
            "checkpoint": checkpoint,
            "fingerprint": fingerprint,
            "is_expected_key": checked.is_expected_key,
        });
        print_json(&format!("{printed}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let records = usize::try_from(checkpoint.records).unwrap_or(usize::MAX);
    print_line(&format!(
        "unchanged: {} of the tenant `{}`, from {} to {}, signed at {}",
        counted(records, "record", "records"),
        checkpoint.tenant,
        checkpoint.from,
        checkpoint.to,
        checkpoint.at
    ))?;
    match checked.is_expected_key {
        true => print_line(&format!("signed with the given key ({fingerprint})"))?,
        false => print_line(&format!(
            "signed with the key {fingerprint}; compare it with the one that `windlass audit key` prints at the \
             installation"
        ))?,
    }
    if checkpoint.alterations > 0 {
        print_line(&format!(
            "the file reports {} where the journal was changed outside Windlass",
            counted(
                usize::try_from(checkpoint.alterations).unwrap_or(usize::MAX),
                "place",
                "places"
            )
        ))?;
    }
    Ok(CommandOutcome::Done)
}

/// The public key that an argument is, or that is in the file of this name.
fn read_key(argument: &str) -> anyhow::Result<PublicKey> {
    if let Some(key) = PublicKey::parse(argument) {
        return Ok(key);
    }
    let text = fs::read_to_string(Path::new(argument))
        .with_context(|| format!("`{argument}` is neither a public key nor a file with one"))?;
    PublicKey::parse(&text).with_context(|| format!("`{argument}` does not hold a public key"))
}

fn key(program: &Program, command: &Audit, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let key = service.audit_key(&program.identity()?)?;
    match as_json {
        true => print_json(&format!(
            "{}\n",
            json!({"key": key.to_string(), "fingerprint": key.fingerprint()})
        ))?,
        false => {
            print_line(&key.to_string())?;
            eprint_line(&format!("fingerprint: {}", key.fingerprint()))?;
        }
    }
    Ok(CommandOutcome::Done)
}
