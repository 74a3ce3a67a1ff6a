//! Categories: groups of tools, and the settings of a whole group. Six are predefined, others are
//! declared together with the schema of their settings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::configuration::ToolConfiguration;
use super::permission::Permission;
use super::word::{is_name, word};
use crate::names::ToolName;
use crate::nearest::nearest;
use crate::signature::{Field, Type};

word! {
    /// The name of a category. [`Categories`] checks that the category exists.
    CategoryName is
    "the name of a category",
    "it begins with a lower-case letter and has at most 64 lower-case letters, digits, `_` and `-`",
    "^[a-z][a-z0-9_-]{0,63}$",
    |text| is_name(text, 64)
}

impl CategoryName {
    /// Tools that work in Slack.
    pub const SLACK_TOOLS: Self = Self(Cow::Borrowed("slack_tools"));
    /// Tools that use OpenAI's models.
    pub const OPENAI_TOOLS: Self = Self(Cow::Borrowed("openai_tools"));
    /// Tools that analyse their input.
    pub const ANALYSIS_TOOLS: Self = Self(Cow::Borrowed("analysis_tools"));
    /// Tools that read and write files.
    pub const FILE_TOOLS: Self = Self(Cow::Borrowed("file_tools"));
    /// Tools that read and search the web.
    pub const WEB_TOOLS: Self = Self(Cow::Borrowed("web_tools"));
    /// Tools about the machine and the agent itself.
    pub const SYSTEM_TOOLS: Self = Self(Cow::Borrowed("system_tools"));
    /// The predefined categories.
    pub const PREDEFINED: [Self; 6] = [
        Self::SLACK_TOOLS,
        Self::OPENAI_TOOLS,
        Self::ANALYSIS_TOOLS,
        Self::FILE_TOOLS,
        Self::WEB_TOOLS,
        Self::SYSTEM_TOOLS,
    ];
}

/// The known categories, each with the fields its `global_config` may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Categories(BTreeMap<CategoryName, Vec<Field>>);

/// A category that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no category `{name}`")]
pub struct UnknownCategory {
    /// The unknown name.
    pub name: String,
    /// The most similar known name.
    pub nearest: Option<String>,
    /// The known names.
    pub known: Vec<String>,
}

impl Default for Categories {
    fn default() -> Self {
        Self(CategoryName::PREDEFINED.map(predefined).into())
    }
}

/// The settings of a predefined category: common parameters of its tools.
fn predefined(name: CategoryName) -> (CategoryName, Vec<Field>) {
    let fields: &[(&str, Type)] = match name.as_str() {
        "slack_tools" => &[
            ("workspace", Type::Text),
            ("channel", Type::Text),
            ("limit", Type::Integer),
        ],
        "openai_tools" => &[
            ("model", Type::Text),
            ("temperature", Type::Number),
            ("max_tokens", Type::Integer),
        ],
        "analysis_tools" => &[
            ("language", Type::Text),
            ("max_length", Type::Integer),
            ("limit", Type::Integer),
        ],
        "file_tools" => &[("encoding", Type::Text), ("max_results", Type::Integer)],
        "web_tools" => &[
            ("language", Type::Text),
            ("region", Type::Text),
            ("max_results", Type::Integer),
        ],
        _ => &[("timezone", Type::Text), ("locale", Type::Text)],
    };
    let fields = fields
        .iter()
        .map(|(name, ty)| Field::optional(*name, ty.clone()));
    (name, fields.collect())
}

impl Categories {
    /// Declares a category with the fields its `global_config` may have.
    pub fn declare(&mut self, name: CategoryName, fields: Vec<Field>) {
        self.0.insert(name, fields);
    }

    /// Whether there is such a category.
    #[must_use]
    pub fn contains(&self, name: &CategoryName) -> bool {
        self.0.contains_key(name)
    }

    /// All categories, sorted by name.
    pub fn names(&self) -> impl Iterator<Item = &CategoryName> {
        self.0.keys()
    }

    /// The fields that a category's `global_config` may have.
    #[must_use]
    pub fn fields(&self, name: &CategoryName) -> Option<&[Field]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Checks that there is a category of that name.
    ///
    /// # Errors
    /// If there is none, with the most similar name.
    pub fn require(&self, name: &str) -> Result<&CategoryName, UnknownCategory> {
        let found = self.0.get_key_value(name).map(|(name, _)| name);
        found.ok_or_else(|| UnknownCategory {
            name: name.chars().take(60).collect(),
            nearest: nearest(name, self.names().map(CategoryName::as_str)).map(str::to_owned),
            known: self.names().map(CategoryName::to_string).collect(),
        })
    }
}

/// A group of tools, and their settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawCategory")]
#[schemars(with = "RawCategory")]
pub struct ToolCategory {
    /// Its name.
    pub name: CategoryName,
    /// Whether its tools can be used.
    pub enabled: bool,
    /// The permissions that its tools require of the caller.
    pub permissions: BTreeSet<Permission>,
    /// The settings of all its tools.
    pub global_config: Map<String, Value>,
    tools: BTreeMap<ToolName, ToolConfiguration>,
}

impl ToolCategory {
    /// A category without settings.
    #[must_use]
    pub fn new(name: CategoryName) -> Self {
        Self {
            name,
            enabled: true,
            permissions: BTreeSet::new(),
            global_config: Map::new(),
            tools: BTreeMap::new(),
        }
    }

    /// The configurations of its tools, by name.
    #[must_use]
    pub fn tools(&self) -> &BTreeMap<ToolName, ToolConfiguration> {
        &self.tools
    }

    /// Sets the configuration of a tool, replacing the previous one.
    pub fn configure(&mut self, tool: ToolConfiguration) {
        self.tools.insert(tool.tool_name.clone(), tool);
    }
}

/// The JSON form of a category, before validation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolCategory")]
/// A group of tools, and their settings.
struct RawCategory {
    /// Its name.
    name: CategoryName,
    /// Whether its tools can be used.
    #[serde(default = "yes")]
    enabled: bool,
    /// The permissions that its tools require of the caller.
    #[serde(default)]
    permissions: BTreeSet<Permission>,
    /// The settings of all its tools.
    #[serde(default)]
    global_config: Map<String, Value>,
    /// The configurations of its tools, by name.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ToolConfiguration>")]
    tools: BTreeMap<ToolName, ToolConfiguration>,
}

fn yes() -> bool {
    true
}

impl TryFrom<RawCategory> for ToolCategory {
    type Error = String;

    fn try_from(raw: RawCategory) -> Result<Self, String> {
        let other = raw
            .tools
            .iter()
            .find(|(name, tool)| tool.tool_name != **name);
        if let Some((name, tool)) = other {
            let found = &tool.tool_name;
            return Err(format!(
                "tools.{name}: its tool_name is `{found}`; use the same name"
            ));
        }
        Ok(Self {
            name: raw.name,
            enabled: raw.enabled,
            permissions: raw.permissions,
            global_config: raw.global_config,
            tools: raw.tools,
        })
    }
}
