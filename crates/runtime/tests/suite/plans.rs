//! The execution of plans: a real database, tools that record when they start and end, processes that die, and
//! people who decide, change and mark.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::approval::PersonDecision;
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{
    CREATE_EXECUTION_PLAN, Event, PlanState, PlanTaskStatus, Run, RunEnd, Settings, Task,
    UPDATE_TASK_STATUS,
};
use windlass_core::stop::{StopOrder, StopTarget};
use windlass_model::ScriptedModel;
use windlass_runtime::{Crew, CrewMember, Driver, NewTask, Progress, STOPS_AGE, Stop, Stored, now};
use windlass_spec::plan::{Plan, PlanTaskId, RawPlan};
use windlass_spec::{ErrorCategory, RunId};
use windlass_store::{ApprovalFilter, Store};
use windlass_tools::{BindingMode, Tool, ToolError, ToolLibrary, bind};

use super::support::{call, finish, identity};

const FILE: &str = r#"
[planner:Agent {instruction: "Work.", model: "OpenAI/gpt-4o-mini"} |
  [work:Tool {description: "Works for some milliseconds", risk: reversible} | (name::Text)==>(ms::Int)==>(::Object)],
  [flaky:Tool {description: "Fails for the first few times", risk: reversible} | (name::Text)==>(times::Int)==>(::Text)],
  [surf:Tool {description: "Reads untrusted content", risk: reversible, open_world: true} | (name::Text)==>(::Text)],
  [send:Tool {description: "Sends something", risk: reversible_with_delay, undo_window_seconds: 0} | (name::Text)==>(::Text)],
  [post:Tool {description: "Posts something and says it cannot", risk: reversible_with_delay, undo_window_seconds: 0} | (name::Text)==>(::Text)],
  [put:Tool {description: "Puts something in its place and says it cannot", risk: reversible_with_delay, idempotent: true, undo_window_seconds: 0} | (name::Text)==>(::Text)],
  [drop:Tool {description: "Drops something and says it cannot", risk: irreversible} | (name::Text)==>(::Text)],
  [pay:Tool {description: "Pays a person", risk: irreversible} | (name::Text)==>(::Text)]]
"#;

#[derive(Debug, Clone, PartialEq, Eq)]
enum WorkEvent {
    Started(String),
    Ended(String),
}

type WorkLog = Arc<Mutex<Vec<WorkEvent>>>;

struct PlanFixture {
    directory: tempfile::TempDir,
    log: WorkLog,
}

impl PlanFixture {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            log: WorkLog::default(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("windlass.db")
    }

    fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(self.path()).unwrap())
    }

    fn library(&self) -> ToolLibrary {
        let tool = |name: &'static str, description: &str, signature: &str| {
            let log = Arc::clone(&self.log);
            Tool::builder(name)
                .description(description)
                .signature(signature)
                .handler(move |arguments: Value| {
                    let log = Arc::clone(&log);
                    async move { work(name, &log, &arguments).await }
                })
                .build()
                .unwrap()
        };
        let mut library = ToolLibrary::new("workshop");
        for tool in [
            tool(
                "work",
                "Works for some milliseconds",
                "(name: Text, ms: Int) --> IO Object",
            ),
            tool(
                "flaky",
                "Fails for the first few times",
                "(name: Text, times: Int) --> IO Text",
            ),
            tool(
                "surf",
                "Reads untrusted content",
                "(name: Text) --> IO Text",
            ),
            tool("send", "Sends something", "(name: Text) --> IO Text"),
            tool(
                "post",
                "Posts something and says it cannot",
                "(name: Text) --> IO Text",
            ),
            tool(
                "put",
                "Puts something in its place and says it cannot",
                "(name: Text) --> IO Text",
            ),
            tool(
                "drop",
                "Drops something and says it cannot",
                "(name: Text) --> IO Text",
            ),
            tool("pay", "Pays a person", "(name: Text) --> IO Text"),
        ] {
            library.register(tool);
        }
        library
    }

    fn driver(&self, answers: impl IntoIterator<Item = ModelAnswer>) -> Driver {
        let agent = windlass_spec::read(FILE).file.unwrap().agents()[0].clone();
        let member = CrewMember {
            tools: bind(&agent, &self.library(), BindingMode::Exact).unwrap(),
            agent,
            model: Arc::new(ScriptedModel::answers(answers)),
        };
        let stored = Stored::new(self.store(), identity("ann"));
        Driver::new(Crew::new(member), Arc::new(stored))
    }

    fn log(&self) -> Vec<WorkEvent> {
        self.log.lock().unwrap().clone()
    }

    fn times(&self, name: &str) -> usize {
        let ended = WorkEvent::Ended(name.to_owned());
        self.log().iter().filter(|done| **done == ended).count()
    }

    fn position(&self, done: &WorkEvent) -> usize {
        let log = self.log();
        log.iter()
            .position(|found| found == done)
            .unwrap_or_else(|| panic!("{done:?} is not in {log:?}"))
    }

    /// The largest number of concurrent calls.
    fn max_concurrent(&self) -> usize {
        let (mut now, mut most) = (0usize, 0);
        for done in self.log() {
            match done {
                WorkEvent::Started(_) => now += 1,
                WorkEvent::Ended(_) => now -= 1,
            }
            most = most.max(now);
        }
        most
    }

    fn approve_all(&self) -> usize {
        let store = self.store();
        let asked = store.approvals(&ApprovalFilter::pending(), now()).unwrap();
        for question in &asked {
            let bob = identity("bob");
            store
                .decide(question.call(), None, &bob, PersonDecision::Approve, now())
                .unwrap();
        }
        asked.len()
    }
}

async fn work(tool: &str, log: &WorkLog, arguments: &Value) -> Result<Value, ToolError> {
    let name = arguments["name"].as_str().unwrap_or_default().to_owned();
    log.lock().unwrap().push(WorkEvent::Started(name.clone()));
    let pause = match tool {
        "work" => arguments["ms"].as_u64().unwrap_or(0),
        "pay" => 30,
        _ => 0,
    };
    tokio::time::sleep(Duration::from_millis(pause)).await;
    let mut log = log.lock().unwrap();
    log.push(WorkEvent::Ended(name.clone()));
    let times = log
        .iter()
        .filter(|done| **done == WorkEvent::Ended(name.clone()))
        .count();
    if tool == "flaky" && times as u64 <= arguments["times"].as_u64().unwrap_or(0) {
        return Err(ToolError::new("not yet"));
    }
    if matches!(tool, "post" | "put" | "drop") {
        return Err(ToolError::new("not today").without_effect());
    }
    Ok(match tool {
        "work" => json!({"name": name, "letters": [name]}),
        _ => json!(name),
    })
}

fn settings() -> Settings {
    Settings {
        plans: true,
        ..Settings::default()
    }
}

/// A task that executes a plan, as a person sets it.
fn plan_task(plan: Value) -> NewTask {
    NewTask {
        task: Task {
            description: "Carry out a plan.".to_owned(),
            call: Some(Box::new(RequestedCall {
                tool: CREATE_EXECUTION_PLAN.to_owned(),
                arguments: RequestedArguments::Json(plan),
                confidence: None,
            })),
            ..Task::default()
        },
        settings: settings(),
        ..NewTask::default()
    }
}

fn model_task() -> NewTask {
    NewTask {
        task: Task {
            description: "Do it by a plan.".to_owned(),
            ..Task::default()
        },
        settings: settings(),
        ..NewTask::default()
    }
}

fn plan(run: &Run) -> &PlanState {
    &run.plans()[0]
}

fn statuses(run: &Run) -> BTreeMap<String, PlanTaskStatus> {
    let tasks = plan(run).tasks();
    tasks
        .map(|(task, state)| (task.id.to_string(), state.status))
        .collect()
}

fn work_task(id: &str, ms: u64, depends_on: &[&str]) -> Value {
    json!({"id": id, "tool": "work", "arguments": {"name": id, "ms": ms}, "depends_on": depends_on})
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_run_concurrently_unless_they_depend_on_each_other() {
    let fixture = PlanFixture::new();
    let tasks = json!({"tasks": [
        work_task("a", 600, &[]), work_task("b", 600, &[]), work_task("c", 600, &[]),
        work_task("d", 1, &["a", "b"]), work_task("e", 1, &["d", "c"]),
    ]});
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed), "{:?}", run.response());
    assert_eq!(plan(&run).status(), PlanTaskStatus::Success);
    assert_eq!(fixture.max_concurrent(), 3);
    for (before, after) in [("a", "d"), ("b", "d"), ("d", "e"), ("c", "e")] {
        let ended = fixture.position(&WorkEvent::Ended(before.to_owned()));
        assert!(ended < fixture.position(&WorkEvent::Started(after.to_owned())));
    }
    // Each task has its own journal, and the run has the journal of the plan.
    let store = fixture.store();
    for task in ["a", "b", "c", "d", "e"] {
        let id = RunId::new(format!("{}.1.0.task-{task}.1", run.id())).unwrap();
        let of_task = store.fold(&id).unwrap();
        assert_eq!(of_task.calls().count(), 1, "{task}");
        assert_eq!(of_task.parent().unwrap().run, *run.id());
    }
    assert_eq!(store.fold(run.id()).unwrap().plans(), run.plans());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_thousand_tasks_runs_in_order() {
    let fixture = PlanFixture::new();
    let tasks: Vec<Value> = (0..1_000)
        .map(|number: usize| {
            let before: Vec<String> = [20, 33]
                .iter()
                .filter_map(|back| Some(format!("t{}", number.checked_sub(*back)?)))
                .collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            work_task(&format!("t{number}"), 0, &before)
        })
        .collect();
    let mut new = plan_task(json!({"max_parallel": 16, "tasks": tasks}));
    new.settings.max_calls = 1_001;
    let run = fixture.driver([]).start(new).await.unwrap();
    assert_eq!(plan(&run).status(), PlanTaskStatus::Success);
    assert_eq!(run.calls_used(), 1_001);
    assert!(fixture.max_concurrent() <= 16);
    let log = fixture.log();
    assert_eq!(log.len(), 2_000);
    let places: BTreeMap<String, usize> = log
        .iter()
        .enumerate()
        .map(|(place, done)| (format!("{done:?}"), place))
        .collect();
    let place = |done: WorkEvent| places[&format!("{done:?}")];
    for (task, _) in plan(&run).tasks() {
        let begun = place(WorkEvent::Started(task.id.to_string()));
        for before in &task.depends_on {
            assert!(
                place(WorkEvent::Ended(before.to_string())) < begun,
                "{}",
                task.id
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequential_plan_runs_one_task_at_a_time() {
    let fixture = PlanFixture::new();
    let tasks: Vec<Value> = (0..5)
        .map(|number| work_task(&format!("t{number}"), 5, &[]))
        .collect();
    let plan = json!({"execution_mode": "sequential", "tasks": tasks});
    let run = fixture.driver([]).start(plan_task(plan)).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.max_concurrent(), 1);
    assert_eq!(fixture.log().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_of_a_task_is_passed_to_dependent_tasks() {
    let fixture = PlanFixture::new();
    let tasks = json!({"tasks": [
        work_task("first", 1, &[]),
        {"id": "second", "tool": "flaky", "depends_on": ["first"],
         "arguments": {"name": {"$from": "first", "at": "/letters/0"}, "times": 0}},
        {"id": "third", "tool": "flaky", "depends_on": ["first"], "on_failure": "skip_dependents",
         "arguments": {"name": {"$from": "first", "at": "/nothing"}, "times": 0}},
    ]});
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    let (_, second) = plan(&run).task("second").unwrap();
    assert_eq!(second.result, Some(json!("first")));
    let (_, third) = plan(&run).task("third").unwrap();
    assert_eq!(third.status, PlanTaskStatus::Error);
    let why = third.failure.as_ref().unwrap();
    assert_eq!(why.category, ErrorCategory::InvalidArguments);
    assert!(why.operator_message.contains("/nothing"), "{why:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_task_is_retried_and_then_skips_its_dependents() {
    let fixture = PlanFixture::new();
    let flaky = |id: &str, times: u32, retries: u32| {
        json!({"id": id, "tool": "flaky", "arguments": {"name": id, "times": times},
               "retries": retries, "on_failure": "skip_dependents"})
    };
    let tasks = json!({"tasks": [
        flaky("twice", 2, 2), flaky("never", 9, 1),
        work_task("after_twice", 1, &["twice"]), work_task("after_never", 1, &["never"]),
    ]});
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    let found = statuses(&run);
    assert_eq!(found["twice"], PlanTaskStatus::Success);
    assert_eq!(found["never"], PlanTaskStatus::Error);
    assert_eq!(found["after_twice"], PlanTaskStatus::Success);
    assert_eq!(found["after_never"], PlanTaskStatus::Skipped);
    assert_eq!((fixture.times("twice"), fixture.times("never")), (3, 2));
    assert_eq!(plan(&run).status(), PlanTaskStatus::Error);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_reversible_or_idempotent_calls_are_retried() {
    let fixture = PlanFixture::new();
    let failing = |tool: &str| {
        json!({"id": tool, "tool": tool, "arguments": {"name": tool}, "retries": 2,
               "confidence": 0.99, "on_failure": "skip_dependents"})
    };
    let reading = json!({"id": "flaky", "tool": "flaky", "arguments": {"name": "flaky", "times": 9},
                         "retries": 2, "on_failure": "skip_dependents"});
    let tasks = [reading, failing("post"), failing("put"), failing("drop")];
    let tasks = json!({ "tasks": tasks });
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    assert_eq!(fixture.approve_all(), 1);
    let run = fixture.driver([]).resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    for (task, times) in [("flaky", 3), ("post", 1), ("put", 3), ("drop", 1)] {
        assert_eq!(fixture.times(task), times, "{task}");
        assert_eq!(statuses(&run)[task], PlanTaskStatus::Error, "{task}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn irreversible_tasks_wait_for_approval_and_run_once_and_alone() {
    let fixture = PlanFixture::new();
    let pay = |id: &str| json!({"id": id, "tool": "pay", "arguments": {"name": id}, "retries": 3});
    let tasks = json!({"tasks": [
        pay("p1"), pay("p2"), pay("p3"),
        work_task("after", 1, &["p1", "p2", "p3"]), work_task("beside", 1, &[]),
    ]});
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    // The independent task did not wait.
    assert_eq!(fixture.times("beside"), 1);
    assert_eq!(fixture.times("p1"), 0);
    assert_eq!(statuses(&run)["p1"], PlanTaskStatus::InProgress);
    // Without decisions, resuming it changes nothing.
    let run = fixture.driver([]).resume(run.id()).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_eq!(fixture.approve_all(), 3);
    fixture.log.lock().unwrap().clear();
    let run = fixture.driver([]).resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(plan(&run).status(), PlanTaskStatus::Success);
    assert_eq!(fixture.max_concurrent(), 1);
    for task in ["p1", "p2", "p3", "after"] {
        assert_eq!(fixture.times(task), 1, "{task}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_with_tainted_input_needs_approval() {
    let fixture = PlanFixture::new();
    let send = |id: &str, before: &[&str]| {
        json!({"id": id, "tool": "send", "arguments": {"name": id}, "confidence": 0.99,
               "depends_on": before})
    };
    let surf = json!({"id": "surf", "tool": "surf", "arguments": {"name": "surf"}});
    let tasks = json!({"tasks": [
        surf, work_task("between", 1, &["surf"]), send("tainted", &["between"]), send("clean", &[]),
    ]});
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_eq!(fixture.times("clean"), 1);
    assert_eq!(fixture.times("tainted"), 0);
    let asked = fixture.store();
    let asked = asked.approvals(&ApprovalFilter::pending(), now()).unwrap();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].call().run.as_str().ends_with("task-tainted.1"));
    // The question names the parent call.
    assert_eq!(asked[0].request().parents.len(), 1);
    assert_eq!(asked[0].request().parents[0].run, *run.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn untrusted_content_read_by_a_plan_taints_the_run_that_created_it() {
    let fixture = PlanFixture::new();
    let surf = json!({"tasks": [{"id": "s", "tool": "surf", "arguments": {"name": "s"}}]});
    let answers = [
        call(CREATE_EXECUTION_PLAN, surf),
        call("send", json!({"name": "mail"})),
        finish("Done."),
    ];
    let run = fixture.driver(answers).start(model_task()).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_eq!(fixture.times("mail"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_result_that_a_model_gives_after_reading_untrusted_content_is_tainted() {
    let tasks = json!({"tasks": [
        {"id": "read", "description": "Read the page"},
        {"id": "mail", "tool": "send", "arguments": {"name": {"$from": "read"}},
         "confidence": 0.99, "depends_on": ["read"]},
    ]});
    let mark = json!({"task_id": "read", "status": "success", "result": "page"});
    let untrusted = [call("surf", json!({"name": "page"}))];
    let trusted = [call("work", json!({"name": "note", "ms": 1}))];
    for (reading, is_tainted) in [(untrusted, true), (trusted, false)] {
        let fixture = PlanFixture::new();
        let answers = [call(CREATE_EXECUTION_PLAN, tasks.clone())];
        let answers = answers.into_iter().chain(reading);
        let marked = [call(UPDATE_TASK_STATUS, mark.clone()), finish("Done.")];
        let driver = fixture.driver(answers.chain(marked));
        let run = driver.start(model_task()).await.unwrap();
        let (_, read) = plan(&run).task("read").unwrap();
        assert_eq!(read.tainted, is_tainted);
        let waits = run.end_or_waiting() == Some(RunEnd::WaitingForPerson);
        assert_eq!(waits, is_tainted, "{:?}", run.response());
        let sent = fixture.times("page") - usize::from(is_tainted);
        assert_eq!(sent, usize::from(!is_tainted));
        // The journal folds to the same plans.
        let folded = fixture.store().fold(run.id()).unwrap();
        assert_eq!(folded.plans(), run.plans());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_tasks_count_against_the_run_of_the_plan() {
    let fixture = PlanFixture::new();
    let tasks: Vec<Value> = (0..10)
        .map(|number| work_task(&format!("t{number}"), 1, &[]))
        .collect();
    let mut new = plan_task(json!({"max_parallel": 3, "tasks": tasks}));
    new.settings.max_calls = 5;
    let run = fixture.driver([]).start(new).await.unwrap();
    // One of the calls created the plan.
    let ended = |done: &&WorkEvent| matches!(done, WorkEvent::Ended(_));
    assert_eq!(fixture.log().iter().filter(ended).count(), 4);
    let refused = plan(&run)
        .tasks()
        .find_map(|(_, state)| state.failure.as_ref());
    assert_eq!(refused.unwrap().category, ErrorCategory::BudgetExceeded);
    assert_eq!(plan(&run).status(), PlanTaskStatus::Error);
    assert_eq!(run.calls_used(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_marks_its_own_tasks() {
    let fixture = PlanFixture::new();
    let tasks = json!({"tasks": [
        work_task("read", 1, &[]),
        {"id": "think", "description": "Think about it", "depends_on": ["read"]},
        work_task("write", 1, &["think"]),
    ]});
    let mark = |task: &str, status: &str| {
        call(
            UPDATE_TASK_STATUS,
            json!({"task_id": task, "status": status, "result": "thought"}),
        )
    };
    let answers = [
        call(CREATE_EXECUTION_PLAN, tasks),
        mark("write", "success"),
        mark("think", "success"),
        call("get_execution_status", json!({})),
        finish("Done."),
    ];
    let run = fixture.driver(answers).start(model_task()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed), "{:?}", run.turns());
    let outcomes: Vec<_> = run.calls().map(|call| call.outcome().unwrap()).collect();
    let made = outcomes[0].unwrap();
    assert_eq!(made["status"], "in_progress");
    assert_eq!(made["tasks"][0]["status"], "success");
    let refused = outcomes[1].unwrap_err();
    assert!(
        refused.model_message.contains("runs automatically"),
        "{refused:?}"
    );
    assert_eq!(outcomes[2].unwrap()["tasks"][2]["status"], "success");
    assert_eq!(outcomes[3].unwrap()["status"], "success");
    assert_eq!(fixture.times("write"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_errors_of_a_plan_are_reported_to_the_model() {
    let fixture = PlanFixture::new();
    let wrong = json!({"tasks": [
        {"id": "a", "tool": "wrok", "arguments": {"name": "a", "ms": 1}},
        {"id": "b", "tool": "work", "arguments": {"name": 7, "ms": 1}},
        {"id": "c", "agent": "nobody", "description": "Help"},
    ]});
    let cycle = json!({"tasks": [work_task("a", 1, &["b"]), work_task("b", 1, &["a"])]});
    let none = json!({"tasks": []});
    let answers = [wrong, cycle, none].map(|plan| call(CREATE_EXECUTION_PLAN, plan));
    let answers = answers.into_iter().chain([finish("I cannot.")]);
    let run = fixture.driver(answers).start(model_task()).await.unwrap();
    let messages: Vec<String> = run
        .calls()
        .map(|call| call.outcome().unwrap().unwrap_err().model_message.clone())
        .collect();
    for part in ["`wrok`", "did you mean `work`", "`b`", "`nobody`"] {
        assert!(messages[0].contains(part), "{part}: {}", messages[0]);
    }
    assert!(messages[1].contains("a -> b -> a"), "{}", messages[1]);
    assert!(messages[2].contains("has no tasks"), "{}", messages[2]);
    assert!(run.plans().is_empty() && fixture.log().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_plan_can_be_changed_and_marked_by_people() {
    let fixture = PlanFixture::new();
    let by_hand = json!({"id": "sign", "description": "Sign it"});
    let tasks =
        json!({"tasks": [work_task("draft", 1, &[]), by_hand, work_task("old", 1, &["sign"])]});
    let run = fixture.driver([]).start(plan_task(tasks)).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    let (store, id) = (fixture.store(), plan(&run).id().clone());
    let changed = json!({"tasks": [
        work_task("draft", 1, &[]), by_hand, work_task("new", 1, &["sign"]),
    ]});
    let changed: RawPlan = serde_json::from_value(changed).unwrap();
    let changed = Plan::try_from(changed).unwrap();
    let bob = identity("bob");
    store.replan(&id, &changed, &bob, now()).unwrap();
    let sign = PlanTaskId::new("sign").unwrap();
    let status = (&sign, PlanTaskStatus::Success);
    store
        .mark_task(&id, status, Some(json!("Bob")), &bob, now())
        .unwrap();
    let outsider = windlass_core::approval::TenantPrincipal::new(
        windlass_spec::NonEmptyText::new("elsewhere").unwrap(),
        windlass_core::approval::Principal::new("eve").unwrap(),
    );
    assert!(
        store
            .mark_task(&id, status, None, &outsider, now())
            .is_err()
    );
    let run = fixture.driver([]).resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!((fixture.times("new"), fixture.times("old")), (1, 0));
    let (_, signed) = plan(&run).task("sign").unwrap();
    assert_eq!(signed.result, Some(json!("Bob")));
    // A run that is over takes no more commands.
    assert!(store.mark_task(&id, status, None, &bob, now()).is_err());
    let events = store.events(run.id()).unwrap();
    let by = events.iter().find_map(|(_, event)| match event {
        Event::TaskMarked { by, .. } => by.clone(),
        _ => None,
    });
    assert_eq!(by.unwrap().as_str(), "bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_plan_takes_commands_before_its_next_task() {
    let fixture = PlanFixture::new();
    // The tasks run one after the other, and none lasts until the next poll of the inbox.
    let tasks: Vec<Value> = (0..12)
        .map(|number| work_task(&format!("t{number}"), 100, &[]))
        .collect();
    let tasks = json!({"execution_mode": "sequential", "tasks": tasks});
    let driver = fixture.driver([]);
    let run = tokio::spawn(async move { driver.start(plan_task(tasks)).await });
    while fixture.log().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let store = fixture.store();
    // A reversible task starts before the journal of its plan is on the disk, where readers see it.
    let plans = loop {
        let plans = store.plans("local", 1, None).unwrap();
        if !plans.is_empty() {
            break plans;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let id = plans[0].plan.clone();
    let last = PlanTaskId::new("t11").unwrap();
    let status = (&last, PlanTaskStatus::Skipped);
    let command = store.mark_task(&id, status, None, &identity("bob"), now());
    let run = run.await.unwrap().unwrap();
    assert_eq!(statuses(&run)["t11"], PlanTaskStatus::Skipped);
    assert_eq!((fixture.times("t10"), fixture.times("t11")), (1, 0));
    // It was taken long before the end, with the requested event.
    let seq = store.taken(command.unwrap()).unwrap().unwrap();
    let events = store.events(run.id()).unwrap();
    let taken = events.iter().position(|(number, _)| *number == seq);
    assert!(matches!(events[taken.unwrap()].1, Event::TaskMarked { .. }));
    assert!(taken.unwrap() + 10 < events.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_plan_cancels_its_tasks() {
    let fixture = PlanFixture::new();
    let stop = Stop::default();
    let tasks =
        json!({"tasks": [work_task("long", 20_000, &[]), work_task("after", 1, &["long"])]});
    let driver = fixture.driver([]).stopped_by(stop.clone());
    let run = tokio::spawn(async move { driver.start(plan_task(tasks)).await });
    while fixture.log().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.at_once.cancel();
    let run = run.await.unwrap().unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    assert_eq!(statuses(&run)["long"], PlanTaskStatus::Cancelled);
    assert_eq!(statuses(&run)["after"], PlanTaskStatus::Skipped);
    let store = fixture.store();
    let long = RunId::new(format!("{}.1.0.task-long.1", run.id())).unwrap();
    assert_eq!(store.fold(&long).unwrap().end(), Some(&RunEnd::Cancelled));
}

/// A pseudo-random graph of tasks, the same for each number.
fn random_plan(number: u64, count: usize) -> Value {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let tasks: Vec<Value> = (0..count)
        .map(|task| {
            let before: Vec<String> = (0..task)
                .filter(|_| next(4) == 0)
                .map(|before| format!("t{before}"))
                .collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            work_task(&format!("t{task}"), 2 + next(12), &before)
        })
        .collect();
    json!({"max_parallel": 1 + next(5), "tasks": tasks})
}

#[tokio::test(flavor = "multi_thread")]
async fn random_plans_run_in_order_and_end_each_task_once_despite_crashes() {
    for number in 0..12u64 {
        let fixture = PlanFixture::new();
        let plan_given = random_plan(number + 1, 10);
        // The process dies repeatedly, a little later each time.
        let mut id = None;
        let mut run = None;
        for life in 0..60u64 {
            let driver = fixture.driver([]);
            let work = async {
                match &id {
                    None => driver.start(plan_task(plan_given.clone())).await,
                    Some(id) => driver.resume(id).await,
                }
            };
            // In the end it runs to completion, even on a slow machine.
            let time_limit = match life {
                0..40 => Duration::from_millis(4 + number + life * 3),
                _ => Duration::from_secs(60),
            };
            match tokio::time::timeout(time_limit, work).await {
                Ok(Ok(done)) => {
                    run = Some(done);
                    break;
                }
                // The runs of the dropped process stay owned a little longer, because its threads still run.
                Ok(Err(error)) => {
                    assert!(
                        error.to_string().contains("another process drives"),
                        "{error}"
                    );
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(_) => {}
            }
            drop(driver);
            let runs = fixture
                .store()
                .runs(&windlass_store::RunFilter::default())
                .unwrap();
            let outer = runs.iter().map(|run| run.run.clone());
            id = id.or(outer.min_by_key(|id| id.as_str().len()));
        }
        let run = run.unwrap_or_else(|| panic!("the plan {number} was never done"));
        assert_eq!(run.end(), Some(&RunEnd::Completed), "{number}");
        assert_eq!(plan(&run).status(), PlanTaskStatus::Success, "{number}");
        let events = fixture.store().events(run.id()).unwrap();
        for (task, state) in plan(&run).tasks() {
            let ended = events.iter().filter(|(_, event)| {
                matches!(event, Event::TaskEnded { task: ended, .. } if *ended == task.id)
            });
            assert_eq!(ended.count(), 1, "{number}: {}", task.id);
            assert_eq!(state.attempts, 1);
            let begun = fixture.position(&WorkEvent::Started(task.id.to_string()));
            for before in &task.depends_on {
                assert!(
                    fixture.position(&WorkEvent::Ended(before.to_string())) < begun,
                    "{number}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_task_of_a_stopped_plan_starts_until_it_is_started_again() {
    let fixture = PlanFixture::new();
    let tasks = json!({"tasks": [work_task("a", 1, &[]), work_task("b", 1, &["a"])]});
    let store = fixture.store();
    let order = |run: &RunId| StopOrder {
        tenant: Some(identity("ann").tenant),
        target: StopTarget::Run(run.clone()),
        by: identity("bea").principal,
        at: now(),
        reason: None,
    };
    let (stopping, stop) = (Arc::clone(&store), order);
    let watch = Arc::new(move |run: &RunId, progress: Progress<'_>| {
        if let Progress::Event(Event::TaskEnded { task, .. }) = progress
            && task.as_str() == "a"
        {
            stopping.stop(&identity("bea").tenant, stop(run)).unwrap();
            std::thread::sleep(STOPS_AGE + Duration::from_millis(50));
        }
    });
    let driver = fixture.driver([]).watched_by(watch);
    let run = driver.start(plan_task(tasks)).await.unwrap();
    assert_eq!(run.end_or_waiting(), None);
    assert_eq!(run.stopped().unwrap().by.as_str(), "bea");
    assert_eq!(statuses(&run)["b"], PlanTaskStatus::Pending);
    assert_eq!(fixture.log().len(), 2, "only the first task ran");
    let resumable = store.resumable(now()).unwrap();
    assert!(resumable.iter().any(|found| found.run == *run.id()));
    let tenant = identity("bea").tenant;
    store.start_again(&tenant, order(run.id())).unwrap();
    let resumed = fixture.driver([]).resume(run.id()).await.unwrap();
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    assert_eq!(statuses(&resumed)["b"], PlanTaskStatus::Success);
    assert_eq!(fixture.log().len(), 4);
}
