//! What can be typed. Meaning is given to it in the commands' own files.

mod ab;
mod approvals;
mod config;
mod crew;
mod gaps;
mod holds;
mod mcp;
mod memory;
mod plan;
mod playbook;
mod policy;
mod runs;
mod tools;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use windlass_model::Dialect;
use windlass_tools::BindingMode;

use crate::log::{LogFilter, LogFormat};

pub(crate) use ab::{Ab, AbCommand, AbReport, AbRun};
pub(crate) use approvals::{Approvals, ApprovalsCommand, Approve, OneQuestion, Reject, Respond};
pub(crate) use config::{Config, ConfigCommand, Doctor, Init};
pub(crate) use crew::{ConfigurationOptions, CrewOptions, Limits};
pub(crate) use gaps::{Gaps, GapsCheck, GapsCommand, GapsList, GapsPropose, GapsShow};
pub(crate) use holds::{Holds, HoldsCommand, OneHold};
pub(crate) use mcp::{
    Mcp, McpAdd, McpCall, McpCommand, McpImport, McpInspect, McpList, McpLogin, McpPins, McpRemove,
};
pub(crate) use memory::{
    Memory, MemoryAdd, MemoryCommand, MemoryExport, MemoryForget, MemoryImport, MemoryList,
    MemoryPlain, MemorySearch,
};
pub(crate) use plan::{
    Graph, Plan, PlanCheck, PlanCommand, PlanEdit, PlanList, PlanMark, PlanRun, PlanShow,
};
pub(crate) use playbook::{
    OneStrategy, Playbook, PlaybookCommand, PlaybookDiff, PlaybookExport, PlaybookImport,
    PlaybookList, PlaybookRevert, PlaybookShow, PlaybookStats,
};
pub(crate) use policy::{Policy, PolicyCheck, PolicyCommand, PolicyExplain, PolicyReplay};
pub(crate) use runs::{OneRun, RunsList};
pub(crate) use tools::{
    Argument, Executions, OneTool, Tools, ToolsCall, ToolsCommand, ToolsDescribe, ToolsFind,
    ToolsList, ToolsResults, ToolsStats, WhichTools,
};
pub(crate) use worker::Worker;

const EXIT_CODES: &str = "Exit code: 0 done, 1 failed or out of turns, 2 wrong usage, 3 denied, 4 a person is \
                          needed, 5 out of time, 6 rate limited, 130 interrupted.";

/// Declare tool-calling agents as text, check them, and bind them to implementations.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// When to colour what is written to the terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,

    #[command(flatten)]
    pub(crate) log: LogOptions,

    #[command(flatten)]
    pub(crate) configuration: ConfigurationOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is logged on standard error, for all commands alike.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogOptions {
    /// Log spans and events: a level (`info`, `debug`, `trace`), or levels of targets such as
    /// `warn,windlass_mcp=debug`. Without it, `WINDLASS_LOG`; nothing if that is not set.
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<LogFilter>,

    /// How a line of the log looks. Without it, `WINDLASS_LOG_FORMAT`, or text.
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check agent files and point at every mistake.
    Check(Check),
    /// Rewrite gram files in the canonical layout.
    Fmt(Fmt),
    /// Print the JSON Schema of the tools a file declares.
    Schema(Schema),
    /// Bind the tools a file declares to the implementations in a library.
    Bind(Bind),
    /// Run an agent on a task and print its answer.
    Run(RunTask),
    /// Talk with an agent, line by line.
    Chat(Chat),
    /// See where runs stand, cancel them, and go on with those that were stopped.
    Runs(Runs),
    /// Resume every run that can go on, until it is stopped.
    Worker(Worker),
    /// Carry out plans: tasks that wait for each other. See how far they are, and change them.
    Plan(Plan),
    /// See how runs came about.
    Trace(Trace),
    /// Do the same tasks with two libraries and say which is better, or read out a split.
    #[command(after_help = ab::HELP)]
    Ab(Ab),
    /// Decide about what agents want to do.
    Approvals(Approvals),
    /// Undo calls that are held for a while before they run, or let them go.
    Holds(Holds),
    /// Check policies, and see what they decide and why.
    Policy(Policy),
    /// See the tools of libraries, and call one by hand.
    Tools(Tools),
    /// See what agents could not do for want of a tool, and what tools would do it.
    Gaps(Gaps),
    /// Use the tools of MCP servers: add servers, see what they offer, accept what changed.
    Mcp(Mcp),
    /// See and tend what agents remember: add, search, list, forget, import, export.
    Memory(Memory),
    /// See what runs taught: strategies for tasks, with their evidence. Pin, disable, revert them.
    Playbook(Playbook),
    /// List the models that can be asked from here.
    Models(Models),
    /// See what the configuration says, and what is wrong with it.
    Config(Config),
    /// Write a small project that runs, to begin with.
    Init(Init),
    /// Check everything an agent needs here, and say how to mend what is wrong.
    Doctor(Doctor),
    /// Measure how well a model does, on labelled data.
    Eval(Eval),
    /// Print a script that completes commands and options in a shell.
    Completions(Completions),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if every file is valid, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Check {
    /// Files to check; `-` reads standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object a line for each file instead of text.
    #[arg(long)]
    pub(crate) json: bool,

    /// Check only that the text is valid gram, whatever it is about.
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

    /// Change nothing; list the files that are not in the canonical layout.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The file that declares the tools; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print only this tool's schema; without it, one object with a schema for every tool.
    #[arg(value_name = "TOOL")]
    pub(crate) tool: Option<String>,

    /// Print what the tool returns instead of what it takes.
    #[arg(long)]
    pub(crate) returns: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 if every tool is bound, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Bind {
    /// The file that declares the tools; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The library with the implementations: a built-in one, or a library file (`.toml`).
    #[arg(long, value_name = "NAME")]
    pub(crate) library: String,

    /// Bind only the tools of this agent; without it, all tools of the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// How closely an implementation must match its specification.
    #[arg(long, value_enum, default_value_t = Mode::Exact)]
    pub(crate) mode: Mode,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Name, description and schema are equal.
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

    /// What to do; without it, standard input is read.
    #[arg(value_name = "TASK")]
    pub(crate) task: Option<String>,

    /// Do every task of this file: JSON Lines, each with a `task_id` and a `description`. Prints one
    /// output a line, in the order in which they are done.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "json", "jsonl"])]
    pub(crate) tasks: Option<PathBuf>,

    /// How many tasks to work on at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "tasks",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) jobs: u16,

    /// Do not do again what an earlier run of the same tasks has done, and go on with what it left.
    #[arg(long, requires = "tasks")]
    pub(crate) resume: bool,

    /// Do the tasks in an order drawn with this number, instead of the file's. With the same number, and as
    /// many at the same time, the same is learned from them.
    #[arg(long, value_name = "NUMBER", requires = "tasks")]
    pub(crate) seed: Option<u64>,

    /// The field of work, by which strategies are found.
    #[arg(long, value_name = "NAME", conflicts_with = "tasks", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) domain: Option<String>,

    /// Only these of the agent's tools, separated by commas.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "tasks"
    )]
    pub(crate) available_tools: Option<Vec<String>>,

    /// Print one JSON object with the run, its end and the response.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print every event as a line of JSON while it happens, then the same object as `--json`.
    #[arg(long, conflicts_with = "json")]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) crew: CrewOptions,

    #[command(flatten)]
    pub(crate) limits: Limits,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "What is typed is a task for the agent, with what was said before; a backslash at the end of \
                  a line goes on in the next one. /help lists the commands. Answers go to standard output, \
                  everything else to standard error.\n\n\
                  Exit code: 0 when the conversation is over, 1 if it could not begin or go on, 2 for wrong \
                  usage, 130 interrupted while waiting for input that is not typed."
)]
pub(crate) struct Chat {
    /// The file that declares the agent.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Take up the latest conversation with this agent, or the one of this id.
    #[arg(long, value_name = "ID", require_equals = true, num_args = 0..=1)]
    pub(crate) resume: Option<Option<String>>,

    #[command(flatten)]
    pub(crate) crew: CrewOptions,

    #[command(flatten)]
    pub(crate) limits: Limits,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: RunsCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the newest first, with where each stands.
    #[command(after_help = runs::LIST_HELP)]
    List(RunsList),
    /// Say where a run stands and what it waits for.
    #[command(after_help = runs::SHOW_HELP)]
    Show(OneRun),
    /// Stop a run for good.
    #[command(after_help = runs::CANCEL_HELP)]
    Cancel(OneRun),
    /// Go on with a run where it stopped, whether it was interrupted or its process died.
    #[command(after_help = EXIT_CODES)]
    Resume {
        /// The run, or the start of its id if that is enough.
        run: String,

        /// Another library than it was begun with.
        #[arg(long, value_name = "NAME")]
        library: Option<String>,

        /// Another model than it was begun with: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,

        /// Print one JSON object with the run, its end and the response.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// List runs, the newest first.
    List {
        /// At most so many.
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Draw the steps of a run.
    Show {
        /// The run, or the start of its id if that is enough.
        run: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the journal of a run as JSON Lines, in order.
    Export {
        /// The run, or the start of its id if that is enough.
        run: String,
    },
    /// Remove what was said and done in runs that ended long ago; decisions stay.
    Purge {
        /// How many days ago a run must have ended.
        #[arg(long, default_value_t = 7)]
        days: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Models {
    /// Print one JSON object a line.
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
    /// Does it choose the right tool and fill its arguments?
    Select(EvalSelect),
    /// Is it known how reversible tools are?
    #[command(
        after_help = "Each line of the data is an object {id, name, description, input_schema, expected: \
                      {risk: reversible | reversible_with_delay | irreversible}}."
    )]
    Risk {
        /// The labelled tools, one JSON object a line.
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Is it noticed when no tool at hand does what a task asks?
    Gap(EvalGap),
    /// Is it recognised what texts ask for, and which ask for nothing known?
    #[command(
        after_help = "Each line of the data is an object {text, intent, split}. Texts with the split `train` are \
                      the examples, all others are scored; the intent `oos` is out of scope."
    )]
    Intent {
        /// The labelled texts, one JSON object a line.
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
                  expected: {gap: true | false}}. The figures are from cross-validation: what is scored was \
                  not learned from, and neither was its task or its right tool."
)]
pub(crate) struct EvalGap {
    /// The labelled tasks, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,

    /// Write what was judged wrongly to this file, one JSON object a line, worst first.
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
                  Exit code: 0 if every case was put to the model, 1 otherwise, 2 for wrong usage."
)]
pub(crate) struct EvalSelect {
    /// The labelled calls, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,

    /// The model: `reflex`, `Provider/id`, `scripted:FILE` or `replay:FILE`.
    #[arg(long, value_name = "MODEL", default_value = "reflex")]
    pub(crate) model: String,

    /// Where the model's server is, if not at the provider's usual address.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How the model is asked for calls: native, structured or auto.
    #[arg(long, default_value = "auto", value_parser = clap::value_parser!(Dialect))]
    pub(crate) dialect: Dialect,

    /// Only so many cases, from the start.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,

    /// Write what went wrong to this file, one JSON object a line.
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
