//! The library `builtin`: time, files, web, memory, response formatting and the security status. What
//! it may access is set in [`BuiltinSettings`]. It refuses everything else, and names the configuration key that
//! would allow it.

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
use declared::DeclaredTool;
use files::Files;
use web::Web;

pub use settings::{
    AutomationSettings, BuiltinSettings, FileRoot, FileSettings, HttpSettings, NotConfigured,
    SecurityFact, SettingsError, WebSearchSettings, WriteRecorder,
};
pub use web::{HostPattern, html_to_text};

/// The name of the library.
pub const BUILTIN: &str = "builtin";

/// The library `builtin` with these settings.
///
/// It has every tool, also those that are not configured: a call of one fails with what to configure.
/// To replace an implementation, such as `web_automation` by a tool of an MCP server,
/// [`register`](ToolLibrary::register) it.
#[must_use]
pub fn builtin(settings: &BuiltinSettings) -> ToolLibrary {
    // A tool that cannot be built is omitted, and binding reports it. The tests build all of them.
    tools(settings)
        .into_iter()
        .flatten()
        .fold(ToolLibrary::new(BUILTIN), ToolLibrary::with)
}

/// The specifications of the library `builtin`, in its order. An agent with these specifications
/// binds to it exactly, with the intended risk and categories.
#[must_use]
pub fn builtin_specifications() -> Vec<Arc<ToolSpecification>> {
    declared::ALL
        .iter()
        .filter_map(DeclaredTool::specification)
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
    let missing = settings.not_configured();
    for tool in tools.iter_mut().flatten() {
        let mut missing = missing.iter();
        let setting = missing.find(|setting| setting.tool == tool.name().as_str());
        tool.not_configured = setting.map(|setting| setting.to_string().into());
    }
    tools
}

/// The error of a tool without a required setting. It is reported as an unknown tool, so that the call is not
/// retried.
fn not_configured(tool: &DeclaredTool) -> ToolError {
    let message = match tool.needs {
        Some(needs) => NotConfigured {
            tool: tool.name,
            key: needs.key,
            help: needs.help,
        }
        .to_string(),
        None => format!("`{}` is not configured", tool.name),
    };
    ToolError::of(ErrorCategory::UnknownTool, message).without_effect()
}

/// An error for invalid arguments of a call without an effect.
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
