//! Without the feature `learn`, nothing is recalled for tasks or learned from runs.

use windlass_core::run::Run;

use super::{Drive, DriveError, Driver};

impl Driver {
    /// Whether finished runs change a playbook.
    pub(super) fn is_learning(&self) -> bool {
        self.playbooks.is_some() && self.crew.learns()
    }

    /// Learns from a finished run: nothing.
    pub(super) async fn learn(&self, _: &Run) {}
}

impl Drive<'_> {
    /// Recalls strategies before the model is first asked: none.
    pub(super) async fn recall(&mut self) -> Result<bool, DriveError> {
        self.has_recalled = true;
        Ok(false)
    }
}
