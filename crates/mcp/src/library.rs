//! Servers as a library of tools. The library is made of the accepted definitions, so no server has to
//! run to list them. A server is started by the first call of one of its tools.

use std::sync::Arc;

use futures::future::join_all;
use windlass_core::risk::{Annotations, Trust};
use windlass_spec::server::{ServerName, ServerSettings};
use windlass_spec::{Signature, TimeoutSeconds, ToolAttributes, ToolName};
use windlass_tools::{Tool, ToolLibrary};

use crate::governed::{GovernedServer, PinnedTool};
use crate::ledger::{Ledger, LedgerError, describe_transport};
use crate::naming::tool_names;
use crate::pin::{Pin, PinState};
use crate::text::visible;
use crate::{Definition, ServerOptions};

/// The name of the library with the tools of all servers.
pub const LIBRARY: &str = "mcp";

/// The default timeout of a call of a server's tool. It includes starting the server.
const TIMEOUT_SECONDS: i64 = 120;

/// The longest description that models are shown, in characters.
const MAX_DESCRIPTION: usize = 2_000;

/// The servers of a configuration. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Servers(Vec<Arc<GovernedServer>>);

/// The accepted tools of servers, with notices about the tools that cannot be used.
#[derive(Debug)]
pub struct AcceptedTools {
    /// The tools that can be used.
    pub library: ToolLibrary,
    /// Notices for the operator.
    pub notices: Vec<ServerNotice>,
}

/// A notice for the operator about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNotice {
    /// The server.
    pub server: ServerName,
    /// The server's name for the tool, if the notice is about a tool.
    pub tool: Option<String>,
    /// The notice.
    pub message: String,
}

impl Servers {
    /// Servers that are not started yet. `options` returns the options of each.
    ///
    /// # Errors
    /// If the stored records of a server cannot be read.
    pub fn new(
        settings: impl IntoIterator<Item = ServerSettings>,
        ledger: &Ledger,
        options: impl Fn(&ServerSettings) -> ServerOptions,
    ) -> Result<Self, LedgerError> {
        let governed = settings.into_iter().map(|settings| {
            let options = options(&settings);
            GovernedServer::new(settings, ledger.clone(), options).map(Arc::new)
        });
        governed.collect::<Result<_, _>>().map(Self)
    }

    /// The servers of a changed configuration. Servers with unchanged settings keep their connection.
    ///
    /// # Errors
    /// If the stored records of a changed server cannot be read.
    pub fn set_up(
        &self,
        settings: impl IntoIterator<Item = ServerSettings>,
        ledger: &Ledger,
        options: impl Fn(&ServerSettings) -> ServerOptions,
    ) -> Result<Self, LedgerError> {
        let governed = settings.into_iter().map(|settings| {
            let before = self.get(&settings.name);
            match before.filter(|before| *before.settings() == settings) {
                Some(before) => Ok(Arc::clone(before)),
                None => {
                    let options = options(&settings);
                    GovernedServer::new(settings, ledger.clone(), options).map(Arc::new)
                }
            }
        });
        governed.collect::<Result<_, _>>().map(Self)
    }

    /// The server with that name.
    #[must_use]
    pub fn get(&self, name: &ServerName) -> Option<&Arc<GovernedServer>> {
        self.iter()
            .find(|governed| governed.settings().name == *name)
    }

    /// All servers.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<GovernedServer>> {
        self.0.iter()
    }

    /// The enabled servers without pins: those that were never connected to.
    ///
    /// # Errors
    /// If the stored records of a server cannot be read.
    pub fn unpinned(&self) -> Result<Vec<&Arc<GovernedServer>>, LedgerError> {
        let mut unpinned = Vec::new();
        for governed in self
            .iter()
            .filter(|governed| governed.settings().is_enabled)
        {
            if governed.ledger().pins(&governed.settings().name)?.is_none() {
                unpinned.push(governed);
            }
        }
        Ok(unpinned)
    }

    /// The accepted tools of all enabled servers.
    ///
    /// # Errors
    /// If the stored records of a server cannot be read.
    pub fn accepted_tools(&self) -> Result<AcceptedTools, LedgerError> {
        let mut tools = AcceptedTools {
            library: ToolLibrary::new(LIBRARY),
            notices: Vec::new(),
        };
        for governed in self
            .iter()
            .filter(|governed| governed.settings().is_enabled)
        {
            let name = &governed.settings().name;
            match governed.ledger().pins(name)? {
                Some(pins) => tools.add(governed, &pins),
                None => tools.notices.push(ServerNotice {
                    server: name.clone(),
                    tool: None,
                    message: format!(
                        "its tools are not pinned yet; run `windlass mcp inspect {name}` to start `{}` and pin them",
                        describe_transport(governed.settings())
                    ),
                }),
            }
        }
        Ok(tools)
    }

    /// Stops all servers concurrently, because some are slow to stop.
    pub async fn close(&self) {
        join_all(self.iter().map(|governed| governed.close())).await;
    }

    /// Stops all servers because the process ends. A running call is never answered, so that its run is
    /// left as if the process had been killed.
    pub async fn abandon(&self) {
        for governed in self.iter() {
            governed.stop_answering();
        }
        self.close().await;
    }
}

impl FromIterator<Arc<GovernedServer>> for Servers {
    fn from_iter<T: IntoIterator<Item = Arc<GovernedServer>>>(governed: T) -> Self {
        Self(governed.into_iter().collect())
    }
}

impl AcceptedTools {
    fn add(&mut self, governed: &Arc<GovernedServer>, pins: &[Pin]) {
        let server = &governed.settings().name;
        let owns: Vec<&str> = pins.iter().map(|pin| pin.tool.as_str()).collect();
        let names = tool_names(server, &owns);
        for (pin, name) in pins.iter().zip(names) {
            let notice = |message: String| ServerNotice {
                server: server.clone(),
                tool: Some(pin.tool.clone()),
                message,
            };
            let Some(definition) = pin.usable() else {
                if pin.state() != PinState::Gone {
                    let message = format!(
                        "is {}; run `windlass mcp pins {server}` to see why",
                        pin.state().as_str()
                    );
                    self.notices.push(notice(message));
                }
                continue;
            };
            let tool = name
                .map_err(|problem| problem.to_string())
                .and_then(|name| tool(governed, name, definition));
            match tool {
                Ok(tool) => drop(self.library.register(tool)),
                Err(reason) => self
                    .notices
                    .push(notice(format!("cannot be used: {reason}"))),
            }
        }
    }
}

/// A tool of a server, from its accepted definition.
fn tool(
    governed: &Arc<GovernedServer>,
    name: ToolName,
    definition: &Definition,
) -> Result<Tool, String> {
    let no_fields = serde_json::json!({"type": "object"});
    let input = definition.input_schema().unwrap_or(&no_fields);
    let signature = Signature::from_schemas_approximately(input, definition.output_schema())
        .map_err(|error| error.to_string())?;
    let settings = governed.settings();
    let hints = definition.hints();
    let attributes = ToolAttributes {
        timeout_seconds: TimeoutSeconds::try_from(TIMEOUT_SECONDS).ok(),
        // Only a trusted server can declare a tool idempotent or closed-world.
        idempotent: hints.idempotent.filter(|_| settings.is_trusted),
        open_world: Some(!settings.is_trusted || hints.open_world.unwrap_or(true)),
        ..ToolAttributes::default()
    };
    let annotations = Annotations {
        read_only_hint: hints.read_only,
        destructive_hint: hints.destructive,
    };
    let trust = match settings.is_trusted {
        true => Trust::Trusted,
        false => Trust::Untrusted,
    };
    let (pinned, own) = (
        Arc::new(PinnedTool::new(definition.clone())),
        Arc::clone(governed),
    );
    Tool::builder(name.as_str())
        .description(description(settings, definition))
        .signature(signature)
        .attributes(attributes)
        .annotations(annotations, trust)
        .envelopes(settings.has_envelopes)
        .handler_with_context(move |arguments, context| {
            let (pinned, own) = (Arc::clone(&pinned), Arc::clone(&own));
            async move { own.run(&pinned, arguments, context).await }
        })
        .build()
        .map_err(|error| error.to_string())
}

fn description(settings: &ServerSettings, definition: &Definition) -> String {
    let text = definition.description().map(str::trim).unwrap_or_default();
    let text = visible(text);
    match text.chars().count() {
        0 => format!("{} of the MCP server {}", definition.name(), settings.name),
        1..=MAX_DESCRIPTION => text.into_owned(),
        _ => text.chars().take(MAX_DESCRIPTION).collect::<String>() + "…",
    }
}
