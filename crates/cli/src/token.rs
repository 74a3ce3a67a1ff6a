//! `windlass token`: creates, lists and revokes the tokens by which programs use the API.

use serde_json::json;
use windlass_service::types::Timestamp;
use windlass_service::{AccessToken, NewToken};

use super::CommandOutcome;
use super::arguments::{Lifetime, Token, TokenCommand, TokenCreate};
use super::program::{Program, ended};
use super::table::print_table;
use super::terminal::{eprint_line, print_json, print_line};

pub(super) fn run(program: &Program, command: &Token) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    match &command.command {
        TokenCommand::Create(create) => {
            let created = || {
                let created = service.create_token(&identity, new_token(create, service.now()))?;
                show_created(create, created.secret.reveal(), &created.token)
            };
            ended(created(), create.json)
        }
        TokenCommand::List(list) => {
            let listed = || show_list(&service.list_tokens(&identity)?, list.json);
            ended(listed(), list.json)
        }
        TokenCommand::Revoke(revoke) => {
            let revoked = || {
                let token = service.revoke_token(&identity, &revoke.id)?;
                match revoke.json {
                    true => print_json(&format!("{}\n", json!(token)))?,
                    false => print_line(&format!("revoked: {} ({})", token.id, token.name))?,
                }
                Ok(CommandOutcome::Done)
            };
            ended(revoked(), revoke.json)
        }
    }
}

fn new_token(create: &TokenCreate, now: Timestamp) -> NewToken {
    let after = |seconds: u32| {
        let later = now
            .as_microseconds()
            .saturating_add(i64::from(seconds) * 1_000_000);
        Timestamp::from_microseconds(later)
    };
    NewToken {
        name: create.name.clone(),
        scopes: create.scopes.clone(),
        expires_at: match create.expires {
            Lifetime::Seconds(seconds) => Some(after(seconds)),
            Lifetime::Unlimited => None,
        },
        principal: create.principal.clone(),
        tenant: create.tenant.clone(),
    }
}

fn show_created(
    create: &TokenCreate,
    secret: &str,
    token: &AccessToken,
) -> anyhow::Result<CommandOutcome> {
    if create.json {
        let mut object = json!(token);
        object["token"] = json!(secret);
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    print_line(secret)?;
    let until = match token.expires_at {
        Some(at) => format!("until {at}"),
        None => "until it is revoked".to_owned(),
    };
    eprint_line(&format!(
        "{}: acts as {} with {}, {until}\nThe token is not shown again. Revoke it with: windlass token revoke {}",
        token.id,
        token.principal,
        token.scopes.join(", "),
        token.id
    ))?;
    Ok(CommandOutcome::Done)
}

fn show_list(tokens: &[AccessToken], as_json: bool) -> anyhow::Result<CommandOutcome> {
    if as_json {
        for token in tokens {
            print_json(&format!("{}\n", json!(token)))?;
        }
        return Ok(CommandOutcome::Done);
    }
    if tokens.is_empty() {
        eprint_line(
            "there are no tokens\nhint: create one with `windlass token create --name NAME --scopes run`",
        )?;
        return Ok(CommandOutcome::Done);
    }
    let time = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    let rows: Vec<[String; 7]> = tokens
        .iter()
        .map(|token| {
            [
                token.id.clone(),
                token.name.clone(),
                token.state.as_str().to_owned(),
                token.principal.clone(),
                token.tenant.clone(),
                token.scopes.join(","),
                time(token.expires_at),
            ]
        })
        .collect();
    let headings = [
        "ID",
        "NAME",
        "STATE",
        "PRINCIPAL",
        "TENANT",
        "SCOPES",
        "EXPIRES",
    ];
    print_table(headings, &rows)?;
    Ok(CommandOutcome::Done)
}
