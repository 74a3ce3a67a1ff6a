//! The one thread that writes. Whatever waits when a commit ends goes into the next one, so that many
//! runs share one wait for the disk. Requests are done in the order in which they were sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tracing::{Level, warn};
use windlass_spec::RunId;

use crate::connection::Place;
use crate::crash::Points;
use crate::error::Error;
use crate::queue::Queue;

/// A transaction that takes longer is traced.
const SLOW: Duration = Duration::from_millis(50);

/// What is done inside a transaction. It may be done a second time if the first was rolled back.
pub(crate) type Change = Box<dyn FnMut(&Connection) -> Answer + Send>;

/// Something to write, between the points at which a test may have the process die.
pub(crate) struct Work {
    pub(crate) points: Points,
    pub(crate) change: Change,
}

impl Work {
    pub(crate) fn new(
        points: Points,
        change: impl FnMut(&Connection) -> Answer + Send + 'static,
    ) -> Self {
        Self {
            points,
            change: Box::new(change),
        }
    }
}

pub(crate) type Answer = Result<i64, Error>;

/// Told the answer, on the thread that writes, so it must be quick.
pub(crate) type Done = Box<dyn FnOnce(Answer) + Send>;

/// Whether everything a journal was given has been stored so far. Events that are not waited for
/// fail after they were acknowledged; this is how whoever sends the next one learns of it.
pub(crate) struct Health {
    run: RunId,
    failure: OnceLock<Error>,
    /// How much of what was sent is neither stored nor refused yet.
    outstanding: AtomicUsize,
}

impl Health {
    pub(crate) fn new(run: RunId) -> Self {
        Self {
            run,
            failure: OnceLock::new(),
            outstanding: AtomicUsize::new(0),
        }
    }

    /// Whether something is still on its way.
    pub(crate) fn is_behind(&self) -> bool {
        self.outstanding.load(Ordering::Acquire) > 0
    }

    /// # Errors
    /// If something could not be stored.
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
    health: Option<Arc<Health>>,
    done: Option<Done>,
}

impl Request {
    fn run(&mut self, connection: &Connection) -> Answer {
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
            // A second failure changes nothing: the first one says why.
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

/// The way to the writing thread. Dropping it waits until all that was sent is stored.
pub(crate) struct Writer {
    requests: Arc<Queue<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, place: Place) -> Result<Self, std::io::Error> {
        let requests = Arc::new(Queue::new());
        let end = TakerEnd(Arc::clone(&requests));
        let thread = std::thread::Builder::new()
            .name("windlass-store".to_owned())
            .spawn(move || {
                while let Some(batch) = end.0.take() {
                    commit(&connection, &place, batch);
                }
            })?;
        Ok(Self {
            requests,
            thread: Some(thread),
        })
    }

    /// Whether so much waits that sending more might have to wait for room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.requests.is_crowded()
    }

    /// Does something and waits until it is on the disk.
    pub(crate) fn wait_for(&self, work: Work) -> Answer {
        self.send(work, None)?.wait()
    }

    /// Sends something to be done. The caller may wait for it, and should if it has no `health`.
    pub(crate) fn send(&self, work: Work, health: Option<&Arc<Health>>) -> Result<Pending, Error> {
        let reply = Arc::new(Reply::default());
        let teller = Teller(Some(Arc::clone(&reply)));
        self.submit(Request {
            work,
            health: health.cloned(),
            done: Some(Box::new(move |answer| teller.tell(answer))),
        })?;
        Ok(Pending(reply))
    }

    /// Sends something to be done and has `done` told when it is on the disk.
    pub(crate) fn send_then(
        &self,
        work: Work,
        health: &Arc<Health>,
        done: Done,
    ) -> Result<(), Error> {
        self.submit(Request {
            work,
            health: Some(Arc::clone(health)),
            done: Some(done),
        })
    }

    /// Sends something nobody waits for. If it fails, `health` tells.
    pub(crate) fn send_and_forget(&self, work: Work, health: &Arc<Health>) -> Result<(), Error> {
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

/// Where an answer is left. There is one for each request somebody waits for, so it is made of less
/// than a channel.
#[derive(Default)]
struct Reply {
    answer: Mutex<Option<Answer>>,
    is_there: Condvar,
}

/// The answer to come.
pub(crate) struct Pending(Arc<Reply>);

impl Pending {
    pub(crate) fn wait(self) -> Answer {
        let answer = self.0.answer.lock();
        let answer = answer.unwrap_or_else(PoisonError::into_inner);
        let answer = self
            .0
            .is_there
            .wait_while(answer, |answer| answer.is_none());
        let mut answer = answer.unwrap_or_else(PoisonError::into_inner);
        answer.take().unwrap_or(Err(Error::Closed))
    }
}

/// Tells the answer, or, if it is dropped before, that there is none to come.
struct Teller(Option<Arc<Reply>>);

impl Teller {
    fn tell(mut self, answer: Answer) {
        if let Some(reply) = self.0.take() {
            reply.give(answer);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take() {
            reply.give(Err(Error::Closed));
        }
    }
}

impl Reply {
    fn give(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.is_there.notify_one();
    }
}

/// The writing thread's end of the queue. However the thread ends, nobody waits for it afterwards.
struct TakerEnd(Arc<Queue<Request>>);

impl Drop for TakerEnd {
    fn drop(&mut self) {
        self.0.close();
        self.0.clear();
    }
}

/// Does all requests in one transaction. If one of them fails, each gets its own, so that it fails
/// alone: a full disk that has no room for a large event may have room for a small one.
fn commit(connection: &Connection, place: &Place, mut batch: Vec<Request>) {
    let started = tracing::enabled!(Level::WARN).then(Instant::now);
    let answers = place
        .check()
        .and_then(|()| in_transaction(connection, &mut batch));
    if let Some(duration) = started.map(|started| started.elapsed())
        && duration >= SLOW
    {
        let (requests, is_error) = (batch.len(), answers.is_err());
        warn!(?duration, requests, is_error, "store_transaction");
    }
    match answers {
        Ok(answers) => {
            for (request, answer) in batch.into_iter().zip(answers) {
                request.answer(Ok(answer));
            }
        }
        // Waiting again for each of them would take minutes and most likely change nothing.
        Err(error) if batch.len() == 1 || matches!(error, Error::Busy | Error::Gone(_)) => {
            for request in batch {
                request.answer(Err(error.clone()));
            }
        }
        Err(_) => {
            for mut request in batch {
                let answer = in_transaction(connection, std::slice::from_mut(&mut request));
                let answer = answer.map(|answers| answers.first().copied().unwrap_or_default());
                request.answer(answer);
            }
        }
    }
}

fn in_transaction(connection: &Connection, requests: &mut [Request]) -> Result<Vec<i64>, Error> {
    let mut attempt = || {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let answers: Result<Vec<i64>, Error> = requests
            .iter_mut()
            .map(|request| request.run(connection))
            .collect();
        let answers = answers?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(answers)
    };
    let result = attempt();
    // A full disk may have rolled back already.
    if result.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}
