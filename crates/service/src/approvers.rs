//! Approvers: who may decide, the keys they sign with, and delegations. The list and the keys are in the directory of
//! keys; each change is recorded as a change by an administrator.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use windlass_core::approval::{DecisionMeans, PersonDecision, Principal};
use windlass_keys::{
    Approver, ApproverKey, ApproverList, Approvers, Delegation, InstallationKey, KeyError,
    KeyProtection, PublicKey,
};
use windlass_runtime::{ApproverKeyError, approver_key, is_inside_tool};
use windlass_spec::Timestamp;
use windlass_store::DecisionSigner;

use crate::approvals::{Confirmation, DecisionRequest};
use crate::error::ServiceError;
use crate::identity::{Credential, Identity, Scope};
use crate::service::Service;

/// The approvers of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApproverSummary {
    /// The user that the installation belongs to.
    pub owner: String,
    /// When the list was made. Decisions from before are not signed.
    pub since: Timestamp,
    /// The approvers, in the order in which they were added.
    pub approvers: Vec<ApproverEntry>,
    /// Who decides for somebody else until a date.
    pub delegations: Vec<DelegationEntry>,
}

/// An approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApproverEntry {
    /// The name.
    pub name: String,
    /// The public key; `None` for somebody who decides only through a server.
    pub key: Option<PublicKey>,
    /// The fingerprint of the key.
    pub fingerprint: Option<String>,
    /// Where the private key is, in a word: `file`, `passphrase` or `elsewhere`.
    pub private_key: &'static str,
    /// Whether the key may approve what nobody looked at.
    pub unattended: bool,
    /// When the approver was added.
    pub added_at: Timestamp,
    /// The groups of the configuration that the approver belongs to.
    pub groups: Vec<String>,
}

/// A delegation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DelegationEntry {
    /// Who delegates.
    pub from: String,
    /// Who decides instead.
    pub to: String,
    /// Until when.
    pub until: Timestamp,
    /// When it was made.
    pub at: Timestamp,
    /// Whether it counts now.
    pub is_active: bool,
}

/// An approver to add.
#[derive(Debug, Clone)]
pub struct NewApprover {
    /// The name.
    pub name: Principal,
    /// The passphrase that protects the new key, if it gets one.
    pub passphrase: Option<String>,
    /// The public key, if the private key is elsewhere. Otherwise a key is made.
    pub key: Option<PublicKey>,
    /// Whether the approver decides only through a server and has no key.
    pub is_without_key: bool,
    /// Whether the key may approve what nobody looked at.
    pub unattended: bool,
}

impl Service {
    /// The approvers of the installation; `None` if there is no list yet.
    ///
    /// # Errors
    /// If the identity may not read, or the list cannot be used.
    pub fn list_approvers(
        &self,
        identity: &Identity,
    ) -> Result<Option<ApproverSummary>, ServiceError> {
        identity.require(Scope::Read)?;
        // The first use makes the list.
        self.store()?;
        let approvers = approvers()?;
        let Some(list) = approvers.read().map_err(key_error)? else {
            return Ok(None);
        };
        self.summary(&approvers, &list).map(Some)
    }

    /// Adds an approver, and makes a key for them. An approver who is listed already can only be permitted to decide
    /// unattended.
    ///
    /// # Errors
    /// If the identity may not administrate, a tool started this process, or the key or the list cannot be written.
    pub fn add_approver(
        &self,
        identity: &Identity,
        new: NewApprover,
    ) -> Result<ApproverSummary, ServiceError> {
        let approvers = self.changeable(identity)?;
        let name = new.name.as_str();
        let now = self.now().as_microseconds();
        let only_permits =
            new.unattended && new.passphrase.is_none() && new.key.is_none() && !new.is_without_key;
        let list = approvers.read().map_err(key_error)?;
        let known = list.as_ref().and_then(|list| list.find(name));
        if known.is_some() && only_permits {
            let ((), list) = approvers
                .change(|list| {
                    let mut all = list.approvers.iter_mut();
                    let found =
                        all.find(|approver| approver.name.to_lowercase() == name.to_lowercase());
                    if let Some(approver) = found {
                        approver.unattended = true;
                    }
                    Ok(())
                })
                .map_err(key_error)?;
            let subject = json!({"name": name, "unattended": true, "list": list.digest()});
            self.record_admin_change(identity, "approver_changed", subject)?;
            return self.summary(&approvers, &list);
        }
        let ((), list) = approvers
            .change(|list| {
                let mut added = Approver {
                    name: name.to_owned(),
                    key: new.key,
                    unattended: new.unattended,
                    added_at: now,
                };
                // Checked before a key is made.
                list.clone().add(added.clone())?;
                if new.key.is_none() && !new.is_without_key {
                    let directory = approvers.directory();
                    let made = ApproverKey::create(directory, name, new.passphrase.as_deref())?;
                    let made = made.ok_or_else(|| {
                        KeyError::NotPossible(format!(
                            "there is a key of `{name}` in `{}`, who is not an approver; move it away first",
                            directory.path().display()
                        ))
                    })?;
                    added.key = Some(made.public());
                }
                list.add(added)
            })
            .map_err(key_error)?;
        let key = list.find(name).and_then(|approver| approver.key);
        let subject = json!({
            "name": name,
            "key": key,
            "unattended": new.unattended,
            "list": list.digest(),
        });
        self.record_admin_change(identity, "approver_added", subject)?;
        self.summary(&approvers, &list)
    }

    /// Removes an approver with their key. What they approved and did not run yet does not count any more.
    ///
    /// # Errors
    /// If the identity may not administrate, a tool started this process, there is no such approver or only this one, or
    /// the list cannot be written.
    pub fn remove_approver(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ApproverSummary, ServiceError> {
        let approvers = self.changeable(identity)?;
        let list = approvers.read().map_err(key_error)?;
        if list.is_none_or(|list| list.find(name).is_none()) {
            return Err(no_such_approver(name));
        }
        let (removed, list) = approvers
            .change(|list| list.remove(name))
            .map_err(key_error)?;
        ApproverKey::delete(approvers.directory(), &removed.name).map_err(key_error)?;
        let subject = json!({"name": removed.name, "key": removed.key, "list": list.digest()});
        self.record_admin_change(identity, "approver_removed", subject)?;
        self.summary(&approvers, &list)
    }

    /// Lets another approver decide for the approver that the identity is, until a time.
    ///
    /// # Errors
    /// If the identity has no key, a tool started this process, one of them is no approver, the time has passed, or the
    /// list cannot be written.
    pub fn delegate_approvals(
        &self,
        identity: &Identity,
        to: &str,
        until: Timestamp,
    ) -> Result<ApproverSummary, ServiceError> {
        identity.require(Scope::Approve)?;
        let approvers = self.changeable(identity)?;
        let now = self.now();
        if until <= now {
            let message = format!("`{until}` is not in the future");
            return Err(ServiceError::invalid("invalid", message));
        }
        let from = identity.principal();
        if from.as_str().to_lowercase() == to.to_lowercase() {
            let message = format!("`{from}` decides in their own name already");
            return Err(ServiceError::invalid("invalid", message));
        }
        let key = match identity.credential() {
            Credential::Key(key) => Arc::clone(key),
            Credential::LocalUser => self.key_of(from.as_str(), None)?,
            Credential::FrontEnd(_) => {
                let message = "a delegation is signed with the approver's own key";
                return Err(ServiceError::denied("not_an_approver", message));
            }
        };
        let ((), list) = approvers
            .change(|list| {
                for name in [from.as_str(), to] {
                    if list.find(name).is_none() {
                        let message = format!("`{name}` is not an approver");
                        return Err(KeyError::NotPossible(message));
                    }
                }
                // Delegations that are over are only in the record of changes.
                list.delegations
                    .retain(|delegation| delegation.until > now.as_microseconds());
                list.delegations.push(Delegation::sign(
                    &key,
                    to,
                    until.as_microseconds(),
                    now.as_microseconds(),
                ));
                Ok(())
            })
            .map_err(key_error)?;
        let subject = json!({"from": from, "to": to, "until": until, "list": list.digest()});
        self.record_admin_change(identity, "approvals_delegated", subject)?;
        self.summary(&approvers, &list)
    }

    /// How the private key of an approver is kept here; `None` if it is not here.
    ///
    /// # Errors
    /// If the identity may not use that key, or its file cannot be used.
    pub fn key_protection(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<Option<KeyProtection>, ServiceError> {
        require_for_key(identity, name)?;
        ApproverKey::protection(approvers()?.directory(), name).map_err(key_error)
    }

    /// The approver of that name, with their key, which is read with its passphrase if it has one. They have the
    /// tenant and the scopes of the identity.
    ///
    /// # Errors
    /// If the identity may not approve, or is not an administrator and the key is another's; if a tool started this
    /// process, there is no such key here, or it cannot be used.
    pub fn unlock_approver(
        &self,
        identity: &Identity,
        name: &str,
        passphrase: Option<&str>,
    ) -> Result<Identity, ServiceError> {
        require_for_key(identity, name)?;
        identity.clone().with_key(self.key_of(name, passphrase)?)
    }

    fn key_of(
        &self,
        name: &str,
        passphrase: Option<&str>,
    ) -> Result<Arc<ApproverKey>, ServiceError> {
        approver_key(name, passphrase).map_err(|error| match error {
            ApproverKeyError::InsideTool => inside_tool(),
            ApproverKeyError::NoKey(_) => {
                let message = format!("`{name}` has no key of an approver on this machine");
                ServiceError::denied("not_an_approver", message).with_hint(
                    "`windlass approvers list` lists the approvers; choose one with `--as NAME`, or run \
                     `windlass approvers add NAME`",
                )
            }
            ApproverKeyError::Key(error) => key_error(error),
            ApproverKeyError::NoDirectory => ServiceError::failed(error.to_string()),
        })
    }

    /// What signs a decision. A rejection needs no signature, because nothing runs.
    pub(crate) fn decision_signer(
        &self,
        identity: &Identity,
        request: &DecisionRequest,
    ) -> Result<Option<DecisionSigner>, ServiceError> {
        let means = match (request.confirmation, identity.credential()) {
            (Confirmation::AtTerminal, _) => DecisionMeans::Terminal,
            (Confirmation::Unattended, _) => DecisionMeans::Unattended,
            (Confirmation::OwnCall, _) => DecisionMeans::OwnCall,
            (Confirmation::Stated, Credential::FrontEnd(means)) => *means,
            (Confirmation::Stated, _) if request.digest.is_some() => DecisionMeans::Digest,
            (Confirmation::Stated, _) => DecisionMeans::Command,
        };
        let signer = match identity.credential() {
            Credential::Key(_) if is_inside_tool() => Err(inside_tool()),
            Credential::Key(key) => Ok(DecisionSigner::of_approver(Arc::clone(key), means)),
            Credential::LocalUser => self
                .key_of(identity.principal().as_str(), None)
                .map(|key| DecisionSigner::of_approver(key, means)),
            Credential::FrontEnd(_) => InstallationKey::of_user()
                .map(|key| DecisionSigner::of_server(Arc::new(key), means))
                .map_err(key_error),
        };
        match (signer, &request.decision) {
            (Ok(signer), _) => Ok(Some(signer.on_behalf_of(request.on_behalf_of.clone()))),
            (Err(_), PersonDecision::Reject { .. }) => Ok(None),
            (Err(error), _) => Err(error),
        }
    }

    /// The approvers, if the identity may change them.
    fn changeable(&self, identity: &Identity) -> Result<Approvers, ServiceError> {
        identity.require(Scope::Admin)?;
        if is_inside_tool() {
            return Err(inside_tool());
        }
        // The first use makes the list.
        self.store()?;
        approvers()
    }

    fn summary(
        &self,
        approvers: &Approvers,
        list: &ApproverList,
    ) -> Result<ApproverSummary, ServiceError> {
        let configured = self.configured().ok();
        let groups = |name: &str| -> Vec<String> {
            let groups = configured.iter();
            let groups = groups.flat_map(|configured| configured.configuration.approvers());
            groups
                .filter(|(_, members)| {
                    let mut members = members.iter();
                    members.any(|member| member.to_lowercase() == name.to_lowercase())
                })
                .map(|(group, _)| group.clone())
                .collect()
        };
        let entries = list.approvers.iter().map(|approver| {
            let protection = ApproverKey::protection(approvers.directory(), &approver.name);
            Ok(ApproverEntry {
                name: approver.name.clone(),
                key: approver.key,
                fingerprint: approver.key.map(|key| key.fingerprint()),
                private_key: match protection.map_err(key_error)? {
                    Some(KeyProtection::FileMode) => "file",
                    Some(KeyProtection::Passphrase) => "passphrase",
                    None => "elsewhere",
                },
                unattended: approver.unattended,
                added_at: Timestamp::from_microseconds(approver.added_at),
                groups: groups(&approver.name),
            })
        });
        let now = self.now().as_microseconds();
        let delegations = list.delegations.iter().map(|delegation| {
            let Delegation {
                from,
                to,
                until,
                at,
                ..
            } = delegation;
            DelegationEntry {
                is_active: list.may_decide_for(to, from, now),
                from: from.clone(),
                to: to.clone(),
                until: Timestamp::from_microseconds(*until),
                at: Timestamp::from_microseconds(*at),
            }
        });
        Ok(ApproverSummary {
            owner: list.owner.clone(),
            since: Timestamp::from_microseconds(list.since),
            approvers: entries.collect::<Result<_, ServiceError>>()?,
            delegations: delegations.collect(),
        })
    }
}

/// Refuses the key of another approver, unless the identity is an administrator.
fn require_for_key(identity: &Identity, name: &str) -> Result<(), ServiceError> {
    let own = identity.principal().as_str().to_lowercase();
    match own == name.to_lowercase() {
        true => identity.require(Scope::Approve),
        false => identity.require(Scope::Admin),
    }
}

fn approvers() -> Result<Approvers, ServiceError> {
    let none = || ServiceError::failed(KeyError::NoDirectory.to_string());
    Approvers::of_user().ok_or_else(none)
}

fn no_such_approver(name: &str) -> ServiceError {
    let message = format!("there is no approver `{name}`");
    ServiceError::not_found("no_such_approver", message)
        .with_hint("`windlass approvers list` lists the approvers")
}

fn inside_tool() -> ServiceError {
    let message = ApproverKeyError::InsideTool.to_string();
    ServiceError::denied("inside_tool", message)
        .with_hint("decide in a terminal of your own, outside of the agent's tools")
}

fn key_error(error: KeyError) -> ServiceError {
    match &error {
        KeyError::PassphraseNeeded(_) => ServiceError::denied("passphrase", error.to_string())
            .with_hint("decide at a terminal, or pass `--passphrase-file FILE`"),
        KeyError::WrongPassphrase(_) => ServiceError::denied("passphrase", error.to_string()),
        KeyError::ShortPassphrase => ServiceError::invalid("passphrase", error.to_string()),
        KeyError::NotPossible(_) => ServiceError::conflict("conflict", error.to_string()),
        _ => ServiceError::failed(error.to_string()),
    }
}
