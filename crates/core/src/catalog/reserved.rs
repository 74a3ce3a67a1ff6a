//! The reserved tools: what a model can do besides calling the tools of its agent.

use std::sync::LazyLock;

use windlass_spec::envelope::ExecutionMode;
use windlass_spec::plan::{
    CREATE_EXECUTION_PLAN, DEFAULT_PARALLEL, GET_EXECUTION_STATUS, MAX_PARALLEL, MAX_RETRIES,
    MAX_TASKS, UPDATE_TASK_STATUS,
};
use windlass_spec::reserved::{ASK_HUMAN, FIND_TOOLS, REQUEST_AUTHORIZATION};
use windlass_spec::{
    Field, NonEmptyText, SecurityLevel, Signature, ToolName, ToolSpecification, Type,
};

use super::{CallKind, Callable, PlanOperation, reversible};

static RESERVED: LazyLock<Vec<Callable>> = LazyLock::new(|| {
    [
        find_tools(),
        ask_human(),
        request_authorization(),
        create_execution_plan(),
        update_task_status(),
        get_execution_status(),
    ]
    .into_iter()
    .flatten()
    .collect()
});

/// The reserved tools, in the order in which models are shown them. `finish` is not among them: it is
/// part of every request.
pub(crate) fn reserved() -> &'static [Callable] {
    &RESERVED
}

/// Makes a reserved tool. None of them changes anything by itself: the calls it leads to pass the gate.
fn tool(
    kind: CallKind,
    name: &str,
    description: &str,
    fields: Vec<Field>,
    result: Type,
) -> Option<Callable> {
    let signature = Signature::new(fields, result).ok()?;
    let description = NonEmptyText::or(description, "-");
    let tool = ToolSpecification::new(ToolName::new(name).ok()?, description, signature);
    Some((kind, reversible(tool)?.into()))
}

fn find_tools() -> Option<Callable> {
    let fields = vec![
        Field::required("query", Type::Text).described(
            "What you want to do, in a few words, such as `send a message to a channel`",
        ),
        Field::optional("limit", Type::Integer).described("How many tools at most; 5 if not given"),
    ];
    tool(
        CallKind::ToolSearch,
        FIND_TOOLS,
        "Finds tools that are not shown here. There are more than fit; those it finds can be called \
         from the next turn on.",
        fields,
        Type::List(Box::new(Type::Object)),
    )
}

fn ask_human() -> Option<Callable> {
    let fields = vec![
        Field::required("question", Type::Text).described("The question"),
        Field::optional("context", Type::Text)
            .described("What the person should know to answer it"),
        Field::optional("options", Type::List(Box::new(Type::Text)))
            .described("Answers to choose from"),
    ];
    tool(
        CallKind::Question,
        ASK_HUMAN,
        "Asks a person a question and waits for the answer. Use it only for what the task and \
         the tools cannot tell you.",
        fields,
        Type::Text,
    )
}

fn request_authorization() -> Option<Callable> {
    let levels = SecurityLevel::ALL.map(|level| level.as_str().to_owned());
    let fields = vec![
        Field::required("tool_name", Type::Text).described("The tool you want to call"),
        Field::required("tool_args", Type::Object)
            .described("Exactly what you want to call it with"),
        Field::required("reason", Type::Text).described("Why"),
        Field::optional("security_level", Type::Enum(levels.to_vec()))
            .described("The security level of the decision, if higher than usual"),
    ];
    tool(
        CallKind::Authorization,
        REQUEST_AUTHORIZATION,
        "Requests authorization of one exact call from a person. Calls that need approval request it \
         automatically; use this to explain one in advance. If it is approved, make the call.",
        fields,
        Type::Text,
    )
}

fn create_execution_plan() -> Option<Callable> {
    let texts = || Type::List(Box::new(Type::Text));
    let task = Type::Record(vec![
        Field::required("id", Type::Text)
            .described("Its name in the plan: letters, digits, `_` and `-`"),
        Field::optional("description", Type::Text)
            .described("What is to be done; required unless the task is a call"),
        Field::optional("tool", Type::Text).described("The tool to call, if the task is one call"),
        Field::optional("arguments", Type::Object).described(
            "The arguments of the call. {\"$from\": \"id\"} in the place of a value inserts the result of \
             that task, {\"$from\": \"id\", \"at\": \"/pointer\"} a part of it",
        ),
        Field::optional("confidence", Type::Number)
            .described("How sure you are of the call, 0 to 1"),
        Field::optional("agent", Type::Text)
            .described("The agent to delegate it to, instead of a tool"),
        Field::optional("depends_on", texts()).described("The ids of the tasks it depends on"),
        Field::optional(
            "on_failure",
            Type::Enum(vec!["stop".to_owned(), "skip_dependents".to_owned()]),
        )
        .described("What happens to the other tasks if it fails; `stop` if not given"),
        Field::optional("retries", Type::Integer)
            .described(format!("How often to retry, 0 to {MAX_RETRIES}")),
    ]);
    let modes = ExecutionMode::ALL.map(|mode| mode.as_str().to_owned());
    let fields = vec![
        Field::required("tasks", Type::List(Box::new(task))).described("The tasks"),
        Field::optional("goal", Type::Text).described("What the plan is for"),
        Field::optional("execution_mode", Type::Enum(modes.to_vec()))
            .described("Whether tasks may run at the same time; `parallel` if not given"),
        Field::optional("max_parallel", Type::Integer).described(format!(
            "How many run at the same time at most, 1 to {MAX_PARALLEL}; {DEFAULT_PARALLEL} if \
             not given"
        )),
        Field::optional("dependencies", Type::Object).described(
            "For each task id, the ids of the tasks it depends on; the same \
             as `depends_on` of the tasks",
        ),
    ];
    let description = format!(
        "Makes a plan of up to {MAX_TASKS} tasks and executes it: calls of tools and work \
         for agents run automatically, in the order of their dependencies and otherwise \
         at the same time. A task with neither a tool nor an agent is yours to do: report it \
         with `{UPDATE_TASK_STATUS}` when it is done. Returns the status of every task. Use it \
         for several steps that are known in advance."
    );
    let kind = CallKind::Plan(PlanOperation::Create);
    tool(
        kind,
        CREATE_EXECUTION_PLAN,
        &description,
        fields,
        Type::Object,
    )
}

fn update_task_status() -> Option<Callable> {
    let statuses = ["in_progress", "success", "error", "skipped"].map(str::to_owned);
    let fields = vec![
        Field::required("task_id", Type::Text).described("The task"),
        Field::required("status", Type::Enum(statuses.to_vec())).described("Its new status"),
        which_plan(),
        Field::optional("result", Type::Any).described("Its result"),
    ];
    tool(
        CallKind::Plan(PlanOperation::UpdateTask),
        UPDATE_TASK_STATUS,
        "Sets the status of a task of a plan that you do yourself, or skips a task. \
         Tasks that depend on it continue. Returns the status of every task.",
        fields,
        Type::Object,
    )
}

fn get_execution_status() -> Option<Callable> {
    tool(
        CallKind::Plan(PlanOperation::Status),
        GET_EXECUTION_STATUS,
        "Returns the status of every task of a plan.",
        vec![which_plan()],
        Type::Object,
    )
}

fn which_plan() -> Field {
    Field::optional("plan_id", Type::Text).described("Which plan; the latest if not given")
}
