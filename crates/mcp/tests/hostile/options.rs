//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::modes::{self, Mode};

/// What the command line said.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) era: Speaks,
    /// Which version of its definitions and of itself it begins with.
    pub(crate) version: u64,
    /// After how many calls version 2 takes the place of version 1.
    pub(crate) turn: Option<u64>,
    /// Whether it tells when that happens.
    pub(crate) is_silent: bool,
    pub(crate) ttl: Duration,
    pub(crate) delay: Duration,
    pub(crate) claims: String,
    /// Where what it sends leads to.
    pub(crate) url: String,
    pub(crate) effects: Option<PathBuf>,
    pub(crate) seen: Option<PathBuf>,
    count: Option<u64>,
    megabytes: Option<u64>,
}

/// The eras of the protocol it answers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Legacy,
    Modern,
    Both,
}

impl Options {
    /// How many, or how deep, if nothing else was said.
    pub(crate) fn count_or(&self, default: u64) -> u64 {
        self.count.unwrap_or(default)
    }

    /// How many bytes, if nothing else than so many megabytes was said.
    pub(crate) fn bytes_or(&self, megabytes: u64) -> u64 {
        self.megabytes.unwrap_or(megabytes) * 1_000_000
    }

    /// Reads the arguments after the program's name.
    pub(crate) fn read(arguments: &[String]) -> Result<Self, String> {
        let Some((mode, rest)) = arguments.split_first() else {
            return Err("the first argument is what to do wrong; --help lists it".to_owned());
        };
        let mode = modes::by_name(mode).ok_or_else(|| format!("there is no mode `{mode}`"))?;
        let mut options = Self {
            mode,
            era: Speaks::Legacy,
            version: 1,
            turn: None,
            is_silent: false,
            ttl: Duration::ZERO,
            delay: Duration::from_secs(3),
            claims: "windlass-mcp-hostile".to_owned(),
            url: "http://127.0.0.1:9/hostile".to_owned(),
            effects: None,
            seen: None,
            count: None,
            megabytes: None,
        };
        let mut rest = rest.iter();
        while let Some(name) = rest.next() {
            let mut text = || {
                rest.next()
                    .ok_or_else(|| format!("{name} needs a value after it"))
            };
            let number = |text: &String| {
                text.parse::<u64>()
                    .map_err(|_| format!("{name} takes a number, not `{text}`"))
            };
            match name.as_str() {
                "--modern" => options.era = Speaks::Modern,
                "--both" => options.era = Speaks::Both,
                "--silently" => options.is_silent = true,
                "--version" => options.version = number(text()?)?,
                "--turn" => options.turn = Some(number(text()?)?),
                "--ttl" => options.ttl = Duration::from_millis(number(text()?)?),
                "--delay" => options.delay = Duration::from_millis(number(text()?)?),
                "--count" => options.count = Some(number(text()?)?),
                "--megabytes" => options.megabytes = Some(number(text()?)?),
                "--claims" => options.claims.clone_from(text()?),
                "--url" => options.url.clone_from(text()?),
                "--effects" => options.effects = Some(PathBuf::from(text()?)),
                "--seen" => options.seen = Some(PathBuf::from(text()?)),
                _ => return Err(format!("there is no option `{name}`")),
            }
        }
        Ok(options)
    }
}

/// The text of `--help`.
pub(crate) fn help() -> String {
    let mut help = "\
windlass-mcp-hostile MODE [OPTION]...

An MCP server over standard input and output that does one thing wrong, for tests of clients.
It speaks 2025-11-25 unless told otherwise, and is harmless: what its tools `do` is a line in a file.

  --modern          speaks 2026-07-28 only
  --both            speaks either, whichever it is asked for first
  --effects FILE    appends a line for each thing its tools really did:
                    {\"tool\": NAME, \"arguments\": OBJECT}
  --seen FILE       appends a line for what it noticed: {\"seen\": WORD, ...}, of which the words are
                    started, grandchild (both with pid), connected, listed, called, cancelled, replied,
                    input_closed
  --version 1|2     the version of its definitions and of what it does
  --turn N          goes from version 1 to version 2 after N calls, and says so with list_changed
  --silently        does not say so
  --ttl MS          how long the list of tools may be kept (modern only)
  --claims NAME     what it calls itself
  --url URL         where the $refs, links and pages in what it sends lead to
  --count N         how many, how deep
  --megabytes N     how large
  --delay MS        how slow
"
    .to_owned();
    let mut before = "";
    for (attack, _, name, about) in modes::ALL {
        if *attack != before {
            help.push_str(&format!("\n{attack}\n"));
            before = attack;
        }
        help.push_str(&format!("  {name:<22}{about}\n"));
    }
    help
}
