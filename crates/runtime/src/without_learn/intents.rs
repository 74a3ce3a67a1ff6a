//! Without the feature `learn`, tasks are not classified.

use std::sync::Arc;

use windlass_config::Configuration;
use windlass_core::run::IntentAdvice;
use windlass_spec::registry::ToolExecutionContext;
use windlass_spec::{RawUserIntent, ToolSpecification, UserIntent};

use crate::ranking::ToolIndexes;

/// The intents that tasks are classified by: none.
#[derive(Debug)]
pub(crate) enum Intents {}

/// The intent of a task: never known.
#[derive(Debug)]
pub(crate) struct UnderstoodTask {
    pub(crate) intent: UserIntent,
}

impl UnderstoodTask {
    pub(crate) fn recorded(&self) -> RawUserIntent {
        self.intent.clone().into()
    }

    pub(crate) fn advice(&self, _: impl Fn(&str) -> bool, _: bool) -> Option<IntentAdvice> {
        None
    }
}

impl Intents {
    pub(crate) fn of(_: &Configuration) -> Option<Self> {
        None
    }

    pub(crate) fn usual() -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn understand_with(
        &self,
        _: &ToolExecutionContext,
        _: &[&Arc<ToolSpecification>],
        _: &ToolIndexes,
    ) -> Option<UnderstoodTask> {
        match *self {}
    }
}
