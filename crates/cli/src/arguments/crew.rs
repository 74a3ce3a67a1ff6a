//! What can be typed about who works: the agent, its implementations, its model, what it may use up,
//! and the configuration all of it is under.

use std::path::PathBuf;

use clap::Args;
use windlass_core::run::Settings;
use windlass_model::Dialect;
use windlass_service::RunOptions;

use super::Mode;

/// What is said about the configuration, for all commands alike.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigurationOptions {
    /// The project's configuration, instead of the nearest `windlass.toml` here or above.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Set a key of the configuration, such as `gate.undo_window_seconds=5`. Can be repeated.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// Which agent works, with which implementations and which model.
#[derive(Debug, Clone, Args)]
pub(crate) struct CrewOptions {
    /// Which agent of the file; not needed if only one is nobody's sub-agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The library with the implementations: a built-in one, or a library file (`.toml`). Can be
    /// repeated. Without it, those that the configuration names.
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Vec<String>,

    /// How closely an implementation must match its specification.
    #[arg(long, value_enum, default_value_t = Mode::Exact)]
    pub(crate) mode: Mode,

    /// The model instead of the agent's: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Where the model's server is, if not at the provider's usual address.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How the model is asked for calls: native, structured or auto.
    #[arg(long, default_value = "auto", value_parser = clap::value_parser!(Dialect))]
    pub(crate) dialect: Dialect,

    /// The policies for calls, instead of those of the configuration, `policy.cedar` in the data
    /// directory or the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// Where the run takes place: development, staging, production, or another that the
    /// configuration declares.
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,

    /// Neither recall strategies nor learn any.
    #[arg(long)]
    pub(crate) no_learning: bool,

    /// Recall strategies and learn none: the playbook stays as it is, for measuring.
    #[arg(long, conflicts_with = "no_learning")]
    pub(crate) frozen: bool,

    /// Record what is said to and by the model in this file, for `--model replay:FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl CrewOptions {
    /// As options of a run.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            agent: self.agent.clone(),
            library: self.library.clone(),
            mode: self.mode.into(),
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

/// How much a run may use up.
#[derive(Debug, Args)]
pub(crate) struct Limits {
    /// How many turns the agent has (10 if not said).
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// How many calls it may make, those of its sub-agents and of the tasks of its plans included (50 if
    /// not said; as many as it takes for a plan that a person wrote).
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_calls: Option<u32>,

    /// How many seconds the run may take.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Do not let the model put questions to people by itself. Calls that need leave ask all the same.
    #[arg(long)]
    pub(crate) no_questions: bool,

    /// Let the model make plans: several steps at once, carried out in the order they need.
    #[arg(long)]
    pub(crate) plans: bool,
}

impl Limits {
    /// As settings of a run.
    pub(crate) fn settings(&self) -> Settings {
        let defaults = Settings::default();
        Settings {
            max_iterations: self.max_iterations.unwrap_or(defaults.max_iterations),
            max_calls: self.max_calls.unwrap_or(defaults.max_calls),
            max_seconds: self.timeout,
            ask_people: !self.no_questions,
            plans: self.plans,
            ..defaults
        }
    }
}
