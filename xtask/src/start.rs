//! `cargo xtask bench start`: measures the program itself, from start to exit: the smallest run, commands that only
//! read, a batch of tasks, the waits for the disk of a resumed run, and the size of the program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::figures::{Figures, megabytes};
use crate::root;

/// How often a command is started.
const RUNS: usize = 40;

/// How many tasks a batch has, and how many run at the same time.
const TASKS: usize = 10_000;
const JOBS: &str = "16";

/// Measures a program in a directory of its own, which is emptied first.
pub fn measure(program: &Path, scratch: &Path) -> anyhow::Result<Figures> {
    let bench = StartBench::new(program, scratch)?;
    let mut figures = bench.commands()?;
    figures.insert("program_mb".to_owned(), megabytes(program)?);
    Ok(figures)
}

/// As [`measure`], and a batch of tasks with and without learning, and the syncs of a resumed run.
pub fn measure_all(program: &Path, scratch: &Path) -> anyhow::Result<Figures> {
    let mut figures = measure(program, scratch)?;
    let bench = StartBench::new(program, scratch)?;
    for (name, options) in [
        ("task_ms", &[][..]),
        ("task_unlearned_ms", &["--no-learning"]),
    ] {
        figures.insert(name.to_owned(), bench.tasks(name, options)?);
    }
    match bench.syncs_of_resume()? {
        Some((journal, all)) => {
            figures.insert("resume_syncs".to_owned(), journal);
            figures.insert("resume_all_syncs".to_owned(), all);
        }
        None => println!("not measured: the syncs of a resumed run (needs strace)"),
    }
    Ok(figures)
}

/// Prints the figures.
pub fn print(figures: &Figures) {
    for (name, value) in figures {
        println!("{name:<24} {value:>10.3}");
    }
}

struct StartBench<'p> {
    program: &'p Path,
    scratch: PathBuf,
}

impl<'p> StartBench<'p> {
    fn new(program: &'p Path, scratch: &Path) -> anyhow::Result<Self> {
        if scratch.exists() {
            fs::remove_dir_all(scratch)?;
        }
        fs::create_dir_all(scratch)?;
        let scratch = scratch.canonicalize()?;
        Ok(Self { program, scratch })
    }

    /// A command of the program, away from every project, with a data directory.
    fn command(&self, data: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .current_dir(&self.scratch)
            .env("WINDLASS_DATA", self.scratch.join(data))
            .stdin(Stdio::null());
        command
    }

    fn commands(&self) -> anyhow::Result<Figures> {
        let hello = agent("reversible")?;
        fs::write(self.scratch.join("hello.gram"), hello)?;
        let run = [&["run", "hello.gram", "Say hello to Ada"][..], &HELLO].concat();
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..RUNS {
            times[0].push(timed(Command::new("true"))?);
            times[1].push(timed(self.command("data", &run))?);
            times[2].push(timed(self.command("data", &["--help"]))?);
            times[3].push(timed(self.command("data", &["approvals", "list"]))?);
        }
        let names = ["true_ms", "hello_ms", "help_ms", "approvals_ms"];
        let medians = times.map(|times| median(times).as_secs_f64() * 1e3);
        Ok(names.map(str::to_owned).into_iter().zip(medians).collect())
    }

    /// The wall time of a task in a batch, in milliseconds.
    fn tasks(&self, name: &str, options: &[&str]) -> anyhow::Result<f64> {
        fs::write(self.scratch.join("hello.gram"), agent("reversible")?)?;
        let mut tasks = String::new();
        for number in 0..TASKS {
            writeln!(
                tasks,
                r#"{{"task_id": "task-{number}", "description": "Say hello to Ada{number}"}}"#
            )?;
        }
        fs::write(self.scratch.join("tasks.jsonl"), tasks)?;
        let batch = [
            "run",
            "hello.gram",
            "--tasks",
            "tasks.jsonl",
            "--jobs",
            JOBS,
        ];
        let time = timed(self.command(name, &[&batch[..], &HELLO, options].concat()))?;
        Ok(time.as_secs_f64() * 1e3 / TASKS as f64)
    }

    /// How often a run that waited for an approval waits for the disk after it is resumed: for the journal, and
    /// for everything, which includes the playbook. `None` if the system calls cannot be watched.
    fn syncs_of_resume(&self) -> anyhow::Result<Option<(f64, f64)>> {
        if Command::new("strace").arg("-V").output().is_err() {
            return Ok(None);
        }
        fs::write(self.scratch.join("ask.gram"), agent("irreversible")?)?;
        let run = [&["run", "ask.gram", "Say hello to Ada"][..], &HELLO].concat();
        // It ends with the code of a run that waits.
        self.command("resume", &run).output()?;
        let list = self
            .command("resume", &["approvals", "list", "--json"])
            .output()?;
        let list = String::from_utf8(list.stdout)?;
        let field = |name: &str| {
            let rest = list.split(&format!("\"{name}\":\"")).nth(1);
            rest.and_then(|rest| rest.split('"').next())
                .with_context(|| format!("the request has no {name}: {list}"))
        };
        let (id, digest, id_of_run) = (field("id")?, field("digest")?, field("run")?);
        let approve = ["approvals", "approve", id, "--digest", digest];
        timed(self.command("resume", &approve))?;
        let calls = self.scratch.join("syncs");
        let mut resume = Command::new("strace");
        resume
            .args(["-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(&calls)
            .arg(self.program)
            .args(["runs", "resume", id_of_run])
            .current_dir(&self.scratch)
            .env("WINDLASS_DATA", self.scratch.join("resume"));
        timed(resume)?;
        let calls = fs::read_to_string(calls)?;
        let calls = || calls.lines().filter(|line| line.contains("sync("));
        let journal = calls().filter(|line| line.contains("windlass.db"));
        Ok(Some((journal.count() as f64, calls().count() as f64)))
    }
}

/// The tool and the model of the smallest run.
const HELLO: [&str; 4] = ["--library", "hello", "--model", "reflex"];

/// The agent of the smallest run, whose tool has this risk.
fn agent(risk: &str) -> anyhow::Result<String> {
    let agent = fs::read_to_string(root().join("examples/hello.gram"))?;
    ensure!(agent.contains("risk: reversible"), "hello.gram has changed");
    Ok(agent.replace("risk: reversible", &format!("risk: {risk}")))
}

fn timed(mut command: Command) -> anyhow::Result<Duration> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    let time = started.elapsed();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(time)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
