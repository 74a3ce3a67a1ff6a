//! Models: the client trait, providers, dialects, scripted and replayed models.
//!
//! A [`ModelClient`] answers the run machine's requests and emits events while an answer arrives.
//! [`HostedModel`] uses providers and local servers, [`ScriptedModel`] gives prepared answers,
//! [`ReflexModel`] is the embedded default, [`RecordingModel`] and [`ReplayModel`] write and read cassettes.

#![deny(clippy::disallowed_methods)]

mod cassette;
mod client;
mod definition;
mod dialect;
mod hosted;
mod reach;
#[cfg(feature = "reflex")]
mod reflex;
mod scripted;
mod scrub;

pub use cassette::{CassetteError, RecordingModel, ReplayModel};
pub use client::{ImmediateModel, ModelClient, ModelError, ModelEvent};
pub use dialect::{Dialect, UnknownDialect};
#[cfg(any(test, feature = "fuzzing"))]
pub use hosted::fuzzing;
pub use hosted::{AnswerLimits, ExceededLimit, HostedModel, HostedSettings};
pub use reach::{ProviderStatus, check as check_reach, provider_statuses};
#[cfg(feature = "reflex")]
pub use reflex::ReflexModel;
pub use scripted::{ScriptError, ScriptedModel};
pub use scrub::Scrubber;
