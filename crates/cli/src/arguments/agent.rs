//! The options that commands share: the agent, its libraries, its model, its limits, and the
//! configuration.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use windlass_core::run::Settings;
use windlass_model::Dialect;
use windlass_service::RunOptions;
use windlass_spec::Money;

use super::Mode;

#[derive(Debug, Args)]
pub(crate) struct AgentCommand {
    #[command(subcommand)]
    pub(crate) command: AgentSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentSubcommand {
    /// Print the agents and tools of a file, as gram text in the canonical layout or as JSON. Both forms can be
    /// used wherever an agent file is read.
    #[command(after_help = "Exit code: 0 done, 1 the file is not valid, 2 wrong usage.")]
    Show(AgentShow),
}

#[derive(Debug, Args)]
pub(crate) struct AgentShow {
    /// The agent file, as gram text or JSON; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print only this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Print one JSON object instead of gram text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The configuration options of every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigurationOptions {
    /// The project's configuration. Default: the nearest `windlass.toml`, here or above.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Set a key of the configuration, such as `gate.undo_window_seconds=5`. Can be repeated.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Trust the project of the working directory for this command, whatever is in it. Also:
    /// `WINDLASS_TRUST_PROJECT=1`.
    #[arg(long, global = true)]
    pub(crate) trust_project: bool,

    /// Accept agent files, libraries, policies and programs that changed since the run began or that a tool of an
    /// agent wrote, without asking.
    #[arg(long, global = true)]
    pub(crate) accept_changes: bool,
}

/// Where runs, approvals and memory are stored.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DataDirectory {
    /// The data directory. Default: `WINDLASS_DATA`, else `data_directory` of the configuration, else the
    /// user's.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    data: Option<PathBuf>,
}

impl DataDirectory {
    /// The directory, if the option is set.
    pub(crate) fn as_deref(&self) -> Option<&Path> {
        self.data.as_deref()
    }
}

/// The options that select an agent, its libraries and its model.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentOptions {
    /// The agent of the file. Optional if the file has one top-level agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The library with the implementations: a built-in one, or a library file (`.toml`). Can be
    /// repeated. Default: the libraries of the configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Vec<String>,

    /// How closely an implementation must match its specification. Default: `binding.mode` of the
    /// configuration, else exact.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,

    /// Use this model instead of the agent's: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// The URL of the model's server. Default: the provider's.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How the model returns calls: native, structured or auto.
    #[arg(long, default_value = "auto", value_parser = clap::value_parser!(Dialect))]
    pub(crate) dialect: Dialect,

    /// The policy file. Default: the configuration's, else `policy.cedar` in the data directory, else the
    /// built-in policies.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// The environment of the run: development, staging, production, or another that the
    /// configuration declares.
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,

    /// Neither use nor learn strategies.
    #[arg(long)]
    pub(crate) no_learning: bool,

    /// Use strategies but learn none. The playbook does not change.
    #[arg(long, conflicts_with = "no_learning")]
    pub(crate) frozen: bool,

    /// Record the requests to the model and its responses in this file, for `--model replay:FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl AgentOptions {
    /// Converts them to options of a run.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            agent: self.agent.clone(),
            library: self.library.clone(),
            mode: self.mode.map(Into::into),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            dialect: self.dialect,
            policy: self.policy.clone(),
            environment: self.environment.clone(),
            no_learning: self.no_learning,
            frozen: self.frozen,
            record: self.record.clone(),
            ..RunOptions::default()
        }
    }
}

/// The limits of a run.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// The maximum number of turns. Default: 10.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// The maximum number of calls, including those of sub-agents and plan tasks. Default: 50, and
    /// unlimited for `windlass plan run`.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_calls: Option<u32>,

    /// The maximum duration of the run in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// The most tokens of models that the run may use up, with the runs that work for it. A lower budget of the
    /// configuration applies too.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,

    /// The most US dollars that the run may cost, such as 0.25. A lower budget of the configuration applies too.
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_dollars: Option<Money>,

    /// Do not let the model ask questions of its own. Calls that need approval still ask.
    #[arg(long)]
    pub(crate) no_questions: bool,

    /// Let the model make plans: several steps at once, run in the order of their dependencies.
    #[arg(long)]
    pub(crate) plans: bool,
}

impl Limits {
    /// Converts them to settings of a run.
    pub(crate) fn settings(&self) -> Settings {
        let defaults = Settings::default();
        Settings {
            max_iterations: self.max_iterations.unwrap_or(defaults.max_iterations),
            max_calls: self.max_calls.unwrap_or(defaults.max_calls),
            max_seconds: self.timeout,
            max_tokens: self.max_tokens,
            max_microdollars: self.max_dollars,
            ask_people: !self.no_questions,
            plans: self.plans,
            ..defaults
        }
    }
}

/// The options of a command that runs an agent.
#[derive(Debug, Args)]
pub(crate) struct AgentRun {
    #[command(flatten)]
    pub(crate) agent: AgentOptions,

    #[command(flatten)]
    pub(crate) limits: Limits,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
