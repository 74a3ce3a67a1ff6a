//! Measures how the cost of a run grows with its length: drives runs of 1,000, 10,000 and 100,000 events on
//! SQLite, stops each, and resumes it in another process. Prints the processor time per event, how it
//! compares with the shortest run, and the peak resident memory.
//!
//! `cargo xtask bench long`

#![allow(clippy::print_stdout, reason = "a program that reports figures")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use windlass_core::model::{
    ChatMessage, FINISH, ModelAnswer, ModelRequest, RequestedArguments, RequestedCall,
};
use windlass_core::run::{RunEnd, Settings, Task};
use windlass_model::{ImmediateModel, ModelError};
use windlass_runtime::{
    Crew, CrewMember, Driver, NewTask, Progress, Stop, Stored, local_identity, now,
};
use windlass_spec::RunId;
use windlass_store::Store;
use windlass_tools::{BindingMode, ToolLibrary, bind, tool};

type Failure = Box<dyn Error + Send + Sync>;

/// The lengths of the runs, in events.
const LENGTHS: [usize; 3] = [1_000, 10_000, 100_000];

/// The largest allowed ratio of the time per event to that of the shortest run.
const MAX_RATIO: f64 = 3.0;

/// A turn is an answer, a decision, the start of a call and its end.
const EVENTS_PER_TURN: usize = 4;

/// How many turns a resumed run makes before it finishes.
const TURNS_AFTER_RESUME: usize = 10;

const AGENT: &str = r#"
[reader:Agent {instruction: "Read all pages, one by one.", model: "OpenAI/gpt-4o-mini"} |
  [readPage:Tool {description: "Returns the text of one page of the book", risk: reversible, open_world: true} |
    (page::Integer)==>(after::Text)==>(::Text)]]
"#;

/// Returns the text of one page of the book
#[tool(crate = windlass_tools, name = "readPage")]
fn read_page(page: i64, after: String) -> String {
    let line = format!("Page {page} follows {after} and tells of {}. ", page * 7919);
    line.repeat(6)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["drive", directory, events] => drive(Path::new(directory), events.parse()?),
        ["resume", directory, events] => resume(Path::new(directory), events.parse()?),
        [] => compare(&LENGTHS),
        _ => {
            let lengths = words.iter().map(|word| word.parse());
            compare(&lengths.collect::<Result<Vec<usize>, _>>()?)
        }
    }
}

/// Measures runs of all lengths, each in two processes of its own.
fn compare(lengths: &[usize]) -> Result<(), Failure> {
    println!(
        "{:<8} {:>9} {:>10} {:>13} {:>7} {:>10}",
        "", "events", "seconds", "us per event", "ratio", "memory"
    );
    let (mut first, mut is_within) = ([None, None], true);
    let mut figures = Vec::new();
    for events in lengths {
        let directory = tempfile::tempdir()?;
        for (step, first) in ["drive", "resume"].into_iter().zip(&mut first) {
            let output = Command::new(std::env::current_exe()?)
                .arg(step)
                .arg(directory.path())
                .arg(events.to_string())
                .stderr(std::process::Stdio::inherit())
                .output()?;
            if !output.status.success() {
                return Err(format!("the process that should {step} failed").into());
            }
            let text = String::from_utf8(output.stdout)?;
            let mut printed = text.split_whitespace().map(str::parse::<f64>);
            let mut figure = || printed.next().ok_or("a figure is missing");
            let (seconds, megabytes) = (figure()??, figure()??);
            let each = seconds * 1e6 / *events as f64;
            let ratio = each / *first.get_or_insert(each);
            is_within &= ratio <= MAX_RATIO;
            figures.push(format!("= long_{step}_{events}_ratio {ratio:.3}"));
            figures.push(format!("= long_{step}_{events}_us {each:.2}"));
            println!(
                "{step:<8} {events:>9} {seconds:>10.2} {each:>13.1} {ratio:>7.2} {megabytes:>7.1} MB"
            );
        }
    }
    figures.iter().for_each(|figure| println!("{figure}"));
    match is_within {
        true => println!("The time per event grows at most {MAX_RATIO} times: holds"),
        false => {
            return Err(format!("the time per event grows more than {MAX_RATIO} times").into());
        }
    }
    Ok(())
}

/// Drives a run until it has so many events, and stops it.
fn drive(directory: &Path, events: usize) -> Result<(), Failure> {
    let (count, stop) = (AtomicUsize::new(0), Stop::default());
    let after_step = stop.after_step.clone();
    let driver = driver(directory, usize::MAX)?
        .stopped_by(stop)
        .watched_by(Arc::new(move |_: &RunId, progress: Progress<'_>| {
            if matches!(progress, Progress::Event(_))
                && count.fetch_add(1, Ordering::Relaxed) + 1 >= events
            {
                after_step.cancel();
            }
        }));
    let turns = u32::try_from(events)?;
    let new = NewTask {
        task: Task {
            description: "Read the whole book.".to_owned(),
            ..Task::default()
        },
        settings: Settings {
            max_iterations: turns,
            max_calls: turns,
            ..Settings::default()
        },
        ..NewTask::default()
    };
    let seconds = measure(async {
        let run = driver.start(new).await?;
        if let Some(end) = run.end() {
            return Err(format!("the run ended too early: {end:?}").into());
        }
        std::fs::write(directory.join("run"), run.id().as_str())?;
        Ok(())
    })?;
    report(seconds)
}

/// Resumes the run, and lets it finish a few turns later.
fn resume(directory: &Path, events: usize) -> Result<(), Failure> {
    let id = RunId::new(std::fs::read_to_string(directory.join("run"))?)?;
    let driver = driver(directory, events / EVENTS_PER_TURN + TURNS_AFTER_RESUME)?;
    let seconds = measure(async {
        let run = driver.resume(&id).await?;
        match run.end() {
            Some(RunEnd::Completed) => Ok(()),
            other => Err(format!("the run did not complete: {other:?}").into()),
        }
    })?;
    report(seconds)
}

fn driver(directory: &Path, last_turn: usize) -> Result<Driver, Failure> {
    let file = windlass_spec::read(AGENT).file.ok_or("no agent")?;
    let agent = file.agents().first().ok_or("no agent")?.clone();
    let library = ToolLibrary::new("long").with(read_page_tool()?);
    let tools =
        bind(&agent, &library, BindingMode::Exact).map_err(|errors| format!("{errors:?}"))?;
    let model = Arc::new(Reader { last_turn });
    let crew = Crew::new(CrewMember {
        agent,
        tools,
        model,
    });
    let store = Arc::new(Store::open(directory.join("windlass.db"))?);
    let stored = Stored::new(store, local_identity()?).with_clock(Arc::new(now));
    Ok(Driver::new(crew, Arc::new(stored)))
}

/// Runs work to its end and returns the seconds of processor time it took, in all threads.
fn measure(work: impl Future<Output = Result<(), Failure>>) -> Result<f64, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let before = processor_seconds();
    runtime.block_on(work)?;
    Ok(processor_seconds() - before)
}

/// Prints the time and the peak resident memory of this process, in megabytes.
fn report(seconds: f64) -> Result<(), Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next());
    let kilobytes: f64 = kilobytes.ok_or("the peak memory is unknown")?.parse()?;
    println!("{seconds} {}", kilobytes / 1024.0);
    Ok(())
}

/// The processor time of this process so far, in seconds.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A model that reads one page a turn, and finishes after the last turn.
struct Reader {
    last_turn: usize,
}

impl ImmediateModel for Reader {
    fn compute_answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let (turn, after) = last_page(request).unwrap_or((0, "the cover"));
        let call = match turn >= self.last_turn {
            true => RequestedCall {
                tool: FINISH.to_owned(),
                arguments: RequestedArguments::Json(
                    json!({"answer": "All pages are read.", "reasoning": "", "confidence": 1}),
                ),
                confidence: None,
            },
            false => RequestedCall {
                tool: "readPage".to_owned(),
                arguments: RequestedArguments::Json(json!({"page": turn, "after": after})),
                confidence: Some(0.9),
            },
        };
        Ok(ModelAnswer {
            text: format!("Now page {turn}."),
            calls: vec![call],
            ..ModelAnswer::default()
        })
    }
}

/// The number of the last turn and the first words of its page.
fn last_page(request: &ModelRequest) -> Option<(usize, &str)> {
    let ChatMessage::Tool {
        call_id, content, ..
    } = &**request.messages.last()?
    else {
        return None;
    };
    let turn = call_id.split('_').nth(1)?.parse().ok()?;
    let words = content.match_indices(' ').nth(1)?.0;
    Some((turn, &content[..words]))
}
