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
//! # Answers of tools
//!
//! A function may return a [`ToolResponse`] instead of a bare result. One that cannot continue without a person returns
//! a [`ToolQuestion`] as its error:
//!
//! ```
//! use serde_json::json;
//! use windlass::spec::envelope::{Action, Page};
//! use windlass::{NonEmptyText, Timestamp, ToolError, ToolQuestion, ToolResponse, tool};
//!
//! /// Searches the index and returns a page of results
//! #[tool]
//! async fn search_index(query: String) -> Result<ToolResponse, ToolError> {
//!     if query == "everything" {
//!         let reason = NonEmptyText::new("Reading everything is slow.").map_err(ToolError::from_display)?;
//!         return Err(ToolError::from_question(ToolQuestion::authorization(reason)));
//!     }
//!     let action = Action::new("search_index").map_err(ToolError::from_display)?;
//!     let now = Timestamp::from_microseconds(0);
//!     Ok(ToolResponse::page(action, Page::new(vec![json!("a")]).of_total(10), now))
//! }
//! # assert!(search_index_tool().is_ok());
//! ```
//!
//! # Risk
//!
//! [`categorize_action_risk`] assesses a call by its name and arguments, and [`requires_approval`] says whether it needs
//! approval at a stated confidence:
//!
//! ```
//! use serde_json::json;
//! use windlass::{Confidence, RiskLevel, categorize_action_risk, requires_approval};
//!
//! let risk = categorize_action_risk("delete_file", &json!({"path": "/data/important.txt"}));
//! assert_eq!(risk, RiskLevel::Irreversible);
//! assert!(requires_approval(risk, Confidence::try_from(0.95)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Frames
//!
//! [`frames`] are the progress of a run for server-sent events:
//!
//! ```
//! use windlass::{Progress, Settings, StreamFrame, Watch, frames};
//! # use std::sync::Arc;
//!
//! let watch: Watch = Arc::new(|_, progress: Progress<'_>| {
//!     for frame in frames(progress, &Settings::default()) {
//!         print!("{}", frame.to_sse());
//!     }
//! });
//! # let _ = watch;
//! assert_eq!(StreamFrame::Done.to_sse(), "data: {\"type\":\"done\"}\n\n");
//! ```
//!
//! # Memory
//!
//! [`Memory`] stores documents and finds them by meaning and words:
//!
//! ```
//! # #[cfg(feature = "memory")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use windlass::{Memory, MemoryScope, NewDocument, ScopeReach, Store, Timestamp};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("memory.db");
//! let memory = Memory::new(Arc::new(Store::open(path)?));
//! let scope = MemoryScope::new("local", "ada", ScopeReach::Principal);
//! let now = Timestamp::from_microseconds(0);
//! memory.remember(&scope, NewDocument::new("The office closes at six.", now))?;
//! let found = memory.search(&[scope], "When does the office close?", 1)?;
//! assert_eq!(found.len(), 1);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "memory"))]
//! # fn main() {}
//! ```
//!
//! # Crates
//!
//! [`Agent`] is the short API; [`Work::stream`] streams the progress. This crate only
//! re-exports; the parts are in `windlass-gram` (the notation), `windlass-spec` (agents,
//! tools, records), `windlass-config` (the configuration), `windlass-core` (the run machine and the
//! gate), `windlass-model`, `windlass-tools`, `windlass-store`, `windlass-mcp` (MCP servers) and
//! `windlass-runtime`, and `windlass-service` (every operation that a server or another front end needs).

pub use windlass_core::approval::{Approval, PersonDecision};
pub use windlass_core::gate::Governance;
pub use windlass_core::risk::{categorize_action_risk, requires_approval};
pub use windlass_core::run::{Event, QuestionSubject, Run, RunEnd, Settings, ToolQuestion};
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
    FileTexts, InMemory, Learning, NewTask, Playbooks, Progress, Stop, Stored, Update, Updates,
    Watch, Work, frames,
};
#[cfg(feature = "service")]
pub use windlass_service as service;
pub use windlass_spec as spec;
pub use windlass_spec::{
    AgentFile, AgentName, AgentResponse, Confidence, Message, Model, NonEmptyText, Provider,
    Reading, RiskLevel, Signature, StreamFrame, TaskInput, TaskOutput, Timestamp, ToolAttributes,
    ToolCallingStrategy, ToolGapReport, ToolName, ToolResponse, ToolSpecification, Type, read,
    write, write_agent,
};
#[cfg(feature = "memory")]
pub use windlass_store::{Memory, MemoryHit, MemoryScope, NewDocument, ScopeReach, Store};
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
