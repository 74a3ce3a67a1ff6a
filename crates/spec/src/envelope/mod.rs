//! The envelope: the one shape of every tool answer. A [`ToolResponse`] says how a call went
//! (`status`), which tool speaks (`action`), what it has to say (`data`) and when (`timestamp`);
//! inside it is one [`Answer`] whose fields cannot be wrong. Answers of older tools pass through
//! [`normalise`], which never fails and says what should be written instead. A call that takes long
//! reports by [`StreamFrame`]s.
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
pub use normalise::{Deprecation, DeprecationCode, Normalised, normalise, normalise_for};
pub use plan::{Plan, WorkData};
pub use response::ToolResponse;
pub use schema::{stream_frame_schema, tool_response_schema};
pub use stream::{FrameError, FrameReader, Progress, StepOutOfRange, StreamFrame, read_frames};
pub use words::{
    ExecutionMode, HilAction, InterventionStatus, InterventionType, SecurityLevel, ToolStatus,
    WorkStatus,
};

/// A JSON object.
type Object = serde_json::Map<String, serde_json::Value>;
