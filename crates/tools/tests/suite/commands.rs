//! Command tools, with real processes.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_core::run::CallEnd;
use windlass_spec::{Effect, ErrorCategory, RiskLevel, ToolAttributes};
use windlass_tools::{
    BoundTool, CallContext, CommandLine, CommandLineError, DispatchOptions, Tool,
};

use super::DESCRIPTION;
use super::permits::{assert_output_is_too_large, bound, brief, call, call_with, error, risk};

fn command_tool(command: CommandLine, signature: &str, attributes: ToolAttributes) -> BoundTool {
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature(signature);
    bound(
        tool.command(command).build().unwrap(),
        signature,
        attributes,
    )
}

fn tool_of(words: &[&str], signature: &str) -> BoundTool {
    let command = CommandLine::new(words.iter().copied()).unwrap();
    command_tool(command, signature, risk(RiskLevel::Reversible))
}

/// A tool that runs a shell script. Windlass starts no shell itself; here the program is one.
fn script(text: &str, directory: &Path, attributes: ToolAttributes) -> BoundTool {
    let command = CommandLine::new(["sh", "-c", text])
        .unwrap()
        .directory(directory);
    command_tool(command, "() --> IO Text", attributes)
}

/// Creates a named pipe in `directory`, and reads it until all processes that hold it have ended.
fn watched_pipe(directory: &Path) -> JoinHandle<String> {
    let pipe = directory.join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    tokio::task::spawn_blocking(move || std::fs::read_to_string(pipe).unwrap())
}

async fn wait_until_closed(watched: JoinHandle<String>) -> String {
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, watched)
        .await
        .expect("a process is still alive")
        .unwrap()
}

#[tokio::test]
async fn arguments_and_results_are_json() {
    let tool = tool_of(
        &["cat"],
        "(names: [Text], deep: {n: Int}) --> IO {names: [Text], deep: {n: Int}}",
    );
    let arguments = json!({"names": ["$(id)", "; rm -rf /", "é\n\"'"], "deep": {"n": 1}});
    assert_eq!(
        call(&tool, arguments.clone()).await,
        CallEnd::Success(arguments)
    );
}

#[tokio::test]
async fn a_declared_text_is_returned_unchanged() {
    let tool = tool_of(&["echo", "all $HOME well; exit 1"], "() --> IO Text");
    assert_eq!(
        call(&tool, json!({})).await,
        CallEnd::Success(json!("all $HOME well; exit 1"))
    );
}

#[tokio::test]
async fn an_output_of_another_type_than_declared_is_an_error() {
    let failure = error(
        call(
            &tool_of(&["echo", "one, two"], "() --> IO [Text]"),
            json!({}),
        )
        .await,
    );
    assert_eq!(failure.category, ErrorCategory::InvalidOutput);
    assert!(
        failure.operator_message.contains("is not JSON"),
        "{failure:?}"
    );
    let failure = error(call(&tool_of(&["echo", "[1]"], "() --> IO [Text]"), json!({})).await);
    assert!(
        failure.operator_message.contains("/0: expected Text"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn large_arguments_and_large_results_do_not_deadlock() {
    let tool = tool_of(&["cat"], "(text: Text) --> IO {text: Text}");
    let arguments = json!({"text": "x".repeat(1_000_000)});
    assert_eq!(
        call(&tool, arguments.clone()).await,
        CallEnd::Success(arguments)
    );
}

#[tokio::test]
async fn a_program_need_not_read_its_arguments() {
    let tool = tool_of(&["true"], "(text: Text) --> IO Text");
    let end = call(&tool, json!({"text": "x".repeat(1_000_000)})).await;
    assert_eq!(end, CallEnd::Success(json!("")));
}

#[tokio::test]
async fn stderr_of_a_failed_program_is_shown_only_to_the_operator() {
    let directory = tempfile::tempdir().unwrap();
    let script_text = "i=0; while [ $i -lt 3000 ]; do echo 'early words' >&2; i=$((i+1)); done; \
                     echo 'the last words' >&2; exit 3";
    let tool = script(script_text, directory.path(), risk(RiskLevel::Irreversible));
    let failure = error(call(&tool, json!({})).await);
    assert_eq!(
        (failure.category, failure.effect),
        (ErrorCategory::ToolFailure, Effect::Unknown)
    );
    assert!(
        failure.operator_message.contains("exit status: 3"),
        "{failure:?}"
    );
    assert!(
        failure.operator_message.ends_with("the last words"),
        "{failure:?}"
    );
    assert!(failure.operator_message.len() < 9_000);
    assert!(!failure.model_message.contains("words"));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error_without_effect() {
    for words in [["no-such-program-anywhere"], ["./no/such/file"]] {
        let command = CommandLine::new(words).unwrap().directory("/");
        let tool = command_tool(command, "() --> IO Text", risk(RiskLevel::Irreversible));
        let failure = error(call(&tool, json!({})).await);
        assert_eq!(
            (failure.category, failure.effect),
            (ErrorCategory::ToolFailure, Effect::None)
        );
        assert!(
            failure.operator_message.contains("could not be started"),
            "{failure:?}"
        );
        assert!(failure.operator_message.contains(words[0]), "{failure:?}");
    }
}

#[tokio::test]
async fn a_program_gets_only_default_and_listed_variables() {
    // Cargo sets both for tests. Neither is passed to every program.
    let named = CommandLine::new(["env"])
        .unwrap()
        .environment(["CARGO_PKG_NAME", "NOT_SET_AT_ALL"]);
    let tool = command_tool(named, "() --> IO Text", risk(RiskLevel::Reversible));
    let CallEnd::Success(Value::String(printed)) = call(&tool, json!({})).await else {
        panic!("env failed");
    };
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(
        printed
            .lines()
            .any(|line| line == "CARGO_PKG_NAME=windlass-tools")
    );
    for line in printed.lines() {
        let name = line.split('=').next().unwrap();
        assert!(
            ["PATH", "HOME", "LANG", "CARGO_PKG_NAME"].contains(&name),
            "{line}"
        );
    }
}

#[tokio::test]
async fn values_of_listed_variables_are_redacted() {
    let command = CommandLine::new(["sh", "-c", "echo key=$CARGO_PKG_NAME >&2; exit 1"]).unwrap();
    let command = command.environment(["CARGO_PKG_NAME"]);
    let tool = command_tool(command, "() --> IO Text", risk(RiskLevel::Reversible));
    let failure = error(call(&tool, json!({})).await);
    assert!(
        failure.operator_message.ends_with("key=[redacted]"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_program_runs_in_and_is_resolved_from_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().canonicalize().unwrap();
    std::fs::create_dir(home.join("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/pwd", home.join("bin/where")).unwrap();
    let command = CommandLine::new(["bin/where"]).unwrap().directory(&home);
    let tool = command_tool(command, "() --> IO Text", risk(RiskLevel::Reversible));
    assert_eq!(
        call(&tool, json!({})).await,
        CallEnd::Success(json!(home.to_str().unwrap()))
    );
}

#[tokio::test]
async fn a_timeout_ends_the_program_and_its_child_processes() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched_pipe(directory.path());
    let text = "exec 3>pipe; (sleep 1000 & echo grandchild >&3; wait) & echo child >&3; sleep 1000";
    let tool = script(text, directory.path(), brief());
    let end = call(&tool, json!({})).await;
    assert!(matches!(end, CallEnd::Timeout(_)), "{end:?}");
    let written = wait_until_closed(watched).await;
    assert!(
        written.contains("grandchild") && written.contains("child\n"),
        "{written}"
    );
}

#[tokio::test]
async fn a_program_that_ignores_term_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched_pipe(directory.path());
    let text = "trap 'echo asked >&3' TERM; exec 3>pipe; echo begun >&3; \
                while true; do sleep 1000 & wait; done";
    let tool = script(text, directory.path(), brief());
    let end = call(&tool, json!({})).await;
    assert!(matches!(end, CallEnd::Timeout(_)), "{end:?}");
    assert_eq!(wait_until_closed(watched).await, "begun\nasked\n");
}

#[tokio::test]
async fn a_cancelled_program_can_clean_up() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = watched_pipe(directory.path());
    let text = "trap 'echo done > tidied; exit 0' TERM; exec 3>pipe; exec 3>&-; sleep 1000 & wait";
    let tool = script(text, directory.path(), risk(RiskLevel::Irreversible));
    let cancel = CancellationToken::new();
    let options = DispatchOptions {
        context: CallContext {
            stop: cancel.clone(),
            ..CallContext::default()
        },
        ..DispatchOptions::default()
    };
    let (end, _) = tokio::join!(call_with(&tool, json!({}), options), async {
        // The pipe is opened and closed again once the trap is set.
        wait_until_closed(pipe).await;
        cancel.cancel();
    });
    let CallEnd::Unknown(failure) = end else {
        panic!("{end:?}");
    };
    assert_eq!(failure.effect, Effect::Unknown);
    assert_eq!(
        std::fs::read_to_string(directory.path().join("tidied")).unwrap(),
        "done\n"
    );
}

#[tokio::test]
async fn child_processes_do_not_outlive_the_call() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched_pipe(directory.path());
    // The child process also keeps the standard output open.
    let tool = script(
        "exec 3>pipe; sleep 1000 & echo done",
        directory.path(),
        brief(),
    );
    assert_eq!(
        call(&tool, json!({})).await,
        CallEnd::Success(json!("done"))
    );
    wait_until_closed(watched).await;
}

#[tokio::test]
async fn a_program_is_ended_when_its_caller_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched_pipe(directory.path());
    let begun = directory.path().join("begun");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&begun)
            .status()
            .unwrap()
            .success()
    );
    let text = "exec 3>pipe; echo x > begun; sleep 1000 & wait";
    let tool = script(text, directory.path(), risk(RiskLevel::Reversible));
    let caller = tokio::spawn(async move { call(&tool, json!({})).await });
    tokio::task::spawn_blocking(move || std::fs::read_to_string(begun).unwrap())
        .await
        .unwrap();
    caller.abort();
    wait_until_closed(watched).await;
}

#[tokio::test]
async fn an_endless_output_ends_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let watched = watched_pipe(directory.path());
    let tool = script(
        "exec 3>pipe; yes",
        directory.path(),
        risk(RiskLevel::Reversible),
    );
    assert_output_is_too_large(&tool).await;
    wait_until_closed(watched).await;
}

#[test]
fn invalid_command_words_are_refused() {
    assert_eq!(
        CommandLine::new(Vec::<String>::new()),
        Err(CommandLineError::NoProgram)
    );
    assert_eq!(CommandLine::new([" "]), Err(CommandLineError::NoProgram));
    assert!(matches!(
        CommandLine::new(["a", "b\0"]),
        Err(CommandLineError::ZeroByte(_))
    ));
}
