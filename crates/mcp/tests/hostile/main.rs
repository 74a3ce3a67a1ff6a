//! `windlass-mcp-hostile`: an MCP server with one kind of misbehaviour, chosen by its first argument, for
//! tests of clients. It speaks raw JSON-RPC lines and shares no code with the client, so that a bug in one
//! cannot hide a bug in the other.

mod calls;
mod definitions;
mod elicitations;
mod floods;
mod malicious_schemas;
mod modes;
mod options;
mod results;
mod session;

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use modes::Mode;
use options::Options;
use session::Session;

/// The first argument of a grandchild, which only sleeps.
const LINGER: &str = "linger";

/// How long a process that should have ended stays if it is not killed: longer than any test.
const LINGER_TIME: Duration = Duration::from_secs(300);

/// Set once SIGTERM is ignored, which the replacing process inherits.
const IGNORES_SIGNALS: &str = "WINDLASS_MCP_HOSTILE_IS_DEAF";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--help" | "-h") => {
            let _ = std::io::stdout().write_all(options::help().as_bytes());
            return ExitCode::SUCCESS;
        }
        Some(LINGER) => {
            thread::sleep(LINGER_TIME);
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let options = match Options::read(&arguments) {
        Ok(options) => options,
        Err(problem) => return failure(&problem, 2),
    };
    if let Err(problem) = prepare(&options, &arguments) {
        return failure(&problem.to_string(), 1);
    }
    if options.mode == Mode::DiesAtStart {
        return failure(
            "\u{1b}]0;owned\u{7}\u{1b}[31mfatal\u{1b}[0m: no licence found for user root",
            3,
        );
    }
    let stays = options.mode == Mode::Stays;
    Arc::new(Session::new(options)).serve();
    if stays {
        thread::sleep(LINGER_TIME);
    }
    // Running calls do not delay the exit.
    std::process::exit(0)
}

/// The setup before the first message.
fn prepare(options: &Options, arguments: &[String]) -> std::io::Result<()> {
    let program = env::current_exe()?;
    if options.mode == Mode::Stays && env::var_os(IGNORES_SIGNALS).is_none() {
        // A shell ignores the signals: there is no other way without `unsafe`.
        return Err(Command::new("/bin/sh")
            .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
            .arg(program)
            .args(arguments)
            .env(IGNORES_SIGNALS, "1")
            .exec());
    }
    note(
        options.seen.as_deref(),
        &json!({ "seen": "started", "pid": std::process::id() }),
    );
    let (has_grandchild, escapes) = match options.mode {
        Mode::Stays | Mode::Grandchild => (true, false),
        Mode::GrandchildEscapes => (true, true),
        _ => (false, false),
    };
    if has_grandchild {
        let mut lingering = Command::new(program);
        // It inherits the output: a client that waits for the end of the output waits for the grandchild.
        lingering.arg(LINGER).stdin(Stdio::null());
        if escapes {
            lingering.process_group(0);
        }
        let pid = lingering.spawn()?.id();
        note(
            options.seen.as_deref(),
            &json!({ "seen": "grandchild", "pid": pid }),
        );
    }
    match options.mode {
        Mode::SlowStart => thread::sleep(options.delay),
        Mode::FloodErrors => {
            let mut errors = std::io::stderr().lock();
            for number in 0..options.count_or(100_000) {
                writeln!(errors, "warning {number}: \u{1b}[2Jnothing is the matter")?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Appends a line to a file that a test reads.
fn note(file: Option<&Path>, line: &Value) {
    let Some(file) = file else { return };
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        // One write, so that lines of two processes are not mixed.
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    if let Err(error) = written {
        let _ = writeln!(std::io::stderr(), "{}: {error}", file.display());
        std::process::exit(1);
    }
}

fn failure(problem: &str, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {problem}");
    ExitCode::from(code)
}
