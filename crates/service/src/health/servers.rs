//! Checks the MCP servers of the configuration without starting them.

use windlass_mcp::{Ledger, program_of};
use windlass_spec::server::{EnvTemplate, ServerSettings, Transport};

use super::HealthFinding;
use super::examination::Examination;
use crate::mcp::{description_warnings, needs_acceptance};
use crate::servers::environment_lookup;

const ABOUT: &str = "mcp";

impl Examination<'_> {
    pub(super) fn servers(&mut self) {
        let configuration = self.configured.configuration.clone();
        if configuration.servers().is_empty() {
            return;
        }
        // The store is checked elsewhere.
        let Ok(ledger) = self.service.ledger() else {
            return;
        };
        for settings in configuration.servers() {
            let finding = examine(settings, &ledger);
            self.add(finding);
        }
    }
}

fn examine(settings: &ServerSettings, ledger: &Ledger) -> HealthFinding {
    let name = &settings.name;
    if !settings.is_enabled {
        return HealthFinding::ok(ABOUT, format!("{name}: switched off"));
    }
    let program = match program_of(settings, &environment_lookup()) {
        Ok(program) => program,
        Err(error) => {
            let fix = format!("install it, or change `servers.{name}.command` in windlass.toml");
            return HealthFinding::error(ABOUT, format!("{name}: {error}"), fix);
        }
    };
    let missing = named(settings).find(|variable| std::env::var_os(variable).is_none());
    if let Some(variable) = missing {
        let found = format!("{name}: the environment variable `{variable}` is not set");
        return HealthFinding::error(ABOUT, found, format!("export {variable}=..."));
    }
    match ledger.program_changes(settings, program.as_ref()) {
        Ok(changes) if changes.is_empty() => {}
        Ok(changes) => {
            let found = format!("{name}: its program changed: {}", changes.join("; "));
            let fix =
                format!("review the change, then run `windlass mcp pins {name} --accept-program`");
            return HealthFinding::error(ABOUT, found, fix);
        }
        Err(error) => {
            let fix = format!("`windlass mcp remove {name}`, then add it again");
            return HealthFinding::error(ABOUT, format!("{name}: {error}"), fix);
        }
    }
    let pins = match ledger.pins(name) {
        Ok(Some(pins)) => pins,
        Ok(None) => {
            let fix = format!("`windlass mcp inspect {name}` connects to it and pins its tools");
            return HealthFinding::warning(ABOUT, format!("{name}: no connection yet"), fix);
        }
        Err(error) => {
            let fix = format!("`windlass mcp remove {name}`, then add it again");
            return HealthFinding::error(ABOUT, error.to_string(), fix);
        }
    };
    let usable = pins.iter().filter(|pin| pin.usable().is_some()).count();
    match pins.iter().filter(|pin| needs_acceptance(pin)).count() {
        0 => match description_warnings(&pins).as_slice() {
            [] => HealthFinding::ok(ABOUT, format!("{name}: {usable} tools pinned")),
            [first, more @ ..] => {
                let more = match more.len() {
                    0 => String::new(),
                    count => format!(" (and {count} more)"),
                };
                HealthFinding::warning(
                    ABOUT,
                    format!("{name}: {usable} tools pinned; {first}{more}"),
                    "ask the author of the server for better descriptions",
                )
            }
        },
        waiting => HealthFinding::warning(
            ABOUT,
            format!("{name}: {usable} tools pinned, {waiting} need acceptance"),
            format!("`windlass mcp pins {name}` shows them"),
        ),
    }
}

/// The variables that the settings name.
fn named(settings: &ServerSettings) -> impl Iterator<Item = &str> {
    let given: Vec<&EnvTemplate> = match &settings.transport {
        Transport::Command(command) => command.environment.values().collect(),
        Transport::Http(http) => {
            let secret = http
                .oauth
                .as_ref()
                .and_then(|oauth| oauth.client_secret.as_ref());
            http.headers.values().chain(secret).collect()
        }
    };
    given.into_iter().filter_map(EnvTemplate::variable)
}
