//! Agents, tool specifications and type signatures: typed, validated, serialisable.
//!
//! Declared text becomes a [`AgentFile`] through [`read`]; [`write`](write()) turns it back into
//! text. Every type here can only hold what is valid. No IO, no clock, no async.

mod agent;
mod model;
mod names;
mod nearest;
mod read;
mod risk;
mod signature;
mod tool;
mod write;

pub use agent::{Agent, AgentError, AgentFile, FlowStep};
pub use model::{Model, Provider};
pub use names::{AgentName, NonEmptyText, TextError, ToolName, is_invisible};
pub use nearest::{nearest, nearest_all};
pub use read::{Reading, read};
pub use risk::{RiskLevel, UnknownWord};
pub use signature::{
    Field, Inexpressible, MAX_DEPTH, Mismatch, Presence, Signature, SignatureError, Type,
    accepts_parameters, parameters_from_schema,
};
pub use tool::{
    AttributeError, TimeoutOutOfRange, TimeoutSeconds, ToolAttributes, ToolSpecification,
};
pub use write::{WriteError, write, write_agent};
