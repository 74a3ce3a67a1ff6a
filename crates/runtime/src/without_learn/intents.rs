//! Without the feature `learn`, tasks are not classified.

use windlass_config::Configuration;
use windlass_core::run::Run;
use windlass_spec::UserIntent;

use crate::ranking::ToolIndexes;

/// The intents that tasks are classified by: none.
#[derive(Debug)]
pub(crate) enum Intents {}

impl Intents {
    pub(crate) fn of(_: &Configuration) -> Option<Self> {
        None
    }

    pub(crate) fn of_task(&self, _: &Run, _: &ToolIndexes) -> Option<UserIntent> {
        match *self {}
    }
}
