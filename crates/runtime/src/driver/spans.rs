//! The tracing spans of a run. They carry ids, names and outcomes. Messages, arguments and results appear
//! only in events of the level `trace`. A disabled span formats nothing.

use tracing::field::{Empty, display};
use tracing::{Span, debug_span, info_span, trace};
use windlass_core::gate::Decision;
use windlass_core::model::{ModelAnswer, ModelRequest};
use windlass_core::run::{Next, Run};
use windlass_model::ModelError;
use windlass_spec::{CallId, CallState, Turn};

use super::calls::{CallOutcome, Outcome};

/// A run that this process drives, until it ends or is suspended.
pub(super) fn run(run: &Run) -> Span {
    let span = info_span!(
        "run",
        run.id = %run.id(),
        gen_ai.agent.name = %run.agent().name(),
        run.parent = Empty,
    );
    if let Some(parent) = run.parent() {
        span.record("run.parent", display(parent));
    }
    span
}

/// The span of the current turn: from the request to the model until all its calls ended.
pub(super) struct TurnSpan(Option<(Turn, Span)>);

impl TurnSpan {
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// The span of the next step.
    pub(super) fn of(&mut self, run: &Run, next: &Next) -> Span {
        // Until the model is asked again, steps belong to the previous turn.
        let turn = match (next, run.turns().last()) {
            (Next::Wait(_) | Next::Done(_), _) => return Span::none(),
            (Next::CallModel(_), _) | (_, None) => run.current_turn(),
            (_, Some(last)) => last.turn,
        };
        match &self.0 {
            Some((current, span)) if *current == turn => span.clone(),
            _ => {
                let span = info_span!("turn", run.id = %run.id(), turn = u32::from(turn));
                self.0 = Some((turn, span.clone()));
                span
            }
        }
    }
}

/// A request to a model.
pub(super) fn model_request(run: &Run, model: Option<&str>, request: &ModelRequest) -> Span {
    let span = info_span!(
        "model_request",
        run.id = %run.id(),
        turn = u32::from(run.current_turn()),
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.type = Empty,
    );
    trace!(parent: &span, messages = ?request.messages, "request");
    span
}

/// Records how a request to a model ended.
pub(super) fn record_answer(span: &Span, answer: &Result<ModelAnswer, ModelError>) {
    match answer {
        Ok(answer) => {
            span.record("gen_ai.usage.input_tokens", answer.usage.input_tokens);
            span.record("gen_ai.usage.output_tokens", answer.usage.output_tokens);
            trace!(parent: span, answer = ?answer, "answer");
        }
        Err(error) => {
            span.record("error.type", tracing::field::debug(error.kind));
            trace!(parent: span, message = %error.message, "failure");
        }
    }
}

/// A decision of the gate about a call.
pub(super) fn gate_decision(call: &CallId) -> Span {
    debug_span!(
        "gate_decision",
        gen_ai.tool.call.id = %call,
        verdict = Empty,
        risk = Empty,
    )
}

/// Records what was decided.
pub(super) fn record_decision(span: &Span, decision: &Decision) {
    span.record("verdict", display(decision.verdict()));
    if let Some(risk) = decision.risk_level() {
        span.record("risk", display(risk));
    }
}

/// A call of a tool, of a sub-agent or for other tools.
pub(super) fn tool_call(run: &Run, call: &CallId) -> Span {
    let span = info_span!(
        "tool_call",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = Empty,
        gen_ai.tool.call.id = %call,
        status = Empty,
        error.type = Empty,
    );
    // Looked up only if the span is enabled.
    if !span.is_disabled()
        && let Ok((record, _)) = run.call(call)
    {
        span.record("gen_ai.tool.name", display(record.tool_name()));
        trace!(parent: &span, arguments = ?record.arguments(), "arguments");
    }
    span
}

/// Records how a call ended.
pub(super) fn record_outcome(span: &Span, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    let status = match outcome {
        Ok(CallOutcome::Ended(ended)) => {
            let (state, category) = (ended.end().state(), ended.end().category());
            if let Some(category) = category {
                span.record("error.type", display(category));
            }
            trace!(parent: span, result = ?ended.end(), "result");
            match state {
                CallState::Success => "success",
                CallState::Timeout => "timeout",
                CallState::Cancelled => "cancelled",
                CallState::Unknown => "unknown",
                CallState::Error | CallState::Pending | CallState::Running => "error",
            }
        }
        Ok(CallOutcome::NeedsAnswer(..)) => "needs_answer",
        Ok(CallOutcome::Suspended { .. }) => "suspended",
        Ok(CallOutcome::TaskEnded(..)) => "task_ended",
        Err(error) => {
            trace!(parent: span, %error, "failure");
            "not_recorded"
        }
    };
    span.record("status", status);
}
