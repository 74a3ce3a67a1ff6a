//! The intents that tasks are classified by.

use std::sync::{Arc, OnceLock};

use windlass_config::Configuration;
use windlass_core::run::IntentAdvice;
use windlass_learn::intent::{
    Classification, IntentClassifier, IntentDefinitions, understand_as, unmet_context,
};
use windlass_spec::registry::ToolExecutionContext;
use windlass_spec::{Confidence, NonEmptyText, RawUserIntent, ToolSpecification, UserIntent};

use crate::ranking::ToolIndexes;

/// The intents that tasks are classified by.
#[derive(Debug)]
pub struct Intents {
    definitions: IntentDefinitions,
    /// Intents of lower confidence are ignored.
    threshold: Confidence,
    /// Trained when it is first needed; `None` if there are too few examples.
    classifier: OnceLock<Option<IntentClassifier>>,
}

/// The intent of a task and what it means for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderstoodTask {
    /// The intent.
    pub intent: UserIntent,
    /// What has to be known, as far as the task does not state it.
    pub needs: Vec<NonEmptyText>,
}

impl UnderstoodTask {
    /// The intent as a run records it.
    pub(crate) fn recorded(&self) -> RawUserIntent {
        self.intent.clone().into()
    }

    /// What the model of a run reads. `is_usable` says which tools can be called. What has to be known is left
    /// out for a run that works for another: that one has asked.
    pub(crate) fn advice(
        &self,
        is_usable: impl Fn(&str) -> bool,
        is_set_by_person: bool,
    ) -> Option<IntentAdvice> {
        let tools = self.intent.suggested_tools().iter();
        let advice = IntentAdvice {
            tools: tools
                .filter(|tool| is_usable(tool.as_str()))
                .cloned()
                .collect(),
            needs: match is_set_by_person {
                true => self.needs.clone(),
                false => Vec::new(),
            },
            fallbacks: self.intent.fallback_options().to_vec(),
        };
        (!advice.tools.is_empty() || !advice.needs.is_empty()).then_some(advice)
    }
}

impl Intents {
    /// The shipped intents, changed and extended by a configuration.
    #[must_use]
    pub fn of(configuration: &Configuration) -> Option<Self> {
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

    /// The shipped intents, for programs that configure none.
    pub(crate) fn usual() -> Option<Arc<Self>> {
        static USUAL: OnceLock<Option<Arc<Intents>>> = OnceLock::new();
        let usual = USUAL.get_or_init(|| Self::of(&Configuration::default()).map(Arc::new));
        usual.clone()
    }

    /// The least confidence of an intent that a run uses.
    #[must_use]
    pub fn threshold(&self) -> Confidence {
        self.threshold
    }

    /// The class of a text, with the confidence. `None` if the intents have too few examples.
    #[must_use]
    pub fn classify(&self, text: &str) -> Option<Classification<'_>> {
        let classifier = self
            .classifier
            .get_or_init(|| self.definitions.train().ok());
        Some(classifier.as_ref()?.classify(text))
    }

    /// The intent of the request in a context, if it is clear enough. `tools` are the available ones.
    #[must_use]
    pub fn understand(
        &self,
        context: &ToolExecutionContext,
        tools: &[&Arc<ToolSpecification>],
    ) -> Option<UnderstoodTask> {
        self.understand_with(context, tools, &ToolIndexes::default())
    }

    /// Like [`Intents::understand`], with indexes of tools that are kept.
    pub(crate) fn understand_with(
        &self,
        context: &ToolExecutionContext,
        tools: &[&Arc<ToolSpecification>],
        indexes: &ToolIndexes,
    ) -> Option<UnderstoodTask> {
        let request = context.user_request();
        let found = self.classify(request)?;
        if found.confidence < self.threshold {
            return None;
        }
        let available: Vec<&Arc<ToolSpecification>> = tools
            .iter()
            .copied()
            .filter(|tool| context.available_tools().contains(tool.name()))
            .collect();
        let index = indexes.of(&available);
        let available = available.into_iter().map(|tool| &**tool);
        let intent = understand_as(&found, request, &self.definitions, available, &index)?;
        Some(UnderstoodTask {
            needs: unmet_context(&intent, &self.definitions),
            intent,
        })
    }
}
