//! A data directory with runs in it that want something of people, made as their owners make them, and
//! the program as different people use it.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_core::approval::{
    Approval, Ask, Authorize, Hold, Identity, Intervene, Principal, Question, Request,
};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{Event, RunEnd, Settings, Task};
use windlass_spec::envelope::{InterventionStatus, InterventionType};
use windlass_spec::{
    Agent, CallId, NonEmptyText, RiskLevel, RunId, SecurityLevel, Timestamp, ToolName, Turn,
};
use windlass_store::{Durability, NewRun, RunJournal, Store};

use super::program::Place;

pub(super) const AGENT: &str = r#"
[clerk:Agent {instruction: "Do the office's work.", model: "OpenAI/gpt-4o-mini"} |
  [pay:Tool {description: "Pays somebody", risk: irreversible, typeSignature: "(to: Text, amount: Int, note: Text = \"none\") --> IO Text"}],
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

pub(super) fn who(principal: &str) -> Identity {
    Identity::new(text("local"), Principal::new(principal).unwrap())
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

pub(super) fn open(place: &Place) -> Store {
    Store::open(place.path("data").join("windlass.db")).unwrap()
}

/// Begins a run on behalf of `ada` that asked for these calls in its first turn.
pub(super) fn begin(store: &Store, run: &str, calls: &[(&str, Value)]) -> RunJournal {
    begin_for(store, run, None, calls)
}

/// The same, as the work for a call of another run.
pub(super) fn begin_for(
    store: &Store,
    run: &str,
    parent: Option<&str>,
    calls: &[(&str, Value)],
) -> RunJournal {
    begin_as(store, "local", run, parent, calls)
}

/// How the agents of a run are bound that the program started.
fn assembly() -> Map<String, Value> {
    object(json!({"library": "tools.toml", "mode": "exact", "dialect": "auto"}))
}

/// The same, for a tenant.
pub(super) fn begin_as(
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

pub(super) fn work_by_hand() -> Question {
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

/// A question about a call, asked a minute ago.
pub(super) fn request(id: &str, question: Question) -> Request {
    Request::new(call(id), who("ada"), question, at(-60))
}

/// Puts a question to people.
pub(super) fn ask(journal: &RunJournal, request: Request) {
    let event = Event::TimePassed { at: at(-58) };
    let event = journal.redacted(event).unwrap();
    let approval = Approval::ask(request).unwrap();
    journal.append_asking(&event, &approval).unwrap();
}

/// Holds a call since some seconds ago.
pub(super) fn hold(journal: &RunJournal, id: &str, since: i64, window: u64) {
    let arguments = object(json!({"to": "bob", "text": "hi"}));
    let held = Hold::new(
        call(id),
        who("ada"),
        ToolName::new("mail").unwrap(),
        arguments,
        at(-since),
        Duration::from_secs(window),
    );
    let event = journal.redacted(Event::TimePassed { at: at(-1) }).unwrap();
    journal.append_holding(&event, &held).unwrap();
}

/// Leaves a run as one that waits for people, with no process at it.
pub(super) fn leave(journal: RunJournal) {
    journal.end(&RunEnd::WaitingForPerson).unwrap();
}

/// A run `r1` that waits for leave to pay.
pub(super) fn wants_to_pay(level: SecurityLevel) -> Place {
    let place = Place::new();
    let store = open(&place);
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = begin(&store, "r1", &[("pay", arguments.clone())]);
    ask(
        &journal,
        request("r1:1:0", authorize("pay", arguments, level)),
    );
    leave(journal);
    place
}

/// A run `r1` that waits for leave to send a mail.
pub(super) fn wants_to_mail() -> Place {
    let place = Place::new();
    let store = open(&place);
    let arguments = json!({"to": "bob", "text": "hi"});
    let journal = begin(&store, "r1", &[("mail", arguments.clone())]);
    let question = authorize("mail", arguments, SecurityLevel::Medium);
    assert_eq!(
        question.authorize().unwrap().risk,
        RiskLevel::ReversibleWithDelay
    );
    ask(&journal, request("r1:1:0", question));
    leave(journal);
    place
}

/// What the program did for somebody.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) code: i32,
}

impl Told {
    /// Runs a command to its end, with nothing to read.
    pub(super) fn of(command: &mut Command) -> Self {
        let output = command.stdin(Stdio::null()).output().unwrap();
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        }
    }

    /// The one JSON object that was printed.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// That it was refused so, and said why and what to do.
    pub(super) fn is_refused(&self, code: i32, why: &str) {
        let is_said = self.err.starts_with("error: ") && self.err.contains(why);
        assert!(self.code == code && is_said, "{code}, {why}: {self:?}");
    }
}

/// Runs the program as one user of the machine.
pub(super) fn run_as(place: &Place, user: &str, arguments: &[&str]) -> Told {
    let mut command = place.command(arguments);
    Told::of(command.env("WINDLASS_TEST_PRINCIPAL", user))
}

/// The current form of the question about a call.
pub(super) fn stored(place: &Place, id: &str) -> Approval {
    open(place).approval(&call(id), at(0)).unwrap()
}
