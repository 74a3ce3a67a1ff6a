//! The fixture for tests of runs that wait for people: an agent with tools of every risk, a real database, and
//! a list of the tools' effects.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_core::approval::{Approval, PersonDecision, canonical};
use windlass_core::gate::Governance;
use windlass_core::run::Run;
use windlass_keys::JournalKey;
use windlass_model::ScriptedModel;
use windlass_runtime::{Crew, CrewMember, Driver, NewTask, Stored, now};
use windlass_spec::envelope::{Intervention, InterventionType};
use windlass_spec::{NonEmptyText, RunId, Timestamp, ToolResponse};
use windlass_store::{ApprovalFilter, Authentication, Options, RunState, Store};
use windlass_tools::{BindingMode, Tool, ToolLibrary, bind};

use super::support::{call, finish, identity};

const FILE: &str = r#"
[clerk:Agent {instruction: "Do the office work.", model: "OpenAI/gpt-4o-mini"} |
  [look:Tool {description: "Looks something up", risk: reversible} | (what::Text)==>(::Object)],
  [note:Tool {description: "Writes a note into the book", risk: reversible_with_delay, undo_window_seconds: 1} | (text::Text)==>(::Text)],
  [pay:Tool {description: "Pays a person an amount", risk: irreversible} | (to::Text)==>(amount::Int)==>(::Text)]]

[chief:Agent {description: "Leads the office", instruction: "Lead the office.", model: "OpenAI/gpt-4o-mini"} | clerk]
"#;

/// A database, and the effects of the tools.
pub(crate) struct RunFixture {
    directory: tempfile::TempDir,
    effects: Arc<Mutex<Vec<String>>>,
    /// Notified when a slow tool has begun.
    pub(crate) has_begun: Arc<Notify>,
    /// By how many microseconds its clock is ahead of the system's.
    ahead: Arc<AtomicI64>,
    pub(crate) governance: Governance,
    /// The key that the rows are authenticated with.
    key: Option<JournalKey>,
}

impl RunFixture {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            effects: Arc::default(),
            has_begun: Arc::default(),
            ahead: Arc::default(),
            governance: Governance::default(),
            key: None,
        }
    }

    /// A fixture whose rows are authenticated, as those of the program are.
    pub(crate) fn signed() -> Self {
        Self {
            key: Some(JournalKey::new(&[7; 32])),
            ..Self::new()
        }
    }

    /// The length of the write-ahead log on the disk.
    pub(crate) fn log_length(&self) -> usize {
        let log = self.path().with_extension("db-wal");
        usize::try_from(log.metadata().unwrap().len()).unwrap()
    }

    /// A fixture with the same effects, and a copy of the files as they are on the disk now. `change` changes the
    /// write-ahead log.
    pub(crate) fn copy(&self, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) -> Self {
        let copy = Self {
            effects: Arc::clone(&self.effects),
            governance: self.governance.clone(),
            key: self.key.clone(),
            ..Self::new()
        };
        let files = |name: &str| {
            let [from, to] = [self, &copy].map(|fixture| fixture.directory.path().join(name));
            (std::fs::read(from).unwrap(), to)
        };
        for name in ["windlass.db", "windlass.db-position"] {
            let (content, path) = files(name);
            std::fs::write(path, content).unwrap();
        }
        let (log, path) = files("windlass.db-wal");
        if let Some(log) = change(log) {
            std::fs::write(path, log).unwrap();
        }
        copy
    }

    /// A fixture with the same effects, and a copy of the database, which no process has open. `change` changes it.
    pub(crate) fn copy_of_database(&self, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let copy = Self {
            effects: Arc::clone(&self.effects),
            governance: self.governance.clone(),
            key: self.key.clone(),
            ..Self::new()
        };
        let position = "windlass.db-position";
        let [from, to] = [self, &copy].map(|fixture| fixture.directory.path().join(position));
        std::fs::copy(from, to).unwrap();
        let mut database = std::fs::read(self.path()).unwrap();
        change(&mut database);
        std::fs::write(copy.path(), database).unwrap();
        copy
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::new(self.directory.path()).join("windlass.db")
    }

    pub(crate) fn store(&self) -> Arc<Store> {
        self.opened().unwrap()
    }

    /// `None` if the database cannot be opened.
    pub(crate) fn try_store(&self) -> Option<Arc<Store>> {
        self.opened().ok()
    }

    fn opened(&self) -> Result<Arc<Store>, windlass_store::Error> {
        let authentication = match &self.key {
            Some(key) => Authentication::Key(key.clone()),
            None => Authentication::None,
        };
        let options = Options {
            authentication,
            ..Options::default()
        };
        Ok(Arc::new(Store::open_with(self.path(), options)?))
    }

    pub(crate) fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    /// The effects, which are then cleared.
    pub(crate) fn take_effects(&self) -> Vec<String> {
        std::mem::take(&mut *self.effects.lock().unwrap())
    }

    fn library(&self) -> ToolLibrary {
        let tool = |name: &str, description: &str, signature: &str| {
            let (effects, own) = (Arc::clone(&self.effects), name.to_owned());
            let has_begun = Arc::clone(&self.has_begun);
            Tool::builder(name)
                .description(description)
                .signature(signature)
                .handler(move |arguments: Value| {
                    let (effects, own) = (Arc::clone(&effects), own.clone());
                    let has_begun = Arc::clone(&has_begun);
                    async move {
                        if arguments["to"] == "Slow" {
                            has_begun.notify_one();
                            tokio::time::sleep(Duration::from_secs(20)).await;
                        }
                        effects
                            .lock()
                            .unwrap()
                            .push(format!("{own} {}", canonical(&arguments)));
                        Ok(match own.as_str() {
                            "look" if arguments["what"] == "captcha" => captcha(),
                            "look" => json!({"found": arguments["what"]}),
                            _ => json!("done"),
                        })
                    }
                })
                .build()
                .unwrap()
        };
        ToolLibrary::new("office")
            .with(tool(
                "look",
                "Looks something up",
                "(what: Text) --> IO Object",
            ))
            .with(tool(
                "note",
                "Writes a note into the book",
                "(text: Text) --> IO Text",
            ))
            .with(tool(
                "pay",
                "Pays a person an amount",
                "(to: Text, amount: Int) --> IO Text",
            ))
    }

    pub(crate) fn member(&self, name: &str, model: ScriptedModel) -> CrewMember {
        let file = windlass_spec::read(FILE).file.unwrap();
        let agent = file.agent(name).unwrap().clone();
        CrewMember {
            tools: bind(&agent, &self.library(), BindingMode::Exact).unwrap(),
            agent,
            model: Arc::new(model),
        }
    }

    /// A driver with its own connection to the database.
    pub(crate) fn driver(&self, model: ScriptedModel) -> Driver {
        let crew = Crew::new(self.member("clerk", model));
        self.driver_with(crew)
    }

    /// As [`RunFixture::driver`]; `None` if the database cannot be opened.
    pub(crate) fn try_driver(&self, model: ScriptedModel) -> Option<Driver> {
        let crew = Crew::new(self.member("clerk", model));
        Some(self.driver_on(self.try_store()?, crew))
    }

    pub(crate) fn driver_with(&self, crew: Crew) -> Driver {
        self.driver_on(self.store(), crew)
    }

    fn driver_on(&self, store: Arc<Store>, crew: Crew) -> Driver {
        let ahead = Arc::clone(&self.ahead);
        let stored = Stored::new(store, identity("ann")).with_clock(Arc::new(move || {
            let ahead = ahead.load(Ordering::SeqCst);
            Timestamp::from_microseconds(now().as_microseconds() + ahead)
        }));
        Driver::new(crew.governed_by(self.governance.clone()), Arc::new(stored))
    }

    /// Starts a run with a driver of its own.
    pub(crate) async fn start(&self, model: ScriptedModel, task: NewTask) -> Run {
        self.driver(model).start(task).await.unwrap()
    }

    /// Resumes a run with a driver of its own.
    pub(crate) async fn resume(&self, model: ScriptedModel, run: &RunId) -> Run {
        self.driver(model).resume(run).await.unwrap()
    }

    /// Advances the clock of the drivers.
    pub(crate) fn advance_clock(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        self.ahead.fetch_add(micros, Ordering::SeqCst);
    }

    pub(crate) fn pending(&self) -> Vec<Approval> {
        let store = self.store();
        store.approvals(&ApprovalFilter::pending(), now()).unwrap()
    }

    pub(crate) fn decide(&self, by: &str, decision: PersonDecision) {
        let asked = self.pending().remove(0);
        self.store()
            .decide(asked.call(), None, &identity(by), decision, now())
            .unwrap();
    }
}

fn captcha() -> Value {
    let text = |text: &str| NonEmptyText::new(text).unwrap();
    let work = Intervention::new(
        InterventionType::Captcha,
        text("example"),
        text("Please solve the captcha."),
    );
    serde_json::to_value(ToolResponse::intervention(work, now())).unwrap()
}

pub(crate) fn paying_model() -> ScriptedModel {
    ScriptedModel::answers([call("pay", json!({"to": "Bob", "amount": 5}))])
}

pub(crate) fn finishing_model() -> ScriptedModel {
    ScriptedModel::answers([finish("Done.")])
}

pub(crate) fn state(store: &Store, run: &RunId) -> RunState {
    store.summary(run).unwrap().state
}
