//! The checks, in the order of their dependencies.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument as _, debug_span};
use windlass_config::{Library, Severity};
use windlass_model::{check_reach, provider_statuses};
use windlass_policy::Policies;
use windlass_runtime::{ConfigurationError, Configured, FileTexts, choose_model};
use windlass_spec::{Agent, ToolName, ToolSpecification};
use windlass_store::RunFilter;
use windlass_tools::{BindingMode, ToolLibrary, bind};

use super::{ExaminedFile, FileContent, HealthFinding};
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::oidc::fetch_keys;
use crate::service::Service;
use crate::trust::review_command;

/// The timeout of a server's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// The earliest plausible time: when this was written.
const EARLIEST: i64 = 1_780_000_000_000_000;

/// The findings so far, with what later checks need.
pub(super) struct Examination<'s> {
    pub(super) findings: Vec<HealthFinding>,
    pub(super) service: &'s Service,
    identity: &'s Identity,
    /// The configuration; the built-in values if it is invalid.
    pub(super) configured: Configured,
    /// The configured libraries; empty if they cannot be used.
    library: ToolLibrary,
    agents: Vec<Agent>,
}

impl<'s> Examination<'s> {
    pub(super) fn new(service: &'s Service, identity: &'s Identity) -> Self {
        Self {
            findings: Vec::new(),
            service,
            identity,
            configured: Configured::default(),
            library: ToolLibrary::new("none"),
            agents: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, finding: HealthFinding) {
        self.findings.push(finding);
    }

    pub(super) fn configuration(&mut self) {
        let project = match self.service.project() {
            Ok(project) => project,
            Err(error) => return self.invalid_configuration(&error),
        };
        let configured = project.configured.clone();
        for warning in &configured.warnings {
            let found = warning.to_string();
            self.add(HealthFinding::warning(
                "configuration",
                found,
                "change or remove it",
            ));
        }
        if !configured.untrusted.is_empty() {
            let keys: Vec<String> = configured
                .untrusted
                .iter()
                .map(|setting| format!("`{}`", setting.key))
                .collect();
            self.add(HealthFinding::warning(
                "trust",
                format!(
                    "the project is not trusted; without effect: {}",
                    keys.join(", ")
                ),
                format!("review it with `{}`", review_command(&project.files)),
            ));
        }
        let files = project.files.files.iter().filter(|(_, path)| path.exists());
        let files: Vec<String> = files
            .map(|(layer, path)| format!("{} ({layer})", path.display()))
            .collect();
        let found = match files.as_slice() {
            [] => "no file, so the built-in values apply".to_owned(),
            files => format!("{} is valid", files.join(", ")),
        };
        let environment = configured.configuration.environment();
        self.add(HealthFinding::ok(
            "configuration",
            format!("{found}; the environment is `{environment}`"),
        ));
        self.configured = configured;
    }

    fn invalid_configuration(&mut self, error: &ServiceError) {
        // Read again for the individual mistakes.
        let read = self
            .service
            .configuration_files()
            .read(&FileTexts::default());
        let Err(ConfigurationError::Mistakes(mistakes)) = read else {
            let fix = "make it a file that can be read, or name another with `--config`";
            return self.add(HealthFinding::error(
                "configuration",
                error.to_string(),
                fix,
            ));
        };
        for mut mistake in mistakes {
            // The help is the fix.
            let fix = mistake.help.take();
            let fix =
                fix.unwrap_or_else(|| "`windlass config schema` shows what is allowed".to_owned());
            let found = mistake.to_string();
            self.add(match mistake.severity {
                Severity::Error => HealthFinding::error("configuration", found, fix),
                Severity::Warning => HealthFinding::warning("configuration", found, fix),
            });
        }
    }

    pub(super) fn clock(&mut self) {
        let now = self.service.now();
        self.add(match now.as_microseconds() < EARLIEST {
            true => HealthFinding::error(
                "clock",
                format!("the clock shows {now}"),
                "set the clock: approvals, holds and limits depend on it",
            ),
            false => HealthFinding::ok("clock", format!("it is {now}")),
        });
    }

    pub(super) fn store(&mut self) {
        let directory = match self.service.data_directory() {
            Ok(directory) => directory,
            Err(error) => {
                let fix = "set WINDLASS_DATA, or `data_directory` in windlass.toml";
                self.add(HealthFinding::error("store", error.to_string(), fix));
                return;
            }
        };
        let place = directory.display();
        let store = match self.service.store() {
            Ok(store) => store,
            Err(error) => {
                let fix = format!("make `{place}` a directory you can write to, or name another");
                self.add(HealthFinding::error("store", error.to_string(), fix));
                return;
            }
        };
        match store.check() {
            Ok(problems) if problems.is_empty() => {}
            Ok(problems) => {
                let fix = format!("move `{place}` away and restore it from a backup");
                self.add(HealthFinding::error("store", problems.join("; "), fix));
                return;
            }
            Err(error) => {
                let fix = format!("check that `{place}` can be read");
                self.add(HealthFinding::error("store", error.to_string(), fix));
                return;
            }
        }
        let latest = store.runs(&RunFilter {
            tenant: Some(self.identity.tenant().to_string()),
            limit: Some(1),
            ..RunFilter::default()
        });
        let latest = latest.ok().and_then(|mut runs| runs.pop());
        if let Some(latest) = latest.filter(|run| run.started_at > self.service.now()) {
            self.add(HealthFinding::error(
                "clock",
                format!(
                    "a run started at {}, which is in the future",
                    latest.started_at
                ),
                "the clock was set back; correct it, or holds and limits last too long",
            ));
        }
        let mut noticed: Vec<(ToolName, u64)> = Vec::new();
        let notices = store.answer_notices(self.identity.tenant().as_str());
        for notice in notices.unwrap_or_default() {
            match noticed.last_mut() {
                Some((tool, count)) if *tool == notice.tool => *count += notice.count,
                _ => noticed.push((notice.tool, notice.count)),
            }
        }
        for (tool, count) in noticed {
            self.add(HealthFinding::warning(
                "tools",
                format!("`{tool}` answers in an older shape ({count} notices so far)"),
                "check an answer with `windlass envelope check FILE`, and change the tool; docs/envelope.md has each shape",
            ));
        }
        let who = self.identity.principal();
        self.add(HealthFinding::ok(
            "store",
            format!("{place} can be written to; runs act for {who}"),
        ));
        let held = self.configured.configuration.principal(who.as_str());
        let demanded: Vec<String> = self
            .configured
            .configuration
            .categories()
            .flat_map(|category| category.permissions.difference(&held.permissions))
            .map(ToString::to_string)
            .collect();
        if !demanded.is_empty() {
            self.add(HealthFinding::warning(
                "permissions",
                format!(
                    "categories demand `{}`, which {who} does not hold",
                    demanded.join("`, `")
                ),
                format!("if {who} should hold it, add it to `[principals.\"{who}\"] permissions`"),
            ));
        }
    }

    /// The directories and tools of the built-in library.
    pub(super) fn files(&mut self) {
        let configuration = self.configured.configuration.clone();
        for root in &configuration.files().roots {
            // Without redundant dots.
            let root: PathBuf = root.components().collect();
            let place = root.display();
            self.add(match root.is_dir() {
                true => HealthFinding::ok("files", format!("the root `{place}` exists")),
                false => HealthFinding::error(
                    "files",
                    format!("the root `{place}` is not a directory"),
                    format!("mkdir -p {place}, or change `[files] roots`"),
                ),
            });
        }
        if let Err(error) = self.service.builtin_settings(&configuration) {
            self.add(HealthFinding::error(
                "tools",
                error.to_string(),
                "change it in windlass.toml",
            ));
        }
        match self.service.build_library(&configuration, &[], None) {
            Ok(library) => {
                let count = library.iter().count();
                self.library = library;
                self.add(HealthFinding::ok("libraries", format!("{count} tools")));
            }
            Err(error) => self.add(HealthFinding::error(
                "libraries",
                error.to_string(),
                "change `libraries` in windlass.toml",
            )),
        }
    }

    /// Checks an agent file, and whether the tools of its agents can be bound.
    pub(super) fn agents(&mut self, file: &ExaminedFile) {
        let place = &file.name;
        let declared = match &file.content {
            FileContent::Declared(declared) => declared,
            FileContent::Missing => {
                let fix = "name an existing file";
                return self.add(HealthFinding::error(
                    "agents",
                    format!("the file {place} does not exist"),
                    fix,
                ));
            }
            FileContent::Invalid => {
                let fix = format!("windlass check {place}");
                return self.add(HealthFinding::error(
                    "agents",
                    format!("{place} has mistakes"),
                    fix,
                ));
            }
        };
        for agent in declared.agents() {
            let name = agent.name();
            self.add(match bind(agent, &self.library, BindingMode::Exact) {
                Ok(_) => HealthFinding::ok(
                    "agents",
                    format!(
                        "{name} in {place}: {} tools can be bound",
                        agent.tools().len()
                    ),
                ),
                Err(failures) => {
                    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
                    HealthFinding::error(
                        "agents",
                        format!("{name} in {place}: {}", lines.join("\n")),
                        "name the library that has them in `libraries`, or with `--library`",
                    )
                }
            });
        }
        for mistake in self.configured.check(declared.agents()) {
            let fix = mistake.help.clone();
            let fix = fix.unwrap_or_else(|| "change it in windlass.toml".to_owned());
            self.add(match mistake.severity {
                Severity::Error => HealthFinding::error("configuration", mistake.to_string(), fix),
                // Other agent files may have the tool.
                Severity::Warning => continue,
            });
        }
        self.agents.extend_from_slice(declared.agents());
    }

    /// Checks for tools of the agents that are not configured.
    pub(super) fn tools(&mut self) {
        let configuration = self.configured.configuration.clone();
        let Ok(settings) = self.service.builtin_settings(&configuration) else {
            return;
        };
        for missing in settings.not_configured() {
            let users: Vec<&str> = self
                .agents
                .iter()
                .filter(|agent| agent.tool(missing.tool).is_some())
                .map(|agent| agent.name().as_str())
                .collect();
            if !users.is_empty() && configuration.libraries().contains(&Library::BuiltIn) {
                self.add(HealthFinding::warning(
                    "tools",
                    format!(
                        "`{}` of {} can do nothing: `{}` is not set",
                        missing.tool,
                        users.join(", "),
                        missing.key
                    ),
                    missing.help,
                ));
            }
        }
    }

    pub(super) fn policies(&mut self) {
        let file = self.configured.policy_file.as_deref();
        let place = file.map_or("the built-in policies".to_owned(), |file| {
            file.display().to_string()
        });
        let tools: Vec<Arc<ToolSpecification>> = self
            .agents
            .iter()
            .flat_map(|agent| agent.tools().to_vec())
            .collect();
        let others = match self.service.project() {
            Ok(project) => self.service.tools_named_in_policies(&project, &tools),
            Err(_) => Vec::new(),
        };
        let mut known: Vec<&ToolSpecification> = Vec::new();
        for tool in tools.iter().chain(&others) {
            if known.iter().all(|other| other.name() != tool.name()) {
                known.push(tool);
            }
        }
        let count = known.len();
        self.add(match Policies::load(&self.configured.policies, known) {
            Ok(policies) => {
                let rules = policies.rules().len();
                HealthFinding::ok(
                    "policies",
                    format!("{place}: {rules} rules for {count} tools, and their examples pass"),
                )
            }
            Err(errors) => {
                let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
                HealthFinding::error(
                    "policies",
                    format!("{place}: {}", lines.join("\n")),
                    format!("windlass policy check {place} --agent FILE"),
                )
            }
        });
    }

    pub(super) fn models(&mut self) {
        let configuration = self.configured.configuration.clone();
        let base_url = configuration.base_url();
        if let Some(name) = configuration.model() {
            let is_embedded = name == "reflex" || name.contains(':');
            let reach = match name.parse() {
                _ if is_embedded => Ok(()),
                Ok(model) => check_reach(&model, base_url),
                Err(error) => Err(format!("{error}")),
            };
            self.add(match reach {
                Ok(()) => HealthFinding::ok("models", format!("all agents use `{name}`")),
                Err(why) => HealthFinding::error(
                    "models",
                    format!("`{name}` cannot be used: {why}"),
                    "set its key in the environment, or another `model` in windlass.toml",
                ),
            });
            return;
        }
        for agent in self.agents.clone() {
            let name = agent.name();
            self.add(match choose_model(&self.agents, &agent, base_url) {
                // The embedded model answers instead of the declared one.
                Ok(choice) if choice.is_fallback => HealthFinding::warning(
                    "models",
                    format!("{name}: {}", choice.description),
                    "set its key in the environment, or declare the model `reflex` if that is meant",
                ),
                Ok(choice) => {
                    HealthFinding::ok("models", format!("{name}: {}", choice.description))
                }
                Err(error) => HealthFinding::warning(
                    "models",
                    format!("{name}: {error}"),
                    "set its key in the environment, or run it with `--model reflex`",
                ),
            });
        }
    }

    /// Checks whether the configured servers answer, and which models can be reached.
    pub(super) async fn endpoints(&mut self) {
        let configuration = self.configured.configuration.clone();
        let named = [
            (
                "search.endpoint",
                configuration.search().endpoint.as_deref(),
            ),
            ("automation.endpoint", configuration.automation_endpoint()),
            ("base_url", configuration.base_url()),
        ];
        for (key, url) in named {
            let Some(url) = url else { continue };
            self.add(match answer_of(url).await {
                Ok(answer) => HealthFinding::ok(
                    "servers",
                    format!("{key}: {url} answers ({})", answer.status().as_u16()),
                ),
                Err(error) => HealthFinding::error(
                    "servers",
                    format!("{key}: {url} does not answer: {}", error.without_url()),
                    format!("start the server, or change `{key}` in windlass.toml"),
                ),
            });
        }
        if let Some(settings) = configuration.oidc() {
            let issuer = &settings.issuer;
            self.add(match fetch_keys(issuer).await {
                Ok(keys) => HealthFinding::ok(
                    "oidc",
                    format!("the issuer {issuer} has {} keys for tokens", keys.len()),
                ),
                Err(reason) => HealthFinding::error(
                    "oidc",
                    format!("the issuer {issuer} cannot be used: {reason}"),
                    "start it, or change `oidc.issuer` in windlass.toml",
                ),
            });
        }
        let reachable: Vec<String> = provider_statuses()
            .await
            .into_iter()
            .filter(|place| place.is_reachable)
            .map(|place| place.provider)
            .collect();
        let found = match reachable.as_slice() {
            [] => "only reflex, which is embedded and needs no key".to_owned(),
            reachable => format!("reflex, {}", reachable.join(", ")),
        };
        self.add(HealthFinding::ok("models", format!("reachable: {found}")));
    }
}

async fn answer_of(url: &str) -> Result<reqwest::Response, reqwest::Error> {
    let client = windlass_http::client_builder()
        .timeout(ANSWER_TIMEOUT)
        .build()?;
    let request = client.get(url).build()?;
    let span = debug_span!(
        "http_request",
        http.request.method = "GET",
        server.address = request.url().host_str(),
    );
    client.execute(request).instrument(span).await
}
