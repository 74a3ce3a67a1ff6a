//! The `#[tool]` attribute and the `ToolType` derive. They only read and generate Rust code. Checking
//! that types and defaults fit a tool is done by the crate the generated code refers to: `::windlass`,
//! unless `crate = path` names another.

mod docs;
mod parameter;
mod rename;
mod serde_attributes;
mod tool;
mod tool_type;

use proc_macro::TokenStream;

/// Generates a tool from a function.
///
/// The function itself does not change, so it can be called and tested. The macro adds a constructor
/// with the same visibility, named after the function: `say_hello` gets
/// `say_hello_tool() -> Result<Tool, ToolBuildError>`. It returns a `Result` because some errors
/// are found only at run time: a type that contains itself, or a default that does not fit its type.
///
/// - `#[tool(name = "sayHello")]` names the tool; otherwise it has the function's name.
/// - The first paragraph of the doc comment describes the tool, or `description = "..."` does.
/// - Doc comments on parameters describe them. `#[default(5)]` gives one a default, in the form
///   `serde_json::json!` takes; an `Option` may be omitted.
/// - The function may be `async`. It returns `T`, or `Result<T, E>` with `E: Display`.
/// - Parameters are owned types that implement `ToolType` and `serde::Deserialize`; `T` implements
///   `ToolType` and `serde::Serialize`.
/// - `crate = path` is the path of the library, if it is not `::windlass`.
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(settings.into(), item.into()).into()
}

/// Implements `ToolType`, so that tools can take and return the type. A struct with named fields is a
/// record; an enum of variants without data is an enumeration of texts.
///
/// Doc comments on fields describe them. Of serde's attributes, `rename`, `rename_all` and
/// `default` are applied, those that do not change the JSON form are ignored, and any other is an
/// error. `#[tool_type(crate = path)]` is the path of the library, if it is not `::windlass`.
#[proc_macro_derive(ToolType, attributes(tool_type, serde))]
pub fn derive_tool_type(item: TokenStream) -> TokenStream {
    tool_type::expand(item.into()).into()
}
