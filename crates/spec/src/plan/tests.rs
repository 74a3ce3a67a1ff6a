use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::signature::Signature;

fn plan(value: Value) -> Result<Plan, PlanErrors> {
    Plan::try_from(serde_json::from_value::<RawPlan>(value).unwrap())
}

fn errors(value: Value) -> Vec<PlanError> {
    plan(value).unwrap_err().0
}

fn tool(name: &str, signature: &str) -> ToolSpecification {
    let signature = Signature::parse(signature).unwrap();
    let description = NonEmptyText::new("Does something").unwrap();
    ToolSpecification::new(ToolName::new(name).unwrap(), description, signature)
}

#[test]
fn a_plan_needs_at_least_one_task() {
    assert_eq!(errors(json!({"tasks": []})), [PlanError::NoTasks]);
    assert_eq!(errors(json!({})), [PlanError::NoTasks]);
}

#[test]
fn plan_has_at_most_a_thousand_tasks() {
    let tasks = |count: usize| -> Vec<Value> {
        let task = |number| json!({"id": format!("t{number}"), "description": "Do it"});
        (0..count).map(task).collect()
    };
    assert!(plan(json!({"tasks": tasks(MAX_TASKS)})).is_ok());
    let found = errors(json!({"tasks": tasks(10_000)}));
    assert_eq!(found, [PlanError::TooManyTasks(10_000)]);
    assert!(found[0].to_string().contains("at most 1000"));
}

#[test]
fn a_dependency_cycle_is_an_error_with_its_tasks() {
    let found = errors(json!({"tasks": [
        {"id": "ready", "description": "Do it"},
        {"id": "a", "description": "Do it", "depends_on": ["c", "ready"]},
        {"id": "b", "description": "Do it", "depends_on": ["a"]},
        {"id": "c", "description": "Do it", "depends_on": ["b"]},
        {"id": "after", "description": "Do it", "depends_on": ["c"]},
    ]}));
    let [PlanError::Cycle(names)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(names.len(), 4);
    assert_eq!(names.first(), names.last());
    assert!(!names.iter().any(|name| name == "ready" || name == "after"));
    let itself =
        errors(json!({"tasks": [{"id": "a", "description": "Do it", "depends_on": ["a"]}]}));
    assert_eq!(
        itself,
        [PlanError::Cycle(vec!["a".to_owned(), "a".to_owned()])]
    );
}

#[test]
fn unknown_dependencies_are_reported_from_tasks_and_from_the_dependencies_map() {
    let found = errors(json!({
        "tasks": [
            {"id": "fetch", "description": "Do it"},
            {"id": "read", "description": "Do it", "depends_on": ["fetsh"]},
        ],
        "dependencies": {"read": ["gone"], "nobody": ["fetch"]},
    }));
    let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(
        messages
            .iter()
            .any(|line| line.contains("did you mean `fetch`"))
    );
    assert!(messages.iter().any(|line| line.contains("`gone`")));
    let unknown = messages
        .iter()
        .find(|line| line.contains("`nobody`"))
        .unwrap();
    assert_eq!(
        unknown,
        "`dependencies` has the key `nobody`, which is not a task of the plan"
    );
    assert!(
        !messages.iter().any(|line| line.contains("``")),
        "{messages:?}"
    );
    assert!(messages.iter().any(|line| line.contains("`nobody`")));
}

#[test]
fn all_errors_are_reported_at_once() {
    let found = errors(json!({
        "execution_mode": "quickly",
        "max_parallel": 65,
        "tasks": [
            {"id": "", "description": "Do it"},
            {"id": "a b", "description": "Do it"},
            {"id": "silent"},
            {"id": "both", "tool": "t", "agent": "x"},
            {"id": "loose", "description": "Do it", "arguments": {"x": 1}},
            {"id": "again", "tool": "t", "retries": 6},
            {"id": "sure", "tool": "t", "confidence": 1.5},
            {"id": "twice", "tool": "t"},
            {"id": "twice", "tool": "t"},
        ],
    }));
    assert_eq!(found.len(), 10, "{found:#?}");
}

#[test]
fn dependencies_from_tasks_and_from_the_map_are_merged() {
    let plan = plan(json!({
        "tasks": [{"id": "a", "tool": "t"}, {"id": "b", "tool": "t", "depends_on": ["a"]}],
        "dependencies": {"b": ["a"]},
    }))
    .unwrap();
    assert_eq!(plan.tasks()[1].depends_on.len(), 1);
    assert_eq!(json!(plan.dependencies()), json!({"b": ["a"]}));
    assert_eq!(plan.execution_mode(), ExecutionMode::Parallel);
    assert_eq!(plan.max_parallel(), usize::from(DEFAULT_PARALLEL));
}

#[test]
fn sequential_plan_runs_one_task_at_a_time() {
    let plan = plan(json!({
        "execution_mode": "SEQUENTIAL", "max_parallel": 9, "tasks": [{"id": "a", "tool": "t"}],
    }));
    assert_eq!(plan.unwrap().max_parallel(), 1);
}

#[test]
fn unknown_tools_unknown_agents_and_bad_arguments_are_reported() {
    let plan = plan(json!({"tasks": [
        {"id": "a", "tool": "serch", "arguments": {"query": "x"}},
        {"id": "b", "tool": "search", "arguments": {"query": 7}},
        {"id": "c", "agent": "writer", "description": "Write"},
        {"id": "d", "agent": "reader", "description": "Read"},
    ]}))
    .unwrap();
    let search = tool("search", "(query: Text) --> IO Text");
    let found = plan.check_work([&search], &["reader"]);
    let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].contains("`serch`") && messages[0].contains("did you mean `search`"));
    assert!(
        messages[1].contains("`b`") && messages[1].contains("query"),
        "{messages:?}"
    );
    assert!(messages[2].contains("`writer`"));
}

#[test]
fn a_result_can_be_used_only_by_tasks_that_depend_on_it() {
    let with = |depends_on: Value| {
        plan(json!({"tasks": [
            {"id": "a", "tool": "t"},
            {"id": "b", "tool": "t", "depends_on": ["a"]},
            {"id": "c", "tool": "t", "depends_on": depends_on,
             "arguments": {"list": [{"$from": "a", "at": "/x/0"}], "all": {"$from": "a"}}},
        ]}))
    };
    assert!(matches!(
        with(json!([])).unwrap_err().0[..],
        [
            PlanError::MissingDependency { .. },
            PlanError::MissingDependency { .. }
        ]
    ));
    // Direct or indirect.
    let plan = with(json!(["b"])).unwrap();
    let task = plan.task("c").unwrap();
    let result = json!({"x": [5]});
    let arguments = task.arguments_with(|name| (name == "a").then_some(&result));
    assert_eq!(
        Value::Object(arguments.unwrap()),
        json!({"list": [5], "all": {"x": [5]}})
    );
    let nothing = json!({});
    let missing = task.arguments_with(|_| Some(&nothing)).unwrap_err();
    assert!(missing.contains("/x/0"), "{missing}");
    assert!(task.arguments_with(|_| None).is_err());
}

#[test]
fn an_object_with_other_keys_is_a_value_not_a_reference() {
    let plan = plan(json!({"tasks": [{"id": "a", "tool": "t", "arguments": {
        "more": {"$from": "b", "other": 1}, "number": {"$from": 3}, "text": "{\"$from\": \"b\"}",
    }}]}))
    .unwrap();
    let arguments = plan.tasks()[0].arguments_with(|_| None).unwrap();
    assert_eq!(arguments["more"], json!({"$from": "b", "other": 1}));
}

proptest! {
    /// For any dependencies: either the tasks can be ordered by their dependencies, or the reported tasks
    /// really form a cycle.
    #[test]
    fn a_plan_is_invalid_exactly_if_it_has_a_cycle(
        count in 1usize..20,
        edges in prop::collection::vec((0usize..20, 0usize..20), 0..40),
    ) {
        let mut tasks: Vec<RawPlanTask> = (0..count)
            .map(|number| RawPlanTask {
                id: format!("t{number}"),
                tool: Some("t".to_owned()),
                ..RawPlanTask::default()
            })
            .collect();
        for (from, to) in edges {
            let name = format!("t{}", to % count);
            let task = &mut tasks[from % count];
            if !task.depends_on.contains(&name) {
                task.depends_on.push(name);
            }
        }
        let depends = |from: &str, to: &str| {
            tasks.iter().any(|task| task.id == from && task.depends_on.iter().any(|name| name == to))
        };
        match Plan::try_from(RawPlan { tasks: tasks.clone(), ..RawPlan::default() }) {
            Ok(plan) => {
                let mut done: Vec<&str> = Vec::new();
                while done.len() < count {
                    let ready = plan.tasks().iter().find(|task| {
                        !done.contains(&task.id.as_str())
                            && task.depends_on.iter().all(|name| done.contains(&name.as_str()))
                    });
                    prop_assert!(ready.is_some(), "no task is ready after {done:?}");
                    done.extend(ready.map(|task| task.id.as_str()));
                }
                let raw = serde_json::to_value(&plan).unwrap();
                prop_assert_eq!(serde_json::from_value::<Plan>(raw).unwrap(), plan);
            }
            Err(PlanErrors(errors)) => {
                let [PlanError::Cycle(names)] = &errors[..] else {
                    return Err(TestCaseError::fail(format!("{errors:?}")));
                };
                prop_assert!(names.windows(2).all(|two| depends(&two[0], &two[1])));
                prop_assert_eq!(names.first(), names.last());
            }
        }
    }
}
