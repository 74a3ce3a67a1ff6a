//! `windlass doctor`: looks at everything an agent needs here, and says how to mend what is wrong.

mod checks;
mod mcp;

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Outcome;
use super::arguments::Doctor;
use super::rendered::indented;
use super::report::Reporter;
use super::terminal::{put, say};
use checks::Examined;

/// What came of looking at one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Fine,
    /// It works, but is probably not meant that way.
    Odd,
    /// It must be mended.
    Broken,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Odd => "warning",
            Self::Broken => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
struct Finding {
    /// What it is about, such as `policies`.
    about: &'static str,
    status: Status,
    /// What was found.
    found: String,
    /// What to do about it.
    fix: Option<String>,
}

impl Finding {
    fn fine(about: &'static str, found: impl Into<String>) -> Self {
        Self {
            about,
            status: Status::Fine,
            found: found.into(),
            fix: None,
        }
    }

    fn odd(about: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            about,
            status: Status::Odd,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    fn broken(about: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            status: Status::Broken,
            ..Self::odd(about, found, fix)
        }
    }
}

pub(super) fn run(command: &Doctor, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let mut examined = Examined::new(command.data.clone(), command.offline);
    examined.configuration();
    examined.clock();
    examined.store();
    examined.files();
    let agent_files = match command.agent_files.as_slice() {
        [] => beside(examined.project()),
        named => named.to_vec(),
    };
    for file in &agent_files {
        examined.agents(file, reporter)?;
    }
    examined.tools();
    examined.policies();
    examined.models();
    examined.servers()?;
    examined.mcp();
    tell(&examined.findings, command.json)
}

fn tell(findings: &[Finding], as_json: bool) -> anyhow::Result<Outcome> {
    let count = |status| findings.iter().filter(|one| one.status == status).count();
    let (broken, odd) = (count(Status::Broken), count(Status::Odd));
    if as_json {
        let told: Vec<_> = findings
            .iter()
            .map(|one| {
                json!({
                    "about": one.about, "status": one.status.as_str(), "found": one.found,
                    "fix": one.fix,
                })
            })
            .collect();
        let told = json!({"ok": broken == 0, "errors": broken, "warnings": odd, "findings": told});
        put(&format!("{told}\n"))?;
        return Ok(Outcome::from_success(broken == 0));
    }
    for one in findings {
        let found = indented(&one.found, "                         ");
        say(&format!(
            "{:<8} {:<15} {found}",
            one.status.as_str(),
            one.about
        ))?;
        if let Some(fix) = &one.fix {
            say(&format!(
                "{:<8} {:<15} fix: {}",
                "",
                "",
                indented(fix, "                              ")
            ))?;
        }
    }
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    say(&match (broken, odd) {
        (0, 0) => "nothing is wrong".to_owned(),
        (broken, odd) => format!("{}, {}", many(broken, "error"), many(odd, "warning")),
    })?;
    Ok(Outcome::from_success(broken == 0))
}

/// The agent files beside the project's configuration.
fn beside(project: Option<&Path>) -> Vec<PathBuf> {
    let directory = project.and_then(Path::parent);
    let Some(entries) = directory.and_then(|directory| {
        let directory = match directory == Path::new("") {
            true => Path::new("."),
            false => directory,
        };
        std::fs::read_dir(directory).ok()
    }) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "gram")
        })
        .collect();
    files.sort();
    files
}
