//! What is looked at, one thing after the other. A thing that others need comes before them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_config::{Library, Severity};
use windlass_model::{check_reach, places};
use windlass_policy::Policies;
use windlass_runtime::{ConfigurationError, Configured, Read, Stored, choose_model, now};
use windlass_spec::{Agent, ToolSpecification};
use windlass_store::RunFilter;
use windlass_tools::{BindingMode, ToolLibrary, bind};

use super::Finding;
use crate::libraries::{self, Sought};
use crate::report::Reporter;
use crate::run::block_on_until_interrupted;
use crate::schema::read_file;
use crate::{data, settings};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The time before which no clock that goes right can be: when this was written.
const EARLIEST: i64 = 1_780_000_000_000_000;

/// What is found out on the way, with the findings.
pub(super) struct Examined {
    pub(super) findings: Vec<Finding>,
    pub(super) data: Option<PathBuf>,
    is_offline: bool,
    project: Option<PathBuf>,
    /// What the configuration says; the built-in values if it cannot be used.
    pub(super) configured: Configured,
    agents: Vec<Agent>,
}

impl Examined {
    pub(super) fn new(data: Option<PathBuf>, is_offline: bool) -> Self {
        Self {
            findings: Vec::new(),
            data,
            is_offline,
            project: None,
            configured: Configured::default(),
            agents: Vec::new(),
        }
    }

    pub(super) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    pub(super) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(super) fn configuration(&mut self) {
        let files = settings::files_for(None, self.data.as_deref());
        let files = files.unwrap_or_else(|_| settings::files(None));
        self.project = files.project().map(Path::to_owned);
        let there: Vec<String> = files
            .files
            .iter()
            .filter(|(_, path)| path.exists())
            .map(|(layer, path)| format!("{} ({layer})", path.display()))
            .collect();
        match files.read(&Read::default()) {
            Ok((configured, _)) => {
                for warning in &configured.warnings {
                    self.add(Finding::odd(
                        "configuration",
                        warning.to_string(),
                        "change or remove it",
                    ));
                }
                let found = match there.as_slice() {
                    [] => "there is none, so the built-in values hold".to_owned(),
                    there => format!("{} is valid", there.join(", ")),
                };
                let environment = configured.configuration.environment();
                self.add(Finding::fine(
                    "configuration",
                    format!("{found}; the environment is `{environment}`"),
                ));
                self.configured = configured;
            }
            Err(ConfigurationError::Mistakes(mistakes)) => {
                for mistake in mistakes {
                    let fix = mistake.help.clone();
                    let fix = fix.unwrap_or_else(|| {
                        "`windlass config schema` says what is allowed".to_owned()
                    });
                    let severity = mistake.severity;
                    // The help is the fix.
                    let mut mistake = mistake;
                    mistake.help = None;
                    let found = mistake.to_string();
                    self.add(match severity {
                        Severity::Error => Finding::broken("configuration", found, fix),
                        Severity::Warning => Finding::odd("configuration", found, fix),
                    });
                }
            }
            Err(error) => self.add(Finding::broken(
                "configuration",
                error.to_string(),
                "make it a file that can be read, or name another with `--config`",
            )),
        }
    }

    pub(super) fn clock(&mut self) {
        let now = now();
        self.add(match now.as_microseconds() < EARLIEST {
            true => Finding::broken(
                "clock",
                format!("the clock says it is {now}"),
                "set the clock: approvals, holds and limits go by it",
            ),
            false => Finding::fine("clock", format!("it is {now}")),
        });
    }

    pub(super) fn store(&mut self) {
        let directory = match data::directory(self.data.as_deref()) {
            Ok(directory) => directory,
            Err(error) => {
                let fix = "set WINDLASS_DATA, or `data_directory` in windlass.toml";
                self.add(Finding::broken("store", format!("{error:#}"), fix));
                return;
            }
        };
        let place = directory.display();
        let stored = match Stored::open(&directory) {
            Ok(stored) => stored,
            Err(error) => {
                let fix = format!("make `{place}` a directory you can write to, or name another");
                self.add(Finding::broken("store", error.to_string(), fix));
                return;
            }
        };
        match stored.store().check() {
            Ok(problems) if problems.is_empty() => {}
            Ok(problems) => {
                let fix = format!("move `{place}` away and restore it from a backup");
                self.add(Finding::broken("store", problems.join("; "), fix));
                return;
            }
            Err(error) => {
                let fix = format!("see whether `{place}` can be read");
                self.add(Finding::broken("store", error.to_string(), fix));
                return;
            }
        }
        let latest = stored.store().runs(&RunFilter {
            limit: Some(1),
            ..RunFilter::default()
        });
        let latest = latest.ok().and_then(|mut runs| runs.pop());
        if let Some(latest) = latest.filter(|run| run.started_at > now()) {
            self.add(Finding::broken(
                "clock",
                format!("a run began at {}, which is yet to come", latest.started_at),
                "the clock was set back: set it right, or holds and limits last longer than they should",
            ));
        }
        let who = &stored.who().principal;
        self.add(Finding::fine(
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
            self.add(Finding::odd(
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
            // Without the dots that mean the same.
            let root: PathBuf = root.components().collect();
            let place = root.display();
            self.add(match root.is_dir() {
                true => Finding::fine("files", format!("the root `{place}` is there")),
                false => Finding::broken(
                    "files",
                    format!("the root `{place}` is no directory"),
                    format!("mkdir -p {place}, or change `[files] roots`"),
                ),
            });
        }
        if let Err(error) = libraries::builtin_settings(&configuration) {
            self.add(Finding::broken(
                "tools",
                format!("{error:#}"),
                "change it in windlass.toml",
            ));
        }
        match libraries::all(&[], &configuration, Sought::default()) {
            Ok(library) => {
                let count = library.iter().count();
                self.add(Finding::fine("libraries", format!("{count} tools")));
            }
            Err(error) => self.add(Finding::broken(
                "libraries",
                format!("{error:#}"),
                "change `libraries` in windlass.toml",
            )),
        }
    }

    /// The agents of a file: whether it is valid, and whether their tools are there.
    pub(super) fn agents(&mut self, file: &Path, reporter: &Reporter) -> anyhow::Result<()> {
        let place = file.display();
        if !file.exists() {
            let fix = "name a file that is there";
            self.add(Finding::broken(
                "agents",
                format!("there is no {place}"),
                fix,
            ));
            return Ok(());
        }
        let Ok(Some(declared)) = read_file(file, reporter) else {
            let fix = format!("windlass check {place}");
            self.add(Finding::broken(
                "agents",
                format!("{place} has mistakes"),
                fix,
            ));
            return Ok(());
        };
        let configuration = self.configured.configuration.clone();
        let library = libraries::all(&[], &configuration, Sought::default())
            .unwrap_or_else(|_| ToolLibrary::new("none"));
        for agent in declared.agents() {
            let name = agent.name();
            self.add(match bind(agent, &library, BindingMode::Exact) {
                Ok(_) => Finding::fine(
                    "agents",
                    format!("{name} in {place}: {} tools are there", agent.tools().len()),
                ),
                Err(failures) => {
                    let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
                    Finding::broken(
                        "agents",
                        format!("{name} in {place}: {}", told.join("\n")),
                        "name the library that has them in `libraries`, or with `--library`",
                    )
                }
            });
        }
        for mistake in self.configured.check(declared.agents()) {
            let fix = mistake.help.clone();
            let fix = fix.unwrap_or_else(|| "change it in windlass.toml".to_owned());
            self.add(match mistake.severity {
                Severity::Error => Finding::broken("configuration", mistake.to_string(), fix),
                // Other agent files may have the tool.
                Severity::Warning => continue,
            });
        }
        self.agents.extend_from_slice(declared.agents());
        Ok(())
    }

    /// The tools of the agents that can do nothing because something is not set.
    pub(super) fn tools(&mut self) {
        let configuration = self.configured.configuration.clone();
        let Ok(settings) = libraries::builtin_settings(&configuration) else {
            return;
        };
        for lacking in settings.not_configured() {
            let users: Vec<&str> = self
                .agents
                .iter()
                .filter(|agent| agent.tool(lacking.tool).is_some())
                .map(|agent| agent.name().as_str())
                .collect();
            if !users.is_empty() && configuration.libraries().contains(&Library::BuiltIn) {
                self.add(Finding::odd(
                    "tools",
                    format!(
                        "`{}` of {} can do nothing: `{}` is not set",
                        lacking.tool,
                        users.join(", "),
                        lacking.key
                    ),
                    lacking.help,
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
        let configuration = &self.configured.configuration;
        let others = libraries::named_in(&self.configured.policies, configuration, &tools);
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
                Finding::fine(
                    "policies",
                    format!(
                        "{place}: {rules} rules hold for {count} tools, and their examples pass"
                    ),
                )
            }
            Err(errors) => {
                let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Finding::broken(
                    "policies",
                    format!("{place}: {}", told.join("\n")),
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
                Ok(()) => Finding::fine("models", format!("all agents ask `{name}`")),
                Err(why) => Finding::broken(
                    "models",
                    format!("`{name}` cannot be asked: {why}"),
                    "set its key in the environment, or another `model` in windlass.toml",
                ),
            });
            return;
        }
        for agent in self.agents.clone() {
            let name = agent.name();
            self.add(match choose_model(&self.agents, &agent, base_url) {
                Ok(choice) => Finding::fine("models", format!("{name}: {}", choice.told)),
                Err(error) => Finding::odd(
                    "models",
                    format!("{name}: {error}"),
                    "set its key in the environment, or run it with `--model reflex`",
                ),
            });
        }
    }

    pub(super) fn servers(&mut self) -> anyhow::Result<()> {
        if self.is_offline {
            return Ok(());
        }
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
            let answer = block_on_until_interrupted(async {
                let client = reqwest::Client::builder().timeout(PATIENCE).build()?;
                client.get(url).send().await
            })?;
            self.add(match answer {
                Ok(answer) => Finding::fine(
                    "servers",
                    format!("{key}: {url} answers ({})", answer.status().as_u16()),
                ),
                Err(error) => Finding::broken(
                    "servers",
                    format!("{key}: {url} does not answer: {}", error.without_url()),
                    format!("start the server, or change `{key}` in windlass.toml"),
                ),
            });
        }
        let reachable: Vec<String> = block_on_until_interrupted(places())?
            .into_iter()
            .filter(|place| place.is_reachable)
            .map(|place| place.provider)
            .collect();
        let found = match reachable.as_slice() {
            [] => "none but reflex, which is embedded and needs no key".to_owned(),
            reachable => format!("reflex, {}", reachable.join(", ")),
        };
        self.add(Finding::fine(
            "models",
            format!("can be asked from here: {found}"),
        ));
        Ok(())
    }
}
