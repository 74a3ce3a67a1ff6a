//! Logging: spans and events of all crates on standard error, off by default. Lines are escaped like all
//! output, and secrets of the environment are redacted.
//!
//! With the format `json`, every line on standard error is a JSON object, also those of the program itself.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::Value;
use tracing::dispatcher;
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use windlass_service::types::Redactor;
use windlass_spec::text::{TextUse, escape_json};

use super::arguments::{Color, LogOptions};
use super::report::is_colored;
use super::terminal::eprint_log;

/// The environment variables of the options.
const FILTER_VARIABLE: &str = "WINDLASS_LOG";
const FORMAT_VARIABLE: &str = "WINDLASS_LOG_FORMAT";

/// The prefix of the crates of this program. Logs of other crates may contain any content that is sent, so
/// they are shown only at the level `trace`.
const OWN_TARGETS: &str = "windlass";

/// Selects the spans and events that are logged: a level for each target prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFilter {
    /// For targets without a level of their own.
    default: LevelFilter,
    levels: BTreeMap<String, LevelFilter>,
}

impl LogFilter {
    /// Logs nothing.
    const fn off() -> Self {
        Self {
            default: LevelFilter::OFF,
            levels: BTreeMap::new(),
        }
    }
}

impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut filter = Self::off();
        for directive in text.split(',').map(str::trim) {
            let (target, level) = match directive.split_once('=') {
                Some((target, level)) => (Some(target.trim()), level.trim()),
                // As usual, a target alone means everything of it.
                None if directive.starts_with(OWN_TARGETS) => (Some(directive), "trace"),
                None => (None, directive),
            };
            let is_level = ["off", "error", "warn", "info", "debug", "trace"]
                .iter()
                .any(|known| level.eq_ignore_ascii_case(known));
            let level = level.parse().ok().filter(|_| is_level).ok_or_else(|| {
                format!(
                    "`{directive}` is not a level (`off`, `error`, `warn`, `info`, `debug`, `trace`) and \
                     not `TARGET=LEVEL`, such as `windlass_mcp=debug`"
                )
            })?;
            match target {
                Some("") => return Err(format!("`{directive}` has no target before `=`")),
                Some(target) => drop(filter.levels.insert(target.to_owned(), level)),
                None => filter.default = level,
            }
        }
        Ok(filter)
    }
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Starts logging, if the options or their variables ask for it.
///
/// # Errors
/// If the value of a variable is invalid.
pub(crate) fn start(options: &LogOptions, color: Color) -> Result<(), String> {
    let filter = match &options.log {
        Some(filter) => Some(filter.clone()),
        None => variable(FILTER_VARIABLE, LogFilter::from_str)?,
    };
    let format = match options.log_format {
        Some(format) => Some(format),
        None => variable(FORMAT_VARIABLE, |text| LogFormat::from_str(text, true))?,
    };
    let format = format.unwrap_or(LogFormat::Text);
    let filter = match (filter, format) {
        (None, LogFormat::Text) => return Ok(()),
        // Nothing is logged, but the lines of the program itself are JSON.
        (None, LogFormat::Json) => LogFilter::off(),
        (Some(filter), _) => filter,
    };
    install(&filter, format, is_colored(color));
    Ok(())
}

/// Whether every line on standard error is a JSON object, for programs: the lines of the log are.
pub(crate) fn is_json() -> bool {
    dispatcher::get_default(|log| {
        let output = log.downcast_ref::<LogOutput>();
        output.is_some_and(|output| output.format == LogFormat::Json)
    })
}

/// Parses a variable that is set and not empty.
fn variable<T>(name: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => {
            let value = read(&text).map_err(|error| format!("{name}: {error}"))?;
            Ok(Some(value))
        }
        Ok(_) | Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn install(filter: &LogFilter, format: LogFormat, is_colored: bool) {
    let targets = Targets::new()
        .with_default(filter.default)
        .with_targets(filter.levels.clone());
    let highest = filter.levels.values().copied().max();
    let highest = highest.map_or(filter.default, |highest| highest.max(filter.default));
    let filter = filter_fn(move |metadata| {
        let level = match metadata.target().starts_with(OWN_TARGETS) {
            true => *metadata.level(),
            false => LevelFilter::TRACE.into_level().unwrap_or(*metadata.level()),
        };
        targets.would_enable(metadata.target(), &level)
    })
    .with_max_level_hint(highest);
    let output = LogOutput {
        redactor: Arc::new(Redactor::new(secrets())),
        format,
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(output)
        .with_span_events(FmtSpan::CLOSE);
    let layer = match format {
        LogFormat::Text => layer.with_ansi(is_colored).boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    // This is the only subscriber of the program.
    let _ = tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .try_init();
}

/// The secrets of the environment, plain and as they appear in quoted log fields.
fn secrets() -> impl Iterator<Item = String> {
    windlass_runtime::secrets().flat_map(|secret| {
        let quoted: String = secret.escape_debug().collect();
        [secret, quoted]
    })
}

/// The output of the log.
#[derive(Clone)]
struct LogOutput {
    redactor: Arc<Redactor>,
    format: LogFormat,
}

impl LogOutput {
    /// Formats an event: one line, without secrets and hidden characters.
    fn line(&self, event: &str) -> String {
        let event = event.trim_end_matches('\n');
        match self.format {
            LogFormat::Text => self.redactor.text(event).replace('\n', "\\n"),
            LogFormat::Json => match serde_json::from_str(event) {
                Ok(mut value) => {
                    self.redact(&mut value);
                    escape_json(&value.to_string(), TextUse::Display).into_owned()
                }
                Err(_) => self.redactor.text(event),
            },
        }
    }

    /// Redacts secrets within the values of JSON, so that it stays JSON. Events nest a few levels.
    fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redactor.text(text),
            Value::Number(number)
                if self.redactor.text(&number.to_string()) != number.to_string() =>
            {
                *value = Value::String(self.redactor.text(&value.to_string()));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(entries) => entries.values_mut().for_each(|entry| self.redact(entry)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl<'a> MakeWriter<'a> for LogOutput {
    type Writer = LogWriter<'a>;

    fn make_writer(&'a self) -> LogWriter<'a> {
        LogWriter(self)
    }
}

/// Writes events. Each event is one `write`.
struct LogWriter<'a>(&'a LogOutput);

impl Write for LogWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let event = String::from_utf8_lossy(bytes);
        eprint_log(&format!("{}\n", self.0.line(&event)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_parses_levels_and_targets() {
        let filter: LogFilter = "warn, windlass_mcp=DEBUG,windlass_runtime::driver=trace"
            .parse()
            .unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(filter.default, LevelFilter::WARN);
        assert_eq!(filter.levels.len(), 2);
        assert_eq!(filter.levels["windlass_mcp"], LevelFilter::DEBUG);
        let filter = LogFilter::from_str("windlass_mcp").unwrap();
        assert_eq!(filter.levels["windlass_mcp"], LevelFilter::TRACE);
        for invalid in ["", "debugg", "windlass=loud", "=debug", "info,", "5"] {
            assert!(LogFilter::from_str(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn secrets_are_redacted_and_a_line_stays_one_line() {
        let output = |format| LogOutput {
            redactor: Arc::new(Redactor::new(["123456", "se\"cret"])),
            format,
        };
        let text = output(LogFormat::Text).line("INFO a=123456\nINFO forged\n");
        assert_eq!(text, "INFO a=[redacted]\\nINFO forged");
        let event = json!({"a": "x se\"cret\u{202e}", "n": 91_234_567, "ok": 5}).to_string();
        let line = output(LogFormat::Json).line(&event);
        assert!(line.is_ascii(), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap_or_default();
        assert_eq!(
            read,
            json!({"a": "x [redacted]\u{202e}", "n": "9[redacted]7", "ok": 5})
        );
    }
}
