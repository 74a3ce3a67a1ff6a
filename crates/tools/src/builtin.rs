//! The library `builtin`: the time, files, the web, memory, and two tools about answers and rules. Everything
//! it may touch is written in [`BuiltinSettings`]; what is not written there it refuses, and says which
//! key of the configuration would allow it.

mod clock;
mod declared;
mod files;
mod memory;
mod render;
mod security;
mod settings;
mod web;

use std::sync::Arc;

use windlass_spec::{ErrorCategory, ToolSpecification};

use crate::builder::ToolBuildError;
use crate::error::ToolError;
use crate::library::ToolLibrary;
use crate::tool::Tool;
use declared::Declared;
use files::Files;
use web::Web;

pub use settings::{
    AutomationSettings, BuiltinSettings, Fact, FileSettings, HttpSettings, NotConfigured, Root,
    SearchSettings, SettingsError,
};
pub use web::{HostPattern, text_of_html};

/// The name of the library.
pub const BUILTIN: &str = "builtin";

/// The library `builtin`, with what `settings` allow.
///
/// Every tool is there, also those that are not configured: a call of one fails with what to configure.
/// To put another implementation behind a name, such as an MCP server behind `web_automation`,
/// [`register`](ToolLibrary::register) it.
#[must_use]
pub fn builtin(settings: &BuiltinSettings) -> ToolLibrary {
    // What cannot be built is missing, and binding names it; the tests build each of them.
    tools(settings)
        .into_iter()
        .flatten()
        .fold(ToolLibrary::new(BUILTIN), ToolLibrary::with)
}

/// What the tools of the library `builtin` are declared as, in its order: an agent that declares them
/// like this can be bound to it exactly, with the risk and the categories they are meant to have.
#[must_use]
pub fn builtin_specifications() -> Vec<Arc<ToolSpecification>> {
    declared::ALL
        .iter()
        .filter_map(Declared::specification)
        .map(Arc::new)
        .collect()
}

fn tools(settings: &BuiltinSettings) -> Vec<Result<Tool, ToolBuildError>> {
    let files = settings
        .files
        .clone()
        .map(|settings| Arc::new(Files::new(settings)));
    let web = Web::new(settings);
    let mut tools = vec![
        clock::get_current_time(),
        files::read_file(files.clone()),
        files::write_file(files.clone()),
        files::list_directory(files.clone()),
        files::delete_file(files),
        web.http_get(),
        web.web_search(),
        web.web_crawl(),
        web.web_automation(),
        security::check_security_status(settings),
        render::format_response(),
    ];
    tools.extend(memory::tools());
    let lacking = settings.not_configured();
    for tool in tools.iter_mut().flatten() {
        let mut lacking = lacking.iter();
        let lacks = lacking.find(|lacks| lacks.tool == tool.name().as_str());
        tool.not_configured = lacks.map(|lacks| lacks.to_string().into());
    }
    tools
}

/// The error of a tool that lacks a setting. It is as good as not there, so it is reported as that, and
/// is never worth another try.
fn not_configured(tool: &Declared) -> ToolError {
    let what = match tool.needs {
        Some(needs) => NotConfigured {
            tool: tool.name,
            key: needs.key,
            help: needs.help,
        }
        .to_string(),
        None => format!("`{}` is not configured", tool.name),
    };
    ToolError::of(ErrorCategory::UnknownTool, what).without_effect()
}

/// An error about the arguments of a call that did nothing.
fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::of(ErrorCategory::InvalidArguments, message).without_effect()
}

/// The error of a call that the settings do not allow.
fn refused(message: impl Into<String>) -> ToolError {
    ToolError::of(ErrorCategory::PermissionDenied, message).without_effect()
}

#[cfg(test)]
mod tests {
    use super::{BuiltinSettings, builtin_specifications, declared, tools};

    #[test]
    fn every_declared_tool_is_built_in_the_declared_order() {
        let built: Vec<String> = tools(&BuiltinSettings::default())
            .into_iter()
            .map(|tool| tool.unwrap().name().to_string())
            .collect();
        let declared: Vec<&str> = declared::ALL.iter().map(|tool| tool.name).collect();
        assert_eq!(built, declared);
        assert_eq!(builtin_specifications().len(), declared.len());
    }
}
