//! Connects to a server and shows its description and its tools, with the names agents use, the risk, and
//! hidden text.

use windlass_config::Configuration;
use windlass_core::risk::{KnownTool, ToolRisk};
use windlass_mcp::{Pin, Rename, ServerInfo, look_alikes, mentions, renames, tool_name};
use windlass_spec::server::{ServerName, ServerSettings};
use windlass_spec::{RiskLevel, ToolSpecification};
use windlass_tools::Tool;

use super::no_such_pin;
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::servers::{find_server, server_of};
use crate::service::Service;

/// A tool of a server as agents use it.
#[derive(Debug, Clone)]
pub struct ServerTool {
    /// The tool, by the name agents use.
    pub tool: Tool,
    /// Its risk, before there are arguments.
    pub risk: RiskLevel,
}

impl ServerTool {
    pub(super) fn of(tool: &Tool, configuration: &Configuration) -> Self {
        Self {
            tool: tool.clone(),
            risk: risk_of(tool, configuration),
        }
    }
}

/// The result of a connection to a server.
#[derive(Debug, Clone)]
pub struct ServerConnection {
    /// Its description of itself.
    pub greeting: ServerInfo,
    /// The definitions of its tools, accepted and offered.
    pub pins: Vec<Pin>,
    /// The tools that agents can use.
    pub tools: Vec<ServerTool>,
}

/// The result of an inspection of a server.
#[derive(Debug, Clone)]
pub struct InspectedServer {
    /// How it is reached and what it may do.
    pub settings: ServerSettings,
    /// The result of the connection.
    pub connection: ServerConnection,
    /// Tools that may have been renamed.
    pub renames: Vec<Rename>,
    /// Warnings about tools that can be confused with those of another server.
    pub warnings: Vec<String>,
}

impl InspectedServer {
    /// The tool that agents use for a pin, if it can be used.
    #[must_use]
    pub fn usable(&self, pin: &Pin) -> Option<&ServerTool> {
        let name = tool_name(&self.settings.name, &pin.tool).ok()?;
        let mut tools = self.connection.tools.iter();
        tools.find(|tool| *tool.tool.name() == name)
    }

    /// The pin of a tool, by the server's name for it or by the name that agents use.
    ///
    /// # Errors
    /// If the server has no such tool.
    pub fn pin(&self, tool: &str) -> Result<&Pin, ServiceError> {
        let pins = &self.connection.pins;
        let is_meant = |pin: &&Pin| {
            let usable = self.usable(pin);
            pin.tool == tool || usable.is_some_and(|usable| usable.tool.name().as_str() == tool)
        };
        pins.iter()
            .find(is_meant)
            .ok_or_else(|| no_such_pin(&self.settings.name, tool, pins))
    }
}

/// The warnings about tools of a server whose descriptions are too short or too long.
#[must_use]
pub fn description_warnings(pins: &[Pin]) -> Vec<String> {
    pins.iter().filter_map(unusual_description).collect()
}

/// The warning about a tool whose description is too short or too long for a model to choose by.
fn unusual_description(pin: &Pin) -> Option<String> {
    let description = pin.offered.as_ref()?.description().unwrap_or_default();
    let unusual = ToolSpecification::check_description(description).err()?;
    Some(format!("the tool `{}`: {unusual}", pin.tool))
}

impl Service {
    /// Connects to a server and compares its tools with the accepted ones. The tools of the first connection
    /// are accepted, unless they are suspicious. The server is ended again.
    ///
    /// # Errors
    /// If the identity may not change servers, there is no such server, or it cannot be connected to.
    pub async fn inspect_server(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<InspectedServer, ServiceError> {
        identity.require(Scope::Admin)?;
        let configuration = self.current_configuration()?.configuration;
        let settings = find_server(&configuration, name)?;
        let options = self.server_options(settings, &configuration)?;
        let (greeting, pins) = self.visit_server(settings, &options).await?;
        let library = self
            .set_up_servers(&configuration)?
            .accepted_tools()?
            .library;
        let tools = library.iter();
        let tools =
            tools.filter(|tool| server_of(tool.name().as_str()).as_ref() == Some(&settings.name));
        let tools = tools.map(|tool| ServerTool::of(tool, &configuration));
        let mut warnings = self.confusable(&settings.name, &configuration)?;
        warnings.extend(description_warnings(&pins));
        Ok(InspectedServer {
            renames: renames(&pins),
            warnings,
            connection: ServerConnection {
                tools: tools.collect(),
                greeting,
                pins,
            },
            settings: settings.clone(),
        })
    }

    /// Warnings about tools of a server that can be confused with those of another.
    fn confusable(
        &self,
        own: &ServerName,
        configuration: &Configuration,
    ) -> Result<Vec<String>, ServiceError> {
        let ledger = self.ledger()?;
        let mut names = Vec::new();
        let mut definitions = Vec::new();
        for settings in configuration.servers() {
            for pin in ledger.pins(&settings.name)?.unwrap_or_default() {
                if let Some(usable) = pin.usable() {
                    names.push((settings.name.clone(), pin.tool.clone()));
                    definitions.push((settings.name.clone(), usable.clone()));
                }
            }
        }
        let alike = look_alikes(&names).into_iter();
        let alike = alike.filter(|alike| alike.first.0 == *own || alike.second.0 == *own);
        let mentions = mentions(&definitions).into_iter();
        let mentions = mentions.filter(|mention| mention.tool.0 == *own || mention.of.0 == *own);
        let alike = alike.map(|alike| alike.to_string());
        Ok(alike
            .chain(mentions.map(|mention| mention.to_string()))
            .collect())
    }
}

/// The risk of a tool of a server, before there are arguments.
fn risk_of(tool: &Tool, configuration: &Configuration) -> RiskLevel {
    let Ok(specification) = tool.specification() else {
        return RiskLevel::Irreversible;
    };
    let (annotations, trust) = tool.annotations().unwrap_or_default();
    let known = KnownTool {
        operator_override: configuration.risk().get(tool.name()).copied(),
        annotations,
        trust,
        is_from_server: true,
        ..KnownTool::specified(&specification)
    };
    ToolRisk::of(&known).base().level
}
