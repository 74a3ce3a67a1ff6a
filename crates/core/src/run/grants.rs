//! Authorizations that people gave for calls that are yet to be made. Each covers one exact call, once.

use windlass_spec::{CallId, SecurityLevel};

use crate::approval::Digest;

/// An authorization for a call that is yet to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    call: CallId,
    digest: Digest,
    security_level: SecurityLevel,
}

impl Grant {
    /// What a call of `request_authorization` led to: the call of that digest may be made, as far as that
    /// much care is enough.
    pub(super) fn new(call: CallId, digest: Digest, security_level: SecurityLevel) -> Self {
        Self {
            call,
            digest,
            security_level,
        }
    }
}

/// The authorizations that no call has used yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Grants {
    unused: Vec<Grant>,
}

impl Grants {
    pub(super) fn add(&mut self, grant: Grant) {
        self.unused.push(grant);
    }

    /// A call was decided about by the authorization that this call of `request_authorization` led to.
    pub(super) fn use_up(&mut self, requested_by: &CallId) {
        self.unused.retain(|grant| grant.call != *requested_by);
    }

    /// The call of `request_authorization` that led to an authorization for such a call.
    pub(super) fn covering(
        &self,
        digest: Option<Digest>,
        security_level: SecurityLevel,
    ) -> Option<&CallId> {
        let covers =
            |grant: &&Grant| Some(grant.digest) == digest && grant.security_level >= security_level;
        self.unused.iter().find(covers).map(|grant| &grant.call)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use windlass_spec::ToolName;

    use super::*;

    fn digest(tool: &str) -> Digest {
        Digest::of_call(&ToolName::new(tool).unwrap(), &Map::new())
    }

    #[test]
    fn grant_covers_its_call_until_it_is_used() {
        let asked: CallId = "r1:1:0".parse().unwrap();
        let mut grants = Grants::default();
        let (send, level) = (digest("send"), SecurityLevel::Medium);
        grants.add(Grant::new(asked.clone(), send, level));
        assert_eq!(grants.covering(Some(send), level), Some(&asked));
        assert_eq!(grants.covering(Some(send), SecurityLevel::High), None);
        assert_eq!(grants.covering(Some(digest("note")), level), None);
        assert_eq!(grants.covering(None, level), None);
        grants.use_up(&"r1:1:1".parse().unwrap());
        assert_eq!(grants.covering(Some(send), level), Some(&asked));
        grants.use_up(&asked);
        assert_eq!(grants.covering(Some(send), level), None);
    }
}
