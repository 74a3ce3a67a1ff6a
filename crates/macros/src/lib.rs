//! The `#[tool]` attribute and the `ToolType` derive. They only read Rust and write Rust: what a
//! tool is, and whether a type fits one, is decided by the crate the written code refers to,
//! `::windlass` unless `crate = path` names another way to it.

mod docs;
mod parameter;
mod rename;
mod serde_attributes;
mod tool;
mod tool_type;

use proc_macro::TokenStream;

/// Makes a tool of a function.
///
/// The function stays as it is, so that it can be called and tested. Beside it, with the same
/// visibility, stands a constructor named after it: `say_hello` gets
/// `say_hello_tool() -> Result<Tool, ToolBuildError>`. It gives a `Result` because some mistakes
/// show only when it runs: a type that holds itself, or a default that does not fit its type.
///
/// - `#[tool(name = "sayHello")]` names the tool; otherwise it has the function's name.
/// - The first paragraph of the doc comment describes the tool, or `description = "..."` does.
/// - Doc comments on parameters describe them. `#[default(5)]` gives one a default, in the form
///   `serde_json::json!` takes; an `Option` may be left out.
/// - The function may be `async`. It returns `T`, or `Result<T, E>` with `E: Display`.
/// - Parameters are owned types that implement `ToolType` and `serde::Deserialize`; `T` implements
///   `ToolType` and `serde::Serialize`.
/// - `crate = path` says where the library is, if not at `::windlass`.
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(settings.into(), item.into()).into()
}

/// Makes a type one that tools can take and give: a struct with named fields becomes a record, an
/// enum of variants without data becomes a choice of texts.
///
/// Doc comments on fields describe them. Of serde's attributes, `rename`, `rename_all` and
/// `default` are followed, those that change nothing about the JSON form are passed over, and any
/// other is an error. `#[tool_type(crate = path)]` says where the
/// library is, if not at `::windlass`.
#[proc_macro_derive(ToolType, attributes(tool_type, serde))]
pub fn derive_tool_type(item: TokenStream) -> TokenStream {
    tool_type::expand(item.into()).into()
}
