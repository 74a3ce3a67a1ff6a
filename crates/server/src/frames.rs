//! What listeners receive: the frames of server-sent events, made from the events of journals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_service::subject_of;
use windlass_service::types::{Approval, CallEnd, Event, TaskEnd, ToolGapReport};

/// One frame of a stream. The frames `progress`, `content` and `done` are those of the envelope of tools: they are
/// enough for a listener that shows how far a run is and what it answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Frame {
    /// A turn in which the model requests calls.
    Progress {
        /// The tools.
        content: String,
        /// The turn.
        step: u32,
        /// The most turns.
        total: u32,
    },
    /// The answer of the run.
    Content {
        /// The answer.
        content: String,
    },
    /// The run has ended. It is the last frame of a run.
    Done,
    /// More text of the model, as it comes. It has no id and is not repeated to a listener that was interrupted.
    Delta {
        /// The new characters.
        text: String,
    },
    /// What happened to the run itself.
    Run {
        /// `started`, `resumed`, `cancelled`, `damaged` or `over_budget`.
        state: String,
        /// When.
        at: String,
    },
    /// The model answered, or could not.
    Step {
        /// The turn.
        turn: u32,
        /// What it wrote.
        text: Option<String>,
        /// The tools that it wants to call.
        tools: Vec<String>,
        /// Why it could not answer.
        error: Option<String>,
        /// When.
        at: String,
    },
    /// The tool of a call stated what the call cost.
    Cost {
        /// The call.
        call: String,
        /// The cost in US dollars, as a decimal number.
        cost_usd: String,
        /// When.
        at: String,
    },
    /// What happened to a call.
    Call {
        /// The call.
        call: String,
        /// `decided`, `started`, `retried`, `reused`, `success`, `error`, `timeout`, `cancelled` or `unknown`.
        state: String,
        /// The decision of the gate and its reason.
        decision: Option<String>,
        /// The result.
        result: Option<Value>,
        /// The error, as the model reads it.
        error: Option<String>,
        /// When.
        at: String,
    },
    /// A question to a person was asked or is settled.
    Approval {
        /// The call, which is the id of the question.
        call: String,
        /// `pending`, `approved`, `rejected`, `expired` or `cancelled`.
        status: String,
        /// The tool of the call, or the text of the question.
        what: String,
        /// When it expires.
        expires_at: String,
        /// When.
        at: String,
    },
    /// A call is held, released or undone.
    Hold {
        /// The call.
        call: String,
        /// `held`, `released` or `undone`.
        status: String,
        /// Until when it can be undone.
        until: Option<String>,
        /// When.
        at: String,
    },
    /// What happened to a plan or to a task of it.
    Plan {
        /// The plan.
        plan: String,
        /// The task.
        task: Option<String>,
        /// `planned`, `changed`, `started`, `success`, `error` or another status of a task.
        state: String,
        /// When.
        at: String,
    },
    /// The agent lacks a tool.
    Gap {
        /// What is missing.
        report: Box<ToolGapReport>,
        /// When.
        at: String,
    },
}

/// A frame of the stream of all runs, with its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunFrame {
    /// The run.
    pub(crate) run: String,
    /// What happened.
    pub(crate) frame: Frame,
}

impl Frame {
    /// The name of the event that carries it.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Progress { .. } => "progress",
            Self::Content { .. } => "content",
            Self::Done => "done",
            Self::Delta { .. } => "delta",
            Self::Run { .. } => "run",
            Self::Step { .. } => "step",
            Self::Cost { .. } => "cost",
            Self::Call { .. } => "call",
            Self::Approval { .. } => "approval",
            Self::Hold { .. } => "hold",
            Self::Plan { .. } => "plan",
            Self::Gap { .. } => "gap",
        }
    }

    /// The frames of an event, in order. The same event always has the same frames. `turns` is the most turns of the
    /// run, if it is known.
    pub(crate) fn of(event: &Event, turns: Option<u32>) -> Vec<Self> {
        let at = event.at().to_string();
        let run = |state: &str| Self::Run {
            state: state.to_owned(),
            at: at.clone(),
        };
        let call = |call: &dyn std::fmt::Display, state: &str| CallFrame {
            call: call.to_string(),
            state: state.to_owned(),
            at: at.clone(),
            ..CallFrame::default()
        };
        let hold = |call: &dyn std::fmt::Display, status: &str, until: Option<String>| Self::Hold {
            call: call.to_string(),
            status: status.to_owned(),
            until,
            at: at.clone(),
        };
        let plan = |plan: &dyn std::fmt::Display, task: Option<String>, state: String| Self::Plan {
            plan: plan.to_string(),
            task,
            state,
            at: at.clone(),
        };
        let step = |turn: u32| StepFrame {
            turn,
            at: at.clone(),
            ..StepFrame::default()
        };
        match event {
            Event::Started { .. } => vec![run("started")],
            Event::Resumed { .. } => vec![run("resumed")],
            Event::Cancelled { .. } => vec![run("cancelled")],
            Event::JournalDamaged { .. } => vec![run("damaged")],
            Event::BudgetReached { .. } => vec![run("over_budget")],
            Event::CostReported { call, cost, .. } => vec![Self::Cost {
                call: call.to_string(),
                cost_usd: cost.to_decimal(),
                at,
            }],
            Event::Offered { gap, .. } => {
                let gap = gap.clone().map(|report| Self::Gap { report, at });
                gap.into_iter().collect()
            }
            Event::ModelAnswered { turn, answer, .. } => {
                let tools: Vec<String> =
                    answer.calls.iter().map(|call| call.tool.clone()).collect();
                let number = turn.number();
                let progress = (!tools.is_empty()).then(|| Self::Progress {
                    content: tools.join(", "),
                    step: number,
                    total: turns.unwrap_or(number).max(number),
                });
                let text = Some(answer.text.clone()).filter(|text| !text.is_empty());
                let step = StepFrame {
                    text,
                    tools,
                    ..step(number)
                };
                std::iter::once(step.frame()).chain(progress).collect()
            }
            Event::ModelFailed { turn, kind, .. } => {
                let error = json!(kind).as_str().map(str::to_owned);
                vec![
                    StepFrame {
                        error,
                        ..step(turn.number())
                    }
                    .frame(),
                ]
            }
            Event::Decided {
                call: id, decision, ..
            } => {
                let decision = Some(decision.to_string());
                vec![
                    CallFrame {
                        decision,
                        ..call(id, "decided")
                    }
                    .frame(),
                ]
            }
            Event::CallStarted { call: id, .. } => vec![call(id, "started").frame()],
            Event::CallEnded { call: id, end, .. } => {
                let (state, result, failure) = match end {
                    CallEnd::Success(result) => ("success", Some(result.clone()), None),
                    CallEnd::Error(failure) => ("error", None, Some(failure)),
                    CallEnd::Timeout(failure) => ("timeout", None, Some(failure)),
                    CallEnd::Cancelled(failure) => ("cancelled", None, Some(failure)),
                    CallEnd::Unknown(failure) => ("unknown", None, Some(failure)),
                };
                let error = failure.map(|failure| failure.model_message.clone());
                vec![
                    CallFrame {
                        result,
                        error,
                        ..call(id, state)
                    }
                    .frame(),
                ]
            }
            Event::CallRetried {
                call: id, failure, ..
            } => {
                let error = Some(failure.model_message.clone());
                let frame = CallFrame {
                    error,
                    ..call(id, "retried")
                };
                vec![frame.frame()]
            }
            Event::Reused { call: id, .. } => vec![call(id, "reused").frame()],
            Event::Asked { approval, .. } | Event::Settled { approval, .. } => {
                vec![Self::of_approval(approval, at)]
            }
            Event::Held { call, until, .. } => vec![hold(call, "held", Some(until.to_string()))],
            Event::Released { call, .. } => vec![hold(call, "released", None)],
            Event::Undone { call, .. } => vec![hold(call, "undone", None)],
            Event::Planned { call, .. } => vec![plan(call, None, "planned".to_owned())],
            Event::Replanned { plan: id, .. } => vec![plan(id, None, "changed".to_owned())],
            Event::TaskStarted { plan: id, task, .. } => {
                vec![plan(id, Some(task.to_string()), "started".to_owned())]
            }
            Event::TaskEnded {
                plan: id,
                task,
                end,
                ..
            } => {
                let state = match end {
                    TaskEnd::Success { .. } => "success",
                    _ => "error",
                };
                vec![plan(id, Some(task.to_string()), state.to_owned())]
            }
            Event::TaskMarked {
                plan: id,
                task,
                status,
                ..
            } => {
                let state = json!(status).as_str().unwrap_or_default().to_owned();
                vec![plan(id, Some(task.to_string()), state)]
            }
            Event::Recalled { .. } | Event::TimePassed { .. } => Vec::new(),
        }
    }

    fn of_approval(approval: &Approval, at: String) -> Self {
        Self::Approval {
            call: approval.call().to_string(),
            status: approval.status().to_string(),
            what: subject_of(approval.question()).to_owned(),
            expires_at: approval.request().expires_at.to_string(),
            at,
        }
    }
}

#[derive(Default)]
struct CallFrame {
    call: String,
    state: String,
    decision: Option<String>,
    result: Option<Value>,
    error: Option<String>,
    at: String,
}

impl CallFrame {
    fn frame(self) -> Frame {
        let Self {
            call,
            state,
            decision,
            result,
            error,
            at,
        } = self;
        Frame::Call {
            call,
            state,
            decision,
            result,
            error,
            at,
        }
    }
}

#[derive(Default)]
struct StepFrame {
    turn: u32,
    text: Option<String>,
    tools: Vec<String>,
    error: Option<String>,
    at: String,
}

impl StepFrame {
    fn frame(self) -> Frame {
        let Self {
            turn,
            text,
            tools,
            error,
            at,
        } = self;
        Frame::Step {
            turn,
            text,
            tools,
            error,
            at,
        }
    }
}
