//! Classifies what a text asks for. [`IntentClassifier`] learns classes from examples. It returns the class of a
//! text, its confidence, and whether the text belongs to any class. [`understand`] turns a text into a
//! [`UserIntent`](windlass_spec::UserIntent). [`evaluate()`] scores the classifier on labelled texts.
//!
//! ```
//! use windlass_learn::intent::IntentDefinitions;
//!
//! let classifier = IntentDefinitions::shipped()?.train()?;
//! assert_eq!(classifier.classify("give me a short summary of this article").intent, Some("summarize"));
//! assert_eq!(classifier.classify("my cat likes tuna").intent, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod classifier;
mod definitions;
mod dense;
mod evaluate;
mod features;
mod linear;
mod scope;
mod understand;

pub use classifier::{Classification, IntentClass, IntentClassifier, RankedClass, TrainError};
pub use definitions::{DefinitionError, IntentDefinition, IntentDefinitions};
pub use evaluate::{
    EvaluateError, IntentReport, LabelledText, LabelledTexts, OUT_OF_SCOPE, evaluate,
};
pub use understand::{understand, understand_as, unmet_context};
