//! The built-in libraries: one tool that greets, in two implementations. They are the smallest example
//! for trying an agent and for comparing two implementations.

use crate::builder::ToolBuildError;
use crate::library::ToolLibrary;
use crate::tool::Tool;

/// The library `hello`, whose `sayHello` greets at length.
#[must_use]
pub fn hello() -> ToolLibrary {
    collect_library("hello", [at_length::say_hello_tool()])
}

/// The library `hello-brief`, whose `sayHello` greets briefly.
#[must_use]
pub fn hello_brief() -> ToolLibrary {
    collect_library("hello-brief", [briefly::say_hello_tool()])
}

/// The libraries that need no setup.
#[must_use]
pub fn builtin_libraries() -> Vec<ToolLibrary> {
    vec![hello(), hello_brief()]
}

/// The built-in library with this name.
#[must_use]
pub fn builtin_library(name: &str) -> Option<ToolLibrary> {
    builtin_libraries()
        .into_iter()
        .find(|library| library.name() == name)
}

/// A library of the tools that could be built. The tests check that all can. If one could not,
/// binding would report it as missing.
fn collect_library<const N: usize>(
    name: &str,
    tools: [Result<Tool, ToolBuildError>; N],
) -> ToolLibrary {
    tools
        .into_iter()
        .flatten()
        .fold(ToolLibrary::new(name), ToolLibrary::with)
}

mod at_length {
    use windlass_macros::tool;

    /// Returns a friendly greeting message for the given name
    #[tool(name = "sayHello", crate = crate)]
    pub(super) fn say_hello(name: String) -> String {
        format!("Hello, {name}! Nice to meet you.")
    }
}

mod briefly {
    use windlass_macros::tool;

    /// Returns a friendly greeting message for the given name
    #[tool(name = "sayHello", crate = crate)]
    pub(super) fn say_hello(name: String) -> String {
        format!("Hello, {name}!")
    }
}

#[cfg(test)]
mod tests {
    use super::{at_length, briefly, builtin_libraries};

    #[test]
    fn the_two_greetings_answer_differently() {
        let ada = || "Ada".to_owned();
        assert_eq!(at_length::say_hello(ada()), "Hello, Ada! Nice to meet you.");
        assert_eq!(briefly::say_hello(ada()), "Hello, Ada!");
    }

    #[test]
    fn every_built_in_tool_can_be_built() {
        assert!(at_length::say_hello_tool().is_ok());
        assert!(briefly::say_hello_tool().is_ok());
        assert!(builtin_libraries().iter().all(|library| library.len() == 1));
    }
}
