//! The writer thread. All requests that are queued when a commit ends go into the next one, so that many
//! runs share one wait for the disk. Requests are processed in the order in which they were sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::{Level, warn};
use windlass_spec::RunId;

use crate::connection::DatabaseFile;
use crate::crash::CrashPoints;
use crate::error::Error;
use crate::evidence::Database;
use crate::evidence::position::{self, PositionFile};
use crate::queue::Queue;

/// A transaction that takes longer is logged.
const SLOW: Duration = Duration::from_millis(50);

/// A change inside a transaction. It runs a second time if the first transaction was rolled back.
pub(crate) type Change = Box<dyn FnMut(&Database) -> Answer + Send>;

/// A change to write, with the crash points around it.
pub(crate) struct Work {
    pub(crate) points: CrashPoints,
    pub(crate) change: Change,
    /// Whether an effect outside depends on it, so that its loss must be noticed.
    pub(crate) is_intent: bool,
}

impl Work {
    pub(crate) fn new(
        points: CrashPoints,
        change: impl FnMut(&Database) -> Answer + Send + 'static,
    ) -> Self {
        Self {
            points,
            change: Box::new(change),
            is_intent: false,
        }
    }

    /// The same work, on which an effect outside depends.
    pub(crate) fn with_intent(mut self, is_intent: bool) -> Self {
        self.is_intent = is_intent;
        self
    }
}

pub(crate) type Answer = Result<i64, Error>;

/// Called with the answer on the writer thread, so it must be quick.
pub(crate) type Done = Box<dyn FnOnce(Answer) + Send>;

/// Whether all events sent to a journal have been stored so far. An event that is not waited for
/// may fail after it was acknowledged. The sender of the next event then gets the failure.
pub(crate) struct JournalHealth {
    run: RunId,
    failure: OnceLock<Error>,
    /// How many requests are neither stored nor refused yet.
    outstanding: AtomicUsize,
}

impl JournalHealth {
    pub(crate) fn new(run: RunId) -> Self {
        Self {
            run,
            failure: OnceLock::new(),
            outstanding: AtomicUsize::new(0),
        }
    }

    /// Whether requests are still pending.
    pub(crate) fn has_pending(&self) -> bool {
        self.outstanding.load(Ordering::Acquire) > 0
    }

    /// # Errors
    /// If an earlier request could not be stored.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.failure.get() {
            None => Ok(()),
            Some(cause) => Err(Error::Broken {
                run: self.run.clone(),
                cause: Box::new(cause.clone()),
            }),
        }
    }
}

struct Request {
    work: Work,
    health: Option<Arc<JournalHealth>>,
    done: Option<Done>,
}

impl Request {
    fn run(&mut self, connection: &Database) -> Answer {
        if let Some(health) = &self.health {
            health.check()?;
        }
        (self.work.change)(connection)
    }

    fn answer(self, answer: Answer) {
        if answer.is_ok() {
            self.work.points.after();
        }
        if let (Some(health), Err(error)) = (&self.health, &answer)
            && health.check().is_ok()
        {
            // Only the first failure is kept, because it is the cause.
            let _ = health.failure.set(error.clone());
        }
        if let Some(health) = &self.health {
            health.outstanding.fetch_sub(1, Ordering::Release);
        }
        if let Some(done) = self.done {
            done(answer);
        }
    }
}

/// The handle of the writer thread. Dropping it waits until all requests are processed.
pub(crate) struct Writer {
    requests: Arc<Queue<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(
        database: Database,
        file: DatabaseFile,
        position: Option<PositionFile>,
    ) -> Result<Self, std::io::Error> {
        let requests = Arc::new(Queue::new());
        let consumer = QueueConsumer(Arc::clone(&requests));
        let thread = std::thread::Builder::new()
            .name("windlass-store".to_owned())
            .spawn(move || {
                let files = Files {
                    database: file,
                    position,
                };
                while let Some(batch) = consumer.0.take() {
                    commit(&database, &files, batch);
                }
                // Closing the database may remove its log.
                if let Some(position) = &files.position {
                    let _ = position.record_closing(&database.evidence);
                }
            })?;
        Ok(Self {
            requests,
            thread: Some(thread),
        })
    }

    /// Whether the queue is so full that sending a request may have to wait for room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.requests.is_crowded()
    }

    /// Does the work and waits until it is on the disk.
    pub(crate) fn wait_for(&self, work: Work) -> Answer {
        self.send(work, None)?.wait()
    }

    /// Sends work. The caller may wait for the result, and should if it has no `health`.
    pub(crate) fn send(
        &self,
        work: Work,
        health: Option<&Arc<JournalHealth>>,
    ) -> Result<Pending, Error> {
        let reply = Arc::new(Reply::default());
        let sender = ReplySender(Some(Arc::clone(&reply)));
        self.submit(Request {
            work,
            health: health.cloned(),
            done: Some(Box::new(move |answer| sender.send(answer))),
        })?;
        Ok(Pending(reply))
    }

    /// Sends work and calls `done` with the result.
    pub(crate) fn send_then(
        &self,
        work: Work,
        health: &Arc<JournalHealth>,
        done: Done,
    ) -> Result<(), Error> {
        self.submit(Request {
            work,
            health: Some(Arc::clone(health)),
            done: Some(done),
        })
    }

    /// Sends work that no caller waits for. A failure is recorded in `health`.
    pub(crate) fn send_and_forget(
        &self,
        work: Work,
        health: &Arc<JournalHealth>,
    ) -> Result<(), Error> {
        self.submit(Request {
            work,
            health: Some(Arc::clone(health)),
            done: None,
        })
    }

    fn submit(&self, request: Request) -> Result<(), Error> {
        request.work.points.before();
        if let Some(health) = &request.health {
            health.outstanding.fetch_add(1, Ordering::Relaxed);
        }
        let is_awaited = request.done.is_some();
        self.requests
            .push(request, is_awaited)
            .map_err(|_| Error::Closed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.requests.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A slot for one answer. There is one for each awaited request, so it is lighter than a channel.
#[derive(Default)]
struct Reply {
    answer: Mutex<Option<Answer>>,
    ready: Condvar,
}

/// A pending answer.
pub(crate) struct Pending(Arc<Reply>);

impl Pending {
    pub(crate) fn wait(self) -> Answer {
        let answer = self.0.answer.lock();
        let answer = answer.unwrap_or_else(PoisonError::into_inner);
        let answer = self.0.ready.wait_while(answer, |answer| answer.is_none());
        let mut answer = answer.unwrap_or_else(PoisonError::into_inner);
        answer.take().unwrap_or(Err(Error::Closed))
    }
}

/// Sends the answer, or [`Error::Closed`] if it is dropped before.
struct ReplySender(Option<Arc<Reply>>);

impl ReplySender {
    fn send(mut self, answer: Answer) {
        if let Some(reply) = self.0.take() {
            reply.set(answer);
        }
    }
}

impl Drop for ReplySender {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take() {
            reply.set(Err(Error::Closed));
        }
    }
}

impl Reply {
    fn set(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.ready.notify_one();
    }
}

/// The writer thread's end of the queue. Dropping it closes the queue, so that no sender waits for a
/// thread that has ended.
struct QueueConsumer(Arc<Queue<Request>>);

impl Drop for QueueConsumer {
    fn drop(&mut self) {
        self.0.close();
        self.0.clear();
    }
}

/// The files that a commit needs besides the connection.
struct Files {
    database: DatabaseFile,
    /// Where the number of the last transaction is repeated.
    position: Option<PositionFile>,
}

/// Runs all requests in one transaction. If one of them fails, each runs in its own transaction, so that
/// only that one fails: a full disk without room for a large event may have room for a small one.
fn commit(connection: &Database, files: &Files, mut batch: Vec<Request>) {
    let started = tracing::enabled!(Level::WARN).then(Instant::now);
    let answers = match connection.evidence.refusal() {
        Some(refusal) => Err(refusal),
        None => files
            .database
            .check()
            .and_then(|()| in_transaction(connection, files, &mut batch)),
    };
    if let Some(duration) = started.map(|started| started.elapsed())
        && duration >= SLOW
    {
        let (requests, is_error) = (batch.len(), answers.is_err());
        warn!(?duration, requests, is_error, "store_transaction");
    }
    match answers {
        Ok(Ok(answers)) => {
            for (request, answer) in batch.into_iter().zip(answers) {
                request.answer(Ok(answer));
            }
        }
        Ok(Err(error)) => {
            for request in batch {
                request.answer(Err(error.clone()));
            }
        }
        // Retrying each of them could take minutes and would most likely fail again.
        Err(error)
            if batch.len() == 1
                || matches!(error, Error::Busy | Error::Gone(_) | Error::KeyUnusable(_)) =>
        {
            for request in batch {
                request.answer(Err(error.clone()));
            }
        }
        Err(_) => {
            for mut request in batch {
                let answer = in_transaction(connection, files, std::slice::from_mut(&mut request));
                let answer = answer
                    .flatten()
                    .map(|answers| answers.first().copied().unwrap_or_default());
                request.answer(answer);
            }
        }
    }
}

/// The answers of a transaction, or why it was rolled back. The inner error is that it was committed, and its number
/// could not be recorded: it must not run again, and nothing may depend on it.
type Committed = Result<Result<Vec<i64>, Error>, Error>;

fn in_transaction(connection: &Database, files: &Files, requests: &mut [Request]) -> Committed {
    let mut attempt = || {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let changes = connection.total_changes();
        connection.take_new_runs();
        let answers: Result<Vec<i64>, Error> = requests
            .iter_mut()
            .map(|request| request.run(connection))
            .collect();
        let answers = answers?;
        let number = match connection.total_changes() == changes {
            true => None,
            false => position::advance(connection)?,
        };
        connection.prepare_cached("COMMIT")?.execute([])?;
        let recorded = match (number, &files.position) {
            (Some(number), Some(position)) => {
                let is_intent = requests.iter().any(|request| request.work.is_intent);
                position.record(&connection.evidence, number, is_intent)
            }
            _ => Ok(()),
        };
        Ok(recorded.map(|()| answers))
    };
    let result = attempt();
    // A full disk may have rolled back already.
    if result.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}
