//! The local approver: the user that the installation belongs to, whose key signs the decisions of this program. A
//! process that a tool started cannot use it.

use std::fs;
use std::sync::Arc;

use windlass_core::approval::{Approval, DecisionMeans, PersonDecision};
use windlass_keys::{ApproverKey, Approvers, KeyError};
use windlass_spec::{CallId, Timestamp};
use windlass_store::{DecisionSigner, NewDecision};

use crate::durable::{Durable as _, DurableError};
use crate::stored::Stored;

/// The name of the program that starts tools.
const PROGRAM: &str = "windlass";

/// The most ancestors of a process that are looked at.
const MAX_ANCESTORS: usize = 64;

/// Why the key of an approver cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApproverKeyError {
    /// A tool started this process, so an agent may be behind it.
    #[error("a process that a tool of an agent started cannot decide")]
    InsideTool,
    /// There is no directory for keys.
    #[error("there is no directory for keys; set HOME or XDG_STATE_HOME")]
    NoDirectory,
    /// The key of this approver is not on this machine.
    #[error("the key of the approver `{0}` is not on this machine")]
    NoKey(String),
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Reads the key of an approver, with its passphrase if it has one.
///
/// # Errors
/// If a tool started this process, or there is no such key or it cannot be used.
pub fn approver_key(
    name: &str,
    passphrase: Option<&str>,
) -> Result<Arc<ApproverKey>, ApproverKeyError> {
    if is_inside_tool() {
        return Err(ApproverKeyError::InsideTool);
    }
    let approvers = Approvers::of_user().ok_or(ApproverKeyError::NoDirectory)?;
    let key = ApproverKey::read(approvers.directory(), name, passphrase)?;
    let key = key.ok_or_else(|| ApproverKeyError::NoKey(name.to_owned()))?;
    Ok(Arc::new(key))
}

/// The approvers of this user's installation. The list is made at the first use outside of a tool's process, with a key
/// for the user. `None` if there is no directory for keys.
pub(crate) fn establish(owner: &str, now: Timestamp) -> Option<Approvers> {
    let approvers = Approvers::of_user()?;
    if !approvers.path().exists() && !is_inside_tool() {
        // Why it failed is said when somebody decides.
        let _ = approvers.establish(owner, now.as_microseconds());
    }
    Some(approvers)
}

/// The name of the user that the installation belongs to, if it has approvers.
pub(crate) fn owner() -> Option<String> {
    let list = Approvers::of_user()?.read().ok()??;
    Some(list.owner)
}

impl Stored {
    /// Stores a decision of the program that uses this crate, as the local user. It does not count for calls that need
    /// two approvers.
    ///
    /// # Errors
    /// If there is no such question, it cannot be decided, or the user's key cannot be used.
    pub fn decide(
        &self,
        call: &CallId,
        decision: PersonDecision,
    ) -> Result<Approval, DurableError> {
        let who = self.who();
        let signer = match decision {
            PersonDecision::Reject { .. } => None,
            _ => {
                let key = approver_key(who.principal.as_str(), None);
                let key = key.map_err(|error| DurableError::Invalid(error.to_string()))?;
                Some(DecisionSigner::of_approver(key, DecisionMeans::OwnCall))
            }
        };
        let new = NewDecision {
            call: call.clone(),
            digest: None,
            decision,
        };
        Ok(self.store().decide_signed(new, who, signer, self.now())?)
    }
}

/// Whether a tool started this process: one of its ancestors is the program that starts tools. A process that leaves its
/// ancestors is not recognized, so tools are also kept away from the keys themselves.
#[must_use]
pub fn is_inside_tool() -> bool {
    let is_program = |process: u32| {
        let path = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.trim_end_matches(" (deleted)") == PROGRAM
    };
    let mut process = std::process::id();
    for _ in 0..MAX_ANCESTORS {
        match parent(process) {
            Some(parent) if parent > 0 && is_program(parent) => return true,
            Some(parent) if parent > 0 => process = parent,
            _ => return false,
        }
    }
    false
}

/// The parent of a process.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_this_process_is_found() {
        assert!(parent(std::process::id()).is_some_and(|parent| parent > 0));
        assert_eq!(parent(u32::MAX), None);
        assert!(!is_inside_tool());
    }
}
