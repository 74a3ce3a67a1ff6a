//! The models that can be reached from here.

use windlass_model::{ProviderStatus, ReflexModel, provider_statuses};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

impl Service {
    /// The providers with their models, and those that cannot be reached from here. The embedded model comes
    /// first.
    ///
    /// # Errors
    /// If the identity may not read.
    pub async fn list_models(
        &self,
        identity: &Identity,
    ) -> Result<Vec<ProviderStatus>, ServiceError> {
        identity.require(Scope::Read)?;
        let mut all = vec![ProviderStatus {
            provider: ReflexModel::NAME.to_owned(),
            is_reachable: true,
            why: "embedded; needs no key".to_owned(),
            models: vec![ReflexModel::NAME.to_owned()],
        }];
        all.extend(provider_statuses().await);
        Ok(all)
    }
}
