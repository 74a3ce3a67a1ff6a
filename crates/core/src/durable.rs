//! Values that a driver of runs exchanges with the store of runs: how safely an event is stored, what is
//! stored in the same transaction, and the commands that arrive for a run. They are plain data, so that
//! neither side needs to know the other.

use serde_json::Value;
use windlass_spec::plan::{Plan, PlanTaskId};
use windlass_spec::{CallId, RunId, Timestamp};

use crate::approval::{Approval, Digest, Hold, Principal};
use crate::run::{Event, PlanTaskStatus};
use crate::stop::StoppableWork;

/// Whether to wait until an event is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Wait until the event is on disk. For events that must not be lost, such as the start of a call
    /// that has an effect.
    Synced,
    /// Do not wait. The event is stored soon and before any later one of its run. A crash may lose it
    /// together with all later ones.
    Relaxed,
}

/// A change that is stored in the same transaction as an event: both or neither.
#[derive(Debug, Clone, PartialEq)]
pub enum AtomicWrite {
    /// A question becomes pending: the one of the event, already redacted. Refused if the call has a
    /// pending question.
    Question(Box<Approval>),
    /// A call is held. Refused if it was held before.
    Hold(Box<Hold>),
    /// A held call starts. Refused if it was undone or cancelled, has already started, or its undo
    /// window is not over at the time of the event.
    Start(CallId),
    /// An inbox command is taken. Refused if it was taken before.
    Take(InboxCommandId),
    /// Withdraws the pending question and the hold of a call, if there are any.
    Withdraw(CallId),
    /// Changes nothing. Refused if a stop covers this work, so that nothing begins after it was stopped.
    Unstopped(Box<StoppableWork>),
}

/// What a store knows about a call from other records than the events of its run. A driver compares it
/// with the call before the call starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallEvidence {
    /// The digest of the call as it was approved, else as it was held; `None` if it was neither.
    pub authorized: Option<Digest>,
    /// Why its approval is not that of approvers who may decide, if so.
    pub unproven: Option<String>,
    /// Whether an execution of the call has ended.
    pub has_run: bool,
}

/// Defines the id of objects that a store numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! numbered_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(i64);

        impl $name {
            /// The id with this number.
            #[must_use]
            pub const fn new(number: i64) -> Self {
                Self(number)
            }

            /// Its number.
            #[must_use]
            pub const fn number(self) -> i64 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

numbered_id! {
    /// The id of an inbox command.
    InboxCommandId
}

/// A command that a person or another process left for the owner of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxCommand {
    /// Its id.
    pub id: InboxCommandId,
    /// Who sent it; `None` for an expiry.
    pub by: Option<Principal>,
    /// When it was sent.
    pub at: Timestamp,
    /// What to do.
    pub action: InboxAction,
}

/// What an inbox command asks the owner of a run to do.
#[derive(Debug, Clone, PartialEq)]
pub enum InboxAction {
    /// Apply the answer to a question: it was decided, or expired.
    Settled(Box<Approval>),
    /// Do not run a held call.
    Undo(CallId),
    /// Start a held call at once.
    Release(CallId),
    /// Stop the run.
    Cancel,
    /// Change the status of a task of a plan.
    Mark {
        /// The plan.
        plan: CallId,
        /// The task.
        task: PlanTaskId,
        /// Its status.
        status: PlanTaskStatus,
        /// Its result.
        result: Option<Value>,
    },
    /// Replace the tasks of a plan that have not started.
    Replan {
        /// The plan.
        plan: CallId,
        /// The new tasks.
        tasks: Box<Plan>,
    },
}

impl InboxCommand {
    /// The event that the command leads to when its run takes it, if it still fits.
    #[must_use]
    pub fn into_event(self, at: Timestamp) -> Event {
        match (self.action, self.by) {
            (InboxAction::Settled(approval), _) => Event::Settled { approval, at },
            (InboxAction::Undo(call), Some(by)) => Event::Undone { call, by, at },
            (InboxAction::Release(call), Some(by)) => Event::Released { call, by, at },
            (InboxAction::Cancel, by) => Event::Cancelled { by, at },
            (
                InboxAction::Mark {
                    plan,
                    task,
                    status,
                    result,
                },
                by @ Some(_),
            ) => Event::TaskMarked {
                plan,
                task,
                status,
                result,
                // What a person reports is trusted.
                tainted: false,
                by,
                at,
            },
            (InboxAction::Replan { plan, tasks }, Some(by)) => Event::Replanned {
                plan,
                tasks,
                by,
                at,
            },
            (_, None) => Event::TimePassed { at },
        }
    }
}

/// A run that has work to do and no process that does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumableRun {
    /// The run to resume: the outermost one, if the work is in the run of a sub-agent or a task.
    pub run: RunId,
    /// Its tenant.
    pub tenant: String,
    /// Why it can be resumed.
    pub reason: ResumeReason,
}

windlass_spec::word_set! {
    /// Why a run can be resumed.
    ResumeReason, "reason" {
        /// An inbox command has not been taken yet.
        Command = "command",
        /// The undo window of a held call is over.
        HoldDue = "hold_due",
        /// A question has expired.
        QuestionExpired = "question_expired",
        /// The run is open, and the process that owned it is gone.
        OwnerGone = "owner_gone",
        /// The program that makes the call of the run did not report in time.
        CallerLate = "caller_late",
    }
}
