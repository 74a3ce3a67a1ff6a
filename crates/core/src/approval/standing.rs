//! Standing approvals authorize calls in advance: for a tool or for one exact call, in one run or until
//! a date. They never cover calls that need two approvers.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windlass_spec::{RiskLevel, RunId, SecurityLevel, Timestamp, ToolName};

use super::digest::Digest;
use super::identity::{Principal, TenantPrincipal};

/// What a standing approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum StandingScope {
    /// The tool with any arguments.
    Tool,
    /// The tool with exactly the arguments of this digest. The digest of a call without arguments covers
    /// only calls without arguments.
    ToolWithArguments {
        /// The digest of the call.
        digest: Digest,
    },
}

/// How long a standing approval is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reach", rename_all = "snake_case")]
pub enum Reach {
    /// Until one run ends. Its child runs are not covered.
    Run {
        /// The run.
        run: RunId,
    },
    /// Until a time, exclusive.
    Until {
        /// The time.
        until: Timestamp,
    },
}

/// Why a value is not a valid standing approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStanding {
    /// It would cover nothing.
    #[error("it ends before it starts")]
    EndsTooEarly,
}

/// An approval of calls in advance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
// The derived functions are methods of the type. The implementations below check what is read.
#[serde(remote = "Self")]
pub struct StandingApproval {
    #[serde(flatten)]
    principal: TenantPrincipal,
    tool_name: ToolName,
    #[serde(flatten)]
    scope: StandingScope,
    #[serde(flatten)]
    reach: Reach,
    // Irreversible calls are covered only if that is stated.
    #[serde(default)]
    covers_irreversible: bool,
    granted_by: Principal,
    granted_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoked: Option<Revoked>,
}

/// Who revoked a standing approval, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// The person.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
}

/// A call that a standing approval may cover.
#[derive(Debug, Clone, Copy)]
pub struct StandingCall<'a> {
    /// The principal it would run for.
    pub principal: &'a TenantPrincipal,
    /// Its run.
    pub run: &'a RunId,
    /// Its tool.
    pub tool: &'a ToolName,
    /// The digest of the tool and its arguments.
    pub digest: Digest,
    /// How reversible it is.
    pub risk: RiskLevel,
    /// The security level that a decision about it needs.
    pub security_level: SecurityLevel,
    /// When.
    pub at: Timestamp,
}

impl StandingApproval {
    /// Makes a standing approval for calls of a tool on behalf of `principal`.
    ///
    /// # Errors
    /// If it ends before it starts.
    pub fn new(
        principal: TenantPrincipal,
        tool_name: ToolName,
        scope: StandingScope,
        reach: Reach,
        granted_by: Principal,
        granted_at: Timestamp,
    ) -> Result<Self, InvalidStanding> {
        let standing = Self {
            principal,
            tool_name,
            scope,
            reach,
            covers_irreversible: false,
            granted_by,
            granted_at,
            revoked: None,
        };
        standing.check()?;
        Ok(standing)
    }

    fn check(&self) -> Result<(), InvalidStanding> {
        match self.reach {
            Reach::Until { until } if until <= self.granted_at => {
                Err(InvalidStanding::EndsTooEarly)
            }
            _ => Ok(()),
        }
    }

    /// Also covers irreversible calls. Only the operator sets this.
    #[must_use]
    pub fn also_irreversible(mut self) -> Self {
        self.covers_irreversible = true;
        self
    }

    /// Whether a call is covered.
    #[must_use]
    pub fn covers(&self, call: &StandingCall<'_>) -> bool {
        let is_in_scope = match self.scope {
            StandingScope::Tool => true,
            StandingScope::ToolWithArguments { digest } => digest == call.digest,
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
            // A standing approval comes from one person and cannot replace two approvers.
            && call.security_level != SecurityLevel::Critical
    }

    /// Revokes it. Returns whether it was still in force.
    pub fn revoke(&mut self, by: &Principal, at: Timestamp) -> bool {
        let is_in_force = self.revoked.is_none();
        if is_in_force {
            self.revoked = Some(Revoked { by: by.clone(), at });
        }
        is_in_force
    }

    /// The principal that the calls are made for.
    #[must_use]
    pub const fn principal(&self) -> &TenantPrincipal {
        &self.principal
    }

    /// The tool.
    #[must_use]
    pub const fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// What it covers.
    #[must_use]
    pub const fn scope(&self) -> StandingScope {
        self.scope
    }

    /// How long it is valid.
    #[must_use]
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether it covers irreversible calls.
    #[must_use]
    pub const fn covers_irreversible(&self) -> bool {
        self.covers_irreversible
    }

    /// Who granted it.
    #[must_use]
    pub const fn granted_by(&self) -> &Principal {
        &self.granted_by
    }

    /// When it was granted.
    #[must_use]
    pub const fn granted_at(&self) -> Timestamp {
        self.granted_at
    }

    /// Who revoked it, and when.
    #[must_use]
    pub const fn revoked(&self) -> Option<&Revoked> {
        self.revoked.as_ref()
    }
}

impl Serialize for StandingApproval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for StandingApproval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let standing = Self::deserialize(deserializer)?;
        standing.check().map_err(D::Error::custom)?;
        Ok(standing)
    }
}
