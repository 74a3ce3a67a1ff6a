//! The exit code of a benchmark.

use std::process::ExitCode;

/// 0 if all goals are met, 1 if one is missed, 2 after an error, which is printed.
pub fn code(result: anyhow::Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
