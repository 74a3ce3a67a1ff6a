//! Models: the client trait, providers, dialects, scripted and replayed models.
//!
//! A [`ModelClient`] takes the run machine's request and gives its answer, telling what arrives
//! while it arrives. [`HostedModel`] speaks to providers and local servers, [`ScriptedModel`] says
//! what it was told to say, [`ReflexModel`] is the embedded default, [`RecordingModel`] and [`ReplayModel`] write and read cassettes.

mod cassette;
mod client;
mod definition;
mod dialect;
mod hosted;
mod reach;
mod reflex;
mod scripted;
mod scrub;

pub use cassette::{CassetteError, RecordingModel, ReplayModel};
pub use client::{ModelClient, ModelError, ModelEvent};
pub use dialect::{Dialect, UnknownDialect};
pub use hosted::{HostedModel, HostedSettings};
pub use reach::{Place, check as check_reach, places};
pub use reflex::ReflexModel;
pub use scripted::{ScriptError, ScriptedModel};
pub use scrub::Scrubber;
