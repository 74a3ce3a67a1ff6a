//! The arguments of `windlass token`.

use clap::{Args, Subcommand};
use windlass_service::Scope;

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it. It cannot be shown again.
    Create(TokenCreate),
    /// List the tokens.
    List(TokenList),
    /// Revoke a token, at once and in all processes.
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Scopes: read (list and show), run (start, resume and cancel runs), approve (decide), operate (change \
                  memory, playbooks and plans), audit (read everything; reads are recorded), admin (everything). Every \
                  scope includes reading."
)]
pub(crate) struct TokenCreate {
    /// What the token is called, such as the program that uses it.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// What its holder may do, separated by commas.
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    pub(crate) scopes: Vec<Scope>,

    /// How long it is valid: a number with `s`, `m`, `h` or `d`, or `never`.
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    pub(crate) expires: Lifetime,

    /// The principal that its holder acts as. Default: the name.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    /// The tenant of its holder. Default: yours.
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,

    /// Print the token with its id as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenList {
    /// Print one JSON object per token and line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    /// The id of the token, as `windlass token list` shows it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long a token is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// This many seconds.
    Seconds(u32),
    /// Until it is revoked.
    Unlimited,
}

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime::Unlimited);
    }
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|seconds| *seconds > 0)
    });
    let seconds = seconds.ok_or("write it as in `30m`, `12h`, `90d` or `never`")?;
    Ok(Lifetime::Seconds(seconds))
}
