//! Servers as a library of tools. The library is made of what was accepted, so nothing has to be started
//! to know what there is; a server is started by the first call of one of its tools.

use std::sync::Arc;

use futures::future::join_all;
use windlass_core::risk::{Annotations, Trust};
use windlass_spec::server::{ServerName, ServerSettings};
use windlass_spec::{Signature, TimeoutSeconds, ToolAttributes, ToolName};
use windlass_tools::{Tool, ToolLibrary};

use crate::governed::{Governed, MeetError, Pinned};
use crate::ledger::{Ledger, LedgerError, reached};
use crate::naming::tool_names;
use crate::pin::{Pin, PinState};
use crate::text::visible;
use crate::{Definition, Greeting, ServerOptions};

/// The name of the library of all servers' tools.
pub const LIBRARY: &str = "mcp";

/// How long a call of a server's tool may take, if nobody says otherwise. It may have to start the
/// server first.
const TIMEOUT_SECONDS: i64 = 120;

/// How long a description may be that models are shown.
const MAX_DESCRIPTION: usize = 2_000;

/// Servers, as the operator set them up. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Servers(Vec<Arc<Governed>>);

/// The tools of servers, and what there is to say about those that are not among them.
#[derive(Debug)]
pub struct Offered {
    /// The tools that can be used.
    pub library: ToolLibrary,
    /// What an operator should know.
    pub notices: Vec<Notice>,
}

/// Something an operator should know about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The server.
    pub server: ServerName,
    /// The server's name for the tool, if it is about one.
    pub tool: Option<String>,
    /// What it is.
    pub what: String,
}

impl Servers {
    /// Servers that are not started yet. `options` says how each is treated.
    ///
    /// # Errors
    /// If what is known of one of them cannot be read.
    pub fn new(
        settings: impl IntoIterator<Item = ServerSettings>,
        ledger: &Ledger,
        options: impl Fn(&ServerSettings) -> ServerOptions,
    ) -> Result<Self, LedgerError> {
        let governed = settings.into_iter().map(|settings| {
            let options = options(&settings);
            Governed::new(settings, ledger.clone(), options).map(Arc::new)
        });
        governed.collect::<Result<_, _>>().map(Self)
    }

    /// The same servers set up anew: those that are set up as they were go on as they are.
    ///
    /// # Errors
    /// If what is known of one of the others cannot be read.
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
                    Governed::new(settings, ledger.clone(), options).map(Arc::new)
                }
            }
        });
        governed.collect::<Result<_, _>>().map(Self)
    }

    /// The server of that name.
    #[must_use]
    pub fn get(&self, name: &ServerName) -> Option<&Arc<Governed>> {
        self.iter()
            .find(|governed| governed.settings().name == *name)
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Governed>> {
        self.0.iter()
    }

    /// Those that are used and were never met.
    ///
    /// # Errors
    /// If what is known of one of them cannot be read.
    pub fn strangers(&self) -> Result<Vec<&Arc<Governed>>, LedgerError> {
        let mut strangers = Vec::new();
        for governed in self
            .iter()
            .filter(|governed| governed.settings().is_enabled)
        {
            if governed.ledger().pins(&governed.settings().name)?.is_none() {
                strangers.push(governed);
            }
        }
        Ok(strangers)
    }

    /// The tools of all servers that were met, as they were accepted.
    ///
    /// # Errors
    /// If what is known of one of the servers cannot be read.
    pub fn offered(&self) -> Result<Offered, LedgerError> {
        let mut offered = Offered {
            library: ToolLibrary::new(LIBRARY),
            notices: Vec::new(),
        };
        for governed in self
            .iter()
            .filter(|governed| governed.settings().is_enabled)
        {
            let name = &governed.settings().name;
            match governed.ledger().pins(name)? {
                Some(pins) => offered.add(governed, &pins),
                None => offered.notices.push(Notice {
                    server: name.clone(),
                    tool: None,
                    what: format!(
                        "it was never met; `windlass mcp inspect {name}` starts `{}` and pins its tools",
                        reached(governed.settings())
                    ),
                }),
            }
        }
        Ok(offered)
    }

    /// Ends all of them, at the same time: some take theirs.
    pub async fn close(&self) {
        join_all(self.iter().map(|governed| governed.close())).await;
    }

    /// Ends all of them because the process ends. A call under way is never answered, so that whoever
    /// waits for it is found waiting, as if the process had been killed.
    pub async fn abandon(&self) {
        for governed in self.iter() {
            governed.fall_silent();
        }
        self.close().await;
    }
}

impl FromIterator<Arc<Governed>> for Servers {
    fn from_iter<T: IntoIterator<Item = Arc<Governed>>>(governed: T) -> Self {
        Self(governed.into_iter().collect())
    }
}

/// Meets a server and ends it again.
///
/// # Errors
/// If it cannot be met.
pub async fn introduce(
    settings: ServerSettings,
    ledger: Ledger,
    options: ServerOptions,
) -> Result<(Greeting, Vec<Pin>), MeetError> {
    let governed = Governed::new(settings, ledger, options)?;
    let met = governed.meet().await;
    governed.close().await;
    met
}

impl Offered {
    fn add(&mut self, governed: &Arc<Governed>, pins: &[Pin]) {
        let server = &governed.settings().name;
        let owns: Vec<&str> = pins.iter().map(|pin| pin.tool.as_str()).collect();
        let names = tool_names(server, &owns);
        for (pin, name) in pins.iter().zip(names) {
            let notice = |what: String| Notice {
                server: server.clone(),
                tool: Some(pin.tool.clone()),
                what,
            };
            let Some(definition) = pin.usable() else {
                if pin.state() != PinState::Gone {
                    let what = format!(
                        "is {}; `windlass mcp pins {server}` shows what is the matter",
                        pin.state().as_str()
                    );
                    self.notices.push(notice(what));
                }
                continue;
            };
            let tool = name
                .map_err(|problem| problem.to_string())
                .and_then(|name| tool(governed, name, definition));
            match tool {
                Ok(tool) => drop(self.library.register(tool)),
                Err(why) => self.notices.push(notice(format!("cannot be used: {why}"))),
            }
        }
    }
}

/// A tool of a server, by the definition that was accepted.
fn tool(governed: &Arc<Governed>, name: ToolName, definition: &Definition) -> Result<Tool, String> {
    let nothing = serde_json::json!({"type": "object"});
    let input = definition.input_schema().unwrap_or(&nothing);
    let signature = Signature::near_schemas(input, definition.output_schema())
        .map_err(|error| error.to_string())?;
    let settings = governed.settings();
    let hints = definition.hints();
    let attributes = ToolAttributes {
        timeout_seconds: TimeoutSeconds::try_from(TIMEOUT_SECONDS).ok(),
        // Only whoever is trusted can say that twice is the same as once, or that what it tells comes
        // from nowhere else.
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
        Arc::new(Pinned::new(definition.clone())),
        Arc::clone(governed),
    );
    Tool::builder(name.as_str())
        .description(description(settings, definition))
        .signature(signature)
        .attributes(attributes)
        .annotations(annotations, trust)
        .in_context(move |arguments, context| {
            let (pinned, own) = (Arc::clone(&pinned), Arc::clone(&own));
            async move { own.run(&pinned, arguments, context).await }
        })
        .build()
        .map_err(|error| error.to_string())
}

fn description(settings: &ServerSettings, definition: &Definition) -> String {
    let said = definition.description().map(str::trim).unwrap_or_default();
    let said = visible(said);
    match said.chars().count() {
        0 => format!("{} of the MCP server {}", definition.name(), settings.name),
        1..=MAX_DESCRIPTION => said.into_owned(),
        _ => said.chars().take(MAX_DESCRIPTION).collect::<String>() + "…",
    }
}
