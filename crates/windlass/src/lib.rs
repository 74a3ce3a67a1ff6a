//! Windlass: a runtime for tool-calling agents.
//!
//! Agents and their tools are declared as typed text, bound to implementations, and run:
//!
//! ```
//! use windlass::{Agent, ReflexModel, ToolLibrary, tool};
//!
//! /// Returns a friendly greeting message for the given name
//! #[tool(name = "sayHello")]
//! async fn say_hello(name: String) -> String {
//!     format!("Hello, {name}! Nice to meet you.")
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let library = ToolLibrary::new("mine").with(say_hello_tool()?);
//!     let done = Agent::from_file("examples/hello.gram")?
//!         .run_with(&library, "Greet Ada.")
//!         // The embedded model, which needs no key. The default is the declared one.
//!         .model(ReflexModel::new())
//!         .await?;
//!     assert_eq!(done.answer(), "Hello, Ada! Nice to meet you.");
//!     Ok(())
//! }
//! ```
//!
//! [`Agent`] is the short API; [`Work::stream`] streams the progress. This crate only
//! re-exports; the parts are in `windlass-gram` (the notation), `windlass-spec` (agents,
//! tools, records), `windlass-config` (the configuration), `windlass-core` (the run machine and the
//! gate), `windlass-model`, `windlass-tools`, `windlass-store`, `windlass-mcp` (MCP servers) and
//! `windlass-runtime`, and `windlass-service` (every operation that a server or another front end needs).

pub use windlass_core::approval::{Approval, PersonDecision};
pub use windlass_core::gate::Governance;
pub use windlass_core::run::{Event, Run, RunEnd, Settings};
pub use windlass_gram as gram;
#[cfg(feature = "learn")]
pub use windlass_learn::gap::ToolGapDetector;
#[cfg(feature = "service")]
pub use windlass_mcp as mcp;
#[cfg(feature = "learn")]
pub use windlass_model::ReflexModel;
pub use windlass_model::{
    Dialect, HostedModel, HostedSettings, ModelClient, ModelError, RecordingModel, ReplayModel,
    ScriptedModel,
};
pub use windlass_runtime::{
    Agent, Completed, ConfigurationFiles, Configured, Crew, CrewMember, Driver, Durable, Error,
    FileTexts, InMemory, Learning, NewTask, Playbooks, Stop, Stored, Update, Updates, Work,
};
#[cfg(feature = "service")]
pub use windlass_service as service;
pub use windlass_spec as spec;
pub use windlass_spec::{
    AgentFile, AgentName, AgentResponse, Message, Model, NonEmptyText, Provider, Reading,
    RiskLevel, Signature, TaskInput, TaskOutput, ToolAttributes, ToolCallingStrategy,
    ToolGapReport, ToolName, ToolResponse, ToolSpecification, Type, read, write, write_agent,
};
pub use windlass_tools::{
    BindingFailure, BindingMode, BoundTool, BoundTools, BuiltinSettings, Tool, ToolBuildError,
    ToolError, ToolLibrary, ToolProgress, ToolType, bind, builtin, builtin_libraries,
    builtin_library, tool,
};

#[doc(hidden)]
pub use windlass_tools::__private;

/// The Rust code in the guides, compiled and run as tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/binding.md")]
    struct Binding;
    #[cfg(feature = "service")]
    #[doc = include_str!("../../../docs/mcp.md")]
    struct Mcp;
}
