//! The intents that tasks are classified by.

use std::sync::{Arc, OnceLock};

use windlass_config::Configuration;
use windlass_core::run::Run;
use windlass_learn::intent::{IntentClassifier, IntentDefinitions, understand};
use windlass_spec::{Confidence, NonEmptyText, ToolSpecification, UserIntent};

use crate::ranking::ToolIndexes;

/// The intents that tasks are classified by.
#[derive(Debug)]
pub(crate) struct Intents {
    definitions: IntentDefinitions,
    /// Intents of lower confidence are ignored.
    threshold: Confidence,
    /// Trained when it is first needed; `None` if there are too few examples.
    classifier: OnceLock<Option<IntentClassifier>>,
}

impl Intents {
    /// The shipped intents, changed and extended by a configuration.
    pub(crate) fn of(configuration: &Configuration) -> Option<Self> {
        let mut definitions = IntentDefinitions::shipped().ok()?;
        for (name, configured) in &configuration.intents().intents {
            let mut definition = definitions.get(name.as_str()).cloned().unwrap_or_default();
            let texts = |texts: &[String]| -> Vec<NonEmptyText> {
                let texts = texts.iter().map(String::as_str);
                texts
                    .filter_map(|text| NonEmptyText::new(text).ok())
                    .collect()
            };
            if let Some(examples) = &configured.examples {
                definition.examples = texts(examples);
            }
            if let Some(tools) = &configured.tools {
                definition.tools.clone_from(tools);
            }
            if let Some(context) = &configured.context {
                definition.context = texts(context);
            }
            if let Some(fallbacks) = &configured.fallbacks {
                definition.fallbacks = texts(fallbacks);
            }
            definitions.insert(name.as_str(), definition);
        }
        Some(Self {
            definitions,
            threshold: configuration.intents().threshold,
            classifier: OnceLock::new(),
        })
    }

    /// The intent of a run's task, if it is clear enough.
    pub(crate) fn of_task(&self, run: &Run, indexes: &ToolIndexes) -> Option<UserIntent> {
        let classifier = self
            .classifier
            .get_or_init(|| self.definitions.train().ok());
        let classifier = classifier.as_ref()?;
        let tools: Vec<&Arc<ToolSpecification>> = run.allowed_tools().collect();
        let index = indexes.of(&tools);
        let tools: Vec<&ToolSpecification> = tools.into_iter().map(|tool| &**tool).collect();
        let task = &run.task().description;
        let understood = understand(task, classifier, &self.definitions, tools, &index)?;
        (understood.confidence() >= self.threshold).then_some(understood)
    }
}
