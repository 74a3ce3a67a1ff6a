//! The configuration: the file `windlass.toml` and what overrides it.
//!
//! [`load`] takes the texts of all layers and returns a [`Configuration`], or all mistakes at once. This
//! crate reads neither files nor environment variables; the caller passes them in. One table defines all
//! keys. Checks, suggestions, defaults and the JSON Schema for editors are derived from it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod assign;
mod build;
mod check;
mod configuration;
mod effect;
mod form;
mod keys;
mod load;
mod merge;
mod mistake;
mod origin;
mod prices;
mod restrict;
mod rules;
mod schema;
mod settings;
mod show;
mod source;
mod starter;
mod tools;
mod tree;

pub use assign::is_setting_variable;
pub use configuration::Configuration;
pub use effect::KeyPower;
pub use keys::key_names;
pub use load::{LoadedConfiguration, load, load_with, settings_that_need_trust};
pub use mistake::{ConfigMistake, Severity};
pub use origin::{Layer, Origin};
pub use prices::{PriceSource, PriceTable};
pub use restrict::{ProjectRules, UntrustedSetting};
pub use schema::schema;
pub use settings::{
    AgentSettings, ApprovalSettings, BreakerSettings, BudgetLimits, BudgetSettings, Ceilings,
    FileToolSettings, GapSettings, GateSettings, IntentDefinition, IntentSettings,
    LearningSettings, Library, OidcSettings, OidcTenant, PrincipalSettings, RetentionSettings,
    SearchSettings, SelectionSettings, WebToolSettings, WebhookEvent, WebhookSecretSource,
    WebhookSettings, WebhookTarget, WithoutConfidence,
};
pub use show::ConfigEntry;
pub use source::ConfigSource;
pub use starter::starter;
pub use tools::{SwitchedOff, SwitchedOffBy, SwitchedOffWhat, ToolSettings};
