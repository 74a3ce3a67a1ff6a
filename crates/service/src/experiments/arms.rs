//! The two arms of an experiment: their libraries, the differences between them, and the digest of the
//! experiment's content.

use std::path::Path;

use serde::Serialize;
use serde_json::json;
use windlass_core::approval::Digest;
use windlass_learn::ab::Arm;
use windlass_spec::ToolName;
use windlass_tools::{Tool, ToolLibrary};

use super::ExperimentRequest;
use crate::assembly::{BoundAgent, DeclaredAgent};
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::options::RunOptions;
use crate::service::Service;

/// Disables the circuit breaker. All runs share it, so the failures of one arm would stop the calls of the
/// other.
const NO_BREAKER: &str = "breaker.failures=1000";

/// One arm of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExperimentArm {
    /// The name or file of the library, as requested.
    pub library: String,
    /// The library's own name.
    pub name: String,
}

/// A tool whose implementations in A and B differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolDifference {
    /// The tool.
    pub tool: ToolName,
    /// Its implementation in A.
    pub a: String,
    /// Its implementation in B.
    pub b: String,
}

impl ExperimentRequest {
    fn library(&self, arm: Arm) -> &str {
        match arm {
            Arm::A => &self.a,
            Arm::B => &self.b,
        }
    }

    /// The options for an arm: with its library and those of both arms.
    fn options_of(&self, arm: Arm) -> RunOptions {
        let mut options = self.options.clone();
        options.library.insert(0, self.library(arm).to_owned());
        // Strategies learned in one arm must not help the other.
        options.frozen = !options.no_learning;
        options.set.insert(0, NO_BREAKER.to_owned());
        options
    }

    /// The digest of the experiment's content. The number of repetitions is not part of it, so that more can
    /// be added, and neither is the analysis.
    pub(super) fn digest(
        &self,
        service: &Service,
        declared: &DeclaredAgent,
    ) -> Result<String, ServiceError> {
        let content = |name: &str| match Path::new(name).extension() {
            Some(extension) if extension == "toml" => {
                std::fs::read_to_string(name).map_err(|error| {
                    let message = format!("the library file `{name}` cannot be read: {error}");
                    ServiceError::failed(message)
                })
            }
            _ => Ok(name.to_owned()),
        };
        let mut options = self.options.clone();
        let others: Vec<String> = options
            .library
            .drain(..)
            .map(|name| content(&name))
            .collect::<Result<_, _>>()?;
        let mut options = options.with_absolute_paths();
        // The path of the configuration is not part of its content.
        options.project = None;
        options.set = service.overrides().set.clone();
        let all = json!({
            "agent": declared.agent(),
            "a": content(&self.a)?,
            "b": content(&self.b)?,
            "libraries": others,
            "tasks": self.tasks,
            "seed": self.seed,
            "assembly": options,
            "settings": self.settings,
        });
        let digest = Digest::of_json(&all).to_string();
        Ok(digest.trim_start_matches("sha256:").to_owned())
    }
}

/// Refuses what the identity may not use, before anything of it is read.
pub(super) fn require(
    service: &Service,
    identity: &Identity,
    request: &ExperimentRequest,
) -> Result<(), ServiceError> {
    Arm::ALL.into_iter().try_for_each(|arm| {
        let mut options = request.options.clone();
        options.library.push(request.library(arm).to_owned());
        service.require_for_options(identity, &options)
    })
}

/// Binds the agent for both arms.
///
/// # Errors
/// All errors of both arms.
pub(super) fn bind(
    service: &Service,
    identity: &Identity,
    declared: &DeclaredAgent,
    request: &ExperimentRequest,
) -> Result<[BoundAgent; 2], ServiceError> {
    // The options that an experiment adds need no permission.
    let bind = |arm| service.bind_permitted(identity, declared, &request.options_of(arm));
    match (bind(Arm::A), bind(Arm::B)) {
        (Ok(a), Ok(b)) => Ok([a, b]),
        (a, b) => {
            let mut reasons = Vec::new();
            for (arm, error) in [(Arm::A, a.err()), (Arm::B, b.err())] {
                let library = request.library(arm);
                reasons.extend(error.map(|error| {
                    let arm = arm.as_str().to_uppercase();
                    format!("arm {arm} cannot use `{library}`: {error}")
                }));
            }
            Err(ServiceError::failed(reasons.join("\n")))
        }
    }
}

/// Both arms, and their differences for this agent.
pub(super) fn compare(
    service: &Service,
    declared: &DeclaredAgent,
    request: &ExperimentRequest,
) -> Result<([ExperimentArm; 2], Vec<ToolDifference>), ServiceError> {
    let project = service.project()?;
    let library = |arm| service.library(&project, &[request.library(arm).to_owned()], None);
    let (a, b) = (library(Arm::A)?, library(Arm::B)?);
    let described = |library: &ToolLibrary, arm| ExperimentArm {
        library: request.library(arm).to_owned(),
        name: library.name().to_owned(),
    };
    let mut differs = Vec::new();
    for tool in declared.tool_names() {
        let (in_a, in_b) = (a.lookup(tool), b.lookup(tool));
        let (of_a, of_b) = (implementation(&a, in_a), implementation(&b, in_b));
        let (Some(name), true) = (in_a.or(in_b).map(Tool::name), of_a != of_b) else {
            continue;
        };
        differs.push(ToolDifference {
            tool: name.clone(),
            a: of_a,
            b: of_b,
        });
    }
    Ok(([described(&a, Arm::A), described(&b, Arm::B)], differs))
}

/// Describes the implementation of a tool.
fn implementation(library: &ToolLibrary, tool: Option<&Tool>) -> String {
    match tool {
        None => "elsewhere".to_owned(),
        Some(tool) => match tool.implementation() {
            Some(described) => described.to_owned(),
            None => format!("{}/{}", library.name(), tool.name()),
        },
    }
}
