//! Windlass: a runtime for tool-calling agents.
//!
//! Agents and their tools are declared as typed text and bound late to implementations:
//!
//! ```
//! use windlass::{BindingMode, ToolLibrary, bind, tool};
//!
//! /// Returns a friendly greeting message for the given name
//! #[tool(name = "sayHello")]
//! async fn say_hello(name: String) -> String {
//!     format!("Hello, {name}! Nice to meet you.")
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reading = windlass::read(r#"
//!     [greeter:Agent {instruction: "Greet people.", model: "OpenAI/gpt-4o-mini"} |
//!       [sayHello:Tool {description: "Returns a friendly greeting message for the given name"} |
//!         (name::Text)==>(::Text)]]
//! "#);
//! let file = reading.file.ok_or("the text has errors")?;
//! let library = ToolLibrary::new("mine").with(say_hello_tool()?);
//! let bound = bind(&file.agents()[0], &library, BindingMode::Exact).map_err(|failures| {
//!     failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
//! })?;
//! assert_eq!(bound.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! This crate only re-exports; the parts are in `windlass-gram` (the notation), `windlass-spec`
//! (agents, tools, signatures) and `windlass-tools` (libraries and binding).

pub use windlass_gram as gram;
pub use windlass_spec::{
    Agent, AgentFile, AgentName, Model, NonEmptyText, Provider, Reading, RiskLevel, Signature,
    ToolAttributes, ToolName, ToolSpecification, Type, read, write, write_agent,
};
pub use windlass_tools::{
    BindingFailure, BindingMode, BoundTool, BoundTools, Tool, ToolBuildError, ToolError,
    ToolLibrary, ToolType, bind, builtin_libraries, builtin_library, tool,
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
}
