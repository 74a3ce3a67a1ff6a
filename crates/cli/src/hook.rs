//! `windlass hook`: answers the hooks of coding agents, so that their own tools pass the gate. A call that cannot be judged is
//! refused.

mod backend;

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::CommandOutcome;
use super::arguments::{Hook, HookProgram};
use super::program::Program;
use super::run::block_on;
use super::terminal::{eprint_line, print_json, print_line};
use backend::{Backend, Decision};

/// The exit code that makes a program refuse the call, whatever went wrong.
const REFUSE: u8 = 2;

/// The largest input that is read, in bytes.
const MAX_INPUT: u64 = 16 << 20;

/// How much of a result is stored, in characters.
const MAX_RESULT: usize = 20_000;

/// How long everything but waiting for people may take.
const LONGEST: Duration = Duration::from_secs(30);

/// What a program tells its hook.
#[derive(Debug, Deserialize)]
struct HookInput {
    hook_event_name: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Option<Value>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    tool_response: Option<Value>,
    /// Why a tool failed.
    #[serde(default)]
    error: Option<Value>,
}

pub(super) fn run(program: &Program, command: &Hook) -> anyhow::Result<CommandOutcome> {
    if command.print {
        return print_settings(command);
    }
    // A program makes its call if its hook ends in any other way.
    std::panic::set_hook(Box::new(|panic| {
        let _ = eprint_line(&format!("windlass: the call is refused: {panic}"));
        std::process::exit(REFUSE.into());
    }));
    let input = match read_input() {
        Ok(input) => input,
        Err(error) => return refused(&error),
    };
    match input.hook_event_name.as_str() {
        "PreToolUse" => match before_call(program, command, &input) {
            Ok(()) => Ok(CommandOutcome::Done),
            Err(error) => refused(&error),
        },
        "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
            after_call(program, command, &input)
                .context("the outcome of the call was not recorded, and will count as unknown")?;
            Ok(CommandOutcome::Done)
        }
        // Other events need no answer.
        _ => Ok(CommandOutcome::Done),
    }
}

/// Refuses the call because it could not be judged.
fn refused(error: &anyhow::Error) -> anyhow::Result<CommandOutcome> {
    eprint_line(&format!(
        "windlass: the call was not judged, so it is refused: {error:#}\n\
         hint: run `windlass doctor`, or check WINDLASS_SERVER and WINDLASS_TOKEN; to use the program without \
         Windlass, remove the hook from its settings"
    ))?;
    Ok(CommandOutcome::Code(REFUSE))
}

fn read_input() -> anyhow::Result<HookInput> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_INPUT + 1)
        .read_to_string(&mut text)
        .context("standard input cannot be read")?;
    if text.len() as u64 > MAX_INPUT {
        bail!("the input has more than {MAX_INPUT} bytes");
    }
    serde_json::from_str(&text).context("standard input is not what a program tells its hook")
}

impl HookInput {
    /// The arguments of the call, as the gate sees them. Codex passes a patch as `command`, which it is not.
    fn arguments(&self) -> anyhow::Result<Map<String, Value>> {
        let mut arguments = match &self.tool_input {
            Some(Value::Object(arguments)) => arguments.clone(),
            None | Some(Value::Null) => Map::new(),
            Some(_) => bail!("`tool_input` is no object"),
        };
        if self.is_patch()
            && let Some(patch) = arguments.remove("command")
        {
            arguments.insert("patch".to_owned(), patch);
        }
        Ok(arguments)
    }

    /// The arguments as the program names them.
    fn own_arguments(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        if self.is_patch()
            && let Some(patch) = arguments.remove("patch")
        {
            arguments.insert("command".to_owned(), patch);
        }
        arguments
    }

    fn is_patch(&self) -> bool {
        self.tool_name == "apply_patch"
    }
}

fn before_call(program: &Program, command: &Hook, input: &HookInput) -> anyhow::Result<()> {
    if input.tool_name.is_empty() {
        bail!("`tool_name` is missing");
    }
    let arguments = input.arguments()?;
    let wait = Duration::from_secs(command.wait.into());
    let backend = Backend::choose(program, command)?;
    let deadline = wait + LONGEST;
    let judged = block_on(backend.service(), async {
        let judging = judge(&backend, command.program, input, arguments, wait);
        match tokio::time::timeout(deadline, judging).await {
            Ok(judged) => judged,
            Err(_) => Err(anyhow!("it took longer than {} s", deadline.as_secs())),
        }
    })?;
    let answer = match judged? {
        Judged::Allowed(None) if command.allow && command.program == HookProgram::ClaudeCode => {
            Some(
                json!({"permissionDecision": "allow", "permissionDecisionReason": "Windlass allows it."}),
            )
        }
        // The program goes on by its own rules.
        Judged::Allowed(None) => None,
        Judged::Allowed(Some(edited)) => Some(json!({
            "permissionDecision": "allow", "permissionDecisionReason": "An approver changed the arguments.",
            "updatedInput": input.own_arguments(edited),
        })),
        Judged::Denied(reason) => Some(json!({
            "permissionDecision": "deny", "permissionDecisionReason": reason,
        })),
    };
    if let Some(mut answer) = answer {
        answer["hookEventName"] = json!("PreToolUse");
        print_json(&format!("{}\n", json!({"hookSpecificOutput": answer})))?;
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// What the program is answered.
enum Judged {
    /// The call has begun, with other arguments if an approver changed them.
    Allowed(Option<Map<String, Value>>),
    /// Why the call is refused.
    Denied(String),
}

/// Asks for a decision, waits for it if a person has to decide, and begins the call if it is allowed.
async fn judge(
    backend: &Backend,
    program: HookProgram,
    input: &HookInput,
    arguments: Map<String, Value>,
    wait: Duration,
) -> anyhow::Result<Judged> {
    let request = json!({
        "tool": input.tool_name, "arguments": arguments, "program": program.name(),
        "session": input.session_id, "call_id": input.tool_use_id,
    });
    let mut decision = backend.judge(&request).await?;
    let until = Instant::now() + wait;
    while decision.is_waiting() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Judged::Denied(waiting_message(&decision)));
        }
        decision = backend.wait(&decision.id, left).await?;
    }
    if decision.state != "ready" {
        return Ok(Judged::Denied(denied_message(&decision)));
    }
    let begun = backend.begin(&decision).await?;
    Ok(Judged::Allowed(begun.edited.then_some(begun.arguments)))
}

fn waiting_message(decision: &Decision) -> String {
    let reason = decision.reason.as_deref().unwrap_or("the gate asks for it");
    match (&decision.approval, decision.state.as_str()) {
        (Some(approval), _) => format!(
            "Windlass: needs approval: {reason}. It can be given with `windlass approvals approve {approval}`. \
             After that, make exactly the same call again."
        ),
        (None, "held") => format!(
            "Windlass: the call is held: {reason}. Make exactly the same call again when its undo window is over."
        ),
        (None, _) => {
            format!("Windlass: the call is not decided yet: {reason}. Make it again later.")
        }
    }
}

fn denied_message(decision: &Decision) -> String {
    let reason = decision.reason.as_deref().unwrap_or("the gate refused it");
    match decision.state.as_str() {
        "begun" | "ended" | "unknown" => {
            "Windlass: denied: this call was begun before. Make a new call.".to_owned()
        }
        "stopped" => format!("Windlass: stopped: {reason}."),
        _ => format!("Windlass: denied: {reason}"),
    }
}

fn after_call(program: &Program, command: &Hook, input: &HookInput) -> anyhow::Result<()> {
    let (Some(session), Some(call_id)) = (&input.session_id, &input.tool_use_id) else {
        bail!("`session_id` and `tool_use_id` are missing");
    };
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => cut(text),
        Some(value) => cut(&value.to_string()),
        None => "the program gave no reason".to_owned(),
    };
    let outcome = match input.hook_event_name.as_str() {
        "PostToolUse" => {
            let response = input.tool_response.clone().unwrap_or_default();
            let length = response.to_string().len();
            let result = match length > MAX_RESULT {
                true => json!({"beginning": text(Some(&response)), "bytes": length}),
                false => response,
            };
            json!({"outcome": "success", "result": result})
        }
        "PermissionDenied" => {
            json!({"outcome": "not_made", "message": "the program did not make the call"})
        }
        _ => {
            let reason = input.error.as_ref().or(input.tool_response.as_ref());
            json!({"outcome": "error", "message": text(reason)})
        }
    };
    let backend = Backend::choose(program, command)?;
    let name = command.program.name();
    block_on(backend.service(), async {
        let reporting = async {
            let found = backend.find(name, session, call_id).await?;
            match found {
                Some(decision) => backend.end(&decision.id, &outcome).await,
                None => bail!("there is no decision about the call"),
            }
        };
        match tokio::time::timeout(LONGEST, reporting).await {
            Ok(reported) => reported,
            Err(_) => Err(anyhow!("it took longer than {} s", LONGEST.as_secs())),
        }
    })?
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_RESULT).collect()
}

/// Prints the settings of a program that use this hook.
fn print_settings(command: &Hook) -> anyhow::Result<CommandOutcome> {
    let own = std::env::current_exe()?;
    let mut line = format!(
        "{} hook {}",
        super::paste::path(&own),
        command.program.name()
    );
    if command.wait != 50 {
        line += &format!(" --wait {}", command.wait);
    }
    if command.allow {
        line += " --allow";
    }
    if let Some(data) = command.data.as_deref() {
        line += &format!(" --data {}", super::paste::path(data));
    }
    // A hook that does not answer in time refuses nothing.
    let timeout = u32::from(command.wait) + 60;
    let hook = json!([{"hooks": [{"type": "command", "command": line, "timeout": timeout}]}]);
    let mut hooks = json!({"PreToolUse": hook, "PostToolUse": hook});
    if command.program == HookProgram::ClaudeCode {
        hooks["PostToolUseFailure"] = hook;
    }
    print_line(&format!("{:#}", json!({"hooks": hooks})))?;
    eprint_line(match command.program {
        HookProgram::ClaudeCode => {
            "add this to .claude/settings.json of a project, or to ~/.claude/settings.json for all of them"
        }
        HookProgram::Codex => {
            "write this to .codex/hooks.json of a project, or to ~/.codex/hooks.json for all of them, and trust the \
             hooks with `/hooks` in Codex"
        }
    })?;
    Ok(CommandOutcome::Done)
}
