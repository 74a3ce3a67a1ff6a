//! `cargo xtask bench compare REVISION`: runs the fast benchmarks for this tree and for another revision by turns,
//! and fails if a figure of this tree is more than 10 % larger. Each is judged by its best round, because other load
//! on the machine only adds to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::figures::{Figures, collect, least, machine};
use crate::{cargo, root, run, start, target};

/// How often each tree is measured.
const ROUNDS: usize = 3;

/// The largest ratio that is not a regression.
const MAX_RATIO: f64 = 1.1;

/// Figures below this are not compared: the clock and the scheduler decide about them.
const LEAST_VALUE: f64 = 0.01;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything that takes seconds.
    Full,
    /// Only decisions and the journal, which compile quickly.
    Short,
}

/// A source tree with its programs.
struct Tree {
    source: PathBuf,
    target: PathBuf,
}

/// Compares this tree with a revision.
pub fn compare(revision: &str, extent: Extent) -> anyhow::Result<()> {
    let new = Tree {
        source: root(),
        target: target(),
    };
    let old = Tree::check_out(revision)?;
    let result = measure(&new, &old, revision, extent);
    old.remove()?;
    result
}

fn measure(new: &Tree, old: &Tree, revision: &str, extent: Extent) -> anyhow::Result<()> {
    for tree in [new, old] {
        tree.build(extent)?;
    }
    let (mut of_new, mut of_old) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        println!("== round {round} of {ROUNDS}");
        of_new.push(new.figures(extent)?);
        of_old.push(old.figures(extent)?);
    }
    println!("\n{}\n", machine());
    report(&least(&of_new), &least(&of_old), revision)
}

/// Prints both values of each figure that both trees have.
fn report(new: &Figures, old: &Figures, revision: &str) -> anyhow::Result<()> {
    println!(
        "{:<32} {revision:>12} {:>12} {:>8}",
        "", "this tree", "ratio"
    );
    let mut worse = Vec::new();
    for (name, value) in new {
        let Some(before) = old.get(name) else {
            println!("{name:<32} {:>12} {value:>12.3}", "unknown");
            continue;
        };
        if value.max(*before) < LEAST_VALUE {
            continue;
        }
        let ratio = value / before;
        let is_worse = ratio > MAX_RATIO;
        let mark = if is_worse { "  REGRESSION" } else { "" };
        println!("{name:<32} {before:>12.3} {value:>12.3} {ratio:>8.2}{mark}");
        if is_worse {
            worse.push(name.as_str());
        }
    }
    let is_comparable = new.keys().any(|name| old.contains_key(name));
    ensure!(
        is_comparable,
        "{revision} prints none of these figures; choose a later revision"
    );
    if !worse.is_empty() {
        bail!(
            "more than {:.0} % slower or larger: {}",
            (MAX_RATIO - 1.0) * 100.0,
            worse.join(", ")
        );
    }
    Ok(())
}

impl Tree {
    /// Checks a revision out next to the target directory. What is compiled is kept for the next time.
    fn check_out(revision: &str) -> anyhow::Result<Self> {
        let directory = target().join("compare");
        let tree = Self {
            source: directory.join("source"),
            target: directory.join("target"),
        };
        std::fs::create_dir_all(&directory)?;
        if tree.source.exists() {
            tree.remove()?;
        }
        let mut add = git();
        add.args(["worktree", "add", "--detach"])
            .arg(&tree.source)
            .arg(revision);
        run(add).with_context(|| format!("cannot check out {revision}"))?;
        Ok(tree)
    }

    fn remove(&self) -> anyhow::Result<()> {
        let mut remove = git();
        remove
            .args(["worktree", "remove", "--force"])
            .arg(&self.source);
        run(remove)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo(arguments.iter().copied());
        command
            .current_dir(&self.source)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }

    fn build(&self, extent: Extent) -> anyhow::Result<()> {
        let build = ["build", "--release", "--package"];
        run(self.cargo(&[&build[..], &["windlass-policy", "--examples"]].concat()))?;
        run(self.cargo(&[&build[..], &["windlass-bench", "--bin", "bench-store"]].concat()))?;
        if extent == Extent::Full {
            run(self.cargo(&[&build[..], &["windlass-bench", "--bin", "bench-loop"]].concat()))?;
            run(self.cargo(&[&build[..], &["windlass-cli"]].concat()))?;
            run(self.cargo(&[&build[..], &["windlass-mcp", "--bins", "--examples"]].concat()))?;
        }
        Ok(())
    }

    fn figures(&self, extent: Extent) -> anyhow::Result<Figures> {
        let mut figures = collect(self.program("examples/decisions"))?;
        figures.extend(collect(self.program("bench-store"))?);
        if extent == Extent::Full {
            let mut only = self.program("bench-loop");
            only.args(["--rounds", "1", "--peers", "windlass"]);
            figures.extend(collect(only)?);
            figures.extend(collect(self.program("examples/overhead"))?);
            let program = self.release().join("windlass");
            figures.extend(start::measure(&program, &self.target.join("bench-start"))?);
        }
        // What other programs cost is no figure of a revision.
        figures.remove("true_ms");
        Ok(figures)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.release().join(name));
        command.current_dir(&self.source);
        command
    }

    fn release(&self) -> PathBuf {
        let target: &Path = &self.target;
        target.join("release")
    }
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(root());
    git
}
