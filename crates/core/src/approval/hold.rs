//! Holds: the undo window between the decision that a call may run and its start.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use windlass_spec::{CallId, RunId, Timestamp, ToolName};

use super::digest::Digest;
use super::identity::{Principal, TenantPrincipal};
use super::later;

/// The undo window, unless another one is set.
pub const DEFAULT_UNDO_WINDOW: Duration = Duration::from_secs(10);

windlass_spec::word_set! {
    /// The status of a held call.
    HoldStatus, "status" {
        /// It waits and can be undone.
        Held = "held",
        /// A person released it early.
        Released = "released",
        /// It is about to run, runs, or ran.
        Started = "started",
        /// A person undid it.
        Undone = "undone",
        /// It was cancelled, for instance because its run was cancelled.
        Cancelled = "cancelled",
    }
}

impl HoldStatus {
    /// Whether the call may still start.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Held | Self::Released)
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
// The derived functions are methods of the type. The implementations below check what is read.
#[serde(remote = "Self")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<HoldDecision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

    /// Checks a hold that was read.
    fn check(&self) -> Result<(), InvalidHold> {
        if self.digest != Digest::of_call(&self.tool_name, &self.tool_args) {
            return Err(InvalidHold::OtherDigest);
        }
        let is_possible = match (self.status, &self.decided, self.ended_at) {
            (HoldStatus::Held, None, None)
            | (HoldStatus::Released | HoldStatus::Undone, Some(_), None)
            | (HoldStatus::Started, Some(_), Some(_))
            | (HoldStatus::Cancelled, _, Some(_)) => true,
            // It was not released, so its undo window had to pass.
            (HoldStatus::Started, None, Some(at)) => at >= self.due_at,
            _ => false,
        };
        match is_possible {
            true => Ok(()),
            false => Err(InvalidHold::Impossible(self.status)),
        }
    }
}

impl Serialize for Hold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hold = Self::deserialize(deserializer)?;
        hold.check().map_err(D::Error::custom)?;
        Ok(hold)
    }
}
