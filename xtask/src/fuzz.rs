//! `cargo xtask fuzz`: runs the targets in `fuzz/` with cargo-fuzz. They start from the inputs in `fuzz/corpus`;
//! what they find on the way is kept in the target directory.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::fetch::install_program;
use crate::{install, root, run, step, target};

const VERSION: &str = "0.13.2";

/// How long each target runs by default, in seconds.
const SECONDS: &str = "60";

/// Runs targets: `[SECONDS [TARGET]]`.
pub fn run_targets(words: &[&str]) -> anyhow::Result<()> {
    let (seconds, chosen) = match words {
        [] => (SECONDS, None),
        [seconds] => (*seconds, None),
        [seconds, target] => (*seconds, Some(*target)),
        _ => bail!("too many arguments; usage: cargo xtask fuzz [SECONDS [TARGET]]"),
    };
    let seconds: u32 = seconds
        .parse()
        .with_context(|| format!("`{seconds}` is not a number of seconds"))?;
    let all = targets()?;
    if let Some(chosen) = chosen
        && !all.iter().any(|name| name == chosen)
    {
        bail!(
            "there is no target `{chosen}`; use one of: {}",
            all.join(", ")
        );
    }
    if Command::new("c++").arg("--version").output().is_err() {
        install(&["g++"]).context("a C++ compiler is needed by libFuzzer")?;
    }
    for name in all
        .iter()
        .filter(|name| chosen.is_none_or(|chosen| chosen == *name))
    {
        step(&format!("fuzz {name}"), || fuzz(name, seconds))?;
    }
    Ok(())
}

/// The names of all targets.
fn targets() -> anyhow::Result<Vec<String>> {
    let directory = root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).context("cannot list the fuzz targets")? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        names.extend(name.map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn fuzz(name: &str, seconds: u32) -> anyhow::Result<()> {
    let fuzz = root().join("fuzz");
    let build = target().join("fuzz");
    let found = build.join("corpus").join(name);
    fs::create_dir_all(&found).with_context(|| format!("cannot create {}", found.display()))?;
    let mut command = Command::new(install_program("cargo-fuzz", VERSION)?);
    command
        .current_dir(root())
        // Without a sanitizer, which would need an unstable compiler. The code has no unsafe parts.
        .args(["run", "--sanitizer", "none", "--fuzz-dir"])
        .arg(&fuzz)
        .arg("--target-dir")
        .arg(&build)
        .arg(name)
        .arg(&found)
        .arg(fuzz.join("corpus").join(name))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=20", "-rss_limit_mb=2048", "-max_len=8192"])
        .args(["-print_final_stats=1", "-verbosity=1"]);
    run(command)
}
