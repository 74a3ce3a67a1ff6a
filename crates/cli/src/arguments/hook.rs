//! The arguments of `windlass hook`.

use clap::{Args, ValueEnum};

use super::agent::DataDirectory;

/// A program that calls a hook before and after it uses a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookProgram {
    ClaudeCode,
    Codex,
}

impl HookProgram {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "The program starts this command for each call of its tools, with one JSON object on standard input. \
                  `--print` prints the settings that make it do so.\n\n\
                  The call is judged in the data directory of this command. With WINDLASS_SERVER and WINDLASS_TOKEN, it is \
                  judged by that server.\n\n\
                  Exit code: 0 answered, 2 the call could not be judged and is refused, 1 an outcome could not be reported."
)]
pub(crate) struct Hook {
    /// The program.
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: HookProgram,

    /// Print the settings of the program that use this hook, and where they belong.
    #[arg(long)]
    pub(crate) print: bool,

    /// How many seconds to wait for an approval, or for the end of an undo window, before the call is refused.
    #[arg(long, value_name = "SECONDS", default_value_t = 50, value_parser = clap::value_parser!(u16).range(..=3_000))]
    pub(crate) wait: u16,

    /// Answer `allow` for calls that are allowed, so that Claude Code does not ask by its own rules.
    #[arg(long)]
    pub(crate) allow: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
