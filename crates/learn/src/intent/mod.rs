//! What a text asks for. [`IntentClassifier`] learns classes from examples and tells which one a text
//! belongs to, how surely, and whether it belongs to any; [`understand`] makes a
//! [`UserIntent`](windlass_spec::UserIntent) of it; [`evaluate()`] says how good the classifier is on
//! labelled texts.
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

pub use classifier::{Candidate, Class, Classification, IntentClassifier, TrainError};
pub use definitions::{DefinitionError, IntentDefinition, IntentDefinitions};
pub use evaluate::{EvaluateError, LabelledText, LabelledTexts, OUT_OF_SCOPE, Report, evaluate};
pub use understand::understand;
