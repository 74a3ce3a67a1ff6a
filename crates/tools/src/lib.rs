//! Tool implementations, libraries of them, and their binding to specifications.
//!
//! A [`Tool`] is made of a Rust function with [`#[tool]`](macro@tool), or of any handler with
//! [`Tool::builder`]. A [`ToolLibrary`] holds tools by name; [`bind`] finds the implementation of
//! each tool an agent declares, or says everything that stands in the way. A tool runs only in
//! exchange for a permit; [`dispatch`](dispatch()) is what runs it, with a time limit, and always
//! comes back with how the call ended. Tools that are programs ([`CommandLine`]) or requests
//! ([`HttpEndpoint`]) need no Rust: a library file lists them. No model is called from here.

mod answer;
mod bind;
mod builder;
mod builtin;
mod command;
mod difference;
mod dispatch;
mod envelope;
mod error;
mod failure;
pub mod hello;
mod http;
mod library;
mod library_file;
mod memory;
mod native;
mod output;
mod specified;
mod split;
mod tool;
mod tool_type;

pub use bind::{BindingMode, BoundTool, BoundTools, bind};
pub use builder::{IntoSignature, ToolBuildError, ToolBuilder, ToolProblem};
pub use builtin::{
    AutomationSettings, BUILTIN, BuiltinSettings, Fact, FileSettings, HostPattern, HttpSettings,
    NotConfigured, Root, SearchSettings, SettingsError, builtin, builtin_specifications,
    text_of_html,
};
pub use command::{CommandLine, CommandLineError, ProcessGroup};
pub use difference::{Difference, differences};
pub use dispatch::{
    DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_TIMEOUT, DispatchOptions, Dispatched, dispatch,
};
pub use error::ToolError;
pub use failure::{BindingFailure, Reason, SchemaPart};
pub use hello::{builtin_libraries, builtin_library};
pub use http::{HttpEndpoint, HttpMethod, HttpProblem};
pub use library::{MergeConflict, ToolLibrary};
pub use library_file::LibraryFileError;
pub use memory::{Caller, FoundMemory, KeptMemory, MemoryPort, MemoryReach, NewMemory, Taint};
pub use split::{Split, SplitError, Variant};
pub use tool::{CallContext, OnProgress, Tool, ToolFuture, ToolProgress};
pub use tool_type::{Nesting, ToolType, TypeTooDeep};
pub use windlass_macros::{ToolType, tool};

/// Everything the code written by the macros refers to, so that a crate which passes the macros on
/// needs to pass on only this. Not for use by hand: it changes with the macros.
#[doc(hidden)]
pub mod __private {
    pub use serde_json::json;
    pub use windlass_spec::Type;

    pub use crate::native::{Arguments, NativeTool};
    pub use crate::tool_type::optional;
    pub use crate::{Nesting, Tool, ToolBuildError, ToolError, ToolType, TypeTooDeep};
}
