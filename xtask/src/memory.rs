//! `cargo xtask bench memory`: the scan of compact vectors beside FAISS on the same vectors, by turns on one
//! thread, and a memory of a million entries. FAISS is fetched once; what is made is kept outside of the clone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::fetch::{make_python, try_often};
use crate::{cache, cargo, root, run, target};

/// By exact version, with what it needs.
const PACKAGES: [&str; 3] = ["faiss-cpu==1.15.1", "numpy==2.4.6", "packaging==26.3"];

const QUERIES: &str = "200";

/// How often each takes its turn. The best turn counts: what others do on the machine only adds.
const TURNS: usize = 5;

pub fn measure() -> anyhow::Result<()> {
    let place = cache().join("bench/memory");
    std::fs::create_dir_all(&place)?;
    let python = python(&place.join("python"))?;
    for package in ["windlass-embed", "windlass-store"] {
        run(cargo([
            "build",
            "--release",
            "--package",
            package,
            "--examples",
        ]))?;
    }
    let index = target().join("release/examples/memory_index");
    let queries = made(&index, &place, "queries", QUERIES, "77")?;
    for (count, what) in [("100000", "100,000"), ("1000000", "1,000,000")] {
        let vectors = made(&index, &place, &format!("vectors-{count}"), count, "11")?;
        let truth = place.join(format!("truth-{count}"));
        println!("== {what} x 256, one thread, ten best of {QUERIES} queries");
        let (mut faiss, mut windlass) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            let mut peer = Command::new(&python);
            peer.arg(root().join("bench/peers/python/faiss_flat.py"));
            peer.args([&queries, &vectors, &truth]).arg("1");
            faiss = faiss.min(told(peer)?);
            let mut own = Command::new(&index);
            own.arg("search")
                .args([&queries, &vectors, &truth])
                .arg("1");
            windlass = windlass.min(told(own)?);
        }
        println!(
            "p50 of the best turn: FAISS IndexFlatIP {faiss:.2} ms, Windlass {windlass:.2} ms: {:.1} times faster",
            faiss / windlass
        );
    }
    let store = place.join("store");
    println!("== a memory of 1,000,000 entries, by meaning and words");
    let mut search = Command::new(target().join("release/examples/memory_search"));
    search.arg(&store).args(["1000000", QUERIES]);
    told(search).map(drop)
}

/// A Python with FAISS.
fn python(environment: &Path) -> anyhow::Result<PathBuf> {
    let python = environment.join("bin/python");
    let ready = environment.join("ready");
    if !ready.exists() {
        make_python(environment)?;
        try_often("faiss-cpu", || {
            let mut install = Command::new(&python);
            install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
            install.args(PACKAGES);
            install
        })?;
        std::fs::write(&ready, PACKAGES.join("\n"))?;
    }
    Ok(python)
}

/// A file of so many vectors.
fn made(
    index: &Path,
    place: &Path,
    name: &str,
    count: &str,
    seed: &str,
) -> anyhow::Result<PathBuf> {
    let path = place.join(name);
    if !path.exists() {
        let unfinished = place.join(format!("{name}.unfinished"));
        let mut make = Command::new(index);
        make.arg("make").arg(&unfinished).args([count, seed]);
        run(make)?;
        std::fs::rename(&unfinished, &path)?;
    }
    Ok(path)
}

/// Runs what prints one JSON object, prints it, and gives its `p50_ms`.
fn told(mut command: Command) -> anyhow::Result<f64> {
    let output = command.output()?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8(output.stdout)?;
    println!("{}", text.trim());
    let after = text
        .split("\"p50_ms\":")
        .nth(1)
        .context("there is no p50_ms")?;
    let number = after
        .trim_start()
        .split([',', '}'])
        .next()
        .unwrap_or_default();
    Ok(number.trim().parse()?)
}
