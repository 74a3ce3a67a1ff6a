//! Measures the journal relative to the disk: a synced append compared with a bare `fdatasync` of the same
//! size, many writers compared with one, an append that does not wait, what it costs to sign and chain an event, what it
//! costs to sign and check a decision, and lists of many waiting runs.
//!
//! `bench-store [DIRECTORY]`: on the file system of that directory; the default is the temporary directory.

mod machine;
mod waiting;

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use windlass_core::approval::{
    Approval, Authorize, DecisionMeans, PersonDecision, Principal, Question, Request,
    TenantPrincipal,
};
use windlass_core::run::{Event, Settings, Task};
use windlass_keys::{ApproverKey, Approvers, JournalKey, KeyDirectory};
use windlass_spec::{
    CallId, NonEmptyText, RiskLevel, RunId, SecurityLevel, Timestamp, ToolName, Turn,
};
use windlass_store::{
    Authentication, DecisionSigner, Durability, NewDecision, NewRun, Options, RunJournal, Store,
};

const ROUNDS: usize = 15;
/// The repetitions of each operation in a round: about the number of events of a run.
const TIMES: usize = 60;
const WRITERS: usize = 64;
/// The largest ratio of one append to the disk alone.
const SYNC_GOAL: f64 = 1.5;
/// The least ratio of the throughput of many writers to one.
const GROUP_GOAL: f64 = 10.0;
/// The largest ratio of an append that does not wait to a wait for the disk.
const RELAXED_GOAL: f64 = 0.1;

/// How many events are appended at once to measure the cost of signing them.
const SIGNED: usize = 2_000;
/// The most that signing and chaining an event may cost.
const SIGNING_GOAL: Duration = Duration::from_micros(15);

const AGENT: &str = r#"
[helper:Agent {instruction: "Help people.", model: "OpenAI/gpt-4o-mini"} |
  [search:Tool {description: "Searches for something", risk: reversible} | (query::Text)==>(::Text)]]
"#;

fn main() -> anyhow::Result<()> {
    let base = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(&base)?;
    println!("machine: {}", machine::describe());
    println!("directory: {}\n", base.display());
    writers(directory.path())?;
    signing(directory.path())?;
    deciding(directory.path())?;
    waiting::measure(directory.path())
}

/// Medians of the rounds, each a median itself.
#[derive(Default)]
struct Times {
    growing: Vec<Duration>,
    in_place: Vec<Duration>,
    synced: Vec<Duration>,
    relaxed: Vec<Duration>,
    /// Per append of many writers: threads that block.
    threads: Vec<Duration>,
    /// Per append of many writers: tasks that are notified.
    tasks: Vec<Duration>,
}

fn writers(directory: &Path) -> anyhow::Result<()> {
    let store = Store::open(directory.join("windlass.db"))?;
    let event = intent(&new_id())?;
    let bytes = serde_json::to_vec(&event)?;
    let mut growing = File::create(directory.join("growing"))?;
    let mut in_place = prepared(&directory.join("in-place"), bytes.len())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut times = Times::default();
    for _ in 0..ROUNDS {
        times.growing.push(each(|| {
            growing.write_all(&bytes)?;
            Ok(growing.sync_data()?)
        })?);
        times.in_place.push(each(|| {
            in_place.seek(SeekFrom::Start(0))?;
            in_place.write_all(&bytes)?;
            Ok(in_place.sync_data()?)
        })?);
        let journals = start_many(&store)?;
        let one = start(&store, &new_id())?;
        let event = intent(one.lease().run().as_str())?;
        times.synced.push(each(|| {
            one.append(&event, Durability::Synced)?;
            Ok(())
        })?);
        times.threads.push(many_threads(&journals)?);
        let journals = start_many(&store)?;
        times.tasks.push(runtime.block_on(many_tasks(&journals))?);
        times.relaxed.push(each(|| {
            one.append(&event, Durability::Relaxed)?;
            Ok(())
        })?);
        one.sync()?;
    }
    report(bytes.len(), times);
    Ok(())
}

/// What it costs to sign and chain an event: the difference between a store with a key and one without.
fn signing(directory: &Path) -> anyhow::Result<()> {
    let key = Authentication::Key(JournalKey::new(&[7; 32]));
    let open = |name: &str, authentication| {
        let options = Options {
            authentication,
            ..Options::default()
        };
        Store::open_with(directory.join(name).join("windlass.db"), options)
    };
    let (signed, unsigned) = (
        open("signed", key)?,
        open("unsigned", Authentication::None)?,
    );
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (store, times) in [&signed, &unsigned].into_iter().zip(&mut times) {
            let journal = start(store, &new_id())?;
            let event = intent(journal.lease().run().as_str())?;
            let started = Instant::now();
            for _ in 0..SIGNED {
                journal.append(&event, Durability::Relaxed)?;
            }
            journal.sync()?;
            times.push(started.elapsed() / u32::try_from(SIGNED)?);
        }
    }
    let [signed, unsigned] = times.map(median);
    let cost = signed.saturating_sub(unsigned);
    println!("\n{SIGNED} events at once; medians of {ROUNDS} rounds");
    println!(
        "  signing and chaining an event {:>31.1} µs  {:.1} µs instead of {:.1} µs (goal at most {} µs: {})\n",
        cost.as_secs_f64() * 1e6,
        signed.as_secs_f64() * 1e6,
        unsigned.as_secs_f64() * 1e6,
        SIGNING_GOAL.as_micros(),
        verdict(cost <= SIGNING_GOAL)
    );
    Ok(())
}

/// What it costs to sign a decision with an approver's key and to store it, and to check it before the call starts: the
/// difference between a store with approvers and one without.
fn deciding(directory: &Path) -> anyhow::Result<()> {
    let keys = KeyDirectory::new(directory.join("keys"));
    let approvers = Approvers::in_directory(keys.clone());
    approvers.establish("bob", 0)?;
    let key = ApproverKey::read(&keys, "bob", None)?.context("the key was made")?;
    let signer = DecisionSigner::of_approver(Arc::new(key), DecisionMeans::Terminal);
    let open = |name: &str, approvers| {
        let options = Options {
            authentication: Authentication::Key(JournalKey::new(&[7; 32])),
            approvers,
            ..Options::default()
        };
        Store::open_with(directory.join(name).join("windlass.db"), options)
    };
    let (proven, unproven) = (open("proven", Some(approvers))?, open("unproven", None)?);
    let who = |name: &str| -> anyhow::Result<TenantPrincipal> {
        Ok(TenantPrincipal::new(
            NonEmptyText::new("local")?,
            Principal::new(name)?,
        ))
    };
    let (ada, bob) = (who("ada")?, who("bob")?);
    let at = |second: i64| Timestamp::from_microseconds(second * 1_000_000);
    let mut times = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let stores = [(&proven, Some(&signer)), (&unproven, None)];
        for (index, (store, signer)) in stores.into_iter().enumerate() {
            let journal = start(store, &new_id())?;
            let mut calls = Vec::new();
            for number in 0..TIMES {
                let call = CallId {
                    run: journal.lease().run().clone(),
                    turn: Turn::FIRST,
                    index: u32::try_from(number)?,
                };
                let question = Question::Authorize(Authorize {
                    tool_name: ToolName::new("search")?,
                    tool_args: serde_json::Map::new(),
                    reason: NonEmptyText::new("It is due.")?,
                    risk: RiskLevel::Irreversible,
                    security_level: SecurityLevel::High,
                    rule: None,
                    credentials: None,
                });
                let asked =
                    Approval::ask(Request::new(call.clone(), ada.clone(), question, at(1)))?;
                let event = journal.redacted(Event::TimePassed { at: at(1) })?;
                journal.append_asking(&event, &asked)?;
                calls.push(call);
            }
            let (mut decided, mut checked) = (Vec::new(), Vec::new());
            for call in calls {
                let new = NewDecision {
                    call: call.clone(),
                    digest: None,
                    decision: PersonDecision::Approve,
                };
                let started = Instant::now();
                store.decide_signed(new, &bob, signer.cloned(), at(2))?;
                decided.push(started.elapsed());
                let started = Instant::now();
                let evidence = store.evidence(&call)?;
                checked.push(started.elapsed());
                anyhow::ensure!(evidence.unproven.is_none(), "the decision counts");
            }
            times[index].push(median(decided));
            times[index + 2].push(median(checked));
        }
    }
    let [signed, unsigned, checked, unchecked] = times.map(median);
    println!("decisions, one after the other; medians of {ROUNDS} rounds");
    for (what, with, without) in [
        ("signing and storing a decision", signed, unsigned),
        ("checking it before the call starts", checked, unchecked),
    ] {
        println!(
            "  {what:<40} {:>20.1} µs  {:.1} µs instead of {:.1} µs",
            with.saturating_sub(without).as_secs_f64() * 1e6,
            with.as_secs_f64() * 1e6,
            without.as_secs_f64() * 1e6,
        );
    }
    println!();
    Ok(())
}

fn report(bytes: usize, times: Times) {
    let growing = median(times.growing);
    let in_place = median(times.in_place);
    let synced = median(times.synced);
    let relaxed = median(times.relaxed);
    let threads = median(times.threads);
    let tasks = median(times.tasks);
    println!("an event of {bytes} bytes; medians of {ROUNDS} rounds of {TIMES}");
    let line = |what: &str, time: Duration, note: String| {
        println!("  {what:<50} {:>9.1} µs  {note}", time.as_secs_f64() * 1e6);
    };
    line(
        "fdatasync, at the end of a file that grows",
        growing,
        String::new(),
    );
    line("fdatasync, in place", in_place, String::new());
    let (to_growing, to_in_place) = (ratio(synced, growing), ratio(synced, in_place));
    line(
        "synced append, one writer",
        synced,
        format!(
            "{to_growing:.2} times the first (goal at most {SYNC_GOAL}: {}), {to_in_place:.2} times the second",
            verdict(to_growing <= SYNC_GOAL)
        ),
    );
    for (who, time) in [("tasks", tasks), ("threads", threads)] {
        let gain = ratio(synced, time);
        line(
            &format!("synced append, each of {WRITERS} {who} at once"),
            time,
            format!(
                "{gain:.1} times the rate of one (goal at least {GROUP_GOAL}: {})",
                verdict(gain >= GROUP_GOAL)
            ),
        );
    }
    println!("= store_synced_us {:.2}", synced.as_secs_f64() * 1e6);
    println!("= store_64_tasks_us {:.2}", tasks.as_secs_f64() * 1e6);
    println!("= store_relaxed_us {:.3}", relaxed.as_secs_f64() * 1e6);
    let share = ratio(relaxed, growing);
    line(
        "append that does not wait",
        relaxed,
        format!(
            "{share:.3} of an fdatasync (goal at most {RELAXED_GOAL}: {})",
            verdict(share <= RELAXED_GOAL)
        ),
    );
}

/// The time per append if many tasks append concurrently, as runs do: the total time divided by the number of
/// appends.
async fn many_tasks(journals: &[Arc<RunJournal>]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for journal in journals {
        let journal = Arc::clone(journal);
        tasks.spawn(async move {
            let event = intent(journal.lease().run().as_str())?;
            for _ in 0..TIMES {
                let event = journal.redacted(event.clone())?;
                let (sender, receiver) = tokio::sync::oneshot::channel();
                journal.append_then(&event, |done| drop(sender.send(done)))?;
                receiver.await??;
            }
            anyhow::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(started.elapsed() / u32::try_from(TIMES * journals.len())?)
}

/// Like [`many_tasks`], with threads that block on their own appends.
fn many_threads(journals: &[Arc<RunJournal>]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    std::thread::scope(|scope| {
        let append = |journal: &RunJournal| -> anyhow::Result<()> {
            let event = intent(journal.lease().run().as_str())?;
            for _ in 0..TIMES {
                journal.append(&event, Durability::Synced)?;
            }
            Ok(())
        };
        let writers: Vec<_> = journals
            .iter()
            .map(|journal| scope.spawn(move || append(journal)))
            .collect();
        writers.into_iter().try_for_each(|writer| {
            let outcome = writer.join();
            outcome.unwrap_or_else(|_| Err(anyhow::anyhow!("a writer panicked")))
        })
    })?;
    Ok(started.elapsed() / u32::try_from(TIMES * journals.len())?)
}

/// The median time of repeated work.
fn each(mut work: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    Ok(median(times))
}

/// A file whose bytes are on the disk, so that writing them again changes no metadata.
fn prepared(path: &Path, size: usize) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(&vec![b' '; size])?;
    file.sync_all()?;
    Ok(file)
}

/// The runs of many writers. Each round has new ones.
fn start_many(store: &Store) -> anyhow::Result<Vec<Arc<RunJournal>>> {
    let start = |_| start(store, &new_id()).map(Arc::new);
    (0..WRITERS).map(start).collect()
}

fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

fn start(store: &Store, run: &str) -> anyhow::Result<RunJournal> {
    let started = first_event(run)?;
    Ok(store.start(local(), &started, Durability::Synced)?)
}

fn local() -> NewRun {
    NewRun {
        tenant: "local".to_owned(),
        principal: "ada".to_owned(),
        task_id: None,
    }
}

fn first_event(run: &str) -> anyhow::Result<Event> {
    let file = windlass_spec::read(AGENT).file.context("the agent")?;
    let agent = file.agents().first().context("an agent")?.clone();
    Ok(Event::Started {
        run: RunId::new(run)?,
        agent: Box::new(agent),
        agents: Vec::new(),
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: Task {
            description: "Find out when the next train to Vienna leaves.".to_owned(),
            ..Task::default()
        },
        settings: Settings::default(),
        at: now(),
    })
}

/// The most frequent synced event: the start of a call.
fn intent(run: &str) -> anyhow::Result<Event> {
    let call: CallId = format!("{run}:1:0").parse()?;
    Ok(Event::CallStarted {
        call,
        at: now(),
        variant: None,
    })
}

fn now() -> Timestamp {
    Timestamp::from_microseconds(1_760_000_000_123_456)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "NOT met" }
}
