//! Permits for tests. Only a run makes permits, so a run is advanced until it requests the call.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::gate::{Governance, Permit, Rules};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{CallEnd, Event, Next, Run, Settings, Task};
use windlass_spec::{
    ErrorCategory, Failure, NonEmptyText, RiskLevel, RunId, Timestamp, ToolAttributes,
    ToolSpecification,
};
use windlass_tools::{
    BindingMode, BoundTool, CallContext, DispatchOptions, DispatchOutcome, Tool, ToolLibrary,
    dispatch,
};

use super::{agent, described};

/// A tool bound to its own specification, with these attributes.
pub(super) fn bound(tool: Tool, signature: &str, attributes: ToolAttributes) -> BoundTool {
    let specification = described(tool.name().as_str(), tool.description(), signature);
    let specification = Arc::unwrap_or_clone(specification)
        .with_attributes(attributes)
        .unwrap();
    let library = ToolLibrary::new("test").with(tool);
    library
        .bind_tool(&Arc::new(specification), BindingMode::Exact)
        .unwrap()
}

pub(super) fn risk(risk: RiskLevel) -> ToolAttributes {
    ToolAttributes {
        risk: Some(risk),
        ..ToolAttributes::default()
    }
}

/// Reversible, with one second to run.
pub(super) fn brief() -> ToolAttributes {
    ToolAttributes {
        timeout_seconds: Some(1.try_into().unwrap()),
        ..risk(RiskLevel::Reversible)
    }
}

/// The permit a run gets for a call of this tool.
pub(super) fn permit(specification: &Arc<ToolSpecification>, arguments: Value) -> Permit {
    let at = Timestamp::from_microseconds(1_760_000_000_000_000);
    let mut run = Run::fold([&Event::Started {
        run: RunId::new("r1").unwrap(),
        agent: Box::new(agent([Arc::clone(specification)])),
        agents: Vec::new(),
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: Task {
            description: "Try the tool.".to_owned(),
            ..Task::default()
        },
        settings: Settings::default(),
        at,
    }])
    .unwrap();
    let call = RequestedCall {
        tool: specification.name().to_string(),
        arguments: RequestedArguments::Json(arguments),
        confidence: Some(1.0),
    };
    let answer = ModelAnswer {
        calls: vec![call],
        ..ModelAnswer::default()
    };
    run.apply(&Event::ModelAnswered {
        turn: run.current_turn(),
        answer,
        at,
    })
    .unwrap();
    let call = match run.next() {
        Next::Gate(mut calls) => calls.remove(0),
        other => panic!("{other:?}"),
    };
    // An override by the operator, so that the call needs no approval.
    let tool = specification.name().to_string();
    let governance = Governance {
        overrides: [(tool, RiskLevel::Reversible)].into(),
        ..Governance::default()
    };
    let rules = Rules::new(&governance, run.agent(), &[]).unwrap();
    let tenant = NonEmptyText::new("local").unwrap();
    let who = TenantPrincipal::new(tenant, Principal::new("tester").unwrap());
    let decision = run
        .decide(
            &call,
            &who,
            &rules,
            &windlass_core::limits::Readiness::Ready,
        )
        .unwrap();
    run.apply(&Event::Decided {
        call: call.clone(),
        decision,
        at,
    })
    .unwrap();
    run.apply(&Event::CallStarted {
        call: call.clone(),
        at,
        variant: None,
    })
    .unwrap();
    run.permit(&call).unwrap()
}

/// Runs one call with default options.
pub(super) async fn call(tool: &BoundTool, arguments: Value) -> CallEnd {
    call_with(tool, arguments, DispatchOptions::default()).await
}

pub(super) async fn call_with(
    tool: &BoundTool,
    arguments: Value,
    options: DispatchOptions,
) -> CallEnd {
    ended(dispatch(tool, permit(tool.specification(), arguments), options).await)
}

/// The end of a call that asked no question.
pub(super) fn ended(dispatched: DispatchOutcome) -> CallEnd {
    match dispatched {
        DispatchOutcome::Ended(end) => end,
        DispatchOutcome::Question(question) => panic!("{question:?}"),
    }
}

/// The failure of a call that ended with an error.
pub(super) fn error(end: CallEnd) -> Failure {
    match end {
        CallEnd::Error(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// Asserts that a call fails because its output is larger than 100,000 bytes.
pub(super) async fn assert_output_is_too_large(tool: &BoundTool) {
    let options = DispatchOptions {
        context: CallContext {
            max_output_bytes: 100_000,
            ..CallContext::default()
        },
        ..DispatchOptions::default()
    };
    let failure = error(call_with(tool, json!({}), options).await);
    assert_eq!(failure.category, ErrorCategory::InvalidOutput);
    assert!(
        failure.model_message.contains("larger than 100000 bytes"),
        "{failure:?}"
    );
}
