//! What is tested: two processes on one database, made to do what the reference was told, and held
//! against it. Besides, what must be true whatever the reference says is read from the journals alone.

mod check;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use windlass_core::approval::{Approval, Digest, Identity, PersonDecision, Principal};
use windlass_core::gate::Governance;
use windlass_core::model::{ChatMessage, ModelAnswer, ModelRequest};
use windlass_core::run::{Run, RunEnd};
use windlass_model::ScriptedModel;
use windlass_runtime::{Crew, DriveError, Driver, DurableError, NewTask, Patience, Stored, Worker};
use windlass_spec::{CallId, NonEmptyText, RunId, Timestamp, ToolName};
use windlass_store::{Error, Store};
use windlass_tools::{BindingMode, Tool, ToolLibrary, bind};

use super::super::support::{call, finish, identity, new_task};
use super::desk::{Desk, How, Interruption, Shop, at};
use super::hand::{Driven, Incident, What};
use super::things::{Arguments, Ended, Kind, Person, Policy, Process, Shown, Which, Word, name};
use super::world::{Came, Refusal, Transition, World};

const FILE: &str = r#"
[clerk:Agent {instruction: "Do the office work.", model: "OpenAI/gpt-4o-mini"} |
  [note:Tool {description: "Writes a note into the book", risk: reversible_with_delay, undo_window_seconds: 10} | (text::Text)==>(::Text)],
  [pay:Tool {description: "Pays somebody an amount", risk: irreversible} | (to::Text)==>(amount::Int)==>(::Text)],
  [wire:Tool {description: "Wires somebody an amount", risk: irreversible} | (to::Text)==>(amount::Int)==>(::Text)]]
"#;

const USUAL: &str = r#"
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

/// A run in the hands of a process.
struct InHand {
    process: Process,
    // Dropped before the runtime, as in a process that dies.
    driving: Driving,
    runtime: Runtime,
}

/// Two processes and what they share.
pub(super) struct Floor {
    in_hand: HashMap<usize, InHand>,
    crews: HashMap<Policy, Arc<Crew>>,
    hasty: Arc<Store>,
    patient: Arc<Store>,
    /// Whoever only looks.
    observer: Store,
    shop: Arc<Shop>,
    /// What was settled, which must stay so.
    settled: Mutex<HashMap<(CallId, usize), Approval>>,
    /// Removed when all of it is over.
    _directory: tempfile::TempDir,
}

impl Floor {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let open = || Store::open(&path).unwrap();
        Self {
            in_hand: HashMap::new(),
            crews: HashMap::new(),
            hasty: Arc::new(open()),
            patient: Arc::new(open()),
            observer: open(),
            shop: Arc::default(),
            settled: Mutex::default(),
            _directory: directory,
        }
    }

    /// Does what the reference was told. What came of it.
    pub(super) fn take(&mut self, transition: &Transition, world: &World) -> Came {
        self.shop.arm(None);
        match transition {
            Transition::Start(process, script, incident) => {
                let run = world.runs.len() - 1;
                let driver = self.driver(*process, world.policy);
                let task = task(run, script);
                let driving: Driving = Box::pin(async move { driver.start(task).await });
                self.take_in_hand(run, *process, driving, incident.as_ref())
            }
            Transition::Resume(process, run, incident) => {
                let driver = self.driver(*process, world.policy);
                let id = run_id(*run);
                let driving: Driving = Box::pin(async move { driver.resume(&id).await });
                self.take_in_hand(*run, *process, driving, incident.as_ref())
            }
            Transition::Work(run, incident) => {
                let in_hand = self.in_hand.remove(run).expect("the run is in hand");
                self.go_on(*run, in_hand, incident.as_ref())
            }
            Transition::Pass(_) => {
                self.shop.set_clock(world.now);
                Came::Accepted
            }
            Transition::LayDown(_) => Came::Accepted,
            Transition::Kill(process, keeps) => {
                self.kill(*process, *keeps);
                Came::Accepted
            }
            Transition::Decide(process, ..)
            | Transition::Undo(process, ..)
            | Transition::Release(process, ..)
            | Transition::Cancel(process, ..)
            | Transition::Sweep(process) => act(self.store(*process), transition, self.shop.now()),
        }
    }

    /// What came of what somebody did meanwhile.
    pub(super) fn meanwhile(&self) -> Option<Came> {
        *self.shop.meanwhile.lock().unwrap()
    }

    fn kill(&mut self, process: Process, keeps: bool) {
        self.shop.arm(None);
        self.shop.set_keeps(keeps);
        self.in_hand.retain(|_, in_hand| in_hand.process != process);
        let store = match process {
            Process::Hasty => &mut self.hasty,
            Process::Patient => &mut self.patient,
        };
        *store = Arc::new(Store::open(store.path()).unwrap());
    }

    fn store(&self, process: Process) -> &Arc<Store> {
        match process {
            Process::Hasty => &self.hasty,
            Process::Patient => &self.patient,
        }
    }

    fn take_in_hand(
        &mut self,
        run: usize,
        process: Process,
        driving: Driving,
        incident: Option<&Incident>,
    ) -> Came {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let in_hand = InHand {
            process,
            driving,
            runtime,
        };
        self.go_on(run, in_hand, incident)
    }

    /// Lets a process go on with a run until it can do no more, or dies.
    fn go_on(&mut self, run: usize, mut in_hand: InHand, incident: Option<&Incident>) -> Came {
        let shop = Arc::clone(&self.shop);
        shop.arm(incident.map(|incident| self.interruption(incident)));
        let driving = &mut in_hand.driving;
        let done = in_hand.runtime.block_on(async {
            loop {
                tokio::select! {
                    biased;
                    done = driving.as_mut() => return Some(done),
                    () = shop.stands.notified() => {
                        if shop.is_dead() || shop.is_idle() {
                            return None;
                        }
                    }
                }
            }
        });
        let Some(done) = done else {
            if shop.is_dead() {
                return Came::Driven(Driven::Died);
            }
            self.in_hand.insert(run, in_hand);
            return Came::Driven(Driven::Stays);
        };
        drop(in_hand);
        match done {
            Ok(done) => {
                let folded = self.observer.fold(&run_id(run)).unwrap();
                assert_eq!(folded.turns(), done.turns(), "journal and run differ");
                assert_eq!(folded.response(), done.response());
                Came::Driven(match done.standing() {
                    Some(RunEnd::Completed) => Driven::Ended(Ended::Completed),
                    Some(RunEnd::Cancelled) => Driven::Ended(Ended::Cancelled),
                    Some(RunEnd::WaitingForPerson) => Driven::Left,
                    other => panic!("the run ended as {other:?}"),
                })
            }
            Err(DriveError::Durable(DurableError::OwnedElsewhere(_))) => {
                Came::Refused(Refusal::OwnedElsewhere)
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn interruption(&self, incident: &Incident) -> Interruption {
        let how = match &incident.what {
            What::Dies { keeps } => How::Dies { keeps: *keeps },
            What::Meanwhile(what) => {
                let (Transition::Decide(process, ..)
                | Transition::Undo(process, ..)
                | Transition::Release(process, ..)
                | Transition::Cancel(process, ..)) = &**what
                else {
                    panic!("{what:?} is nothing that others do")
                };
                let (store, now) = (Arc::clone(self.store(*process)), self.shop.now());
                let what = what.clone();
                How::Meanwhile(Box::new(move || act(&store, &what, now)))
            }
        };
        Interruption {
            at: incident.at.clone(),
            how,
        }
    }

    fn driver(&mut self, process: Process, policy: Policy) -> Driver {
        let shop = &self.shop;
        let crew = self.crews.entry(policy).or_insert_with(|| {
            let policies = match policy {
                Policy::Usual => USUAL.to_owned(),
                Policy::TwoForPay => format!("{USUAL}{TWO_FOR_PAY}"),
                Policy::NoPay => format!("{USUAL}{NO_PAY}"),
            };
            let governance = Governance {
                policies,
                ..Governance::default()
            };
            Arc::new(Crew::new(worker(shop)).governed_by(governance))
        });
        let crew = Arc::clone(crew);
        let patience = match process {
            Process::Hasty => Patience::Leave,
            Process::Patient => Patience::Stay,
        };
        let desk = Desk {
            stored: Stored::new(Arc::clone(self.store(process)), identity("ann")),
            shop: Arc::clone(&self.shop),
        };
        Driver::new(crew, Arc::new(desk)).waiting(patience)
    }
}

/// Does what people do, from one of the processes.
fn act(store: &Store, transition: &Transition, now: Timestamp) -> Came {
    match transition {
        Transition::Decide(_, which, by, word, shown) => {
            let id = call_id(*which);
            // Asked before any time, so that looking expires nothing.
            let asked = store.approval(&id, at(-1)).ok();
            let digest = match shown {
                Shown::Unsaid => None,
                Shown::Other => Some(digest("elsewhere")),
                Shown::Asked => Some(asked.map(|asked| asked.asked_digest())),
                Shown::Now => Some(asked.map(|asked| asked.digest())),
            };
            // Whoever was shown nothing can only make something up.
            let digest = digest.map(|digest| digest.unwrap_or_else(made_up));
            let decision = decision(*word, *which);
            came(store.decide(&id, digest.as_ref(), &who(*by), decision, now))
        }
        Transition::Undo(_, which, by) => came(store.undo(&call_id(*which), &who(*by), now)),
        Transition::Release(_, which, by) => came(store.release(&call_id(*which), &who(*by), now)),
        Transition::Cancel(_, run, by) => came(store.request_cancel(&run_id(*run), &who(*by), now)),
        Transition::Sweep(_) => came(store.sweep(now)),
        other => panic!("{other:?} is nothing that people do"),
    }
}

const PAYMENT: &str = "(to: Text, amount: Int) --> IO Text";

fn worker(shop: &Arc<Shop>) -> Worker {
    let file = windlass_spec::read(FILE).file.unwrap();
    let agent = file.agent("clerk").unwrap().clone();
    let tool = |name: &str, description: &str, signature: &str| {
        let (shop, own) = (Arc::clone(shop), name.to_owned());
        Tool::builder(name)
            .description(description)
            .signature(signature)
            .handler(move |arguments: Value| {
                let (shop, own) = (Arc::clone(&shop), own.clone());
                async move {
                    let to = arguments.get("to").unwrap_or(&arguments["text"]);
                    let to = to.as_str().unwrap();
                    shop.pass(&format!("before effect {to}")).await;
                    let effect = format!("{own} {to} {}", arguments["amount"]);
                    shop.effects.lock().unwrap().push(effect);
                    shop.pass(&format!("after effect {to}")).await;
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
        .with(tool("pay", "Pays somebody an amount", PAYMENT))
        .with(tool("wire", "Wires somebody an amount", PAYMENT));
    Worker {
        tools: bind(&agent, &library, BindingMode::Exact).unwrap(),
        agent,
        model: Arc::new(ScriptedModel::function(|request| Ok(answer(request)))),
    }
}

fn tool(kind: Kind) -> &'static str {
    match kind {
        Kind::Pay => "pay",
        Kind::Wire => "wire",
        Kind::Note => "note",
        Kind::Ask => "ask_human",
    }
}

/// The script as a task: the run, then its turns.
fn task(run: usize, script: &[Vec<Kind>]) -> NewTask {
    let turns: Vec<String> = script
        .iter()
        .map(|turn| turn.iter().map(|kind| tool(*kind)).collect::<Vec<_>>())
        .map(|tools| tools.join(" "))
        .collect();
    new_task(&format!("{}|{}", name(run), turns.join("|")))
}

/// Answers what the task says for this turn. Asked again, it answers the same.
fn answer(request: &ModelRequest) -> ModelAnswer {
    let messages = request.messages.iter();
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

fn call_id(which: Which) -> CallId {
    which.to_string().parse().unwrap()
}

fn who(person: Person) -> Identity {
    match person {
        Person::Ann => identity("ann"),
        Person::Bob => identity("bob"),
        Person::Stranger => Identity::new(
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

fn made_up() -> Digest {
    digest("nobody").unwrap()
}

fn amount(arguments: Arguments) -> Value {
    match arguments {
        Arguments::AsAsked => json!(5),
        Arguments::Edited => json!(3),
        Arguments::Bad => json!("all"),
    }
}

fn decision(word: Word, which: Which) -> PersonDecision {
    let edited = |arguments| {
        let changed = json!({"to": which.to_string(), "amount": amount(arguments)});
        let arguments: Map<String, Value> = changed.as_object().unwrap().clone();
        PersonDecision::ApproveEdited { arguments }
    };
    match word {
        Word::Approve => PersonDecision::Approve,
        Word::Edit => edited(Arguments::Edited),
        Word::EditBadly => edited(Arguments::Bad),
        Word::Reject => PersonDecision::Reject { message: None },
        Word::Respond => PersonDecision::Respond {
            value: json!("said"),
        },
        Word::Answer => PersonDecision::Answer {
            text: NonEmptyText::new("So it is.").unwrap(),
        },
    }
}

fn came<T>(done: Result<T, Error>) -> Came {
    let Err(error) = done else {
        return Came::Accepted;
    };
    Came::Refused(match error {
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
