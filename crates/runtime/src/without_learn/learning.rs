//! Without the feature `learn`, nothing is recalled for tasks or learned from runs.

use windlass_config::Configuration;

/// The operator's settings for learning. There are none, and no value can be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Learning(());

impl Learning {
    pub(crate) fn of(_: &Configuration) -> Option<Self> {
        None
    }

    /// What holds for the runs of a program that sets nothing.
    pub(crate) fn usual() -> Option<Self> {
        None
    }

    pub(crate) fn learns(&self) -> bool {
        false
    }
}
