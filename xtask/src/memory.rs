//! `cargo xtask bench memory`: compares the scan of compact vectors with FAISS on the same vectors, in turns on
//! one thread, and measures a memory of a million entries. FAISS is fetched once. All files are kept outside of
//! the clone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::fetch::{create_python_environment, fetch_with_retries};
use crate::figures::Figures;
use crate::{cache, cargo, root, run, target};

/// FAISS and its dependencies, with exact versions.
const PACKAGES: [&str; 3] = ["faiss-cpu==1.15.1", "numpy==2.4.6", "packaging==26.3"];

const QUERIES: &str = "200";

/// The number of turns of each. The best turn counts, because other load on the machine only adds time.
const TURNS: usize = 5;

pub fn measure() -> anyhow::Result<Figures> {
    let directory = cache().join("bench/memory");
    std::fs::create_dir_all(&directory)?;
    let python = python(&directory.join("python"))?;
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
    let queries = create_vectors(&index, &directory, "queries", QUERIES, "77")?;
    let mut figures = Figures::new();
    for (count, what) in [("100000", "100,000"), ("1000000", "1,000,000")] {
        let vectors = create_vectors(&index, &directory, &format!("vectors-{count}"), count, "11")?;
        let truth = directory.join(format!("truth-{count}"));
        println!("== {what} x 256, one thread, ten best of {QUERIES} queries");
        let (mut faiss, mut windlass, mut megabytes) = (f64::INFINITY, f64::INFINITY, 0.0_f64);
        for _ in 0..TURNS {
            let mut peer = Command::new(&python);
            peer.arg(root().join("bench/peers/python/faiss_flat.py"));
            peer.args([&queries, &vectors, &truth]).arg("1");
            faiss = faiss.min(field(&run_and_print(peer)?, "p50_ms")?);
            let mut own = Command::new(&index);
            own.arg("search")
                .args([&queries, &vectors, &truth])
                .arg("1");
            let found = run_and_print(own)?;
            windlass = windlass.min(field(&found, "p50_ms")?);
            megabytes = megabytes.max(field(&found, "peak_mb")?);
        }
        println!(
            "p50 of the best turn: FAISS IndexFlatIP {faiss:.2} ms, Windlass {windlass:.2} ms: {:.1} times faster",
            faiss / windlass
        );
        // The figures of the last, largest size remain.
        figures.insert("memory_faiss_ms".to_owned(), faiss);
        figures.insert("memory_windlass_ms".to_owned(), windlass);
        figures.insert("memory_windlass_mb".to_owned(), megabytes);
    }
    let store = directory.join("store");
    println!("== a memory of 1,000,000 entries, searched by meaning and words");
    let mut search = Command::new(target().join("release/examples/memory_search"));
    search.arg(&store).args(["1000000", QUERIES]);
    run_and_print(search)?;
    Ok(figures)
}

/// Returns a Python interpreter with FAISS.
fn python(environment: &Path) -> anyhow::Result<PathBuf> {
    let python = environment.join("bin/python");
    let ready = environment.join("ready");
    if !ready.exists() {
        create_python_environment(environment)?;
        fetch_with_retries("faiss-cpu", || {
            let mut install = Command::new(&python);
            install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
            install.args(PACKAGES);
            install
        })?;
        std::fs::write(&ready, PACKAGES.join("\n"))?;
    }
    Ok(python)
}

/// Returns a file with `count` vectors. Creates it if it is missing.
fn create_vectors(
    index: &Path,
    directory: &Path,
    name: &str,
    count: &str,
    seed: &str,
) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    if !path.exists() {
        let unfinished = directory.join(format!("{name}.unfinished"));
        let mut make = Command::new(index);
        make.arg("make").arg(&unfinished).args([count, seed]);
        run(make)?;
        std::fs::rename(&unfinished, &path)?;
    }
    Ok(path)
}

/// Runs a command that prints one JSON object, prints the object, and returns it.
fn run_and_print(mut command: Command) -> anyhow::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = String::from_utf8(output.stdout)?;
    println!("{}", text.trim());
    Ok(text)
}

/// A number in a JSON object.
fn field(text: &str, name: &str) -> anyhow::Result<f64> {
    let after = text
        .split(&format!("\"{name}\":"))
        .nth(1)
        .with_context(|| format!("the output has no `{name}`"))?;
    let number = after
        .trim_start()
        .split([',', '}'])
        .next()
        .unwrap_or_default();
    Ok(number.trim().parse()?)
}
