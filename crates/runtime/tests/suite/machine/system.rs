//! The system under test: two processes on one database, which apply the same transitions as the reference and
//! are compared with it. Invariants that do not depend on the reference are checked in the journals.

mod check;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use windlass_core::approval::{Approval, Digest, PersonDecision, Principal, TenantPrincipal};
use windlass_core::gate::Governance;
use windlass_core::model::{ChatMessage, ModelAnswer, ModelRequest};
use windlass_core::run::{Run, RunEnd};
use windlass_model::ScriptedModel;
use windlass_runtime::{
    Crew, CrewMember, DriveError, Driver, DurableError, NewTask, Stored, WaitPolicy,
};
use windlass_spec::{CallId, ErrorCategory, NonEmptyText, RunId, Timestamp, ToolName};
use windlass_store::{Error, Store};
use windlass_tools::{BindingMode, Tool, ToolLibrary, bind};

use super::super::support::{call, finish, identity, new_task};
use super::model::{
    Arguments, CallRef, CallType, DecisionKind, Ended, Person, Policy, Process, Shown, name,
};
use super::reference::{ReferenceState, Refusal, Transition, TransitionResult};
use super::reference_driver::{Driven, Incident, IncidentKind};
use super::simulated_process::{Interruption, InterruptionKind, SharedState, SimulatedProcess, at};

const FILE: &str = r#"
[clerk:Agent {instruction: "Do the office work.", model: "OpenAI/gpt-4o-mini"} |
  [note:Tool {description: "Writes a note into the book", risk: reversible_with_delay, undo_window_seconds: 10} | (text::Text)==>(::Text)],
  [pay:Tool {description: "Pays a person an amount", risk: irreversible} | (to::Text)==>(amount::Int)==>(::Text)],
  [wire:Tool {description: "Wires a person an amount", risk: irreversible} | (to::Text)==>(amount::Int)==>(::Text)]]
"#;

const STANDARD: &str = r#"
@id("all") permit (principal, action, resource);
@id("wires") @security_level("CRITICAL")
forbid (principal, action == Action::"wire", resource) unless { context.approved };
"#;

const TWO_FOR_PAY: &str = r#"
@id("payments") @security_level("CRITICAL")
forbid (principal, action == Action::"pay", resource) unless { context.approved };
"#;

const NO_PAY: &str = r#"
@id("no-payments") @reason("payments are off")
forbid (principal, action == Action::"pay", resource);
"#;

type Driving = Pin<Box<dyn Future<Output = Result<Run, DriveError>>>>;

/// A run that a process drives.
struct DrivenRun {
    process: Process,
    // Dropped before the runtime, as in a process that crashes.
    driving: Driving,
    runtime: Runtime,
}

/// Two processes and what they share.
pub(super) struct TestSystem {
    driven: HashMap<usize, DrivenRun>,
    crews: HashMap<Policy, Arc<Crew>>,
    suspending: Arc<Store>,
    waiting: Arc<Store>,
    /// Only reads.
    observer: Store,
    shared: Arc<SharedState>,
    /// The settled questions, which must not change.
    settled: Mutex<HashMap<(CallId, usize), Approval>>,
    /// Removed at the end.
    _directory: tempfile::TempDir,
}

impl TestSystem {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let open = || Store::open(&path).unwrap();
        Self {
            driven: HashMap::new(),
            crews: HashMap::new(),
            suspending: Arc::new(open()),
            waiting: Arc::new(open()),
            observer: open(),
            shared: Arc::default(),
            settled: Mutex::default(),
            _directory: directory,
        }
    }

    /// Applies a transition. Returns its result.
    pub(super) fn take(
        &mut self,
        transition: &Transition,
        reference: &ReferenceState,
    ) -> TransitionResult {
        self.shared.arm(None);
        match transition {
            Transition::Start(process, script, incident) => {
                let run = reference.runs.len() - 1;
                let driver = self.driver(*process, reference.policy);
                let task = task(run, script);
                let driving: Driving = Box::pin(async move { driver.start(task).await });
                self.start_driving(run, *process, driving, incident.as_ref())
            }
            Transition::Resume(process, run, incident) => {
                let driver = self.driver(*process, reference.policy);
                let id = run_id(*run);
                let driving: Driving = Box::pin(async move { driver.resume(&id).await });
                self.start_driving(*run, *process, driving, incident.as_ref())
            }
            Transition::Continue(run, incident) => {
                let driven = self.driven.remove(run).expect("the run is driven");
                self.drive_on(*run, driven, incident.as_ref())
            }
            Transition::AdvanceClock(_) => {
                self.shared.set_clock(reference.now);
                TransitionResult::Accepted
            }
            Transition::SetPolicy(_) => TransitionResult::Accepted,
            Transition::Kill(process, flushes) => {
                self.kill(*process, *flushes);
                TransitionResult::Accepted
            }
            Transition::Decide(process, ..)
            | Transition::Undo(process, ..)
            | Transition::Release(process, ..)
            | Transition::Cancel(process, ..)
            | Transition::Sweep(process) => {
                act(self.store(*process), transition, self.shared.now())
            }
        }
    }

    /// The result of the concurrent transition.
    pub(super) fn concurrent_result(&self) -> Option<TransitionResult> {
        *self.shared.concurrent_result.lock().unwrap()
    }

    fn kill(&mut self, process: Process, flushes: bool) {
        self.shared.arm(None);
        self.shared.set_flushes(flushes);
        self.driven.retain(|_, driven| driven.process != process);
        let store = match process {
            Process::Suspending => &mut self.suspending,
            Process::Waiting => &mut self.waiting,
        };
        *store = Arc::new(Store::open(store.path()).unwrap());
    }

    fn store(&self, process: Process) -> &Arc<Store> {
        match process {
            Process::Suspending => &self.suspending,
            Process::Waiting => &self.waiting,
        }
    }

    fn start_driving(
        &mut self,
        run: usize,
        process: Process,
        driving: Driving,
        incident: Option<&Incident>,
    ) -> TransitionResult {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let driven = DrivenRun {
            process,
            driving,
            runtime,
        };
        self.drive_on(run, driven, incident)
    }

    /// Lets a process drive a run until it can do no more, or crashes.
    fn drive_on(
        &mut self,
        run: usize,
        mut driven: DrivenRun,
        incident: Option<&Incident>,
    ) -> TransitionResult {
        let shared = Arc::clone(&self.shared);
        shared.arm(incident.map(|incident| self.interruption(incident)));
        let driving = &mut driven.driving;
        let done = driven.runtime.block_on(async {
            loop {
                tokio::select! {
                    biased;
                    done = driving.as_mut() => return Some(done),
                    () = shared.stopped.notified() => {
                        if shared.is_dead() || shared.is_idle() {
                            return None;
                        }
                    }
                }
            }
        });
        let Some(done) = done else {
            if shared.is_dead() {
                return TransitionResult::Driven(Driven::Crashed);
            }
            self.driven.insert(run, driven);
            return TransitionResult::Driven(Driven::Waiting);
        };
        drop(driven);
        match done {
            Ok(done) => {
                let folded = self.observer.fold(&run_id(run)).unwrap();
                assert_eq!(folded.turns(), done.turns(), "journal and run differ");
                assert_eq!(folded.response(), done.response());
                TransitionResult::Driven(match done.end_or_waiting() {
                    Some(RunEnd::Completed) => Driven::Ended(Ended::Completed),
                    Some(RunEnd::Failed {
                        category: ErrorCategory::Rejected,
                        ..
                    }) => Driven::Ended(Ended::Rejected),
                    Some(RunEnd::Cancelled) => Driven::Ended(Ended::Cancelled),
                    Some(RunEnd::WaitingForPerson) => Driven::Suspended,
                    other => panic!("the run ended as {other:?}"),
                })
            }
            Err(DriveError::Durable(DurableError::OwnedElsewhere(_))) => {
                TransitionResult::Refused(Refusal::OwnedElsewhere)
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn interruption(&self, incident: &Incident) -> Interruption {
        let how = match &incident.what {
            IncidentKind::Crash { flushes } => InterruptionKind::Crash { flushes: *flushes },
            IncidentKind::Concurrent(what) => {
                let (Transition::Decide(process, ..)
                | Transition::Undo(process, ..)
                | Transition::Release(process, ..)
                | Transition::Cancel(process, ..)) = &**what
                else {
                    panic!("{what:?} is not a transition of another process")
                };
                let (store, now) = (Arc::clone(self.store(*process)), self.shared.now());
                let what = what.clone();
                InterruptionKind::Concurrent(Box::new(move || act(&store, &what, now)))
            }
        };
        Interruption {
            at: incident.at.clone(),
            how,
        }
    }

    fn driver(&mut self, process: Process, policy: Policy) -> Driver {
        let shared = &self.shared;
        let crew = self.crews.entry(policy).or_insert_with(|| {
            let policies = match policy {
                Policy::Standard => STANDARD.to_owned(),
                Policy::TwoForPay => format!("{STANDARD}{TWO_FOR_PAY}"),
                Policy::NoPay => format!("{STANDARD}{NO_PAY}"),
            };
            let governance = Governance {
                policies,
                ..Governance::default()
            };
            Arc::new(Crew::new(member(shared)).governed_by(governance))
        });
        let crew = Arc::clone(crew);
        let wait_policy = match process {
            Process::Suspending => WaitPolicy::Suspend,
            Process::Waiting => WaitPolicy::Wait,
        };
        let durable = SimulatedProcess {
            stored: Stored::new(Arc::clone(self.store(process)), identity("cay")),
            shared: Arc::clone(&self.shared),
        };
        Driver::new(crew, Arc::new(durable)).with_wait_policy(wait_policy)
    }
}

/// Applies a transition of a person, in one of the processes.
fn act(store: &Store, transition: &Transition, now: Timestamp) -> TransitionResult {
    match transition {
        Transition::Decide(_, call_ref, by, kind, shown) => {
            let id = call_id(*call_ref);
            // Read at an early time, so that reading expires nothing.
            let asked = store.approval(&id, at(-1)).ok();
            let digest = match shown {
                Shown::NotGiven => None,
                Shown::Other => Some(digest("elsewhere")),
                Shown::Asked => Some(asked.map(|asked| asked.asked_digest())),
                Shown::Current => Some(asked.map(|asked| asked.digest())),
            };
            // Without a question, the digest is invented.
            let digest = digest.map(|digest| digest.unwrap_or_else(invented_digest));
            let decision = decision(*kind, *call_ref);
            transition_result(store.decide(&id, digest.as_ref(), &who(*by), decision, now))
        }
        Transition::Undo(_, call_ref, by) => {
            transition_result(store.undo(&call_id(*call_ref), &who(*by), now))
        }
        Transition::Release(_, call_ref, by) => {
            transition_result(store.release(&call_id(*call_ref), &who(*by), now))
        }
        Transition::Cancel(_, run, by) => {
            transition_result(store.request_cancel(&run_id(*run), &who(*by), now))
        }
        Transition::Sweep(_) => transition_result(store.sweep(now)),
        other => panic!("{other:?} is not a transition of a person"),
    }
}

const PAYMENT: &str = "(to: Text, amount: Int) --> IO Text";

fn member(shared: &Arc<SharedState>) -> CrewMember {
    let file = windlass_spec::read(FILE).file.unwrap();
    let agent = file.agent("clerk").unwrap().clone();
    let tool = |name: &str, description: &str, signature: &str| {
        let (shared, own) = (Arc::clone(shared), name.to_owned());
        Tool::builder(name)
            .description(description)
            .signature(signature)
            .handler(move |arguments: Value| {
                let (shared, own) = (Arc::clone(&shared), own.clone());
                async move {
                    let to = arguments.get("to").unwrap_or(&arguments["text"]);
                    let to = to.as_str().unwrap();
                    shared.reach(&format!("before effect {to}")).await;
                    let effect = format!("{own} {to} {}", arguments["amount"]);
                    shared.effects.lock().unwrap().push(effect);
                    shared.reach(&format!("after effect {to}")).await;
                    Ok(json!("done"))
                }
            })
            .build()
            .unwrap()
    };
    let library = ToolLibrary::new("office")
        .with(tool(
            "note",
            "Writes a note into the book",
            "(text: Text) --> IO Text",
        ))
        .with(tool("pay", "Pays a person an amount", PAYMENT))
        .with(tool("wire", "Wires a person an amount", PAYMENT));
    CrewMember {
        tools: bind(&agent, &library, BindingMode::Exact).unwrap(),
        agent,
        model: Arc::new(ScriptedModel::function(|request| Ok(answer(request)))),
    }
}

fn tool(kind: CallType) -> &'static str {
    match kind {
        CallType::Pay => "pay",
        CallType::Wire => "wire",
        CallType::Note => "note",
        CallType::Ask => "ask_human",
    }
}

/// The task that encodes a script: the run, then its turns.
fn task(run: usize, script: &[Vec<CallType>]) -> NewTask {
    let turns: Vec<String> = script
        .iter()
        .map(|turn| turn.iter().map(|kind| tool(*kind)).collect::<Vec<_>>())
        .map(|tools| tools.join(" "))
        .collect();
    new_task(&format!("{}|{}", name(run), turns.join("|")))
}

/// The scripted answer of the task for this turn. The same request always gets the same answer.
fn answer(request: &ModelRequest) -> ModelAnswer {
    let messages = request.messages.iter().map(AsRef::as_ref);
    let task = messages.clone().find_map(|message| match message {
        ChatMessage::User { content } => Some(content.clone()),
        _ => None,
    });
    let task = task.unwrap();
    let is_turn = |message: &&ChatMessage| matches!(message, ChatMessage::Assistant { .. });
    let turn = messages.filter(is_turn).count();
    let mut parts = task.split('|');
    let run = parts.next().unwrap();
    let Some(tools) = parts.nth(turn) else {
        return finish("Done.");
    };
    let mut answer = ModelAnswer::default();
    for (index, tool) in tools.split(' ').enumerate() {
        let to = format!("{run}:{}:{index}", turn + 1);
        let arguments = match tool {
            "ask_human" => json!({"question": to}),
            "note" => json!({"text": to}),
            _ => json!({"to": to, "amount": 5}),
        };
        answer.calls.extend(call(tool, arguments).calls);
    }
    answer
}

fn run_id(run: usize) -> RunId {
    RunId::new(name(run)).unwrap()
}

fn call_id(call_ref: CallRef) -> CallId {
    call_ref.to_string().parse().unwrap()
}

fn who(person: Person) -> TenantPrincipal {
    match person {
        Person::Ann => identity("ann"),
        Person::Bob => identity("bob"),
        Person::OtherTenant => TenantPrincipal::new(
            NonEmptyText::new("elsewhere").unwrap(),
            Principal::new("ann").unwrap(),
        ),
    }
}

fn digest(to: &str) -> Option<Digest> {
    let arguments = json!({"to": to, "amount": 5});
    let arguments = arguments.as_object()?;
    Some(Digest::of_call(&ToolName::new("pay").ok()?, arguments))
}

fn invented_digest() -> Digest {
    digest("nobody").unwrap()
}

fn amount(arguments: Arguments) -> Value {
    match arguments {
        Arguments::AsAsked => json!(5),
        Arguments::Edited => json!(3),
        Arguments::Invalid => json!("all"),
    }
}

fn decision(kind: DecisionKind, call_ref: CallRef) -> PersonDecision {
    let edited = |arguments| {
        let changed = json!({"to": call_ref.to_string(), "amount": amount(arguments)});
        let arguments: Map<String, Value> = changed.as_object().unwrap().clone();
        PersonDecision::ApproveEdited { arguments }
    };
    match kind {
        DecisionKind::Approve => PersonDecision::Approve,
        DecisionKind::Edit => edited(Arguments::Edited),
        DecisionKind::EditInvalid => edited(Arguments::Invalid),
        DecisionKind::Reject => PersonDecision::Reject { message: None },
        DecisionKind::Respond => PersonDecision::Respond {
            value: json!("said"),
        },
        DecisionKind::Answer => PersonDecision::Answer {
            text: NonEmptyText::new("So it is.").unwrap(),
        },
    }
}

fn transition_result<T>(done: Result<T, Error>) -> TransitionResult {
    let Err(error) = done else {
        return TransitionResult::Accepted;
    };
    TransitionResult::Refused(match error {
        Error::NoSuchApproval(_) => Refusal::NoSuchApproval,
        Error::AlreadyDecided { .. } => Refusal::AlreadyDecided,
        Error::Expired { .. } => Refusal::Expired,
        Error::DigestDiffers { .. } => Refusal::DigestDiffers,
        Error::Undecided { .. } => Refusal::Undecided,
        Error::NoSuchHold(_) => Refusal::NoSuchHold,
        Error::TooLate { .. } => Refusal::TooLate,
        Error::NoSuchRun(_) => Refusal::NoSuchRun,
        Error::Ended(_) => Refusal::RunEnded,
        error => panic!("{error}"),
    })
}
