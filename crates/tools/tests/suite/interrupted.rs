//! Calls that are interrupted after they began: what is known about them decides how they end.

use std::time::Duration;

use serde_json::json;
use windlass_core::run::CallEnd;
use windlass_spec::{Effect, ErrorCategory, RiskLevel, ToolAttributes};
use windlass_tools::{BoundTool, CallContext, CommandLine, DispatchOptions, Tool, ToolProgress};

use super::DESCRIPTION;
use super::permits::{bound, call, call_with, error, risk};

const TEXT: &str = "() --> IO Text";

fn attributes(level: RiskLevel, is_idempotent: bool) -> ToolAttributes {
    ToolAttributes {
        timeout_seconds: Some(1.try_into().unwrap()),
        idempotent: Some(is_idempotent),
        ..risk(level)
    }
}

/// A tool that reports progress and never ends.
fn endless(attributes: ToolAttributes) -> BoundTool {
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature(TEXT)
        .handler_with_context(|_, context: CallContext| async move {
            if let Some(progress) = &context.progress {
                progress(ToolProgress {
                    done: 1.0,
                    total: None,
                    message: Some("the money has left".to_owned()),
                });
            }
            std::future::pending().await
        });
    bound(tool.build().unwrap(), TEXT, attributes)
}

fn script(script: &str, attributes: ToolAttributes) -> BoundTool {
    let command = CommandLine::new(["sh", "-c", script]).unwrap();
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature(TEXT)
        .command(command);
    bound(tool.build().unwrap(), TEXT, attributes)
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_call_that_took_too_long_is_unknown_unless_it_can_be_repeated() {
    for level in RiskLevel::ALL {
        for is_idempotent in [false, true] {
            let tool = endless(attributes(level, is_idempotent));
            let end = call(&tool, json!({})).await;
            match (level, is_idempotent) {
                (RiskLevel::Reversible, _) => {
                    let CallEnd::Timeout(failure) = end else {
                        panic!("{end:?}");
                    };
                    assert_eq!(failure.effect, Effect::None);
                    assert!(failure.retryable);
                }
                (RiskLevel::ReversibleWithDelay, true) => {
                    let CallEnd::Timeout(failure) = end else {
                        panic!("{end:?}");
                    };
                    assert_eq!(failure.effect, Effect::Unknown);
                    assert!(failure.retryable, "with the same key");
                }
                _ => {
                    let CallEnd::Unknown(failure) = end else {
                        panic!("{end:?}");
                    };
                    assert_eq!(failure.category, ErrorCategory::Timeout);
                    assert!(!failure.retryable);
                    assert_eq!(
                        failure.operator_message,
                        "the call took longer than 1 s and was stopped; it is unknown whether it took \
                         effect; the tool said last: the money has left"
                    );
                    assert!(!failure.model_message.contains("the money has left"));
                }
            }
        }
    }
}

#[tokio::test]
async fn what_a_stopped_program_wrote_last_is_kept_for_the_operator() {
    let tool = script(
        "echo first >&2; echo 'sent 5 to Bob' >&2; exec sleep 30",
        attributes(RiskLevel::Irreversible, false),
    );
    let end = call(&tool, json!({})).await;
    let CallEnd::Unknown(failure) = end else {
        panic!("{end:?}");
    };
    let message = &failure.operator_message;
    assert!(message.ends_with("sent 5 to Bob"), "{message}");
    assert!(!failure.model_message.contains("Bob"));
}

#[tokio::test]
async fn a_program_that_a_signal_ends_leaves_the_outcome_unknown() {
    let irreversible = || risk(RiskLevel::Irreversible);
    let end = call(&script("kill -KILL $$", irreversible()), json!({})).await;
    assert!(matches!(end, CallEnd::Unknown(_)), "{end:?}");
    // A program that reports an error has ended.
    let failure = error(call(&script("exit 3", irreversible()), json!({})).await);
    assert_eq!(failure.effect, Effect::Unknown);
}

#[tokio::test]
async fn a_tool_that_panics_leaves_the_outcome_unknown() {
    let panics = |level| {
        let tool = Tool::builder("tried")
            .description(DESCRIPTION)
            .signature(TEXT)
            .handler(|_| async { panic!("out of cheese") });
        bound(tool.build().unwrap(), TEXT, risk(level))
    };
    let end = call(&panics(RiskLevel::Irreversible), json!({})).await;
    let CallEnd::Unknown(failure) = end else {
        panic!("{end:?}");
    };
    let message = &failure.operator_message;
    assert!(message.contains("out of cheese"), "{message}");
    error(call(&panics(RiskLevel::Reversible), json!({})).await);
}

#[tokio::test]
async fn a_call_that_is_stopped_before_it_begins_had_no_effect() {
    // As a server that is still starting does.
    let tool = Tool::builder("tried")
        .description(DESCRIPTION)
        .signature(TEXT)
        .handler_with_context(|_, context: CallContext| async move {
            context.stop.cancelled().await;
            Err(windlass_tools::ToolError::new("not begun").without_effect())
        });
    let tool = bound(tool.build().unwrap(), TEXT, risk(RiskLevel::Irreversible));
    let options = DispatchOptions {
        timeout: Some(Duration::from_millis(10)),
        ..DispatchOptions::default()
    };
    let end = call_with(&tool, json!({}), options).await;
    let CallEnd::Timeout(failure) = end else {
        panic!("{end:?}");
    };
    assert_eq!(failure.effect, Effect::None);
}
