//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::modes::{self, Mode};

/// The options of the command line.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) era: SpokenEras,
    /// The initial version of its definitions and behaviour.
    pub(crate) version: u64,
    /// The number of calls after which it switches from version 1 to version 2.
    pub(crate) turn: Option<u64>,
    /// Whether it sends no notification of the switch.
    pub(crate) is_silent: bool,
    pub(crate) ttl: Duration,
    pub(crate) delay: Duration,
    pub(crate) claims: String,
    /// The target of the references and links that it sends.
    pub(crate) url: String,
    pub(crate) effects: Option<PathBuf>,
    pub(crate) seen: Option<PathBuf>,
    count: Option<u64>,
    megabytes: Option<u64>,
}

/// The protocol eras that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpokenEras {
    Legacy,
    Modern,
    Both,
}

impl Options {
    /// The count or depth, with a default.
    pub(crate) fn count_or(&self, default: u64) -> u64 {
        self.count.unwrap_or(default)
    }

    /// The number of bytes, with a default in megabytes.
    pub(crate) fn bytes_or(&self, megabytes: u64) -> u64 {
        self.megabytes.unwrap_or(megabytes) * 1_000_000
    }

    /// Reads the arguments after the program's name.
    pub(crate) fn read(arguments: &[String]) -> Result<Self, String> {
        let Some((mode, rest)) = arguments.split_first() else {
            return Err("the first argument is the mode; --help lists all modes".to_owned());
        };
        let mode = modes::by_name(mode).ok_or_else(|| format!("there is no mode `{mode}`"))?;
        let mut options = Self {
            mode,
            era: SpokenEras::Legacy,
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
                "--modern" => options.era = SpokenEras::Modern,
                "--both" => options.era = SpokenEras::Both,
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

An MCP server over standard input and output with one kind of misbehaviour, for tests of clients.
It speaks 2025-11-25 by default, and is harmless: the effects of its tools are lines in a file.

  --modern          speaks 2026-07-28 only
  --both            speaks the era of the first request
  --effects FILE    appends a line for each effect of its tools:
                    {\"tool\": NAME, \"arguments\": OBJECT}
  --seen FILE       appends a line for each event: {\"seen\": WORD, ...}, where WORD is one of
                    started, grandchild (both with pid), connected, listed, called, cancelled, replied,
                    input_closed
  --version 1|2     the version of its definitions and behaviour
  --turn N          switches from version 1 to version 2 after N calls, and sends list_changed
  --silently        does not send list_changed
  --ttl MS          the TTL of the list of tools (modern only)
  --claims NAME     the name in its serverInfo
  --url URL         the target of the $refs, links and pages that it sends
  --count N         a count or depth
  --megabytes N     a size
  --delay MS        a delay
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
