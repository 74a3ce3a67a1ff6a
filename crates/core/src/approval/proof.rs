//! Proof that an approver decided: who signed, how the approver was authenticated, and the text that is signed. The
//! signature itself is made and checked where the keys are.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_spec::SecurityLevel;

use super::decision::Decided;
use super::digest::{Digest, canonical};
use super::identity::Principal;
use super::{Approval, Request};

/// What a signed text begins with, so that no other signed text passes as a decision.
const PURPOSE: &str = "windlass decision 1\n";

/// Whose key signs a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signer {
    /// The approver's own key.
    Approver,
    /// The key of the installation: its server authenticated the approver.
    Server,
}

/// How the approver decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionMeans {
    /// At a terminal that showed the call. A call of a high level was confirmed by typing the name of its tool.
    Terminal,
    /// By a command that states the digest of what was shown.
    Digest,
    /// By a command that states nothing.
    Command,
    /// By a command or program that looks at no call, with a key that may do that.
    Unattended,
    /// The operator made the call and approved it at once.
    OwnCall,
    /// On a page of the server.
    Page,
    /// With a token of the server.
    Token,
    /// In Slack.
    Slack,
}

impl DecisionMeans {
    /// The name in records and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Digest => "digest",
            Self::Command => "command",
            Self::Unattended => "unattended",
            Self::OwnCall => "own_call",
            Self::Page => "page",
            Self::Token => "token",
            Self::Slack => "slack",
        }
    }

    /// Whether an approval by these means counts for calls of that level.
    #[must_use]
    pub fn suffices_for(self, level: SecurityLevel) -> bool {
        match self {
            Self::Command => level < SecurityLevel::High,
            Self::Digest | Self::OwnCall => level < SecurityLevel::Critical,
            Self::Terminal | Self::Unattended | Self::Page | Self::Token | Self::Slack => true,
        }
    }
}

impl fmt::Display for DecisionMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an approver was authenticated, and for whom they decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// Whose key signs.
    pub signer: Signer,
    /// How the approver decided.
    pub means: DecisionMeans,
    /// The approver who delegated their decisions, if this one decides for somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<Principal>,
}

impl Attestation {
    /// The attestation of an approver who decides in their own name.
    #[must_use]
    pub const fn new(signer: Signer, means: DecisionMeans) -> Self {
        Self {
            signer,
            means,
            on_behalf_of: None,
        }
    }
}

/// The proof that an approver decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionProof {
    /// What is attested.
    #[serde(flatten)]
    pub attestation: Attestation,
    /// The signature of [`Approval::signed_text`] in hexadecimal digits; empty until it is made.
    pub signature: String,
}

impl Decided {
    /// Who the decision counts for: the one who delegated it, else the one who made it.
    #[must_use]
    pub fn seat(&self) -> &Principal {
        let proof = self.proof.as_ref();
        let delegated = proof.and_then(|proof| proof.attestation.on_behalf_of.as_ref());
        delegated.unwrap_or(&self.by)
    }
}

impl Approval {
    /// The text that is signed for one of its decisions: which question of which run, what was decided about, what
    /// would run, by whom, how and when.
    #[must_use]
    pub fn signed_text(&self, decided: &Decided) -> String {
        let Request {
            call,
            principal,
            asked_at,
            expires_at,
            question,
            ..
        } = self.request();
        // Fields of decisions are texts and JSON, so serialization cannot fail.
        let content = serde_json::to_value(&decided.decision).unwrap_or(Value::Null);
        let level = question.authorize().map(|call| call.security_level);
        let attestation = decided.proof.as_ref().map(|proof| &proof.attestation);
        let fields = json!({
            "approval": call,
            "asked_at": asked_at,
            "asked_digest": self.asked_digest(),
            "attestation": attestation,
            "at": decided.at,
            "by": decided.by,
            "content": Digest::of_json(&content),
            "decision": decided.decision.as_str(),
            "digest": decided.digest,
            "expires_at": expires_at,
            "principal": principal.principal,
            "security_level": level,
            "tenant": principal.tenant,
        });
        format!("{PURPOSE}{}", canonical(&fields))
    }

    /// Signs the last decision, if it has an attestation and no signature yet. `sign` returns the signature of a text in
    /// hexadecimal digits.
    pub fn sign(&mut self, sign: impl FnOnce(&str) -> String) {
        let unsigned = |decided: &Decided| {
            let proof = decided.proof.as_ref();
            proof.is_some_and(|proof| proof.signature.is_empty())
        };
        let Some(text) = self
            .decisions()
            .last()
            .filter(|decided| unsigned(decided))
            .map(|decided| self.signed_text(decided))
        else {
            return;
        };
        self.set_signature(sign(&text));
    }
}
