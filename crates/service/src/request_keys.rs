//! Requests that start a run and may be repeated, because their caller did not get the answer.

use windlass_keys::sha256;
use windlass_runtime::Durable as _;
use windlass_spec::RunId;
use windlass_store::RequestKey;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// The length of a key, in bytes.
const MAX_LENGTH: usize = 255;

impl Service {
    /// The id of the run that a request starts, for [`NewRun::run`](crate::NewRun::run). The same key of the same
    /// principal gives the same id, also in another process. A run with this id may exist already: the request is a
    /// repetition then. Keys are known for 7 days.
    ///
    /// # Errors
    /// If the identity may not run agents, the key cannot be used, or it was used for another request.
    pub fn reserve_run(
        &self,
        identity: &Identity,
        key: &str,
        request: &[u8],
    ) -> Result<RunId, ServiceError> {
        identity.require(Scope::Run)?;
        if key.is_empty() || key.len() > MAX_LENGTH || key.chars().any(char::is_control) {
            let message = format!("a key of a request has 1 to {MAX_LENGTH} visible characters");
            return Err(ServiceError::invalid("invalid_key", message));
        }
        let new = RequestKey {
            run: self.stored()?.new_id()?,
            digest: sha256(request),
        };
        let store = self.store()?;
        let known = store.reserve_request_key(identity.person(), key, &new, self.now())?;
        match known.digest == new.digest {
            true => Ok(known.run),
            false => {
                let message = "the key was used for another request";
                Err(ServiceError::invalid("key_reused", message).with_hint(
                    "use a new key for each request, and the same one only to repeat it",
                ))
            }
        }
    }
}
