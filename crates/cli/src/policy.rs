//! `windlass policy`: checks policies, and says what they decide and why. Nothing runs, and nothing is
//! changed.

mod check;
mod explain;
mod replay;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_policy::{DEFAULT_POLICIES, Policies, PolicyError, Problem};
use windlass_runtime::Read;
use windlass_spec::{AgentFile, ToolSpecification};

use super::Outcome;
use super::arguments::{Policy, PolicyCommand};
use super::libraries::named_in;
use super::refusal::told;
use super::report::Reporter;
use super::schema::read_file;
use super::settings::{configured, files_for};
use super::source::Source;
use super::terminal::{complain, put_content};

pub(super) fn run(command: &Policy, reporter: &Reporter) -> anyhow::Result<Outcome> {
    match &command.command {
        PolicyCommand::Check(command) => check::run(command, reporter),
        PolicyCommand::Show => {
            put_content(DEFAULT_POLICIES)?;
            Ok(Outcome::Done)
        }
        PolicyCommand::Explain(command) => told(explain::run(command, reporter), command.json),
        PolicyCommand::Replay(command) => replay::run(command, reporter),
    }
}

/// Policies and where they come from.
struct PolicyText {
    /// The path as typed, or what stands for the built-in ones.
    name: String,
    text: String,
}

impl PolicyText {
    /// Reads a policy file; without one, the policies that hold then. `None` if it cannot be read, which
    /// was reported.
    fn read(path: Option<&Path>, reporter: &Reporter) -> anyhow::Result<Option<Self>> {
        let Some(path) = path else {
            // Those that runs from here are under.
            let (configured, _) = files_for(None, None)?.read(&Read::default())?;
            let name = configured.policy_file.as_ref().map(|file| file.display());
            return Ok(Some(Self {
                name: name.map_or("default policies".to_owned(), |name| name.to_string()),
                text: configured.policies,
            }));
        };
        let (source, problem) = Source::read(path);
        if let Some(problem) = problem {
            reporter.show(&source, &[problem])?;
            return Ok(None);
        }
        let Source { name, text } = source;
        Ok(Some(Self { name, text }))
    }

    /// The policies, checked against the tools.
    fn load(&self, tools: &[Arc<ToolSpecification>]) -> Result<Policies, Vec<PolicyError>> {
        // A policy may be about tools that none of the agents has.
        let others = match configured() {
            Ok(configured) => named_in(&self.text, &configured.configuration, tools),
            Err(_) => Vec::new(),
        };
        let known = tools.iter().chain(&others).map(Arc::as_ref);
        let mut loaded = Policies::load(&self.text, known);
        if let (Err(errors), true) = (&mut loaded, tools.is_empty()) {
            for error in errors {
                // A tool is not known, because none is.
                if matches!(error.problem, Problem::UnknownTool(_)) {
                    error.hint = Some(
                        "name the agent files that declare the tools with `--agent`".to_owned(),
                    );
                }
            }
        }
        loaded
    }

    /// The policies; `None` if something is wrong with them, which was reported.
    fn load_or_complain(
        &self,
        tools: &[Arc<ToolSpecification>],
    ) -> anyhow::Result<Option<Policies>> {
        match self.load(tools) {
            Ok(policies) => Ok(Some(policies)),
            Err(errors) => {
                self.complain(&errors)?;
                Ok(None)
            }
        }
    }

    /// Says what is wrong, each with its place.
    fn complain(&self, errors: &[PolicyError]) -> anyhow::Result<()> {
        for error in errors {
            let joint = if error.place.is_some() { ":" } else { ": " };
            complain(&format!("{}{joint}{error}", self.name))?;
        }
        Ok(())
    }
}

/// The agent files that were named. `None` if one has mistakes, which were reported.
fn agent_files(paths: &[PathBuf], reporter: &Reporter) -> anyhow::Result<Option<Vec<AgentFile>>> {
    let files = paths.iter().map(|path| read_file(path, reporter));
    let files: Vec<Option<AgentFile>> = files.collect::<anyhow::Result<_>>()?;
    Ok(files.into_iter().collect())
}

fn tools_of(files: &[AgentFile]) -> Vec<Arc<ToolSpecification>> {
    files
        .iter()
        .flat_map(|file| file.tools().to_vec())
        .collect()
}

/// What is wrong with a policy file, for programs.
fn as_object(error: &PolicyError) -> Value {
    json!({
        "line": error.place.map(|place| place.line),
        "column": error.place.map(|place| place.column),
        "rule": error.rule,
        "problem": word(&error.problem),
        "message": error.problem.to_string(),
        "nearest": error.nearest,
        "hint": error.hint,
    })
}

/// The word for a problem.
fn word(problem: &Problem) -> &'static str {
    match problem {
        Problem::Syntax(_) => "syntax",
        Problem::MissingId => "missing_id",
        Problem::DuplicateId { .. } => "duplicate_id",
        Problem::Template => "template",
        Problem::UnknownTool(_) => "unknown_tool",
        Problem::UnknownArgument { .. } => "unknown_argument",
        Problem::UnknownAttribute(_) => "unknown_attribute",
        Problem::UnknownEntityType(_) => "unknown_entity_type",
        Problem::MaybeAbsent(_) => "maybe_absent",
        Problem::UnknownWord { .. } => "unknown_word",
        Problem::WrongType(_) => "wrong_type",
        Problem::NeverApplies => "never_applies",
        Problem::UnknownAnnotation(_) => "unknown_annotation",
        Problem::UnknownSecurityLevel(_) => "unknown_security_level",
        Problem::UnknownExample(_) => "unknown_example",
        Problem::ExampleWithoutRule => "example_without_rule",
        Problem::ExampleNotJson(_) => "example_not_json",
        Problem::ExampleNotACall(_) => "example_not_a_call",
        Problem::ExampleFailed { .. } => "example_failed",
        Problem::ConflictingTools(_) => "conflicting_tools",
        Problem::ReservedToolName(_) => "reserved_tool_name",
        _ => "refused",
    }
}
