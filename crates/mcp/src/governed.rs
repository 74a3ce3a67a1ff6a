//! One server under rule: what it runs is what was accepted, and a tool of it is called only while its
//! definition is the one that was accepted. Both are looked at again whenever the server may have changed:
//! at every start, and before the next call after it said so.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Map, Value, json};
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;
use windlass_core::approval::{Ask, Digest, FormRequest};
use windlass_core::run::{self, ToolQuestion};
use windlass_spec::server::{ServerSettings, Transport};
use windlass_spec::{Effect, ErrorCategory, NonEmptyText};
use windlass_tools::{CallContext, ToolError, ToolProgress};

use crate::child::executable;
use crate::client::{Schema, lock};
use crate::ledger::{Ledger, LedgerError};
use crate::pin::{self, Pin, PinState};
use crate::program::{self, Program};
use crate::text::{visible, visible_json};
use crate::{
    Answered, CallError, CallRequest, Came, Definition, Elicitation, Greeting, Lookup, Reply,
    Server, ServerError, ServerOptions,
};

/// How often a server that changes while it is looked at is looked at again.
const ATTEMPTS: usize = 5;

/// How much of an error that a server tells is passed on.
const MAX_ERROR: usize = 4_000;

/// A server whose tools are pinned.
#[derive(Debug)]
pub struct Governed {
    server: Server,
    ledger: Ledger,
    /// What it was found to run before it was last started.
    runs: Arc<Mutex<Option<Program>>>,
    met: RwLock<Option<Met>>,
    /// Cancelled when no call is answered any more.
    is_silent: CancellationToken,
}

/// How the server's tools stood when it was last looked at.
#[derive(Debug)]
struct Met {
    generation: u64,
    tools: HashMap<String, (PinState, Option<Digest>)>,
}

/// Why a server could not be met.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MeetError {
    /// It cannot be used.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// What is known of it cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Governed {
    /// A server that is not started yet.
    ///
    /// # Errors
    /// If what is known of it cannot be read.
    pub fn new(
        settings: ServerSettings,
        ledger: Ledger,
        mut options: ServerOptions,
    ) -> Result<Self, LedgerError> {
        options.era = ledger.era(&settings.name)?;
        let runs = Arc::new(Mutex::new(None));
        let (known, asked, found) = (ledger.clone(), settings.clone(), Arc::clone(&runs));
        options.before_start = Some(Arc::new(move |executable: Option<&Path>| {
            let program = checked_program(&asked, executable, &known)?;
            *lock(&found) = program;
            Ok(())
        }));
        Ok(Self {
            server: Server::new(settings, options),
            ledger,
            runs,
            met: RwLock::default(),
            is_silent: CancellationToken::new(),
        })
    }

    /// How the operator set it up.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        self.server.settings()
    }

    /// The server itself, for those who only look.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What is known of it.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts the server if it is not there, and holds what it offers against what was accepted. What
    /// it offers at the first meeting is accepted unless something about it is suspicious.
    ///
    /// # Errors
    /// If it cannot be used, or what is known of it cannot.
    pub async fn meet(&self) -> Result<(Greeting, Vec<Pin>), MeetError> {
        let mut met = self.met.write().await;
        self.meet_into(&mut met).await
    }

    async fn meet_into(&self, met: &mut Option<Met>) -> Result<(Greeting, Vec<Pin>), MeetError> {
        let greeting = self.server.connect().await?;
        // Read before the list: what changes meanwhile is looked at again.
        let generation = self.server.generation();
        let offered = self.server.definitions().await?;
        let (ledger, settings) = (self.ledger.clone(), self.settings().clone());
        let greeted = greeting.clone();
        // What was started, not what stands there by now: a server can replace its own files.
        let program = lock(&self.runs).clone();
        let pins = tokio::task::spawn_blocking(move || {
            ledger.meet(&settings, &greeted, program.as_ref(), &offered)
        })
        .await
        .map_err(|error| ServerError::new(ErrorCategory::Internal, error.to_string()))??;
        *met = Some(Met::new(generation, &pins));
        Ok((greeting, pins))
    }

    /// Ends the server.
    pub async fn close(&self) {
        self.server.close().await;
    }

    /// Answers no call any more, not even with an error: the process is about to end.
    pub(crate) fn fall_silent(&self) {
        self.is_silent.cancel();
    }

    /// Makes sure that a tool is still the one that was accepted, as `digest` says. The state of the
    /// server that this holds for.
    async fn ensure(&self, tool: &str, digest: &Digest) -> Result<u64, ToolError> {
        let refused = |error: MeetError| {
            let category = match &error {
                MeetError::Server(error) => error.category,
                MeetError::Ledger(_) => ErrorCategory::Internal,
            };
            self.foreign(category, &error.to_string()).without_effect()
        };
        // It is started first: only then is known whether it is the one that was looked at.
        let connected = self.server.connect().await;
        connected.map_err(|error| refused(error.into()))?;
        let generation = self.server.generation();
        if let Some(met) = &*self.met.read().await
            && met.generation == generation
            && met.allows(tool, digest)
        {
            return Ok(generation);
        }
        let mut met = self.met.write().await;
        let is_current = met
            .as_ref()
            .is_some_and(|met| met.generation == self.server.generation());
        if is_current {
            // Somebody may have accepted it meanwhile, in another process.
            let pins = self.ledger.pins(&self.settings().name);
            let pins = pins.map_err(|error| refused(error.into()))?;
            *met = met
                .take()
                .map(|met| Met::new(met.generation, &pins.unwrap_or_default()));
        } else {
            self.meet_into(&mut met).await.map_err(refused)?;
        }
        match &*met {
            Some(met) if met.allows(tool, digest) => Ok(met.generation),
            Some(met) => Err(self.suspended(tool, met.tools.get(tool).map(|(state, _)| *state))),
            None => Err(self.suspended(tool, None)),
        }
    }

    /// Why a tool is not called.
    fn suspended(&self, tool: &str, state: Option<PinState>) -> ToolError {
        let name = &self.settings().name;
        let why = match state {
            Some(PinState::Pinned) => "changed, and the change was accepted after this run began",
            Some(PinState::Changed) => "changed since it was accepted",
            Some(PinState::New) => "was not accepted yet",
            Some(PinState::Quarantined) => "is in quarantine",
            Some(PinState::Gone) | None => "is gone",
        };
        let hint = match state {
            Some(PinState::Pinned) => "start a new run".to_owned(),
            _ => format!("`windlass mcp pins {name}` shows what is the matter"),
        };
        let message = format!(
            "the tool `{}` of the server `{name}` {why}, so it is not called; {hint}",
            visible(tool)
        );
        self.own_error(ErrorCategory::PermissionDenied, message)
    }

    /// An error of ours, before anything was done.
    fn own_error(&self, category: ErrorCategory, message: String) -> ToolError {
        ToolError::of(category, visible(&message)).without_effect()
    }

    /// Calls a tool of the server, or goes on with a call of it.
    pub(crate) async fn run(
        &self,
        pinned: &Pinned,
        arguments: Value,
        context: CallContext,
    ) -> Result<Value, ToolError> {
        tokio::select! {
            biased;
            () = self.is_silent.cancelled() => std::future::pending().await,
            done = self.go(pinned, arguments, context) => done,
        }
    }

    async fn go(
        &self,
        pinned: &Pinned,
        arguments: Value,
        context: CallContext,
    ) -> Result<Value, ToolError> {
        if context.reply.is_none() {
            pinned.check(&arguments)?;
        }
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let request = CallRequest {
            key: context.key.clone(),
            tool: pinned.own_name().to_owned(),
            cancel: context.stop.clone(),
            progress: context.progress.clone().map(|told| {
                let forward = move |progress: crate::Progress| {
                    let message = progress.message.as_deref().map(visible);
                    told(ToolProgress {
                        done: progress.done,
                        total: progress.total,
                        message: message.map(std::borrow::Cow::into_owned),
                    });
                };
                Arc::new(forward) as Arc<dyn Fn(crate::Progress) + Send + Sync>
            }),
            output_schema: pinned.definition.output_schema().cloned(),
            max_output_bytes: context.max_output_bytes,
            arguments,
        };
        let came = match context.reply {
            Some(reply) => {
                let reply = match reply {
                    run::Reply::Filled(filled) => Reply::Accept(filled),
                    run::Reply::Declined => Reply::Decline,
                    run::Reply::Nobody => Reply::Cancel,
                };
                self.server.reply(request, reply).await
            }
            None => self.call(pinned, request).await?,
        };
        match came {
            Ok(Came::Answered(answered)) => self.answer(answered),
            Ok(Came::Asks(elicitation)) => Err(ToolError::asks(self.question(elicitation))),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Calls a tool of the server as it was looked at last. If it is started anew, or says that it
    /// changed, in that very moment, it is looked at again.
    async fn call(
        &self,
        pinned: &Pinned,
        request: CallRequest,
    ) -> Result<Result<Came, CallError>, ToolError> {
        for _ in 0..ATTEMPTS {
            let looked_at = self.ensure(pinned.own_name(), &pinned.digest);
            let generation = tokio::select! {
                biased;
                () = request.cancel.cancelled() => {
                    let message = "the call was stopped before it began".to_owned();
                    return Err(self.own_error(ErrorCategory::Cancelled, message));
                }
                generation = looked_at => generation?,
            };
            if let Some(came) = self.server.call_at(generation, request.clone()).await {
                return Ok(came);
            }
        }
        let message = format!("the server `{}` keeps changing", self.settings().name);
        Err(self.own_error(ErrorCategory::Unavailable, message))
    }

    /// What the server answered, with everything in it that people would not see made visible.
    fn answer(&self, answered: Answered) -> Result<Value, ToolError> {
        let (value, _) = visible_json(answered.value);
        if !answered.is_error {
            return Ok(value);
        }
        let said = match value {
            Value::String(said) => said,
            other => other.to_string(),
        };
        let said: String = said.chars().take(MAX_ERROR).collect();
        let message = format!(
            "the server `{}` reports an error: {said}",
            self.settings().name
        );
        Err(ToolError::new(message))
    }

    fn failure(&self, error: CallError) -> ToolError {
        let told = match error.is_own {
            true => ToolError::of(error.category, self.told(&error.message)),
            false => self.foreign(error.category, &error.message),
        };
        match error.effect {
            Effect::None => told.without_effect(),
            Effect::Applied | Effect::Unknown => told,
        }
    }

    /// An error that the server, or what it runs, may have put in words: nobody wrote these for a model.
    /// What a program leaves on its standard error may hold secrets, and orders.
    fn foreign(&self, category: ErrorCategory, message: &str) -> ToolError {
        ToolError::foreign(category, self.told(message))
    }

    /// What went wrong, and with whom.
    fn told(&self, message: &str) -> String {
        format!(
            "the server `{}`: {}",
            self.settings().name,
            visible(message)
        )
    }

    /// What a server asks, as it is put to a person: whoever reads it sees first who asks.
    fn question(&self, elicitation: Elicitation) -> ToolQuestion {
        let name = self.settings().name.as_str();
        let (message, schema, url) = match elicitation {
            Elicitation::Form { message, schema } => (message, visible_json(schema).0, None),
            Elicitation::Url { message, url } => {
                let nothing = json!({"type": "object", "properties": {}});
                (message, nothing, Some(visible(&url).into_owned()))
            }
        };
        let said = visible(&message).trim().replace('\n', "\n  ");
        let question = format!("The MCP server `{name}` asks: {said}");
        let warning = "The server wrote this, not Windlass. What you fill in goes to the server.";
        ToolQuestion::Ask(Ask {
            question: NonEmptyText::or(&question, "An MCP server asks."),
            context: Some(warning.to_owned()),
            options: Vec::new(),
            free_text: true,
            form: Some(Box::new(FormRequest {
                server: NonEmptyText::or(name, "-"),
                schema,
                url,
            })),
        })
    }
}

impl Met {
    fn new(generation: u64, pins: &[Pin]) -> Self {
        let tools = pins.iter().map(|pin| {
            let digest = pin.usable().map(pin::digest);
            (pin.tool.clone(), (pin.state(), digest))
        });
        Self {
            generation,
            tools: tools.collect(),
        }
    }

    fn allows(&self, tool: &str, digest: &Digest) -> bool {
        let standing = self.tools.get(tool);
        standing.is_some_and(|(_, usable)| usable.as_ref() == Some(digest))
    }
}

/// A definition that was accepted, as a tool goes by it.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) definition: Definition,
    pub(crate) digest: Digest,
    /// What its arguments are checked against, read when it is first needed.
    takes: OnceLock<Result<Schema, String>>,
}

impl Pinned {
    pub(crate) fn new(definition: Definition) -> Self {
        Self {
            digest: pin::digest(&definition),
            definition,
            takes: OnceLock::new(),
        }
    }

    pub(crate) fn own_name(&self) -> &str {
        self.definition.name()
    }

    /// Checks arguments against all that the server says of them, before it is asked.
    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let Some(schema) = self.definition.input_schema() else {
            return Ok(());
        };
        let refused = |why: &str| {
            let message = format!("the arguments do not fit: {}", visible(why));
            ToolError::of(ErrorCategory::InvalidArguments, message).without_effect()
        };
        let schema = self.takes.get_or_init(|| Schema::new(schema));
        let schema = schema.as_ref().map_err(|why| refused(why))?;
        schema.check(arguments).map_err(|why: String| refused(&why))
    }
}

/// What a server runs, if it is a program. `lookup` gives the variables it is started with.
///
/// # Errors
/// Why that cannot be told.
pub fn program_of(settings: &ServerSettings, lookup: &Lookup) -> Result<Option<Program>, String> {
    let Transport::Command(command) = &settings.transport else {
        return Ok(None);
    };
    let executable = executable(command, lookup).map_err(|error| error.message)?;
    program_at(settings, Some(&executable))
}

/// The same, where it is known already which file is started.
fn program_at(
    settings: &ServerSettings,
    executable: Option<&Path>,
) -> Result<Option<Program>, String> {
    let (Transport::Command(command), Some(executable)) = (&settings.transport, executable) else {
        return Ok(None);
    };
    let found = program::program_at(command, executable);
    found.map(Some).map_err(|error| error.to_string())
}

/// What a server runs, as it stands there before it is started. What is not what was accepted is not
/// started, and neither is what nobody can tell: it could not be recognised the next time.
fn checked_program(
    settings: &ServerSettings,
    executable: Option<&Path>,
    ledger: &Ledger,
) -> Result<Option<Program>, String> {
    let program = program_at(settings, executable)?;
    let changed = ledger.program_changes(settings, program.as_ref())?;
    match changed.is_empty() {
        true => Ok(program),
        false => Err(format!(
            "what the server `{name}` runs changed since it was accepted, so it is not started: {}; if \
             you know why, `windlass mcp pins {name} --accept-program` accepts it",
            changed.join("; "),
            name = settings.name
        )),
    }
}
