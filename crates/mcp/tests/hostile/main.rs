//! `windlass-mcp-hostile`: an MCP server that does one thing wrong, chosen by its first argument, so that
//! tests can see what a client lets it do. It speaks raw JSON-RPC lines and shares no code with the client
//! it is used against: a mistake in one cannot hide in the other.

mod bombs;
mod calls;
mod definitions;
mod floods;
mod modes;
mod options;
mod questions;
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

/// The first argument of a grandchild, which does nothing but be there.
const LINGER: &str = "linger";

/// How long what should not stay does if nobody ends it: longer than any test, not for ever.
const LINGERS: Duration = Duration::from_secs(300);

/// Set once TERM is ignored: that is inherited by what is started in one's stead.
const IS_DEAF: &str = "WINDLASS_MCP_HOSTILE_IS_DEAF";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--help" | "-h") => {
            let _ = std::io::stdout().write_all(options::help().as_bytes());
            return ExitCode::SUCCESS;
        }
        Some(LINGER) => {
            thread::sleep(LINGERS);
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
        thread::sleep(LINGERS);
    }
    // Calls that are still under way do not keep it.
    std::process::exit(0)
}

/// What has to happen before the first message.
fn prepare(options: &Options, arguments: &[String]) -> std::io::Result<()> {
    let program = env::current_exe()?;
    if options.mode == Mode::Stays && env::var_os(IS_DEAF).is_none() {
        // Signals are ignored by way of a shell: without `unsafe` there is no other.
        return Err(Command::new("/bin/sh")
            .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
            .arg(program)
            .args(arguments)
            .env(IS_DEAF, "1")
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
        // Its output is ours: a client that waits for the end of that waits for the grandchild.
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
        // One write, so that lines of two processes do not mix.
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
