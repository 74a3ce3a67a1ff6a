//! The envelope: the one shape of every tool answer. A [`ToolResponse`] has the outcome of a call
//! (`status`), the tool (`action`), its data (`data`) and a time (`timestamp`). It contains one
//! [`Answer`], whose fields are always valid. [`normalise`] converts the answers of older tools. It
//! never fails, and returns a notice for each thing to write differently. A long call reports its
//! progress by [`StreamFrame`]s.
//!
//! Nothing here runs a tool, asks a person or reads a clock: times are passed in.

mod action;
mod answer;
mod error;
mod fields;
mod forms;
mod human;
mod normalise;
mod plan;
mod raw;
mod response;
mod schema;
mod stream;
mod words;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
mod guide {
    //! The guide's examples are compiled as tests.
    #![doc = include_str!("../../../../docs/envelope.md")]
}

pub use action::Action;
pub use answer::Answer;
pub use error::{EnvelopeError, EnvelopeProblem};
pub use forms::{Batch, Nested, Page, SuccessData};
pub use human::{
    AskHuman, AuthorizationRequest, CredentialAuthorization, CredentialPreview, Intervention,
    PendingCall,
};
pub use normalise::{
    Deprecation, DeprecationCode, ENVELOPE_FIELDS, Normalised, normalise, normalise_for,
};
pub use plan::{PlanReport, WorkData};
pub use response::ToolResponse;
pub use schema::{stream_frame_schema, tool_response_schema};
pub use stream::{FrameError, FrameReader, Progress, StepOutOfRange, StreamFrame, read_frames};
pub use words::{
    ExecutionMode, HilAction, InterventionStatus, InterventionType, SecurityLevel, ToolStatus,
    WorkStatus,
};

/// A JSON object.
type Object = serde_json::Map<String, serde_json::Value>;
