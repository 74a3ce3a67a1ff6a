//! The `windlass` program. This file maps what happened to an exit code and does nothing else.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(outcome) => outcome.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            cli::print_error(&error);
            cli::Outcome::Failed.into()
        }
    }
}

/// Whoever reads our output has seen enough, as in `windlass schema FILE | head`. Not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
