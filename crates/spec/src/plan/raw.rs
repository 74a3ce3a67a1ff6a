//! Plans as they are written, and their validation into a [`Plan`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{PlanError, PlanErrors};
use super::{
    DEFAULT_PARALLEL, MAX_ID_LENGTH, MAX_PARALLEL, MAX_RETRIES, MAX_TASKS, OnFailure, Plan,
    PlanTask, PlanTaskId, Work, order, references,
};
use crate::envelope::ExecutionMode;
use crate::names::{AgentName, NonEmptyText, ToolName};
use crate::nearest::nearest;
use crate::records::Confidence;
use crate::tool::ToolSpecification;

/// A plan as it is written, before validation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawPlan {
    /// The goal of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// `parallel` (the default) or `sequential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<String>,
    /// The largest number of tasks that run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u16>,
    /// The tasks.
    #[serde(default)]
    pub tasks: Vec<RawPlanTask>,
    /// For each task, the tasks it depends on, in addition to the task's own `depends_on`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dependencies: BTreeMap<String, Vec<String>>,
}

/// A task as it is written, before validation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawPlanTask {
    /// Its id.
    pub id: String,
    /// What the task does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tool to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of the call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// The author's confidence in the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The agent that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tasks it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What happens to the rest of the plan if it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

impl TryFrom<RawPlan> for Plan {
    type Error = PlanErrors;

    /// Checks everything about a plan that can be checked without knowing the tools.
    fn try_from(raw: RawPlan) -> Result<Self, PlanErrors> {
        let mut errors = Vec::new();
        if raw.tasks.is_empty() {
            return Err(PlanErrors(vec![PlanError::NoTasks]));
        }
        if raw.tasks.len() > MAX_TASKS {
            return Err(PlanErrors(vec![PlanError::TooManyTasks(raw.tasks.len())]));
        }
        let execution_mode = match raw.execution_mode.as_deref() {
            None => ExecutionMode::Parallel,
            Some(word) => word.parse().unwrap_or_else(|_| {
                errors.push(PlanError::BadMode(word.to_owned()));
                ExecutionMode::Parallel
            }),
        };
        let max_parallel = raw.max_parallel.unwrap_or(DEFAULT_PARALLEL);
        if !(1..=MAX_PARALLEL).contains(&max_parallel) {
            errors.push(PlanError::OutOfRange {
                what: "`max_parallel`".to_owned(),
                least: 1,
                most: MAX_PARALLEL.into(),
                found: max_parallel.to_string(),
            });
        }
        let names: BTreeSet<&str> = raw.tasks.iter().map(|task| task.id.as_str()).collect();
        for (task, dependencies) in &raw.dependencies {
            if !names.contains(task.as_str()) {
                errors.push(PlanError::UnknownDependent {
                    task: task.chars().take(MAX_ID_LENGTH).collect(),
                    nearest: nearest(task, names.iter().copied()).map(str::to_owned),
                });
            }
            let known = dependencies.iter();
            let unknown = known.filter(|name| !names.contains(name.as_str()));
            errors.extend(unknown.map(|name| unknown_dependency(task, name, &names)));
        }
        let mut tasks: Vec<PlanTask> = Vec::new();
        let mut seen = BTreeSet::new();
        for task in &raw.tasks {
            let extra_dependencies = raw.dependencies.get(&task.id);
            match read_task(
                task,
                extra_dependencies.map_or(&[], Vec::as_slice),
                &names,
                &mut errors,
            ) {
                Some(task) if seen.insert(task.id.clone()) => tasks.push(task),
                Some(task) => errors.push(PlanError::DuplicateId(task.id)),
                None => {}
            }
        }
        // Cycles can be found only if all ids and dependencies are valid.
        if errors.is_empty() {
            errors.extend(order::cycle(&tasks).map(PlanError::Cycle));
        }
        if errors.is_empty() {
            references::check(&tasks, &mut errors);
        }
        match errors.is_empty() {
            true => Ok(Self {
                goal: raw.goal.and_then(|goal| NonEmptyText::new(goal).ok()),
                execution_mode,
                max_parallel,
                tasks,
            }),
            false => Err(PlanErrors(errors)),
        }
    }
}

impl RawPlan {
    /// Everything that is wrong with a plan, for these tools and agents. What one error hides for [`Plan`], such as
    /// the arguments of a task with an unknown dependency, is checked as well.
    #[must_use]
    pub fn errors_with<'t>(
        &self,
        tools: impl IntoIterator<Item = &'t ToolSpecification>,
        agents: &[&str],
    ) -> Vec<PlanError> {
        let mut errors = match Plan::try_from(self.clone()) {
            Ok(plan) => return plan.check_work(tools, agents),
            Err(PlanErrors(errors)) => errors,
        };
        let readable = self.readable();
        if !errors
            .iter()
            .any(|error| matches!(error, PlanError::Cycle(_)))
        {
            errors.extend(order::cycle(&readable.tasks).map(PlanError::Cycle));
        }
        let mut further = readable.check_work(tools, agents);
        references::check(&readable.tasks, &mut further);
        for error in further {
            // That a task does not exist is reported once, for the dependency.
            let is_unknown = |known: &PlanError| match (&error, known) {
                (
                    PlanError::MissingDependency { task, from },
                    PlanError::UnknownDependency {
                        task: of,
                        dependency,
                        ..
                    },
                ) => task.as_str() == of && from == dependency,
                _ => false,
            };
            if !errors.contains(&error) && !errors.iter().any(is_unknown) {
                errors.push(error);
            }
        }
        errors
    }

    /// The tasks as far as they can be read.
    fn readable(&self) -> Plan {
        let names: BTreeSet<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
        let mut seen = BTreeSet::new();
        let tasks = self.tasks.iter().filter_map(|task| {
            let extra = self
                .dependencies
                .get(&task.id)
                .map_or(&[][..], Vec::as_slice);
            let depends_on = task.depends_on.iter().chain(extra);
            let known = depends_on.filter(|name| names.contains(name.as_str()));
            let work = RawPlanTask {
                id: task.id.clone(),
                description: Some("-".to_owned()),
                tool: task.tool.clone(),
                arguments: match task.tool {
                    Some(_) => task.arguments.clone(),
                    None => Map::new(),
                },
                // A task with both is an error that is reported already.
                agent: task.agent.clone().filter(|_| task.tool.is_none()),
                depends_on: known.cloned().collect(),
                ..RawPlanTask::default()
            };
            let task = read_task(&work, &[], &names, &mut Vec::new())?;
            seen.insert(task.id.clone()).then_some(task)
        });
        Plan {
            goal: None,
            execution_mode: ExecutionMode::Parallel,
            max_parallel: DEFAULT_PARALLEL,
            tasks: tasks.take(MAX_TASKS).collect(),
        }
    }
}

fn unknown_dependency(task: &str, dependency: &str, names: &BTreeSet<&str>) -> PlanError {
    PlanError::UnknownDependency {
        task: task.to_owned(),
        dependency: dependency.chars().take(MAX_ID_LENGTH).collect(),
        nearest: nearest(dependency, names.iter().copied()).map(str::to_owned),
    }
}

fn read_task(
    raw: &RawPlanTask,
    extra_dependencies: &[String],
    names: &BTreeSet<&str>,
    errors: &mut Vec<PlanError>,
) -> Option<PlanTask> {
    let before = errors.len();
    let id = match PlanTaskId::new(raw.id.as_str()) {
        Ok(id) => id,
        Err(error) => {
            errors.push(error);
            return None;
        }
    };
    let mut depends_on: Vec<PlanTaskId> = Vec::new();
    for name in raw.depends_on.iter().chain(extra_dependencies) {
        match PlanTaskId::new(name.as_str()) {
            Ok(name) if !names.contains(name.as_str()) => {
                // Entries of `dependencies` are checked by the caller.
                if raw.depends_on.contains(&name.0) {
                    errors.push(unknown_dependency(&raw.id, name.as_str(), names));
                }
            }
            Ok(name) if depends_on.contains(&name) => {}
            Ok(name) => depends_on.push(name),
            Err(error) => errors.push(error),
        }
    }
    let confidence = match raw.confidence.map(Confidence::try_from) {
        None => None,
        Some(Ok(confidence)) => Some(confidence),
        Some(Err(_)) => {
            errors.push(PlanError::OutOfRange {
                what: format!("the confidence of `{id}`"),
                least: 0,
                most: 1,
                found: raw.confidence.unwrap_or_default().to_string(),
            });
            None
        }
    };
    let retries = raw.retries.unwrap_or(0);
    if retries > MAX_RETRIES {
        errors.push(PlanError::OutOfRange {
            what: format!("`retries` of `{id}`"),
            least: 0,
            most: MAX_RETRIES,
            found: retries.to_string(),
        });
    }
    let bad_name = |name: &str| PlanError::BadName(id.clone(), name.chars().take(100).collect());
    let work = match (&raw.tool, &raw.agent) {
        (Some(_), Some(_)) => {
            errors.push(PlanError::ToolAndAgent(id.clone()));
            Work::Manual
        }
        (Some(tool), None) => match ToolName::new(tool.as_str()) {
            Ok(tool) => Work::Call {
                tool,
                arguments: raw.arguments.clone(),
                confidence,
            },
            Err(_) => {
                errors.push(bad_name(tool));
                Work::Manual
            }
        },
        (None, Some(agent)) => match AgentName::new(agent.as_str()) {
            Ok(agent) => Work::Agent(agent),
            Err(_) => {
                errors.push(bad_name(agent));
                Work::Manual
            }
        },
        (None, None) => Work::Manual,
    };
    if raw.tool.is_none() {
        if !raw.arguments.is_empty() {
            errors.push(PlanError::WithoutTool(id.clone(), "`arguments`"));
        }
        if raw.confidence.is_some() {
            errors.push(PlanError::WithoutTool(id.clone(), "`confidence`"));
        }
    }
    let given_description = raw.description.as_deref().unwrap_or_default();
    let description = NonEmptyText::new(given_description.trim()).ok();
    let description = description.or_else(|| match &work {
        Work::Call { tool, .. } => NonEmptyText::new(format!("Call `{tool}`")).ok(),
        Work::Agent(_) | Work::Manual => None,
    });
    let Some(description) = description else {
        // A task with other errors is reported already.
        if errors.len() == before {
            errors.push(PlanError::NothingToDo(id));
        }
        return None;
    };
    (errors.len() == before).then_some(PlanTask {
        id,
        description,
        work,
        depends_on,
        on_failure: raw.on_failure.unwrap_or_default(),
        retries,
    })
}

impl From<Plan> for RawPlan {
    fn from(plan: Plan) -> Self {
        Self {
            goal: plan.goal.map(|goal| goal.to_string()),
            execution_mode: Some(plan.execution_mode.as_str().to_owned()),
            max_parallel: Some(plan.max_parallel),
            tasks: plan.tasks.into_iter().map(RawPlanTask::from).collect(),
            dependencies: BTreeMap::new(),
        }
    }
}

impl From<PlanTask> for RawPlanTask {
    fn from(task: PlanTask) -> Self {
        let mut raw = Self {
            id: task.id.0,
            description: Some(task.description.to_string()),
            depends_on: task.depends_on.into_iter().map(|id| id.0).collect(),
            on_failure: Some(task.on_failure),
            retries: Some(task.retries),
            ..Self::default()
        };
        match task.work {
            Work::Call {
                tool,
                arguments,
                confidence,
            } => {
                raw.tool = Some(tool.to_string());
                raw.arguments = arguments;
                raw.confidence = confidence.map(Confidence::get);
            }
            Work::Agent(agent) => raw.agent = Some(agent.to_string()),
            Work::Manual => {}
        }
        raw
    }
}
