//! A front end needs no other crate than this one: every group of operations, called as a server would.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use windlass_runtime::{ConfigurationFiles, FileTexts, Stored, text_digest};
use windlass_service::types::{
    ApprovalStatus, CallId, CallState, Event, NonEmptyText, OpenExchange, PersonDecision, Plan,
    PlanTaskStatus, Policies, Principal, RequestedArguments, Run, RunEnd, RunId, RunState,
    Settings, Task, Verdict,
};
use windlass_service::{
    ApprovalChangeKind, ApprovalQuery, Attachment, BoundAgent, ConversationChoice, DecisionRequest,
    ErrorKind, ExecutionQuery, ExplainedCall, HealthRequest, Identity, NewRun, Overrides,
    QuestionId, RunOptions, RunQuery, Scope, Service, ToolCallRequest, ToolQuery, WorkerOptions,
    execution_result, read_plan,
};

/// How long a test waits for a change that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of one project, in a directory of its own.
struct Door {
    directory: tempfile::TempDir,
    service: Service,
}

impl Door {
    fn open() -> Self {
        Self::with_policy("")
    }

    /// A server of a project with one more policy.
    fn with_policy(policy: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let overrides = Overrides {
            data: Some(directory.path().join("data")),
            ..Overrides::default()
        };
        let project = directory.path().join("windlass.toml");
        let service = Service::open(Some(&project), overrides);
        let admin = caller("operator", &[Scope::Admin]);
        let written = service.init_project(&admin, directory.path(), false);
        assert_eq!(written.unwrap().written.len(), 4);
        let policies = directory.path().join("policy.cedar");
        let text = std::fs::read_to_string(&policies).unwrap();
        std::fs::write(&policies, format!("{text}\n{policy}")).unwrap();
        service.check().unwrap();
        Self { directory, service }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The agent of the project, as `POST /agents/assistant/runs` binds it.
    fn bind(&self, caller: &Identity) -> BoundAgent {
        let agent = self.service.show_agent(caller, "assistant").unwrap();
        let options = RunOptions {
            model: Some("reflex".to_owned()),
            ..RunOptions::default()
        };
        self.service
            .bind(caller, &agent.declared, &options)
            .unwrap()
    }

    async fn ask(&self, caller: &Identity, task: &str) -> Run {
        let new = NewRun {
            task: Task {
                description: task.to_owned(),
                ..Task::default()
            },
            ..NewRun::default()
        };
        let bound = self.bind(caller);
        let begun = bound.begin(caller, new, Attachment::default()).await;
        let begun = begun.unwrap();
        let id = begun.id().clone();
        let run = begun.drive().await.unwrap();
        assert_eq!(run.id(), &id);
        run
    }
}

fn caller(name: &str, scopes: &[Scope]) -> Identity {
    let tenant = NonEmptyText::new("acme").unwrap();
    Identity::new(
        tenant,
        Principal::new(name).unwrap(),
        scopes.iter().copied(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_listed_and_shown_with_the_schemas_of_their_tools() {
    let door = Door::open();
    let reader = caller("ada", &[Scope::Read]);
    std::fs::write(door.path().join("broken.gram"), "[a:Agent |").unwrap();
    let listed = door.service.list_agents(&reader).unwrap();
    let names: Vec<&str> = listed
        .agents
        .iter()
        .map(|a| a.agent().name().as_str())
        .collect();
    assert_eq!(names, ["assistant"]);
    assert!(listed.invalid[0].file.ends_with("broken.gram"));
    assert!(!listed.invalid[0].errors.is_empty());

    let shown = door.service.show_agent(&reader, "assistant").unwrap();
    let tool = shown.agent().tool("read_file").unwrap();
    assert_eq!(tool.schema()["required"][0], "path");

    let unknown = door.service.show_agent(&reader, "asistant").unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(unknown.hint().unwrap().contains("assistant"), "{unknown}");

    // The same name in two files needs the file.
    let text = std::fs::read_to_string(door.path().join("assistant.gram")).unwrap();
    std::fs::write(door.path().join("second.gram"), text).unwrap();
    let ambiguous = door.service.show_agent(&reader, "assistant").unwrap_err();
    assert_eq!(ambiguous.code(), "ambiguous");
    let chosen = door.service.show_agent(&reader, "second.gram:assistant");
    assert!(chosen.unwrap().file.ends_with("second.gram"));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_started_listed_by_page_and_followed() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Run]);
    let bob = caller("bob", &[Scope::Run]);
    let mut runs: Vec<RunId> = Vec::new();
    for caller in [&ada, &bob, &ada] {
        let run = door.ask(caller, "What time is it in Berlin?").await;
        assert_eq!(run.end(), Some(&RunEnd::Completed));
        runs.push(run.id().clone());
    }
    runs.reverse();
    let ids = |query: &RunQuery| -> Vec<RunId> {
        let listed = door.service.list_runs(&ada, query).unwrap();
        listed.into_iter().map(|run| run.summary.run).collect()
    };
    assert_eq!(ids(&RunQuery::default()), runs);
    let first = RunQuery {
        limit: Some(2),
        ..RunQuery::default()
    };
    assert_eq!(ids(&first), runs[..2]);
    let next = RunQuery {
        after: Some(runs[1].to_string()),
        ..first
    };
    assert_eq!(ids(&next), runs[2..]);
    let of_bob = RunQuery {
        principal: Some("bob".to_owned()),
        state: Some(RunState::Ended),
        ..RunQuery::default()
    };
    assert_eq!(ids(&of_bob), runs[1..2]);
    let since = door.service.show_run(&ada, runs[0].as_str()).unwrap();
    let recent = RunQuery {
        since: Some(since.summary.started_at),
        ..RunQuery::default()
    };
    assert_eq!(ids(&recent), runs[..1]);
    let unknown = RunQuery {
        after: Some("nothing".to_owned()),
        ..RunQuery::default()
    };
    let refused = door.service.list_runs(&ada, &unknown).unwrap_err();
    assert_eq!(refused.code(), "no_such_run");

    let mut events = door.service.events(&ada, runs[0].as_str(), 0).unwrap();
    let (_, first) = events.next().await.unwrap().unwrap();
    assert!(matches!(first, Event::Started { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_continued_listed_and_deleted() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Run]);
    let bound = door.bind(&ada);
    let new = ConversationChoice::New;
    let service = &door.service;
    let mut conversation = service.conversation(&ada, "assistant", &new).unwrap();
    for message in ["What time is it?", "And in Berlin?"] {
        let new = NewRun::of_message(&conversation, message, Settings::default());
        bound.start(&ada, new, Attachment::default()).await.unwrap();
        conversation = service.show_conversation(&ada, &conversation.id).unwrap();
    }
    let listed = service.list_conversations(&ada, Some("assistant"), 10, None);
    assert_eq!(listed.unwrap(), std::slice::from_ref(&conversation));
    let after = Some(conversation.id.as_str());
    let next = service.list_conversations(&ada, None, 10, after).unwrap();
    assert_eq!(next, []);
    let shown = service.show_conversation(&ada, &conversation.id).unwrap();
    // Two questions with their answers, a call and its result.
    assert_eq!((shown.messages.len(), shown.runs.len()), (6, 2));

    // It belongs to its principal.
    let bob = caller("bob", &[Scope::Admin]);
    assert_eq!(
        service.list_conversations(&bob, None, 10, None).unwrap(),
        []
    );
    let missing = service.show_conversation(&bob, &conversation.id);
    assert_eq!(missing.unwrap_err().code(), "no_such_conversation");
    let missing = service.delete_conversation(&bob, &conversation.id);
    assert_eq!(missing.unwrap_err().code(), "no_such_conversation");
    service.delete_conversation(&ada, &conversation.id).unwrap();
    let gone = service.show_conversation(&ada, &conversation.id);
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
}

/// A run that waits for a person, and the conversation that it is to answer.
async fn waiting_answer(door: &Door, caller: &Identity) -> (Run, String) {
    let service = &door.service;
    let choice = ConversationChoice::New;
    let conversation = service.conversation(caller, "assistant", &choice).unwrap();
    let new = NewRun::of_message(&conversation, "What time is it?", Settings::default());
    let bound = door.bind(caller);
    let run = bound.start(caller, new, Attachment::default()).await;
    let run = run.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    (run, conversation.id)
}

fn reject(door: &Door, run: &Run) {
    let approver = caller("bob", &[Scope::Approve]);
    let question = ApprovalQuery {
        run: Some(run.id().to_string()),
        ..ApprovalQuery::default()
    };
    let asked = door.service.list_approvals(&approver, &question).unwrap();
    let decision = PersonDecision::Reject { message: None };
    let decided = door
        .service
        .decide(&approver, asked[0].call(), decision.into());
    decided.unwrap();
}

/// The texts of a conversation, and how many runs have no final answer there.
fn texts_of(door: &Door, caller: &Identity, id: &str) -> (String, usize) {
    let shown = door.service.show_conversation(caller, id).unwrap();
    (format!("{:?}", shown.messages), shown.open.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_gets_the_answer_of_a_run_that_a_worker_ends() {
    let door = Door::with_policy(ASK_FOR_THE_TIME);
    let ada = caller("ada", &[Scope::Run]);
    let (run, id) = waiting_answer(&door, &ada).await;
    let (texts, open) = texts_of(&door, &ada, &id);
    assert!(texts.contains("waiting for an approval"), "{texts}");
    assert_eq!(open, 1);

    // A message that was added meanwhile stays behind the answer.
    let conversation = door.service.show_conversation(&ada, &id).unwrap();
    let next = NewRun::of_message(&conversation, "How are you?", Settings::default());
    let bound = door.bind(&ada);
    bound
        .start(&ada, next, Attachment::default())
        .await
        .unwrap();

    reject(&door, &run);
    let worker = WorkerOptions {
        until_idle: true,
        ..WorkerOptions::default()
    };
    let operator = caller("operator", &[Scope::Admin]);
    door.service.work(&operator, worker).await.unwrap();
    let ended = door.service.run(&ada, run.id().as_str()).unwrap();
    assert!(ended.end().is_some(), "{:?}", ended.end());
    let (texts, open) = texts_of(&door, &ada, &id);
    assert!(!texts.contains("waiting for an approval"), "{texts}");
    assert!(!texts.contains("has not ended"), "{texts}");
    assert_eq!(open, 0);
    let places = ["What time is it?", "How are you?"].map(|text| texts.find(text));
    assert!(places[0] < places[1], "{texts}");
    let shown = door.service.show_conversation(&ada, &id).unwrap();
    assert_eq!(shown.runs.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_gets_the_answer_of_a_run_that_is_cancelled() {
    let door = Door::with_policy(ASK_FOR_THE_TIME);
    let ada = caller("ada", &[Scope::Run]);
    let (run, id) = waiting_answer(&door, &ada).await;
    let cancelled = door.service.cancel_run(&ada, run.id().as_str()).await;
    cancelled.unwrap();
    let (texts, open) = texts_of(&door, &ada, &id);
    assert!(texts.contains("stopped before I could answer"), "{texts}");
    assert_eq!(open, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_dead_process_did_not_store_is_there_when_the_conversation_is_read() {
    let door = Door::with_policy(ASK_FOR_THE_TIME);
    let ada = caller("ada", &[Scope::Run]);
    let (run, id) = waiting_answer(&door, &ada).await;
    let cancelled = door.service.cancel_run(&ada, run.id().as_str()).await;
    cancelled.unwrap();
    // As the process left it that was killed after the end of the run.
    let mut stale = door.service.show_conversation(&ada, &id).unwrap();
    stale.messages.clear();
    stale.open.push(OpenExchange {
        run: run.id().clone(),
        first: 0,
        count: 0,
    });
    let stored = Stored::open(&door.path().join("data")).unwrap();
    stored.store().save_conversation(&stale).unwrap();
    let (texts, open) = texts_of(&door, &ada, &id);
    assert!(texts.contains("stopped before I could answer"), "{texts}");
    assert_eq!(open, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_was_deleted_does_not_come_back_with_an_answer() {
    let door = Door::with_policy(ASK_FOR_THE_TIME);
    let ada = caller("ada", &[Scope::Run]);
    let (run, id) = waiting_answer(&door, &ada).await;
    door.service.delete_conversation(&ada, &id).unwrap();
    let cancelled = door.service.cancel_run(&ada, run.id().as_str()).await;
    cancelled.unwrap();
    let gone = door.service.show_conversation(&ada, &id).unwrap_err();
    assert_eq!(gone.code(), "no_such_conversation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_start_leaves_no_conversation() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Run]);
    let known = door.ask(&ada, "What time is it?").await;
    let choice = ConversationChoice::New;
    let service = &door.service;
    let conversation = service.conversation(&ada, "assistant", &choice).unwrap();
    let mut new = NewRun::of_message(&conversation, "And now?", Settings::default());
    new.run = Some(known.id().clone());
    let bound = door.bind(&ada);
    let refused = bound.begin(&ada, new, Attachment::default()).await;
    assert!(refused.is_err());
    assert_eq!(
        service.list_conversations(&ada, None, 10, None).unwrap(),
        []
    );
}

/// The clock needs approval.
const ASK_FOR_THE_TIME: &str = r#"
@id("the-time-needs-approval")
@reason("the time is precious")
forbid (principal, action == Action::"get_current_time", resource)
unless { context.approved };
"#;

/// Calls a tool that needs approval and returns the run, which waits.
async fn call_that_waits(door: &Door, caller: &Identity) -> Run {
    let service = &door.service;
    let tool = service.describe_tool(caller, Some("builtin"), "get_current_time", None);
    let call = ToolCallRequest {
        tool: tool.unwrap(),
        arguments: RequestedArguments::Json(serde_json::json!({})),
        is_approved: false,
    };
    let run = service.call_tool(caller, call, Attachment::default()).await;
    let run = run.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_bound_after_a_change_of_the_configuration_follows_it() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Run]);
    let run = door.ask(&ada, "What time is it?").await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::Completed));

    let policies = door.path().join("policy.cedar");
    let before = std::fs::read_to_string(&policies).unwrap();
    std::fs::write(&policies, format!("{before}\n{ASK_FOR_THE_TIME}")).unwrap();
    let run = door.ask(&ada, "What time is it?").await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));

    // A configuration that cannot be read is not applied.
    let file = door.path().join("windlass.toml");
    let readable = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, "[").unwrap();
    let run = door.ask(&ada, "What time is it?").await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));

    // With policies that cannot be used, no agent is bound.
    std::fs::write(&file, readable).unwrap();
    std::fs::write(&policies, "permit (").unwrap();
    let agent = door
        .service
        .show_agent(&caller("ada", &[Scope::Read]), "assistant");
    let options = RunOptions {
        model: Some("reflex".to_owned()),
        ..RunOptions::default()
    };
    let bound = door.service.bind(&ada, &agent.unwrap().declared, &options);
    let error = bound.err().unwrap().to_string();
    assert!(error.contains("the policies do not fit"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_are_followed_listed_by_page_and_decided() {
    let door = Door::with_policy(ASK_FOR_THE_TIME);
    let ada = caller("ada", &[Scope::Run]);
    let approver = caller("eve", &[Scope::Approve]);
    let service = &door.service;
    let mut changes = service.approval_changes(&approver, None).unwrap();
    let first = call_that_waits(&door, &ada).await;
    let change = tokio::time::timeout(PATIENCE, changes.next()).await;
    let asked = change.unwrap().unwrap();
    assert_eq!(asked.kind, ApprovalChangeKind::Asked);
    assert_eq!(asked.approval.run(), first.id());

    call_that_waits(&door, &ada).await;
    let pending = ApprovalQuery {
        status: Some(ApprovalStatus::Pending),
        limit: Some(1),
        ..ApprovalQuery::default()
    };
    let page = service.list_approvals(&approver, &pending).unwrap();
    assert_eq!(page.len(), 1);
    assert_eq!(page[0].run(), first.id());
    let next = ApprovalQuery {
        after: Some(QuestionId::of(&page[0])),
        ..pending.clone()
    };
    let next = service.list_approvals(&approver, &next).unwrap();
    assert_eq!(next.len(), 1);
    assert_ne!(next[0].run(), first.id());

    let shown = service.show_approval(&approver, &page[0].call().to_string());
    let shown = shown.unwrap().approval;
    let request = DecisionRequest {
        digest: Some(shown.digest()),
        ..DecisionRequest::from(PersonDecision::Reject { message: None })
    };
    let taken = service.decide(&approver, shown.call(), request).unwrap();
    assert_eq!(taken.approval.status(), ApprovalStatus::Rejected);

    // The stream continues with the second question and the decision.
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        let change = tokio::time::timeout(PATIENCE, changes.next()).await;
        kinds.push(change.unwrap().unwrap().kind);
    }
    kinds.sort_by_key(|kind| kind.as_str());
    let expected = [ApprovalChangeKind::Asked, ApprovalChangeKind::Settled];
    assert_eq!(kinds, expected);

    // A reader that was interrupted continues from the time of the last change it had.
    let from = taken.approval.settled_at().unwrap();
    let mut changes = service.approval_changes(&approver, Some(from)).unwrap();
    let change = tokio::time::timeout(PATIENCE, changes.next()).await;
    let settled = change.unwrap().unwrap();
    assert_eq!(settled.kind, ApprovalChangeKind::Settled);
    assert_eq!(settled.approval.call(), shown.call());
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_called_and_counted() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Run]);
    let service = &door.service;
    let builtin = ToolQuery {
        library: Some("builtin".to_owned()),
        ..ToolQuery::default()
    };
    let listed = service.list_tools(&ada, &builtin).unwrap();
    assert!(
        listed
            .iter()
            .any(|tool| tool.entry.name.as_str() == "get_current_time")
    );

    let mut calls: Vec<CallId> = Vec::new();
    for _ in 0..2 {
        let tool = service
            .describe_tool(&ada, Some("builtin"), "get_current_time", None)
            .unwrap();
        let call = ToolCallRequest {
            tool,
            arguments: RequestedArguments::Json(serde_json::json!({})),
            is_approved: false,
        };
        let run = service.call_tool(&ada, call, Attachment::default()).await;
        calls.push(run.unwrap().calls().next().unwrap().id().clone());
    }
    let statistics = service.tool_statistics(&ada, &ExecutionQuery::default());
    assert_eq!(statistics.unwrap()[0].success_count, 2);
    let first = ExecutionQuery {
        limit: Some(1),
        ..ExecutionQuery::default()
    };
    let page = service.tool_executions(&ada, &first).unwrap();
    assert_eq!(page[0].call, calls[1]);
    let next = ExecutionQuery {
        after: Some(page[0].call.clone()),
        ..first
    };
    let page = service.tool_executions(&ada, &next).unwrap();
    assert_eq!(page[0].call, calls[0]);
    let of_run = ExecutionQuery {
        run: Some(calls[0].run.to_string()),
        ..ExecutionQuery::default()
    };
    assert_eq!(service.tool_executions(&ada, &of_run).unwrap().len(), 1);

    let execution = service.show_execution(&ada, &calls[0]).unwrap();
    assert_eq!(execution.state, CallState::Success);
    execution_result(&execution).unwrap();
    let unknown = "r:9:9".parse().unwrap();
    let missing = service.show_execution(&ada, &unknown).unwrap_err();
    assert_eq!(missing.code(), "no_such_execution");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_shown_and_their_decisions_explained() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Read]);
    let service = &door.service;
    let source = service.active_policies(&ada).unwrap();
    assert!(source.name.ends_with("policy.cedar"), "{}", source.name);
    let agent = service.show_agent(&ada, "assistant").unwrap();
    let file = agent.declared.file();
    let loaded = service.load_policies(&ada, &source, file.tools()).unwrap();
    let policies: Policies = loaded.unwrap();
    let call = ExplainedCall {
        file,
        place: "assistant.gram",
        tool: "read_file",
        arguments: r#"{"path": "notes/welcome.md"}"#,
        confidence: None,
        environment: None,
        is_tainted: false,
    };
    let explained = service.explain_call(&ada, policies.clone(), &call).unwrap();
    assert_eq!(explained.explanation.decision.verdict, Verdict::Allow);
    let recorded = service.recorded_calls(&ada).unwrap();
    let replay = service
        .replay_policies(&ada, (&policies, false), &policies, &recorded, file.tools())
        .unwrap();
    assert_eq!(replay.differences.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_checked_executed_and_shown() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Run]);
    let service = &door.service;
    let bound = door.bind(&ada);
    let wrong = read_plan(r#"{"tasks": [{"id": "a", "tool": "fly"}]}"#, "the body").unwrap();
    assert_eq!(bound.check_plan(&wrong).unwrap_err().code(), "invalid_plan");
    let attachment = Attachment::default();
    let refused = bound.start_plan(&ada, &wrong, Settings::default(), false, attachment);
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(service.list_plans(&ada, 10, None).unwrap(), []);
    let not_json = read_plan("no", "the body").unwrap_err();
    assert_eq!(not_json.kind(), ErrorKind::Invalid);

    let text = r#"{"tasks": [{"id": "now", "tool": "get_current_time"}]}"#;
    let plan: Plan = read_plan(text, "the body").unwrap();
    let mut made = Vec::new();
    for _ in 0..2 {
        let attachment = Attachment::default();
        let run = bound.start_plan(&ada, &plan, Settings::default(), false, attachment);
        made.push(run.await.unwrap().plans()[0].id().clone());
    }
    let first = service.list_plans(&ada, 1, None).unwrap();
    assert_eq!(first[0].plan, made[1]);
    let next = service.list_plans(&ada, 1, Some(&first[0].plan)).unwrap();
    assert_eq!(next[0].plan, made[0]);
    let shown = service.show_plan(&ada, &made[0].to_string()).unwrap();
    assert_eq!(shown.state().unwrap().status(), PlanTaskStatus::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_memory_playbooks_gaps_and_health_are_read() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Read]);
    let service = &door.service;
    let values = service.configuration_values(&ada, None).unwrap().values;
    let policies = values.iter().find(|entry| entry.key == "policies").unwrap();
    assert!(policies.origin.contains("windlass.toml"));
    let health = HealthRequest {
        is_offline: true,
        ..HealthRequest::default()
    };
    let findings = service.examine(&ada, &health).await.unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.about == "configuration")
    );
    assert_eq!(
        service.list_missing_tools(&ada, None, None).unwrap().len(),
        0
    );
    assert!(service.list_playbooks(&ada, None).unwrap().is_empty());
    assert_eq!(service.list_holds(&ada, true).unwrap().len(), 0);
    let none = service.show_hold(&ada, "r:1:0").unwrap_err();
    assert_eq!(none.code(), "no_such_hold");
    service.memory_statistics(&ada).unwrap();
}

#[test]
fn what_is_recorded_of_a_project_is_the_text_that_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.toml");
    let used = "libraries = [\"builtin\"]\n";
    std::fs::write(&path, used).unwrap();
    let files = ConfigurationFiles::find(Some(&path), directory.path());
    let (_, read) = files.read(&FileTexts::default()).unwrap();
    assert!(!files.have_changed(&read));
    std::fs::write(&path, "libraries = []\n").unwrap();
    let recorded = files.subject_as_read(&read).unwrap().files;
    let path = std::fs::canonicalize(&path).unwrap();
    assert_eq!(recorded[&path], text_digest(used));
    assert!(files.have_changed(&read));
}

#[test]
fn keys_of_others_and_the_shared_configuration_belong_to_administrators() {
    let door = Door::open();
    let ada = caller("ada", &[Scope::Approve, Scope::Run, Scope::Operate]);
    let service = &door.service;
    let refused = service.unlock_approver(&ada, "bob", None).unwrap_err();
    assert_eq!(refused.code(), "scope_missing");
    let refused = service.key_protection(&ada, "bob").unwrap_err();
    assert_eq!(refused.code(), "scope_missing");
    let own = service.unlock_approver(&ada, "Ada", None).unwrap_err();
    assert_eq!(own.code(), "not_an_approver");
    let reader = caller("eve", &[Scope::Run]);
    let refused = service.unlock_approver(&reader, "eve", None).unwrap_err();
    assert_eq!(refused.code(), "scope_missing");
    assert_eq!(service.reload(&ada).unwrap_err().code(), "scope_missing");
    let admin = caller("operator", &[Scope::Admin]);
    assert!(!service.reload(&admin).unwrap());
}

/// What a front end does for itself, without an identity.
const OF_FRONT_ENDS: [&str; 15] = [
    "abandon",
    "authenticate",
    "authenticate_bearer",
    "authenticate_session",
    "check",
    "close",
    "data_directory",
    "end_session",
    "given_data_directory",
    "max_document_bytes",
    "new_webhook_secret",
    "now",
    "open",
    "record_audit_read",
    "store_changes",
];

/// The public methods of `Service` in the sources of a directory, each with its signature.
fn operations(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(operations(&path));
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("\nimpl Service {\n").skip(1) {
            let block = block.split("\n}\n").next().unwrap();
            let marker = |line: &str| {
                let rest = line.strip_prefix("    pub ")?;
                let rest = rest
                    .trim_start_matches("const ")
                    .trim_start_matches("async ");
                rest.strip_prefix("fn ").map(str::to_owned)
            };
            let mut lines = block.lines();
            while let Some(line) = lines.next() {
                let Some(mut signature) = marker(line) else {
                    continue;
                };
                while !signature.ends_with('{') {
                    signature.push_str(lines.next().unwrap());
                }
                let end = signature.find(['(', '<']).unwrap();
                found.push((signature[..end].to_owned(), signature));
            }
        }
    }
    found
}

#[test]
fn every_operation_is_in_the_list_of_operations_and_takes_an_identity() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = std::fs::read_to_string(sources.join("lib.rs")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("//! |"));
    let listed: Vec<&str> = lines.flat_map(|line| line.split("Service::")).collect();
    let found = operations(&sources);
    assert!(found.len() > 100, "{}", found.len());
    for (name, signature) in &found {
        let is_listed = |part: &&str| {
            let rest = part.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with([')', '`']))
        };
        assert!(
            listed.iter().any(is_listed),
            "`{name}` is missing in lib.rs"
        );
        let takes_identity = signature.contains("identity: &Identity");
        let is_own = OF_FRONT_ENDS.contains(&name.as_str());
        assert_ne!(takes_identity, is_own, "{signature}");
    }
    for own in OF_FRONT_ENDS {
        assert!(found.iter().any(|(name, _)| name == own), "{own}");
    }
}
