//! Accepted work that has not ended: execution plans, and other work of a tool. Executing a plan is not
//! done here.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Object;
use super::error::{EnvelopeError, EnvelopeProblem, pointer};
use super::fields::Fields;
use super::words::ExecutionMode;
use crate::names::NonEmptyText;

/// A plan as a tool reports it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// The id of the plan.
    pub plan_id: NonEmptyText,
    /// Its tasks, in the form of the planning tool.
    pub tasks: Vec<Value>,
    /// Whether they run in parallel or in sequence.
    pub execution_mode: ExecutionMode,
    /// For each task with dependencies, the tasks it depends on.
    pub dependencies: BTreeMap<String, Vec<String>>,
}

impl PlanReport {
    /// The field that identifies data as a plan.
    pub(super) const MARK: &'static str = "plan_id";

    pub(super) fn read(data: &mut Fields) -> Result<Self, EnvelopeError> {
        Ok(Self {
            plan_id: data.text(Self::MARK)?,
            tasks: data.list("tasks")?,
            execution_mode: data.word("execution_mode")?,
            dependencies: read_dependencies(data)?,
        })
    }
}

fn read_dependencies(data: &mut Fields) -> Result<BTreeMap<String, Vec<String>>, EnvelopeError> {
    let given = data.object("dependencies")?;
    let mut dependencies = BTreeMap::new();
    for (task, names) in given {
        let names: Option<Vec<String>> = names.as_array().and_then(|names| {
            let names = names.iter();
            names.map(|name| name.as_str().map(str::to_owned)).collect()
        });
        let names = names.ok_or_else(|| EnvelopeError {
            pointer: pointer("/data/dependencies", &task),
            problem: EnvelopeProblem::Type {
                expected: "a list of task names",
            },
        })?;
        dependencies.insert(task, names);
    }
    Ok(dependencies)
}

/// The data of accepted work that is not a plan: any object without a `plan_id`, which would require
/// the other fields of a plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct WorkData(Object);

impl WorkData {
    /// Validates the data.
    ///
    /// # Errors
    /// If it has a `plan_id`: use a [`PlanReport`] for a plan.
    pub fn new(data: Object) -> Result<Self, EnvelopeError> {
        if data.contains_key(PlanReport::MARK) {
            return Err(EnvelopeError {
                pointer: pointer("/data", PlanReport::MARK),
                problem: EnvelopeProblem::Misplaced,
            });
        }
        Ok(Self(data))
    }

    /// The data.
    #[must_use]
    pub const fn as_object(&self) -> &Object {
        &self.0
    }
}
