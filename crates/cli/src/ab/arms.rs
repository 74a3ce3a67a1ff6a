//! The two sides of an experiment: the libraries, what differs between them, and the digest of all that
//! an experiment consists of.

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
use windlass_core::approval::Digest;
use windlass_learn::ab::Arm;
use windlass_spec::{TaskInput, ToolName};
use windlass_tools::{Tool, ToolLibrary};

use crate::arguments::{AbRun, CrewOptions};
use crate::crew::{self, Chosen};
use crate::libraries::{self, Sought};
use crate::settings::{self, Governed};

/// A tool that keeps failing is left alone, whoever calls it. In an experiment that would let the failures
/// of one arm stop the calls of the other.
const UNBROKEN: &str = "breaker.failures=1000";

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Side {
    /// The library as it was named.
    pub(super) library: String,
    /// What the library calls itself.
    pub(super) name: String,
}

/// A tool that is implemented otherwise in A than in B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Differs {
    pub(super) tool: ToolName,
    pub(super) a: String,
    pub(super) b: String,
}

/// How a crew is put together for an arm: with its library, and with those that both have.
pub(super) fn options(command: &AbRun, arm: Arm) -> CrewOptions {
    let mut options = command.crew.clone();
    options.library.insert(0, named(command, arm).to_owned());
    // What one arm teaches must not help the other.
    options.frozen = !options.no_learning;
    options.set.insert(0, UNBROKEN.to_owned());
    options
}

fn named(command: &AbRun, arm: Arm) -> &str {
    match arm {
        Arm::A => command.a(),
        Arm::B => command.b(),
    }
}

/// Puts both crews to work.
///
/// # Errors
/// Everything that stands in the way, of both arms.
pub(super) fn crews(
    command: &AbRun,
    chosen: &Chosen,
    data: Option<&Path>,
) -> anyhow::Result<[Governed; 2]> {
    let crew = |arm| chosen.assemble(&options(command, arm), data);
    match (crew(Arm::A), crew(Arm::B)) {
        (Ok(a), Ok(b)) => Ok([a, b]),
        (a, b) => {
            let mut told = Vec::new();
            for (arm, error) in [(Arm::A, a.err()), (Arm::B, b.err())] {
                let library = named(command, arm);
                told.extend(error.map(|error| {
                    format!(
                        "arm {} cannot work with `{library}`: {error:#}",
                        arm.as_str().to_uppercase()
                    )
                }));
            }
            anyhow::bail!(told.join("\n"))
        }
    }
}

/// Both sides, and what differs between them for this agent.
pub(super) fn sides(
    command: &AbRun,
    chosen: &Chosen,
    data: Option<&Path>,
) -> anyhow::Result<([Side; 2], Vec<Differs>)> {
    let configuration = &settings::configured()?.configuration;
    let library = |arm| {
        let sought = Sought { data, wanted: None };
        libraries::all(&[named(command, arm).to_owned()], configuration, sought)
    };
    let (a, b) = (library(Arm::A)?, library(Arm::B)?);
    let side = |library: &ToolLibrary, arm| Side {
        library: named(command, arm).to_owned(),
        name: library.name().to_owned(),
    };
    let mut differs = Vec::new();
    for tool in chosen.tool_names() {
        let (in_a, in_b) = (a.lookup(tool), b.lookup(tool));
        let (Some(name), true) = (
            in_a.or(in_b).map(Tool::name),
            implemented(&a, in_a) != implemented(&b, in_b),
        ) else {
            continue;
        };
        differs.push(Differs {
            tool: name.clone(),
            a: implemented(&a, in_a),
            b: implemented(&b, in_b),
        });
    }
    Ok(([side(&a, Arm::A), side(&b, Arm::B)], differs))
}

/// What stands behind a tool, in words.
fn implemented(library: &ToolLibrary, tool: Option<&Tool>) -> String {
    match tool {
        None => "elsewhere".to_owned(),
        Some(tool) => match tool.implementation() {
            Some(told) => told.to_owned(),
            None => format!("{}/{}", library.name(), tool.name()),
        },
    }
}

/// The digest of all that an experiment consists of. Not of how often everything is done, so that more
/// can be added, nor of how it is judged.
pub(super) fn digest(
    command: &AbRun,
    chosen: &Chosen,
    tasks: &[TaskInput],
) -> anyhow::Result<String> {
    let content = |name: &str| match Path::new(name).extension() {
        Some(extension) if extension == "toml" => std::fs::read_to_string(name)
            .with_context(|| format!("the library file `{name}` cannot be read")),
        _ => Ok(name.to_owned()),
    };
    let mut options = command.crew.clone();
    let others: Vec<String> = options
        .library
        .drain(..)
        .map(|name| content(&name))
        .collect::<anyhow::Result<_>>()?;
    let mut assembly = Value::Object(crew::assembly(&options)?);
    // Where the configuration is says nothing about what is in it.
    if let Some(fields) = assembly.as_object_mut() {
        fields.remove("project");
    }
    let all = json!({
        "agent": chosen.agent,
        "a": content(command.a())?,
        "b": content(command.b())?,
        "libraries": others,
        "tasks": tasks,
        "seed": command.seed,
        "assembly": assembly,
        "settings": command.limits.settings(),
    });
    let digest = Digest::of_json(&all).to_string();
    Ok(digest.trim_start_matches("sha256:").to_owned())
}
