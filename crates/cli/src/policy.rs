//! `windlass policy`: checks policies and explains their decisions. It runs and changes nothing.

mod check;
mod explain;
mod replay;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_policy::{DEFAULT_POLICIES, Policies, PolicyError, Problem};
use windlass_service::{Identity, PolicySource, Service};
use windlass_spec::{AgentFile, ToolSpecification};

use super::CommandOutcome;
use super::arguments::{Policy, PolicyCommand};
use super::program::{Program, ended};
use super::report::Reporter;
use super::source::Source;
use super::source::read_agent_file;
use super::terminal::{eprint_line, print_content};

pub(super) fn run(
    program: &Program,
    command: &Policy,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        PolicyCommand::Check(command) => check::run(program, command, reporter),
        PolicyCommand::Show => {
            print_content(DEFAULT_POLICIES)?;
            Ok(CommandOutcome::Done)
        }
        PolicyCommand::Explain(command) => {
            ended(explain::run(program, command, reporter), command.json)
        }
        PolicyCommand::Replay(command) => replay::run(program, command, reporter),
    }
}

/// The service, the identity and the reporter of a policy command.
struct PolicySession<'r> {
    service: Service,
    identity: Identity,
    reporter: &'r Reporter,
}

impl<'r> PolicySession<'r> {
    fn new(program: &Program, data: Option<&Path>, reporter: &'r Reporter) -> anyhow::Result<Self> {
        Ok(Self {
            service: program.service(data),
            identity: program.identity()?,
            reporter,
        })
    }

    /// Reads a policy file; without one, the policies of new runs. `None` if it cannot be read, which is
    /// reported.
    fn read(&self, path: Option<&Path>) -> anyhow::Result<Option<PolicySource>> {
        let Some(path) = path else {
            return Ok(Some(self.service.active_policies(&self.identity)?));
        };
        let (source, problem) = Source::read(path);
        if let Some(problem) = problem {
            self.reporter.show(&source, &[problem])?;
            return Ok(None);
        }
        let Source { name, text } = source;
        Ok(Some(PolicySource { name, text }))
    }

    /// Loads policies and checks them against the tools.
    fn load(
        &self,
        policies: &PolicySource,
        tools: &[Arc<ToolSpecification>],
    ) -> anyhow::Result<Result<Policies, Vec<PolicyError>>> {
        Ok(self
            .service
            .load_policies(&self.identity, policies, tools)?)
    }

    /// Loads policies; `None` if they have errors, which are reported.
    fn load_or_report(
        &self,
        policies: &PolicySource,
        tools: &[Arc<ToolSpecification>],
    ) -> anyhow::Result<Option<Policies>> {
        match self.load(policies, tools)? {
            Ok(policies) => Ok(Some(policies)),
            Err(errors) => {
                report_errors(policies, &errors)?;
                Ok(None)
            }
        }
    }
}

/// Prints errors with their locations.
fn report_errors(policies: &PolicySource, errors: &[PolicyError]) -> anyhow::Result<()> {
    for error in errors {
        let separator = if error.place.is_some() { ":" } else { ": " };
        eprint_line(&format!("{}{separator}{error}", policies.name))?;
    }
    Ok(())
}

/// Reads agent files. `None` if one has errors, which are reported.
fn agent_files(paths: &[PathBuf], reporter: &Reporter) -> anyhow::Result<Option<Vec<AgentFile>>> {
    let files = paths.iter().map(|path| read_agent_file(path, reporter));
    let files: Vec<Option<AgentFile>> = files.collect::<anyhow::Result<_>>()?;
    Ok(files.into_iter().collect())
}

fn tools_of(files: &[AgentFile]) -> Vec<Arc<ToolSpecification>> {
    files
        .iter()
        .flat_map(|file| file.tools().to_vec())
        .collect()
}

/// An error of a policy file as JSON.
fn as_object(error: &PolicyError) -> Value {
    json!({
        "line": error.place.map(|place| place.line),
        "column": error.place.map(|place| place.column),
        "rule": error.rule,
        "problem": problem_name(&error.problem),
        "message": error.problem.to_string(),
        "nearest": error.nearest,
        "hint": error.hint,
    })
}

/// The stable name of a problem, for JSON.
fn problem_name(problem: &Problem) -> &'static str {
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
