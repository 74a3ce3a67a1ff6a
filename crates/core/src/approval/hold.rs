//! Holds: the undo window between the decision that a call may run and its start.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{CallId, RunId, Timestamp, ToolName};

use super::digest::Digest;
use super::identity::{Principal, TenantPrincipal};
use super::later;

/// The undo window, unless another one is set.
pub const DEFAULT_UNDO_WINDOW: Duration = Duration::from_secs(10);

/// The status of a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldStatus {
    /// It waits and can be undone.
    Held,
    /// A person released it early.
    Released,
    /// It is about to run, runs, or ran.
    Started,
    /// A person undid it.
    Undone,
    /// It was cancelled, for instance because its run was cancelled.
    Cancelled,
}

impl HoldStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Held,
        Self::Released,
        Self::Started,
        Self::Undone,
        Self::Cancelled,
    ];

    /// The name in records and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Released => "released",
            Self::Started => "started",
            Self::Undone => "undone",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the call may still start.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Held | Self::Released)
    }
}

impl fmt::Display for HoldStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an operation on a hold is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// It is no longer held.
    #[error("it is too late: the call is already {0}")]
    TooLate(HoldStatus),
    /// It is still held.
    #[error("the call is held until {0}")]
    NotDue(Timestamp),
    /// The principal belongs to another tenant.
    #[error("{0} may not decide about this call")]
    NotEntitled(Principal),
}

/// Why a stored value is not a valid hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHold {
    /// The stored digest is not that of the call.
    #[error("the digest does not match the held call")]
    OtherDigest,
    /// The stored fields contradict the status.
    #[error("the record of a call that is {0} contradicts itself")]
    Impossible(HoldStatus),
}

/// The undo window of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawHold")]
pub struct Hold {
    call: CallId,
    #[serde(flatten)]
    principal: TenantPrincipal,
    tool_name: ToolName,
    tool_args: Map<String, Value>,
    digest: Digest,
    held_at: Timestamp,
    due_at: Timestamp,
    status: HoldStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: Option<HoldDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
}

/// Who undid or released a held call, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldDecision {
    /// The person.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
}

impl Hold {
    /// Holds a call from `held_at` for `window`.
    #[must_use]
    pub fn new(
        call: CallId,
        principal: TenantPrincipal,
        tool_name: ToolName,
        tool_args: Map<String, Value>,
        held_at: Timestamp,
        window: Duration,
    ) -> Self {
        Self {
            digest: Digest::of_call(&tool_name, &tool_args),
            call,
            principal,
            tool_name,
            tool_args,
            held_at,
            due_at: later(held_at, window),
            status: HoldStatus::Held,
            decided: None,
            ended_at: None,
        }
    }

    /// The call.
    #[must_use]
    pub const fn call(&self) -> &CallId {
        &self.call
    }

    /// The run of the call.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.call.run
    }

    /// The principal that the run acts for.
    #[must_use]
    pub const fn principal(&self) -> &TenantPrincipal {
        &self.principal
    }

    /// The tool of the call.
    #[must_use]
    pub const fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// The arguments of the call.
    #[must_use]
    pub const fn tool_args(&self) -> &Map<String, Value> {
        &self.tool_args
    }

    /// The digest of tool and arguments.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Since when it is held.
    #[must_use]
    pub const fn held_at(&self) -> Timestamp {
        self.held_at
    }

    /// When it may start.
    #[must_use]
    pub const fn due_at(&self) -> Timestamp {
        self.due_at
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> HoldStatus {
        self.status
    }

    /// Who undid or released it.
    #[must_use]
    pub const fn decided(&self) -> Option<&HoldDecision> {
        self.decided.as_ref()
    }

    /// When it started or was cancelled.
    #[must_use]
    pub const fn ended_at(&self) -> Option<Timestamp> {
        self.ended_at
    }

    /// Undoes the call: it never runs. Possible until it starts, even after its undo window.
    ///
    /// # Errors
    /// If it is no longer held, or the principal belongs to another tenant.
    pub fn undo(&mut self, by: &TenantPrincipal, at: Timestamp) -> Result<(), HoldError> {
        self.decide(HoldStatus::Undone, by, at)
    }

    /// Releases the call early.
    ///
    /// # Errors
    /// If it is no longer held, or the principal belongs to another tenant.
    pub fn release(&mut self, by: &TenantPrincipal, at: Timestamp) -> Result<(), HoldError> {
        self.decide(HoldStatus::Released, by, at)
    }

    /// Records that the call is about to run.
    ///
    /// # Errors
    /// If its undo window is not over, or it must not run any more.
    pub fn start(&mut self, at: Timestamp) -> Result<(), HoldError> {
        match self.status {
            HoldStatus::Held if at < self.due_at => Err(HoldError::NotDue(self.due_at)),
            HoldStatus::Held | HoldStatus::Released => {
                self.end(HoldStatus::Started, at);
                Ok(())
            }
            HoldStatus::Started | HoldStatus::Undone | HoldStatus::Cancelled => {
                Err(HoldError::TooLate(self.status))
            }
        }
    }

    /// Cancels the call if it has not started. Returns whether it did.
    pub fn cancel(&mut self, at: Timestamp) -> bool {
        let is_open = self.status.is_open();
        if is_open {
            self.end(HoldStatus::Cancelled, at);
        }
        is_open
    }

    fn decide(
        &mut self,
        status: HoldStatus,
        by: &TenantPrincipal,
        at: Timestamp,
    ) -> Result<(), HoldError> {
        if by.tenant != self.principal.tenant {
            return Err(HoldError::NotEntitled(by.principal.clone()));
        }
        if self.status != HoldStatus::Held {
            return Err(HoldError::TooLate(self.status));
        }
        self.status = status;
        self.decided = Some(HoldDecision {
            by: by.principal.clone(),
            at,
        });
        Ok(())
    }

    fn end(&mut self, status: HoldStatus, at: Timestamp) {
        self.status = status;
        self.ended_at = Some(at);
    }
}

/// A deserialized hold that is not checked yet.
#[derive(Deserialize)]
struct RawHold {
    call: CallId,
    #[serde(flatten)]
    principal: TenantPrincipal,
    tool_name: ToolName,
    tool_args: Map<String, Value>,
    digest: Digest,
    held_at: Timestamp,
    due_at: Timestamp,
    status: HoldStatus,
    #[serde(default)]
    decided: Option<HoldDecision>,
    #[serde(default)]
    ended_at: Option<Timestamp>,
}

impl TryFrom<RawHold> for Hold {
    type Error = InvalidHold;

    fn try_from(raw: RawHold) -> Result<Self, InvalidHold> {
        if raw.digest != Digest::of_call(&raw.tool_name, &raw.tool_args) {
            return Err(InvalidHold::OtherDigest);
        }
        let is_possible = match (raw.status, &raw.decided, raw.ended_at) {
            (HoldStatus::Held, None, None)
            | (HoldStatus::Released | HoldStatus::Undone, Some(_), None)
            | (HoldStatus::Started, Some(_), Some(_))
            | (HoldStatus::Cancelled, _, Some(_)) => true,
            // It was not released, so its undo window had to pass.
            (HoldStatus::Started, None, Some(at)) => at >= raw.due_at,
            _ => false,
        };
        if !is_possible {
            return Err(InvalidHold::Impossible(raw.status));
        }
        Ok(Self {
            call: raw.call,
            principal: raw.principal,
            tool_name: raw.tool_name,
            tool_args: raw.tool_args,
            digest: raw.digest,
            held_at: raw.held_at,
            due_at: raw.due_at,
            status: raw.status,
            decided: raw.decided,
            ended_at: raw.ended_at,
        })
    }
}
