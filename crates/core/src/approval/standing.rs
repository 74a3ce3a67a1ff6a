//! Standing approvals: leave given beforehand, for a tool or for one exact call of it, in one run or
//! until a date. They never cover more than they say, and nothing that two people must agree to.

use serde::{Deserialize, Serialize};
use windlass_spec::{RiskLevel, RunId, SecurityLevel, Timestamp, ToolName};

use super::digest::Digest;
use super::identity::{Identity, Principal};

/// What a standing approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum Scope {
    /// The tool with any arguments.
    Tool,
    /// The tool with exactly the arguments of this digest. That of a call without arguments covers
    /// calls without arguments only.
    ToolWithArguments {
        /// The digest of the call.
        digest: Digest,
    },
}

/// How far a standing approval reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reach", rename_all = "snake_case")]
pub enum Reach {
    /// To the end of one run. Runs it starts are not covered.
    Run {
        /// The run.
        run: RunId,
    },
    /// To a point in time, which is not covered itself.
    Until {
        /// The point.
        until: Timestamp,
    },
}

/// Why something is no standing approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAStanding {
    /// It would cover nothing.
    #[error("it ends before it begins")]
    EndsTooEarly,
}

/// Leave given beforehand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawStanding")]
pub struct Standing {
    #[serde(flatten)]
    principal: Identity,
    tool_name: ToolName,
    #[serde(flatten)]
    scope: Scope,
    #[serde(flatten)]
    reach: Reach,
    covers_irreversible: bool,
    granted_by: Principal,
    granted_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<Revoked>,
}

/// Who took a standing approval back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// Who.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
}

/// A call that a standing approval may cover.
#[derive(Debug, Clone, Copy)]
pub struct StandingCall<'a> {
    /// On whose behalf it would run.
    pub principal: &'a Identity,
    /// In which run.
    pub run: &'a RunId,
    /// Which tool.
    pub tool: &'a ToolName,
    /// The digest of the tool and its arguments.
    pub digest: Digest,
    /// How reversible it is.
    pub risk: RiskLevel,
    /// How much care a decision about it needs.
    pub security_level: SecurityLevel,
    /// When.
    pub at: Timestamp,
}

impl Standing {
    /// Leave for calls of a tool that are made on behalf of `principal`.
    ///
    /// # Errors
    /// If it ends before it begins.
    pub fn new(
        principal: Identity,
        tool_name: ToolName,
        scope: Scope,
        reach: Reach,
        granted_by: Principal,
        granted_at: Timestamp,
    ) -> Result<Self, NotAStanding> {
        if let Reach::Until { until } = reach
            && until <= granted_at
        {
            return Err(NotAStanding::EndsTooEarly);
        }
        Ok(Self {
            principal,
            tool_name,
            scope,
            reach,
            covers_irreversible: false,
            granted_by,
            granted_at,
            revoked: None,
        })
    }

    /// The same leave for calls that cannot be undone too. Only the operator says so.
    #[must_use]
    pub fn also_irreversible(mut self) -> Self {
        self.covers_irreversible = true;
        self
    }

    /// Whether a call is covered.
    #[must_use]
    pub fn covers(&self, call: &StandingCall<'_>) -> bool {
        let is_in_scope = match self.scope {
            Scope::Tool => true,
            Scope::ToolWithArguments { digest } => digest == call.digest,
        };
        let is_in_reach = match &self.reach {
            Reach::Run { run } => run == call.run,
            Reach::Until { until } => call.at < *until,
        };
        self.revoked.is_none()
            && self.principal == *call.principal
            && self.tool_name == *call.tool
            && is_in_scope
            && is_in_reach
            && call.at >= self.granted_at
            && (call.risk != RiskLevel::Irreversible || self.covers_irreversible)
            // One person's leave, however given, is not two people's.
            && call.security_level != SecurityLevel::Critical
    }

    /// Takes it back. Says whether it was still in force.
    pub fn revoke(&mut self, by: &Principal, at: Timestamp) -> bool {
        let is_in_force = self.revoked.is_none();
        if is_in_force {
            self.revoked = Some(Revoked { by: by.clone(), at });
        }
        is_in_force
    }

    /// On whose behalf the calls are made.
    #[must_use]
    pub const fn principal(&self) -> &Identity {
        &self.principal
    }

    /// The tool.
    #[must_use]
    pub const fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// What it is about.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// How far it reaches.
    #[must_use]
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether it covers calls that cannot be undone.
    #[must_use]
    pub const fn covers_irreversible(&self) -> bool {
        self.covers_irreversible
    }

    /// Who gave it.
    #[must_use]
    pub const fn granted_by(&self) -> &Principal {
        &self.granted_by
    }

    /// When it was given.
    #[must_use]
    pub const fn granted_at(&self) -> Timestamp {
        self.granted_at
    }

    /// Who took it back.
    #[must_use]
    pub const fn revoked(&self) -> Option<&Revoked> {
        self.revoked.as_ref()
    }
}

/// A standing approval as it is written, which may be any.
#[derive(Deserialize)]
struct RawStanding {
    #[serde(flatten)]
    principal: Identity,
    tool_name: ToolName,
    #[serde(flatten)]
    scope: Scope,
    #[serde(flatten)]
    reach: Reach,
    // Whoever does not say so does not mean it.
    #[serde(default)]
    covers_irreversible: bool,
    granted_by: Principal,
    granted_at: Timestamp,
    #[serde(default)]
    revoked: Option<Revoked>,
}

impl TryFrom<RawStanding> for Standing {
    type Error = NotAStanding;

    fn try_from(raw: RawStanding) -> Result<Self, NotAStanding> {
        let standing = Self::new(
            raw.principal,
            raw.tool_name,
            raw.scope,
            raw.reach,
            raw.granted_by,
            raw.granted_at,
        )?;
        Ok(Self {
            covers_irreversible: raw.covers_irreversible,
            revoked: raw.revoked,
            ..standing
        })
    }
}
