//! One server under the pins: it is started only if its program is the accepted one, and a tool is called
//! only while its definition is the accepted one. Both are checked again whenever the server may have
//! changed: at every start, and before the next call after a `list_changed` notification. The files of the
//! program are compared again after it was initialized, so that the accepted files are those that ran.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Map, Value, json};
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;
use windlass_core::approval::{Ask, Digest, FormRequest};
use windlass_core::run::{self, QuestionSubject, ToolQuestion};
use windlass_spec::server::{ServerSettings, Transport};
use windlass_spec::{Effect, ErrorCategory, NonEmptyText};
use windlass_tools::{CallContext, ToolError, ToolProgress};

use crate::child::executable;
use crate::client::{Schema, lock};
use crate::ledger::{Ledger, LedgerError};
use crate::pin::{self, Pin, PinState};
use crate::program::{self, Program, ProgramSnapshot};
use crate::text::{visible, visible_json};
use crate::{
    AfterStart, CallError, CallOutcome, CallRequest, Definition, Elicitation, ElicitationReply,
    Lookup, Server, ServerError, ServerInfo, ServerOptions, ToolAnswer,
};

/// How often the pins are checked again if the server changes before the call is sent.
const ATTEMPTS: usize = 5;

/// The longest error text of a server that is passed on, in characters.
const MAX_ERROR: usize = 4_000;

/// A server whose tools are pinned.
#[derive(Debug)]
pub struct GovernedServer {
    server: Server,
    ledger: Ledger,
    /// The program as it was found before the last start.
    program: Arc<Mutex<Option<Program>>>,
    checked: RwLock<Option<CheckedTools>>,
    /// Cancelled when calls are no longer answered.
    stopped: CancellationToken,
}

/// The states of the server's tools at the last check.
#[derive(Debug)]
struct CheckedTools {
    generation: u64,
    tools: HashMap<String, (PinState, Option<Digest>)>,
}

/// Why a server could not be connected to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be used.
    #[error("{0}")]
    Server(#[from] ServerError),
    /// Its stored records cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl GovernedServer {
    /// A server that is not started yet.
    ///
    /// # Errors
    /// If its stored records cannot be read.
    pub fn new(
        settings: ServerSettings,
        ledger: Ledger,
        mut options: ServerOptions,
    ) -> Result<Self, LedgerError> {
        options.era = ledger.era(&settings.name)?;
        let program = Arc::new(Mutex::new(None));
        let (records, own, found) = (ledger.clone(), settings.clone(), Arc::clone(&program));
        options.before_start = Some(Arc::new(move |executable: Option<&Path>| {
            let checked = checked_program(&own, executable, &records)?;
            *lock(&found) = checked.as_ref().map(|checked| checked.program.clone());
            let (own, executable) = (own.clone(), executable.map(Path::to_owned));
            let after_start: AfterStart =
                Box::new(move || check_unchanged(&own, executable.as_deref(), checked.as_ref()));
            Ok(after_start)
        }));
        Ok(Self {
            server: Server::new(settings, options),
            ledger,
            program,
            checked: RwLock::default(),
            stopped: CancellationToken::new(),
        })
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        self.server.settings()
    }

    /// The server itself, without the checks of pins.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Its stored records.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts the server if it is not running, and compares its tools with the accepted ones. On the
    /// first connection, tools are accepted unless there is something suspicious about them.
    ///
    /// # Errors
    /// If the server or its stored records cannot be used.
    pub async fn connect(&self) -> Result<(ServerInfo, Vec<Pin>), ConnectError> {
        let mut checked = self.checked.write().await;
        self.connect_into(&mut checked).await
    }

    async fn connect_into(
        &self,
        checked: &mut Option<CheckedTools>,
    ) -> Result<(ServerInfo, Vec<Pin>), ConnectError> {
        let server_info = self.server.connect().await?;
        // Read before the list, so that a later change causes another check.
        let generation = self.server.generation();
        let offered = self.server.definitions().await?;
        let (ledger, settings) = (self.ledger.clone(), self.settings().clone());
        let stored = server_info.clone();
        // The program that was started, not the files as they are now: a server can replace its files.
        let program = lock(&self.program).clone();
        let pins = tokio::task::spawn_blocking(move || {
            ledger.record_connection(&settings, &stored, program.as_ref(), &offered)
        })
        .await
        .map_err(|error| ServerError::new(ErrorCategory::Internal, error.to_string()))??;
        *checked = Some(CheckedTools::new(generation, &pins));
        Ok((server_info, pins))
    }

    /// Stops the server.
    pub async fn close(&self) {
        self.server.close().await;
    }

    /// Stops answering calls, even with errors: the process is about to end.
    pub(crate) fn stop_answering(&self) {
        self.stopped.cancel();
    }

    /// Checks that the accepted definition of a tool still has this digest. Returns the generation of the
    /// tool list that was checked.
    async fn ensure_accepted(&self, tool: &str, digest: &Digest) -> Result<u64, ToolError> {
        let refused = |error: ConnectError| {
            let category = match &error {
                ConnectError::Server(error) => error.category,
                ConnectError::Ledger(_) => ErrorCategory::Internal,
            };
            self.untrusted_error(category, &error.to_string())
                .without_effect()
        };
        // Connects first: a restart changes the generation.
        let connected = self.server.connect().await;
        connected.map_err(|error| refused(error.into()))?;
        let generation = self.server.generation();
        if let Some(checked) = &*self.checked.read().await
            && checked.generation == generation
            && checked.allows(tool, digest)
        {
            return Ok(generation);
        }
        let mut checked = self.checked.write().await;
        let is_current = checked
            .as_ref()
            .is_some_and(|checked| checked.generation == self.server.generation());
        if is_current {
            // Another process may have accepted the tool meanwhile.
            let pins = self.ledger.pins(&self.settings().name);
            let pins = pins.map_err(|error| refused(error.into()))?;
            *checked = checked
                .take()
                .map(|checked| CheckedTools::new(checked.generation, &pins.unwrap_or_default()));
        } else {
            self.connect_into(&mut checked).await.map_err(refused)?;
        }
        match &*checked {
            Some(checked) if checked.allows(tool, digest) => Ok(checked.generation),
            Some(checked) => {
                let state = checked.tools.get(tool).map(|(state, _)| *state);
                Err(self.not_accepted_error(tool, state))
            }
            None => Err(self.not_accepted_error(tool, None)),
        }
    }

    /// The error for a tool whose definition is not the accepted one.
    fn not_accepted_error(&self, tool: &str, state: Option<PinState>) -> ToolError {
        let name = &self.settings().name;
        let why = match state {
            Some(PinState::Pinned) => "changed, and the change was accepted after this run started",
            Some(PinState::Changed) => "changed since it was accepted",
            Some(PinState::New) => "is not accepted yet",
            Some(PinState::Quarantined) => "is quarantined",
            Some(PinState::Gone) | None => "is no longer offered",
        };
        let hint = match state {
            Some(PinState::Pinned) => "start a new run".to_owned(),
            _ => format!("run `windlass mcp pins {name}` to see why"),
        };
        let message = format!(
            "the tool `{}` of the server `{name}` {why}, so it is not called; {hint}",
            visible(tool)
        );
        self.own_error(ErrorCategory::PermissionDenied, message)
    }

    /// An error in this crate's words, before anything was sent.
    fn own_error(&self, category: ErrorCategory, message: String) -> ToolError {
        ToolError::of(category, visible(&message)).without_effect()
    }

    /// Calls a tool of the server, or resumes a call of it.
    pub(crate) async fn run(
        &self,
        pinned: &PinnedTool,
        arguments: Value,
        context: CallContext,
    ) -> Result<Value, ToolError> {
        tokio::select! {
            biased;
            () = self.stopped.cancelled() => std::future::pending().await,
            result = self.run_call(pinned, arguments, context) => result,
        }
    }

    async fn run_call(
        &self,
        pinned: &PinnedTool,
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
            progress: context.progress.clone().map(|report| {
                let forward = move |progress: crate::Progress| {
                    let message = progress.message.as_deref().map(visible);
                    report(ToolProgress {
                        done: progress.done,
                        total: progress.total,
                        message: message.map(std::borrow::Cow::into_owned),
                    });
                };
                Arc::new(forward) as Arc<dyn Fn(crate::Progress) + Send + Sync>
            }),
            output_schema: pinned.definition.output_schema().cloned(),
            max_output_bytes: context.max_output_bytes,
            approval: context.approval.and_then(|approval| approval.signed),
            arguments,
        };
        let outcome = match context.reply {
            Some(reply) => {
                let reply = match reply {
                    run::FormReply::Filled(filled) => ElicitationReply::Accept(filled),
                    run::FormReply::Declined => ElicitationReply::Decline,
                    run::FormReply::Unanswered => ElicitationReply::Cancel,
                };
                self.server.reply(request, reply).await
            }
            None => self.call(pinned, request).await?,
        };
        match outcome {
            Ok(CallOutcome::Answered(answer)) => self.to_result(answer),
            Ok(CallOutcome::NeedsInput(elicitation)) => {
                Err(ToolError::from_question(self.question(elicitation)))
            }
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Calls a tool of the server as it was last checked. Checks again if the server restarts or changes
    /// its tools before the call is sent.
    async fn call(
        &self,
        pinned: &PinnedTool,
        request: CallRequest,
    ) -> Result<Result<CallOutcome, CallError>, ToolError> {
        for _ in 0..ATTEMPTS {
            let check = self.ensure_accepted(pinned.own_name(), &pinned.digest);
            let generation = tokio::select! {
                biased;
                () = request.cancel.cancelled() => {
                    let message = "the call was cancelled before it started".to_owned();
                    return Err(self.own_error(ErrorCategory::Cancelled, message));
                }
                generation = check => generation?,
            };
            if let Some(outcome) = self.server.call_at(generation, request.clone()).await {
                return Ok(outcome);
            }
        }
        let message = format!(
            "the server `{}` keeps changing its tools; try again later",
            self.settings().name
        );
        Err(self.own_error(ErrorCategory::Unavailable, message))
    }

    /// The result of a call, with all hidden text in it made visible.
    fn to_result(&self, answer: ToolAnswer) -> Result<Value, ToolError> {
        let (value, _) = visible_json(answer.value);
        if !answer.is_error {
            return Ok(value);
        }
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let text: String = text.chars().take(MAX_ERROR).collect();
        let message = format!(
            "the server `{}` reports an error: {text}",
            self.settings().name
        );
        Err(ToolError::new(message))
    }

    fn failure(&self, error: CallError) -> ToolError {
        let failure = match error.is_own {
            true => ToolError::of(error.category, self.error_message(&error.message)),
            false => self.untrusted_error(error.category, &error.message),
        };
        match error.effect {
            Effect::None => failure.without_effect(),
            // The connection broke, the server ended, or nothing that it sent says how the call ended.
            Effect::Unknown if !error.is_reported => failure.interrupted(),
            Effect::Applied | Effect::Unknown => failure,
        }
    }

    /// An error whose text may come from the server or its program, so no model reads it. A program's
    /// standard error may contain secrets and injected instructions.
    fn untrusted_error(&self, category: ErrorCategory, message: &str) -> ToolError {
        ToolError::foreign(category, self.error_message(message))
    }

    /// The message with the name of the server.
    fn error_message(&self, message: &str) -> String {
        format!(
            "the server `{}`: {}",
            self.settings().name,
            visible(message)
        )
    }

    /// The question to the user for an elicitation. It begins with the name of the server that asks.
    fn question(&self, elicitation: Elicitation) -> ToolQuestion {
        let name = self.settings().name.as_str();
        let (message, schema, url) = match elicitation {
            Elicitation::Form { message, schema } => (message, visible_json(schema).0, None),
            Elicitation::Url { message, url } => {
                let no_fields = json!({"type": "object", "properties": {}});
                (message, no_fields, Some(visible(&url).into_owned()))
            }
        };
        let text = visible(&message).trim().replace('\n', "\n  ");
        let question = format!("The MCP server `{name}` asks: {text}");
        let warning =
            "The server wrote this text, not Windlass. Your answer is sent to the server.";
        ToolQuestion::new(QuestionSubject::Ask(Ask {
            question: NonEmptyText::or(&question, "An MCP server asks."),
            context: Some(warning.to_owned()),
            options: Vec::new(),
            free_text: true,
            form: Some(Box::new(FormRequest {
                server: NonEmptyText::or(name, "-"),
                schema,
                url,
            })),
        }))
    }
}

impl CheckedTools {
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
        let checked = self.tools.get(tool);
        checked.is_some_and(|(_, usable)| usable.as_ref() == Some(digest))
    }
}

/// An accepted definition, prepared for calls.
#[derive(Debug)]
pub(crate) struct PinnedTool {
    pub(crate) definition: Definition,
    pub(crate) digest: Digest,
    /// The compiled input schema, read on first use.
    input_schema: OnceLock<Result<Schema, String>>,
}

impl PinnedTool {
    pub(crate) fn new(definition: Definition) -> Self {
        Self {
            digest: pin::digest(&definition),
            definition,
            input_schema: OnceLock::new(),
        }
    }

    pub(crate) fn own_name(&self) -> &str {
        self.definition.name()
    }

    /// Checks arguments against the server's full input schema, before the call is sent.
    fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        let Some(schema) = self.definition.input_schema() else {
            return Ok(());
        };
        let refused = |why: &str| {
            let message = format!(
                "the arguments do not match the tool's input schema: {}",
                visible(why)
            );
            ToolError::of(ErrorCategory::InvalidArguments, message).without_effect()
        };
        let schema = self.input_schema.get_or_init(|| Schema::new(schema));
        let schema = schema.as_ref().map_err(|why| refused(why))?;
        schema.check(arguments).map_err(|why: String| refused(&why))
    }
}

/// The files that a server runs, if it is a program. `lookup` returns the variables it is started with.
///
/// # Errors
/// Why they cannot be determined.
pub fn program_of(settings: &ServerSettings, lookup: &Lookup) -> Result<Option<Program>, String> {
    let Transport::Command(command) = &settings.transport else {
        return Ok(None);
    };
    let executable = executable(command, lookup).map_err(|error| error.message)?;
    let found = program::program_at(command, &executable);
    found.map(Some).map_err(|error| error.to_string())
}

/// The program of a server before it is started. Fails if it is not the accepted one, or if it cannot be
/// determined: then it could not be compared the next time.
fn checked_program(
    settings: &ServerSettings,
    executable: Option<&Path>,
    ledger: &Ledger,
) -> Result<Option<ProgramSnapshot>, String> {
    let snapshot = match (&settings.transport, executable) {
        (Transport::Command(command), Some(executable)) => {
            let taken = ProgramSnapshot::take(command, executable);
            Some(taken.map_err(|error| error.to_string())?)
        }
        _ => None,
    };
    let program = snapshot.as_ref().map(|snapshot| &snapshot.program);
    let changed = ledger.program_changes(settings, program)?;
    match changed.is_empty() {
        true => Ok(snapshot),
        false => Err(format!(
            "the program of the server `{name}` changed since it was accepted, so it is not started: {}; \
             review the change, then run `windlass mcp pins {name} --accept-program`",
            changed.join("; "),
            name = settings.name
        )),
    }
}

/// Compares the program of a server that was started with the one that was checked before. Any difference
/// means that other files than the checked ones may have run.
fn check_unchanged(
    settings: &ServerSettings,
    executable: Option<&Path>,
    before: Option<&ProgramSnapshot>,
) -> Result<(), String> {
    let (Transport::Command(command), Some(executable), Some(before)) =
        (&settings.transport, executable, before)
    else {
        return Ok(());
    };
    let changes = match before.changes_since(command, executable) {
        Ok(changes) if changes.is_empty() => return Ok(()),
        Ok(changes) => changes.join("; "),
        Err(error) => error.to_string(),
    };
    Err(format!(
        "the program of the server `{}` changed while it was started, so it was stopped: {changes}; \
         find out what changes these files, then try again",
        settings.name
    ))
}
