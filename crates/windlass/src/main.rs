//! The `windlass` program. This file maps what happened to an exit code and does nothing else.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            cli::print_error(&error);
            cli::Outcome::Failed.into()
        }
    }
}
