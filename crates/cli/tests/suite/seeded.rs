//! Projects with stored runs that wait for approvals, and the program as different users run it.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, Ask, Authorize, Hold, Intervene, Principal, Question, Request, TenantPrincipal,
};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{Event, RunEnd, Settings, Task};
use windlass_keys::{JournalKey, KeyDirectory};
use windlass_spec::envelope::{InterventionStatus, InterventionType};
use windlass_spec::{
    Agent, CallId, NonEmptyText, RiskLevel, RunId, SecurityLevel, Timestamp, ToolName, Turn,
};
use windlass_store::{Authentication, Durability, NewRun, Options, RunJournal, Store};

use super::program::TestProject;

pub(super) const AGENT: &str = r#"
[clerk:Agent {instruction: "Do the office's work.", model: "OpenAI/gpt-4o-mini"} |
  [pay:Tool {description: "Pays a person", risk: irreversible, typeSignature: "(to: Text, amount: Int, note: Text = \"none\") --> IO Text"}],
  [mail:Tool {description: "Sends a mail", risk: reversible_with_delay, typeSignature: "(to: Text, text: Text) --> IO Text"}],
  [change:Tool {description: "Changes what is kept", risk: reversible_with_delay, typeSignature: "(sql: Text) --> IO Text"}],
  [search:Tool {description: "Searches for something", risk: reversible, typeSignature: "(query: Text) --> IO Text"}]]
"#;

pub(super) fn agent() -> Agent {
    windlass_spec::read(AGENT).file.unwrap().agents()[0].clone()
}

/// A point in time, in seconds from now.
pub(super) fn at(second: i64) -> Timestamp {
    let now = windlass_runtime::now().as_microseconds();
    Timestamp::from_microseconds(now + second * 1_000_000)
}

pub(super) fn text(content: &str) -> NonEmptyText {
    NonEmptyText::new(content).unwrap()
}

pub(super) fn identity(principal: &str) -> TenantPrincipal {
    TenantPrincipal::new(text("local"), Principal::new(principal).unwrap())
}

pub(super) fn call(id: &str) -> CallId {
    id.parse().unwrap()
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else {
        panic!("{value}")
    };
    fields
}

pub(super) fn open(project: &TestProject) -> Store {
    let keys = KeyDirectory::new(project.path("state/windlass/keys"));
    let options = Options {
        authentication: Authentication::Key(JournalKey::of_installation(&keys).unwrap()),
        ..Options::default()
    };
    Store::open_with(project.path("data").join("windlass.db"), options).unwrap()
}

/// Starts a run on behalf of `ada` that requests these calls in its first turn.
pub(super) fn start_run(store: &Store, run: &str, calls: &[(&str, Value)]) -> RunJournal {
    start_child_run(store, run, None, calls)
}

/// Starts a run for a call of a parent run.
pub(super) fn start_child_run(
    store: &Store,
    run: &str,
    parent: Option<&str>,
    calls: &[(&str, Value)],
) -> RunJournal {
    start_run_of_tenant(store, "local", run, parent, calls)
}

/// How the agents of a run are bound that the program started.
fn assembly() -> Map<String, Value> {
    object(json!({"library": "tools.toml", "mode": "exact", "dialect": "auto"}))
}

/// Starts a run of a tenant.
pub(super) fn start_run_of_tenant(
    store: &Store,
    tenant: &str,
    run: &str,
    parent: Option<&str>,
    calls: &[(&str, Value)],
) -> RunJournal {
    let started = Event::Started {
        run: RunId::new(run).unwrap(),
        agent: Box::new(agent()),
        agents: Vec::new(),
        assembly: assembly(),
        parent: parent.map(call),
        holds: None,
        task: Task {
            description: "Settle what is due.".to_owned(),
            ..Task::default()
        },
        settings: Settings::default(),
        at: at(-60),
    };
    let new = NewRun {
        tenant: tenant.to_owned(),
        principal: "ada".to_owned(),
        task_id: None,
    };
    let journal = store.start(new, &started, Durability::Synced).unwrap();
    let calls = calls.iter().map(|(tool, arguments)| RequestedCall {
        tool: (*tool).to_owned(),
        arguments: RequestedArguments::Json(arguments.clone()),
        confidence: Some(0.9),
    });
    let answer = ModelAnswer {
        thought: Some("This is due.".to_owned()),
        calls: calls.collect(),
        ..ModelAnswer::default()
    };
    let answered = Event::ModelAnswered {
        turn: Turn::FIRST,
        answer,
        at: at(-59),
    };
    journal.append(&answered, Durability::Synced).unwrap();
    journal
}

pub(super) fn authorize(tool: &str, arguments: Value, level: SecurityLevel) -> Question {
    let tool = agent().tool(tool).unwrap().clone();
    Question::Authorize(Authorize {
        tool_name: tool.name().clone(),
        tool_args: object(arguments),
        reason: text("The invoice is due."),
        risk: tool.attributes().risk.unwrap(),
        security_level: level,
        rule: Some("irreversible-asks".to_owned()),
        credentials: None,
    })
}

pub(super) fn question(options: &[&str], free_text: bool) -> Question {
    Question::Ask(Ask {
        question: text("Which branch?"),
        context: Some("There are two.".to_owned()),
        options: options.iter().map(|option| text(option)).collect(),
        free_text,
        form: None,
    })
}

pub(super) fn manual_work() -> Question {
    Question::Intervene(Intervene {
        status: InterventionStatus::HumanRequired,
        intervention_type: InterventionType::Captcha,
        provider: text("example.org"),
        message: text("Please solve the puzzle."),
        url: Some("https://example.org/".to_owned()),
        screenshot: None,
        oauth_url: None,
        details: None,
    })
}

/// A request about a call, asked a minute ago.
pub(super) fn request(id: &str, question: Question) -> Request {
    Request::new(call(id), identity("ada"), question, at(-60))
}

/// Stores a request.
pub(super) fn ask(journal: &RunJournal, request: Request) {
    let event = Event::TimePassed { at: at(-58) };
    let event = journal.redacted(event).unwrap();
    let approval = Approval::ask(request).unwrap();
    journal.append_asking(&event, &approval).unwrap();
}

/// Stores a call that is held since some seconds ago.
pub(super) fn hold(journal: &RunJournal, id: &str, since: i64, window: u64) {
    let arguments = object(json!({"to": "bob", "text": "hi"}));
    let held = Hold::new(
        call(id),
        identity("ada"),
        ToolName::new("mail").unwrap(),
        arguments,
        at(-since),
        Duration::from_secs(window),
    );
    let event = journal.redacted(Event::TimePassed { at: at(-1) }).unwrap();
    journal.append_holding(&event, &held).unwrap();
}

/// Suspends a run: it waits, and no process owns it.
pub(super) fn suspend(journal: RunJournal) {
    journal.end(&RunEnd::WaitingForPerson).unwrap();
}

/// A project with a run `r1` that waits for approval of a payment.
pub(super) fn project_with_pending_payment(level: SecurityLevel) -> TestProject {
    let project = TestProject::new();
    let store = open(&project);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = start_run(&store, "r1", &[("pay", arguments.clone())]);
    ask(
        &journal,
        request("r1:1:0", authorize("pay", arguments, level)),
    );
    suspend(journal);
    project
}

/// A project with a run `r1` that waits for approval of a mail.
pub(super) fn project_with_pending_mail() -> TestProject {
    let project = TestProject::new();
    let store = open(&project);
    let arguments = json!({"to": "bob", "text": "hi"});
    let journal = start_run(&store, "r1", &[("mail", arguments.clone())]);
    let question = authorize("mail", arguments, SecurityLevel::Medium);
    assert_eq!(
        question.authorize().unwrap().risk,
        RiskLevel::ReversibleWithDelay
    );
    ask(&journal, request("r1:1:0", question));
    suspend(journal);
    project
}

/// The output and exit code of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) code: i32,
}

impl CommandOutput {
    /// Runs a command to its end, without input.
    pub(super) fn of(command: &mut Command) -> Self {
        let output = command.stdin(Stdio::null()).output().unwrap();
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    /// The JSON object on standard output.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the command was refused with this exit code and reason.
    pub(super) fn assert_refused(&self, code: i32, why: &str) {
        let has_message = self.err.starts_with("error: ") && self.err.contains(why);
        assert!(self.code == code && has_message, "{code}, {why}: {self:?}");
    }
}

/// Runs the program as this user.
pub(super) fn run_as(project: &TestProject, user: &str, arguments: &[&str]) -> CommandOutput {
    let mut command = project.command(arguments);
    CommandOutput::of(command.env("WINDLASS_TEST_PRINCIPAL", user))
}

/// Approves a call of any level without a terminal, with the digest that is shown.
pub(super) fn approve_shown(project: &TestProject, user: &str, id: &str) -> CommandOutput {
    let shown = run_as(project, user, &["approvals", "show", id, "--json"]).json();
    let digest = shown["digest_now"].as_str().unwrap();
    let approve = ["approvals", "approve", id, "--yes", "--digest", digest];
    run_as(project, user, &approve)
}

/// The stored request about a call.
pub(super) fn stored(project: &TestProject, id: &str) -> Approval {
    open(project).approval(&call(id), at(0)).unwrap()
}
