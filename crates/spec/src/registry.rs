//! An operator's settings for tools: environments, categories, permissions, limits and the
//! configuration of single tools, and the context a call is made in. Validated values only; reading
//! and merging configuration layers is done in `windlass-config`.

mod categories;
mod configuration;
mod context;
mod environment;
mod limits;
mod permission;
mod schema;
mod slack;
mod word;

#[cfg(test)]
mod tests;

pub use categories::{Categories, CategoryName, ToolCategory, UnknownCategory};
pub use configuration::{Override, Resolved, ToolConfiguration};
pub use context::{
    ChannelId, ContextError, RequestError, RequestText, ThreadTimestamp, ToolExecutionContext,
    UserId,
};
pub use environment::{Environment, Environments, UnknownEnvironment};
pub use limits::{RateLimitError, RateLimits, Window};
pub use permission::{OWN_PERMISSIONS, Permission, UnknownPermission, Vocabulary};
pub use schema::registry_schemas;
pub use slack::SLACK_SCOPES;
pub use word::FormatError;
