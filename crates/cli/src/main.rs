//! The `windlass` program: parses the arguments, runs one command, and maps its outcome to the exit code.

mod ab;
mod agent;
mod approvals;
mod approvers;
mod arguments;
mod audit;
mod batch;
mod bind;
mod chat;
mod check;
mod completions;
mod config;
mod doctor;
mod ending;
mod envelope;
mod eval;
mod format;
mod gaps;
mod holds;
mod hook;
mod init;
mod intent;
mod interrupt;
mod legal_hold;
mod library;
mod live;
mod log;
mod mcp;
mod memory;
mod models;
mod moments;
mod paste;
mod plan;
mod playbook;
mod plural;
mod policy;
mod program;
mod prompt;
mod rendered;
mod report;
mod run;
mod runs;
mod schema;
#[cfg(feature = "server")]
mod serve;
mod signals;
mod source;
mod stop;
mod table;
mod tasks;
mod terminal;
mod token;
mod tools;
mod trace;
mod trust;
mod undo;
mod usage;
mod webhooks;
mod worker;

use std::ffi::OsStr;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use anstream::{AutoStream, ColorChoice};
use arguments::{Arguments, Color, Command};
use program::Program;
use windlass_spec::text::{TextUse, is_clean};

/// The exit code for wrong usage.
const USAGE: u8 = 2;

/// The outcome of a command, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// The command succeeded.
    Done,
    /// The input is invalid, or the command failed.
    Failed,
    /// The exit code of a run.
    Code(u8),
}

impl From<CommandOutcome> for ExitCode {
    fn from(outcome: CommandOutcome) -> Self {
        match outcome {
            CommandOutcome::Done => Self::SUCCESS,
            CommandOutcome::Failed => Self::FAILURE,
            CommandOutcome::Code(code) => Self::from(code),
        }
    }
}

impl CommandOutcome {
    fn from_success(is_success: bool) -> Self {
        if is_success { Self::Done } else { Self::Failed }
    }
}

fn main() -> ExitCode {
    let outcome = run();
    prompt::restore_terminal();
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            print_error(&error);
            CommandOutcome::Failed.into()
        }
    }
}

/// Runs the command. Usage errors give the exit code 2.
fn run() -> anyhow::Result<CommandOutcome> {
    print_panics();
    // Programs that tools start must not read keys in the memory of this one. A system that does not allow that is old.
    let _ = windlass_spawn::protect_memory();
    let parsed = Arguments::command().try_get_matches();
    let parsed = parsed.and_then(|matches| {
        paste::remember(&matches);
        Arguments::from_arg_matches(&matches)
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return Ok(print_usage(&error.format(&mut Arguments::command()))?),
    };
    match arguments.color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
    if let Err(error) = log::start(&arguments.log, arguments.color) {
        terminal::eprint_line(&format!("error: {error}"))?;
        return Ok(CommandOutcome::Code(USAGE));
    }
    let reporter = report::Reporter::new(arguments.color);
    let program = Program::new(arguments.configuration);
    match arguments.command {
        Command::Check(command) => check::run(&program, &command, &reporter),
        Command::Fmt(command) => format::run(&command, &reporter),
        Command::Schema(command) => schema::run(&command, &reporter),
        Command::Envelope(command) => envelope::run(&command),
        Command::Bind(command) => bind::run(&program, &command, &reporter),
        Command::Library(command) => library::run(&command, &reporter),
        Command::Run(command) => run::run(&program, &command, &reporter),
        Command::Chat(command) => chat::run(&program, &command, &reporter),
        Command::Runs(command) => runs::run(&program, &command),
        Command::Worker(command) => worker::run(&program, &command),
        #[cfg(feature = "server")]
        Command::Serve(command) => serve::run(&program, &command),
        Command::Hook(command) => hook::run(&program, &command),
        Command::Stop(command) => stop::stop(&program, &command),
        Command::Start(command) => stop::start(&program, &command),
        Command::Token(command) => token::run(&program, &command),
        Command::Webhooks(command) => webhooks::run(&program, &command),
        #[cfg(feature = "server")]
        Command::Openapi => serve::print_openapi(),
        Command::Plan(command) => plan::run(&program, &command, &reporter),
        Command::Trace(command) => trace::run(&program, &command),
        Command::Audit(command) => audit::run(&program, &command),
        Command::LegalHold(command) => legal_hold::run(&program, &command),
        Command::Usage(command) => usage::run(&program, &command),
        Command::Ab(command) => ab::run(&program, &command, &reporter),
        Command::Approvals(command) => approvals::run(&program, &command),
        Command::Approvers(command) => approvers::run(&program, &command),
        Command::Holds(command) => holds::run(&program, &command),
        Command::Policy(command) => policy::run(&program, &command, &reporter),
        Command::Tools(command) => tools::run(&program, &command, &reporter),
        Command::Agent(command) => agent::run(&command, &reporter),
        Command::Intent(command) => intent::run(&program, &command, &reporter),
        Command::Gaps(command) => gaps::run(&program, &command, &reporter),
        Command::Mcp(command) => mcp::run(&program, &command, &reporter),
        Command::Memory(command) => memory::run(&program, &command),
        Command::Playbook(command) => playbook::run(&program, &command, &reporter),
        Command::Models(command) => models::run(&program, &command),
        Command::Config(command) => config::run(&program, &command, &reporter),
        Command::Init(command) => init::run(&program, &command),
        Command::Trust(command) => trust::run(&program, &command),
        Command::Doctor(command) => doctor::run(&program, &command, &reporter),
        Command::Eval(command) => eval::run(&program, &command),
        Command::Completions(command) => completions::run(&command),
    }
}

/// Prints why a command failed.
fn print_error(error: &anyhow::Error) {
    let _ = terminal::eprint_line(&format!("error: {}", describe_error(error)));
}

/// An error with its causes. A cause that an error before it quotes is not repeated.
pub(crate) fn describe_error(error: &anyhow::Error) -> String {
    let mut described = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if described.is_empty() {
            described = cause;
        } else if !described.contains(cause.trim_end()) {
            described = format!("{described}: {cause}");
        }
    }
    described
}

/// Prints help, the version or a usage error, which quotes the arguments.
fn print_usage(error: &clap::Error) -> io::Result<CommandOutcome> {
    let is_clean = |text: &OsStr| {
        text.to_str()
            .is_some_and(|text| is_clean(text, TextUse::Display))
    };
    let has_clean_variables = || {
        std::env::vars_os()
            .filter(|(name, _)| name.to_string_lossy().starts_with("WINDLASS_"))
            .all(|(_, value)| is_clean(&value))
    };
    let rendered = error.render();
    let is_colored = match error.use_stderr() {
        true => AutoStream::choice(&io::stderr()),
        false => AutoStream::choice(&io::stdout()),
    } != ColorChoice::Never;
    // Colours only if no argument or variable can contain an escape sequence.
    let are_arguments_clean = std::env::args_os().all(|argument| is_clean(&argument));
    let text = match is_colored && are_arguments_clean && has_clean_variables() {
        true => rendered.ansi().to_string(),
        false => rendered.to_string(),
    };
    match error.use_stderr() {
        true => terminal::eprint_styled(&text)?,
        false => terminal::print_help(&text)?,
    }
    Ok(CommandOutcome::Code(
        u8::try_from(error.exit_code()).unwrap_or(USAGE),
    ))
}

/// Escapes panic messages like all output, because they may quote anything.
fn print_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        let _ = terminal::eprint_line(&panic.to_string());
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            let _ = terminal::eprint_line(&trace.to_string());
        }
    }));
}
