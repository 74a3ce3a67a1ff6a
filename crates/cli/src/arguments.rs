//! The command line: commands and options, as `clap` parses them. Each command is implemented in its own file.

mod ab;
mod agent;
mod approvals;
mod approvers;
mod audit;
mod config;
mod gaps;
mod holds;
mod hook;
mod intent;
mod legal_hold;
mod mcp;
mod memory;
mod plan;
mod playbook;
mod policy;
mod runs;
#[cfg(feature = "server")]
mod serve;
mod stop;
mod token;
mod tools;
mod trust;
mod usage;
mod webhooks;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass_model::Dialect;
use windlass_tools::BindingMode;

use crate::log::{LogFilter, LogFormat};

pub(crate) use ab::{Ab, AbCommand, AbReport, AbRun};
pub(crate) use agent::{
    AgentCommand, AgentRun, AgentShow, AgentSubcommand, ConfigurationOptions, DataDirectory,
};
pub(crate) use approvals::{
    Approvals, ApprovalsCommand, Approve, Decider, OneQuestion, Reject, Respond,
};
pub(crate) use approvers::{
    ApproverOptions, Approvers, ApproversAdd, ApproversCommand, ApproversDelegate,
};
pub(crate) use audit::{Audit, AuditCommand, AuditExport, AuditVerify};
pub(crate) use config::{Config, ConfigCommand, Doctor, Init};
pub(crate) use gaps::{Gaps, GapsCheck, GapsCommand, GapsList, GapsPropose, GapsShow};
pub(crate) use holds::{Holds, HoldsCommand, OneHold};
pub(crate) use hook::{Hook, HookProgram};
pub(crate) use intent::Intent;
pub(crate) use legal_hold::{LegalHold, LegalHoldCommand};
pub(crate) use mcp::{
    Mcp, McpAdd, McpCall, McpCommand, McpImport, McpInspect, McpList, McpLogin, McpPins, McpRemove,
};
pub(crate) use memory::{
    Memory, MemoryAdd, MemoryCommand, MemoryExport, MemoryForget, MemoryImport, MemoryList,
    MemoryPlain, MemorySearch,
};
pub(crate) use plan::{
    Graph, Plan, PlanCommand, PlanEdit, PlanList, PlanMark, PlanRun, PlanShow, PlanSource,
};
pub(crate) use playbook::{
    OneStrategy, Playbook, PlaybookCommand, PlaybookDiff, PlaybookExport, PlaybookImport,
    PlaybookList, PlaybookRevert, PlaybookShow, PlaybookStats,
};
pub(crate) use policy::{Policy, PolicyCheck, PolicyCommand, PolicyExplain, PolicyReplay};
pub(crate) use runs::{OneRun, RunsList, RunsVerify, WhichRun};
#[cfg(feature = "server")]
pub(crate) use serve::Serve;
pub(crate) use stop::{Start, Stop, StopOptions};
pub(crate) use token::{Lifetime, Token, TokenCommand, TokenCreate};
pub(crate) use tools::{
    Argument, Executions, OneTool, Tools, ToolsCall, ToolsCommand, ToolsDescribe, ToolsFind,
    ToolsList, ToolsResults, ToolsStats, WhichTools,
};
pub(crate) use trust::Trust;
pub(crate) use usage::Usage;
pub(crate) use webhooks::{Webhooks, WebhooksCommand, WebhooksList, WebhooksRetry, WebhooksShow};
pub(crate) use worker::Worker;

const EXIT_CODES: &str = "Exit code: 0 done, 1 failed or out of turns, 2 wrong usage, 3 denied, 4 waiting for an \
                          approval or answer, 5 out of time, 6 rate limited, 130 interrupted.";

/// Declare tool-calling agents as text, check them, and bind them to implementations.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// When to colour the output.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[command(flatten)]
    pub(crate) log: LogOptions,

    #[command(flatten)]
    pub(crate) configuration: ConfigurationOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct LibraryFile {
    #[command(subcommand)]
    pub(crate) command: LibraryFileCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryFileCommand {
    /// Write a library file for the tools of an agent file: each with its signature and a command to replace.
    #[command(after_help = "Exit code: 0 done, 1 failed or the file exists, 2 for wrong usage.")]
    New {
        /// The file that declares the tools.
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// The library file. Default: the name of the agent file with `.toml`. `-` writes to standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The logging options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogOptions {
    /// Log spans and events: a level (`info`, `debug`, `trace`), or levels of targets such as
    /// `warn,windlass_mcp=debug`. Default: `WINDLASS_LOG`, else no logging.
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<LogFilter>,

    /// The format of log lines. Default: `WINDLASS_LOG_FORMAT`, else text.
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR or CLICOLOR=0 is set.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check agent files, library files and configurations, and report every error.
    Check(Check),
    /// Rewrite gram files in the canonical layout.
    Fmt(Fmt),
    /// Print the JSON Schema of the tools a file declares, or of a public model.
    Schema(Schema),
    /// Check what a tool answers.
    Envelope(Envelope),
    /// Bind the tools a file declares to the implementations in a library.
    Bind(Bind),
    /// Create library files, which bind tools to commands and HTTP endpoints.
    Library(LibraryFile),
    /// Run an agent on a task and print its answer.
    Run(RunTask),
    /// Chat with an agent.
    Chat(Chat),
    /// Show the state of runs, cancel them, and resume interrupted ones.
    Runs(Runs),
    /// Resume every run that can continue, until interrupted.
    Worker(Worker),
    /// Answer the hooks of a coding agent, so that its own tools pass the gate.
    Hook(Hook),
    /// Stop work at once, in every process of the store, until `windlass start`.
    Stop(Stop),
    /// Start again what was stopped.
    Start(Start),
    /// Serve the HTTP API, and resume every run that can continue.
    #[cfg(feature = "server")]
    Serve(Serve),
    /// Create, list and revoke the tokens of the HTTP API.
    Token(Token),
    /// Show who is notified of events, and send events again.
    Webhooks(Webhooks),
    /// Print the OpenAPI document of the HTTP API.
    #[cfg(feature = "server")]
    Openapi,
    /// Run plans (tasks with dependencies), show their progress, and edit them.
    Plan(Plan),
    /// Show the recorded steps of runs.
    Trace(Trace),
    /// Write and check signed files of what was decided and done.
    Audit(Audit),
    /// Keep everything of runs, whatever the retention is.
    LegalHold(LegalHold),
    /// Show the tokens that models used up, and what models and tools cost.
    Usage(Usage),
    /// Compare two libraries on the same tasks, or report on variants in use.
    #[command(after_help = ab::HELP)]
    Ab(Ab),
    /// Approve, reject or answer what agents ask for.
    Approvals(Approvals),
    /// Manage who may approve, and the keys they sign with.
    Approvers(Approvers),
    /// Undo or release calls that are held before they run.
    Holds(Holds),
    /// Check policies, and explain what they decide and why.
    Policy(Policy),
    /// List the tools of libraries, and call one directly.
    Tools(Tools),
    /// Show agents, as gram text or JSON.
    Agent(AgentCommand),
    /// Show what a text asks for: its intent, the tools that suit it, and what has to be known.
    Intent(Intent),
    /// List missing capabilities, and propose tools that would provide them.
    Gaps(Gaps),
    /// Manage MCP servers: add them, inspect their tools, accept changed definitions.
    Mcp(Mcp),
    /// Manage the memory of agents: add, search, list, forget, import, export.
    Memory(Memory),
    /// Show the strategies learned from runs, and pin, disable or revert them.
    Playbook(Playbook),
    /// List the available models.
    Models(Models),
    /// Show and check the configuration.
    Config(Config),
    /// Create a small project that runs.
    Init(Init),
    /// Show what a project would be allowed, and trust it.
    Trust(Trust),
    /// Check the local setup, and print how to fix each problem.
    Doctor(Doctor),
    /// Evaluate a model on labelled data.
    Eval(Eval),
    /// Print a shell completion script.
    Completions(Completions),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if every file is valid, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Check {
    /// Files to check; `-` reads standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object per file and line instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    /// Check only that the text is valid gram, not that it declares valid agents.
    #[arg(long)]
    pub(crate) syntax_only: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if every file is (now) in the canonical layout, 1 otherwise, 2 for wrong usage."
)]
pub(crate) struct Fmt {
    /// Files to format in place; `-` formats standard input to standard output.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// List the files that are not in the canonical layout, and change nothing.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The file that declares the tools; `-` reads standard input.
    #[arg(value_name = "FILE", required_unless_present = "model")]
    pub(crate) file: Option<PathBuf>,

    /// Print only this tool's schema. Default: one object with a schema for every tool.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Print the schema of a public model, such as `ToolResponse`, with examples.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "returns"])]
    pub(crate) model: Option<String>,

    /// Print the schema of the result instead of the parameters.
    #[arg(long)]
    pub(crate) returns: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Envelope {
    #[command(subcommand)]
    pub(crate) command: EnvelopeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvelopeCommand {
    /// Print an answer in the present shape, and what the tool should write differently.
    Check(EnvelopeCheck),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if the answer is in the present shape, 1 otherwise, 2 for wrong usage."
)]
pub(crate) struct EnvelopeCheck {
    /// The file with the answer as JSON; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The tool that answered, for an answer that does not name it.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// Print one JSON object with the answer and the notices.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if every tool is bound, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Bind {
    /// The file that declares the tools; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The library with the implementations: a built-in one, or a library file (`.toml`). Can be repeated.
    /// Default: the libraries of the configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) library: Vec<String>,

    /// Bind only the tools of this agent. Default: all tools of the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// How closely an implementation must match its specification. Default: `binding.mode` of the
    /// configuration, else exact.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The schemas are equal.
    Exact,
    /// The implementation accepts everything the specification allows.
    Compatible,
}

impl From<Mode> for BindingMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exact => Self::Exact,
            Mode::Compatible => Self::Compatible,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunTask {
    /// The file that declares the agent.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The task. Default: read from standard input.
    #[arg(value_name = "TASK")]
    pub(crate) task: Option<String>,

    /// Run every task of this file: JSON Lines, each with a `task_id` and a `description`. Prints one
    /// output per line, in the order in which the tasks end.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "json", "jsonl"])]
    pub(crate) tasks: Option<PathBuf>,

    /// How many tasks run at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "tasks",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) jobs: u16,

    /// Skip the tasks that an earlier command completed, and resume the ones that it left unfinished.
    #[arg(long, requires = "tasks")]
    pub(crate) resume: bool,

    /// Shuffle the tasks with this seed, instead of the file's order. The same seed and the same `--jobs`
    /// make learning reproducible.
    #[arg(long, value_name = "NUMBER", requires = "tasks")]
    pub(crate) seed: Option<u64>,

    /// The domain of the task, which selects the playbook.
    #[arg(long, value_name = "NAME", conflicts_with = "tasks", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) domain: Option<String>,

    /// Offer only these of the agent's tools, separated by commas.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "tasks"
    )]
    pub(crate) available_tools: Option<Vec<String>>,

    /// Print one JSON object with the run, its outcome and the response.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print every event as a line of JSON when it happens, then the same object as `--json`.
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) run: AgentRun,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each line is a task for the agent, which sees the conversation so far. A backslash at the end \
                  of a line continues it on the next one. /help lists the commands. Answers go to standard output, \
                  everything else to standard error.\n\n\
                  Exit code: 0 when the conversation is over, 1 if it could not start or continue, 2 for wrong \
                  usage, 130 interrupted while waiting for input that is not typed."
)]
pub(crate) struct Chat {
    /// The file that declares the agent.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Resume the latest conversation with this agent, or the one with this id.
    #[arg(long, value_name = "ID", require_equals = true, num_args = 0..=1)]
    pub(crate) resume: Option<Option<String>>,

    #[command(flatten)]
    pub(crate) run: AgentRun,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: RunsCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs with their states, the newest first.
    #[command(after_help = runs::LIST_HELP)]
    List(RunsList),
    /// Show the state of a run and what it waits for.
    #[command(after_help = runs::SHOW_HELP)]
    Show(OneRun),
    /// Cancel a run. It cannot be resumed.
    #[command(after_help = runs::CANCEL_HELP)]
    Cancel(OneRun),
    /// Check that the journals of runs were not changed outside Windlass.
    #[command(after_help = runs::VERIFY_HELP)]
    Verify(RunsVerify),
    /// Resume a run that was interrupted or whose process died.
    #[command(after_help = EXIT_CODES)]
    Resume {
        #[command(flatten)]
        run: WhichRun,

        /// Use this library instead of the one the run started with.
        #[arg(long, value_name = "NAME")]
        library: Option<String>,

        /// Use this model instead of the one the run started with: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,

        /// Print one JSON object with the run, its outcome and the response.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// List runs, the newest first.
    List {
        /// The maximum number of runs.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show the steps of a run.
    Show {
        #[command(flatten)]
        run: WhichRun,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the journal of a run as JSON Lines, in order.
    Export {
        #[command(flatten)]
        run: WhichRun,
    },
    /// Delete the content of runs that ended long ago. Decisions are kept.
    Purge {
        /// Only runs that ended more than this many days ago.
        #[arg(long, default_value_t = 7)]
        days: u32,
        /// Delete nothing, and list the runs whose content would be deleted.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Models {
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    #[command(subcommand)]
    pub(crate) command: EvalCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Score how well a model chooses tools and fills their arguments.
    Select(EvalSelect),
    /// Score how well the risk of tools is recognised.
    #[command(
        after_help = "Each line of the data is an object {id, name, description, input_schema, expected: \
                      {risk: reversible | reversible_with_delay | irreversible}}."
    )]
    Risk {
        /// The labelled tools, one JSON object per line.
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Score how well missing tools are detected.
    Gap(EvalGap),
    /// Score how well intents are recognised, out-of-scope texts included.
    #[command(
        after_help = "Each line of the data is an object {text, intent, split}. Texts with the split `train` are \
                      the examples, all others are scored; the intent `oos` is out of scope."
    )]
    Intent {
        /// The labelled texts, one JSON object per line.
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each line of the data is an object {id, task, tools: [{name, description, input_schema}], \
                  expected: {gap: true | false}}. The figures are from cross-validation: the \
                  training data contains neither a scored case nor its task or its correct tool."
)]
pub(crate) struct EvalGap {
    /// The labelled tasks, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,

    /// Write the misjudged cases to this file, one JSON object per line, worst first.
    #[arg(long, value_name = "FILE")]
    pub(crate) failures: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each line of the data is an object {id, task, tools: [{name, description, input_schema}], \
                  expected: {calls: [{name, arguments: {parameter: [accepted values]}}]}}; `\"\"` among the \
                  accepted values means that the argument may be left out.\n\n\
                  Exit code: 0 if the model was asked about every case, 1 otherwise, 2 for wrong usage."
)]
pub(crate) struct EvalSelect {
    /// The labelled calls, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,

    /// The model: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
    #[arg(long, value_name = "MODEL", default_value = "reflex")]
    pub(crate) model: String,

    /// The URL of the model's server. Default: the provider's.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How the model returns calls: native, structured or auto.
    #[arg(long, default_value = "auto", value_parser = clap::value_parser!(Dialect))]
    pub(crate) dialect: Dialect,

    /// Use only the first cases, up to this number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,

    /// Write the failed cases to this file, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub(crate) failures: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
