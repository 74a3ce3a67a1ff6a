//! What a model may do about plans, as tools: make one, say how far a task is that it does itself, and ask
//! how far all of it is.

use std::sync::{Arc, LazyLock};

use windlass_spec::envelope::ExecutionMode;
use windlass_spec::plan::{
    CREATE_EXECUTION_PLAN, DEFAULT_PARALLEL, GET_EXECUTION_STATUS, MAX_PARALLEL, MAX_RETRIES,
    MAX_TASKS, UPDATE_TASK_STATUS,
};
use windlass_spec::{
    Field, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName, ToolSpecification, Type,
};

use crate::run::state::Run;

static PLANNING: LazyLock<Vec<Arc<ToolSpecification>>> = LazyLock::new(|| {
    let texts = || Type::List(Box::new(Type::Text));
    let task = Type::Record(vec![
        Field::required("id", Type::Text)
            .described("Its name in the plan: letters, digits, `_` and `-`"),
        Field::optional("description", Type::Text)
            .described("What is to be done; needed unless it is a call"),
        Field::optional("tool", Type::Text).described("The tool to call, if it is one call"),
        Field::optional("arguments", Type::Object).described(
            "What to call it with. {\"$from\": \"id\"} in the place of a value takes what came of \
             that task, {\"$from\": \"id\", \"at\": \"/pointer\"} a part of it",
        ),
        Field::optional("confidence", Type::Number)
            .described("How sure you are of the call, 0 to 1"),
        Field::optional("agent", Type::Text)
            .described("The agent to hand it to, instead of a tool"),
        Field::optional("depends_on", texts()).described("The tasks it waits for, by id"),
        Field::optional(
            "on_failure",
            Type::Enum(vec!["stop".to_owned(), "skip_dependents".to_owned()]),
        )
        .described("What becomes of the rest if it fails; `stop` if not given"),
        Field::optional("retries", Type::Integer)
            .described(format!("How often to try again, 0 to {MAX_RETRIES}")),
    ]);
    let modes = ExecutionMode::ALL.map(|mode| mode.as_str().to_owned());
    let statuses = ["in_progress", "success", "error", "skipped"].map(str::to_owned);
    let which = "Which plan; the latest if not given";
    [
        (
            CREATE_EXECUTION_PLAN,
            format!(
                "Makes a plan of up to {MAX_TASKS} tasks and carries it out: calls of tools and work \
                 for agents run by themselves, in the order their dependencies ask for and otherwise \
                 at the same time. A task with neither a tool nor an agent is yours to do: say so \
                 with `{UPDATE_TASK_STATUS}` when it is done. Returns how far every task is. Use it \
                 for several steps that are known beforehand."
            ),
            vec![
                Field::required("tasks", Type::List(Box::new(task))).described("The tasks"),
                Field::optional("goal", Type::Text).described("What the plan is for"),
                Field::optional("execution_mode", Type::Enum(modes.to_vec()))
                    .described("Whether tasks may run at the same time; `parallel` if not given"),
                Field::optional("max_parallel", Type::Integer).described(format!(
                    "How many run at the same time at most, 1 to {MAX_PARALLEL}; {DEFAULT_PARALLEL} if \
                     not given"
                )),
                Field::optional("dependencies", Type::Object).described(
                    "For tasks that have to wait, a list of the tasks they wait for, by id; the same \
                     as their `depends_on`",
                ),
            ],
        ),
        (
            UPDATE_TASK_STATUS,
            "Says how far a task of a plan is that you do yourself, or that a task is not to be done. \
             What waits for it goes on. Returns how far every task is."
                .to_owned(),
            vec![
                Field::required("task_id", Type::Text).described("The task"),
                Field::required("status", Type::Enum(statuses.to_vec())).described("How far it is"),
                Field::optional("plan_id", Type::Text).described(which),
                Field::optional("result", Type::Any).described("What came of it"),
            ],
        ),
        (
            GET_EXECUTION_STATUS,
            "Tells how far every task of a plan is.".to_owned(),
            vec![Field::optional("plan_id", Type::Text).described(which)],
        ),
    ]
    .into_iter()
    .filter_map(|(name, description, fields)| {
        let signature = Signature::new(fields, Type::Object).ok()?;
        // Planning changes nothing by itself; each call of each task passes the gate.
        let attributes = ToolAttributes {
            risk: Some(RiskLevel::Reversible),
            ..ToolAttributes::default()
        };
        let name = ToolName::new(name).ok()?;
        let tool = ToolSpecification::new(name, NonEmptyText::or(&description, "-"), signature);
        tool.with_attributes(attributes).ok().map(Arc::new)
    })
    .collect()
});

/// The tools about plans, for those who have rules for them.
pub(crate) fn plan_tools() -> &'static [Arc<ToolSpecification>] {
    &PLANNING
}

impl Run {
    /// The tools about plans, if this run has them.
    pub(in crate::run) fn planning(&self) -> impl Iterator<Item = &Arc<ToolSpecification>> {
        PLANNING.iter().filter(|_| self.settings.plans)
    }

    /// Whether a call is about plans rather than a call of a tool.
    #[must_use]
    pub fn is_planning(&self, name: &str) -> bool {
        self.agent.tool(name).is_none() && self.planning().any(|tool| tool.name().as_str() == name)
    }
}
