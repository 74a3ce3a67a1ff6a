//! Measures lists of many runs that wait for a person, and the memory of an open store with them.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rusqlite::Connection;
use windlass_core::approval::{Approval, Authorize, Principal, Question, Request, TenantPrincipal};
use windlass_core::run::RunEnd;
use windlass_spec::{NonEmptyText, RiskLevel, SecurityLevel, ToolName};
use windlass_store::{ApprovalFilter, Durability, RunFilter, Store};

use crate::{local, median, now, start, verdict};

const RUNS: u32 = 100_000;
const ROUNDS: usize = 9;
const GOAL: Duration = Duration::from_millis(100);

/// The limit for a filtered list of one page.
const FILTERED_GOAL: Duration = Duration::from_millis(50);
const PAGE: u32 = 100;

/// Makes the runs, lists them, and prints how long that took.
pub fn measure(directory: &Path) -> anyhow::Result<()> {
    let path = directory.join("waiting.db");
    make(&path)?;
    let size = std::fs::metadata(&path)?.len() / 1_000_000;
    println!("\n{RUNS} runs that wait for a person, {size} MB; {ROUNDS} rounds: median, least");
    let before = resident()?;
    let store = Store::open(&path)?;
    let waiting = RunFilter::waiting();
    let pending = ApprovalFilter::pending();
    let opened = resident()? - before;
    // A warm-up, so that the files are in memory.
    store.count_runs(&RunFilter::default())?;
    let mut times = [const { Vec::new() }; 7];
    for _ in 0..ROUNDS {
        let mut count = 0;
        times[0].push(timed(|| {
            store.each_run(&waiting, |_| counted(&mut count))?;
            Ok(count)
        })?);
        let mut count = 0;
        times[1].push(timed(|| {
            store.each_approval(&pending, now(), |_| counted(&mut count))?;
            Ok(count)
        })?);
        times[2].push(timed(|| Ok(store.count_runs(&waiting)?))?);
        times[3].push(timed(|| Ok(store.count_approvals(&pending, now())?))?);
        times[4].push(timed(|| Ok(length(&store.runs(&waiting)?)))?);
        times[5].push(timed(|| {
            Ok(length(&store.approval_summaries(&pending, now())?))
        })?);
        times[6].push(timed(|| Ok(length(&store.approvals(&pending, now())?)))?);
    }
    let what = [
        "list the runs",
        "list their questions",
        "count the runs",
        "count their questions",
        "collect the runs",
        "collect their questions",
        "collect their questions whole, and check them",
    ];
    for (number, (what, times)) in what.into_iter().zip(times).enumerate() {
        let least = times.iter().min().copied().unwrap_or_default();
        let time = median(times);
        let goal = format!(
            "goal under {} ms: {}",
            GOAL.as_millis(),
            verdict(time < GOAL)
        );
        println!(
            "  {what:<50} {:>9.1} ms {:>9.1} ms  {}",
            milliseconds(time),
            milliseconds(least),
            if number < 4 { &goal } else { "" }
        );
    }
    println!("  memory an open store takes for them: {opened} bytes");
    filtered(&store)
}

/// Measures pages of filtered lists: of an agent, a principal and a state that all runs have, and of an agent that
/// none has, for which everything is searched.
fn filtered(store: &Store) -> anyhow::Result<()> {
    let page = RunFilter {
        limit: Some(PAGE),
        principal: Some(local().principal),
        ..RunFilter::waiting()
    };
    let of_agent = |name: &str| RunFilter {
        agent: Some(name.to_owned()),
        ..page.clone()
    };
    let mut slowest = Duration::ZERO;
    for (what, filter, count) in [
        ("a page of the runs of an agent", of_agent("helper"), PAGE),
        (
            "a page of the runs of an agent without any",
            of_agent("nobody"),
            0,
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let found = store.runs(&filter)?;
            times.push(started.elapsed());
            anyhow::ensure!(
                found.len() == usize::try_from(count)?,
                "{} runs",
                found.len()
            );
        }
        let time = median(times);
        slowest = slowest.max(time);
        println!(
            "  {what:<50} {:>9.1} ms {:>12}  goal under {} ms: {}",
            milliseconds(time),
            "",
            FILTERED_GOAL.as_millis(),
            verdict(time < FILTERED_GOAL)
        );
    }
    println!("\n= list_filtered_ms {:.2}", milliseconds(slowest));
    Ok(())
}

fn counted(count: &mut u64) -> ControlFlow<()> {
    *count += 1;
    ControlFlow::Continue(())
}

fn length<T>(list: &[T]) -> u64 {
    list.len() as u64
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The time of an operation that must find all runs.
fn timed(work: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let count = work()?;
    let time = started.elapsed();
    anyhow::ensure!(count == u64::from(RUNS), "{count} of {RUNS}");
    Ok(time)
}

/// Creates one run with the store; the others are copies of its rows under other ids.
fn make(path: &Path) -> anyhow::Result<()> {
    const TEMPLATE: &str = "01a1e1d1226870c9a81a75786eae0000";
    let store = Store::open(path)?;
    let journal = start(&store, TEMPLATE)?;
    for _ in 0..2 {
        journal.append(&crate::intent(TEMPLATE)?, Durability::Relaxed)?;
    }
    let event = journal.redacted(crate::intent(TEMPLATE)?)?;
    journal.append_asking(&event, &question(TEMPLATE)?)?;
    journal.end(&RunEnd::WaitingForPerson)?;
    drop((journal, store));
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(&format!(
        r#"CREATE TEMP TABLE copies AS
           WITH RECURSIVE numbers (number) AS
               (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {RUNS} - 1)
           SELECT number, printf('01a1e1d1226870c9a81a7578%08x', number * 7919 % 4294967291) AS id
           FROM numbers;
           INSERT INTO runs (run, tenant, principal, agent, task_id, task, started_at, ended_at, "end",
               state, epoch, event_count)
           SELECT id, tenant, principal, agent, task_id, task, started_at + number, ended_at + number,
               "end", state, epoch, event_count
           FROM runs JOIN copies WHERE run = '{TEMPLATE}';
           INSERT INTO events (run, seq, kind, at, payload, tenant, principal)
           SELECT id, seq, kind, at, replace(payload, '{TEMPLATE}', id), tenant, principal
           FROM copies JOIN events WHERE run = '{TEMPLATE}';
           INSERT INTO approvals (run, call, number, tenant, principal, kind, tool, status, asked_at,
               expires_at, body)
           SELECT id, replace(call, '{TEMPLATE}', id), approvals.number, tenant, principal, kind, tool,
               status, asked_at + copies.number, expires_at + copies.number,
               replace(body, '{TEMPLATE}', id)
           FROM copies JOIN approvals WHERE run = '{TEMPLATE}';"#
    ))?;
    transaction.commit()?;
    Ok(())
}

fn question(run: &str) -> anyhow::Result<Approval> {
    let text = |text: &str| NonEmptyText::new(text).map_err(anyhow::Error::from);
    let new = local();
    let principal = TenantPrincipal::new(text(&new.tenant)?, Principal::new(&new.principal)?);
    let arguments = serde_json::json!({"to": "DE02120300000000202051", "amount": 129.5});
    let question = Question::Authorize(Authorize {
        tool_name: ToolName::new("pay")?,
        tool_args: arguments.as_object().context("an object")?.clone(),
        reason: text("The invoice is due and the customer asked twice.")?,
        risk: RiskLevel::Irreversible,
        security_level: SecurityLevel::High,
        rule: None,
        credentials: None,
    });
    let call = format!("{run}:1:0").parse()?;
    Ok(Approval::ask(Request::new(
        call,
        principal,
        question,
        now(),
    ))?)
}

/// The resident memory of this process, in bytes.
fn resident() -> anyhow::Result<i64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: i64 = text.split(' ').nth(1).context("a number")?.parse()?;
    Ok(pages * 4096)
}
