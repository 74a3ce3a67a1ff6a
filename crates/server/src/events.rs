//! Live events for many listeners. What is new in a run, or in all runs of a tenant, is read once and sent to all who
//! listen. A listener that does not keep up is dropped: it connects again and continues where it was.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use windlass_service::types::{Event, RunId};
use windlass_service::{Identity, Service, ServiceError};

use crate::app::{App, blocking};
use crate::authentication::Credential;
use crate::frames::{Frame, RunFrame};
use crate::problem::Problem;

/// How often the store is checked for changes while somebody listens.
const TICK: Duration = Duration::from_millis(4);

/// How often it is checked while nobody does.
const IDLE_TICK: Duration = Duration::from_millis(50);

/// How often a stream without news shows that it lives, and the credential of any stream is checked.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How many frames a listener may be behind.
const BEHIND: usize = 1_024;

/// How far a listener is: the event and its frame, and the end of a run or of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    event: u64,
    frame: u32,
    end: u64,
}

impl Cursor {
    /// Before the first event.
    pub(crate) const BEGINNING: Self = Self {
        event: 0,
        frame: u32::MAX,
        end: 0,
    };

    /// After all events up to these.
    pub(crate) const fn after(event: u64, end: u64) -> Self {
        Self {
            event,
            frame: u32::MAX,
            end,
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let mut next = || parts.next()?.parse::<u64>().ok();
        let (event, frame, end) = (next()?, u32::try_from(next()?).ok()?, next()?);
        let is_whole = parts.next().is_none();
        is_whole.then_some(Self { event, frame, end })
    }

    fn id(self) -> String {
        format!("{}.{}.{}", self.event, self.frame, self.end)
    }

    /// Moves to the place of a frame. Returns false if the listener had it.
    fn take(&mut self, place: Place) -> bool {
        match place {
            Place::Event(event, frame) if (event, frame) > (self.event, self.frame) => {
                (self.event, self.frame) = (event, frame);
                true
            }
            Place::End(end) if end > self.end => {
                self.end = end;
                true
            }
            Place::Live => true,
            Place::Event(..) | Place::End(_) => false,
        }
    }
}

/// Where a frame is in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Event(u64, u32),
    End(u64),
    /// Nowhere: it is not stored.
    Live,
}

/// A frame, ready to be sent.
#[derive(Debug)]
struct Sent {
    place: Place,
    name: &'static str,
    data: String,
    /// Whether the stream ends after it.
    is_last: bool,
}

impl Sent {
    fn write(&self, cursor: Cursor) -> String {
        let id = match self.place {
            Place::Live => String::new(),
            Place::Event(..) | Place::End(_) => format!("id: {}\n", cursor.id()),
        };
        format!("{id}event: {}\ndata: {}\n\n", self.name, self.data)
    }
}

/// What a stream is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// A run.
    Run(RunId),
    /// All runs of a tenant.
    Tenant(String),
}

type Feeds = HashMap<Topic, broadcast::Sender<Arc<Sent>>>;

/// The streams that somebody listens to.
pub(crate) struct Hub {
    service: Service,
    changes: watch::Sender<u64>,
    feeds: Arc<Mutex<Feeds>>,
    closing: CancellationToken,
}

impl Hub {
    pub(crate) fn new(service: Service, closing: CancellationToken) -> Self {
        let (changes, _) = watch::channel(0);
        Self {
            service,
            changes,
            feeds: Arc::default(),
            closing,
        }
    }

    /// Starts to watch the store.
    ///
    /// # Errors
    /// If the store cannot be opened, or there is no thread for it.
    pub(crate) fn start(&self) -> Result<(), ServiceError> {
        let mut store = self.service.store_changes()?;
        let (changes, closing) = (self.changes.clone(), self.closing.clone());
        std::thread::Builder::new()
            .name("store-changes".to_owned())
            .spawn(move || {
                while !closing.is_cancelled() {
                    // Without an answer, listeners look for themselves.
                    if store.has_changed().unwrap_or(true) {
                        changes.send_modify(|number| *number = number.wrapping_add(1));
                    }
                    std::thread::sleep(match changes.receiver_count() {
                        0 => IDLE_TICK,
                        _ => TICK,
                    });
                }
            })?;
        Ok(())
    }

    /// Sends text of a model to those who listen to its run.
    pub(crate) fn send_text(&self, run: &RunId, text: &str) {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(&Topic::Run(run.clone())) {
            let frame = Frame::Delta {
                text: text.to_owned(),
            };
            let _ = feed.send(Arc::new(Sent {
                place: Place::Live,
                name: frame.name(),
                data: serde_json::to_string(&frame).unwrap_or_default(),
                is_last: false,
            }));
        }
    }

    /// The live frames of a topic. Those before `reader` begins may be missing.
    fn subscribe(&self, topic: &Topic, reader: Reader) -> broadcast::Receiver<Arc<Sent>> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(topic) {
            return feed.subscribe();
        }
        let (sender, receiver) = broadcast::channel(BEHIND);
        feeds.insert(topic.clone(), sender.clone());
        let feed = Feed {
            topic: topic.clone(),
            reader,
            sender,
            changes: self.changes.subscribe(),
            feeds: Arc::clone(&self.feeds),
            closing: self.closing.clone(),
        };
        tokio::spawn(feed.run());
        receiver
    }
}

/// Reads what is new and sends it to all listeners of a topic.
struct Feed {
    topic: Topic,
    reader: Reader,
    sender: broadcast::Sender<Arc<Sent>>,
    changes: watch::Receiver<u64>,
    feeds: Arc<Mutex<Feeds>>,
    closing: CancellationToken,
}

impl Feed {
    async fn run(mut self) {
        loop {
            self.changes.mark_unchanged();
            let is_over = match self.reader.read().await {
                Ok(frames) => {
                    let is_over = frames.iter().any(|frame| frame.is_last);
                    for frame in frames {
                        let _ = self.sender.send(Arc::new(frame));
                    }
                    is_over
                }
                // The store may be usable again later.
                Err(_) => false,
            };
            if is_over || self.is_left() {
                break;
            }
            tokio::select! {
                _ = self.changes.changed() => {}
                () = tokio::time::sleep(HEARTBEAT) => {}
                () = self.closing.cancelled() => break,
            }
        }
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if feeds
            .get(&self.topic)
            .is_some_and(|feed| feed.same_channel(&self.sender))
        {
            feeds.remove(&self.topic);
        }
    }

    /// Whether nobody listens any more. Under the lock, so that nobody begins to listen meanwhile.
    fn is_left(&self) -> bool {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_left = self.sender.receiver_count() == 0;
        if is_left {
            feeds.remove(&self.topic);
        }
        is_left
    }
}

/// Reads the frames of a topic from the store.
#[derive(Clone)]
struct Reader {
    service: Service,
    identity: Identity,
    topic: Topic,
    cursor: Cursor,
    /// The most turns of a run, by run.
    turns: HashMap<RunId, u32>,
}

impl Reader {
    /// The frames after those that were read.
    async fn read(&mut self) -> Result<Vec<Sent>, Problem> {
        let mut frames = Vec::new();
        loop {
            let more = match self.topic.clone() {
                Topic::Run(run) => self.read_run(&run).await?,
                Topic::Tenant(_) => self.read_tenant().await?,
            };
            let is_done = more.is_empty() || more.iter().any(|frame| frame.is_last);
            frames.extend(more);
            if is_done {
                return Ok(frames);
            }
        }
    }

    async fn read_run(&mut self, run: &RunId) -> Result<Vec<Sent>, Problem> {
        let (service, identity) = (self.service.clone(), self.identity.clone());
        let (id, from) = (run.to_string(), self.cursor.event.max(1));
        let stored = blocking(move || service.stored_events(&identity, &id, from)).await?;
        let mut frames = Vec::new();
        let events = stored.events.into_iter();
        self.push_events(
            events.map(|(position, event)| (position, run.clone(), event)),
            &mut frames,
        );
        let content = stored.end.map(|end| Frame::Content {
            content: end.answer().to_string(),
        });
        for (number, frame) in content
            .into_iter()
            .flat_map(|content| [(1, content), (2, Frame::Done)])
        {
            if self.cursor.take(Place::End(number)) {
                frames.push(self.sent(Place::End(number), run, &frame, number == 2));
            }
        }
        Ok(frames)
    }

    async fn read_tenant(&mut self) -> Result<Vec<Sent>, Problem> {
        let (service, identity) = (self.service.clone(), self.identity.clone());
        let cursor = self.cursor;
        // Ends have two frames each.
        let news = move || service.tenant_news(&identity, cursor.event.max(1), cursor.end / 2);
        let news = blocking(news).await?;
        let mut frames = Vec::new();
        let events = news.events.into_iter();
        self.push_events(
            events.map(|one| (one.position, one.run, one.event)),
            &mut frames,
        );
        for end in news.ends {
            let content = end.response.map(|response| Frame::Content {
                content: response.answer().to_string(),
            });
            let places = [
                (2 * end.number - 1, content),
                (2 * end.number, Some(Frame::Done)),
            ];
            for (number, frame) in places {
                if let (true, Some(frame)) = (self.cursor.take(Place::End(number)), frame) {
                    frames.push(self.sent(Place::End(number), &end.run, &frame, false));
                }
            }
            self.turns.remove(&end.run);
        }
        Ok(frames)
    }

    fn push_events(
        &mut self,
        events: impl Iterator<Item = (u64, RunId, Event)>,
        frames: &mut Vec<Sent>,
    ) {
        for (position, run, event) in events {
            if let Event::Started { settings, .. } = &event {
                self.turns.insert(run.clone(), settings.max_iterations);
            }
            let turns = self.turns.get(&run).copied();
            for (number, frame) in (0..).zip(Frame::of(&event, turns)) {
                let place = Place::Event(position, number);
                if self.cursor.take(place) {
                    frames.push(self.sent(place, &run, &frame, false));
                }
            }
            // An event without a frame is read, too.
            if position > self.cursor.event {
                (self.cursor.event, self.cursor.frame) = (position, u32::MAX);
            }
        }
    }

    fn sent(&self, place: Place, run: &RunId, frame: &Frame, is_last: bool) -> Sent {
        let data = match &self.topic {
            Topic::Run(_) => serde_json::to_string(frame),
            Topic::Tenant(_) => serde_json::to_string(&RunFrame {
                run: run.to_string(),
                frame: frame.clone(),
            }),
        };
        Sent {
            place,
            name: frame.name(),
            data: data.unwrap_or_default(),
            is_last,
        }
    }
}

/// A stream of a topic to a listener that has everything up to `cursor`. `credential` is checked again while it listens.
pub(crate) async fn stream(
    app: &Arc<App>,
    identity: &Identity,
    topic: Topic,
    cursor: Cursor,
    credential: Credential,
) -> Result<Response, Problem> {
    let mut reader = Reader {
        service: app.service.clone(),
        identity: identity.clone(),
        topic: topic.clone(),
        cursor,
        turns: HashMap::new(),
    };
    if let Topic::Run(run) = &topic {
        // The most turns of a run are in its first event.
        let (service, identity, id) = (app.service.clone(), identity.clone(), run.to_string());
        let turns = blocking(move || {
            let first = service.stored_events(&identity, &id, 1)?;
            Ok(first.events.into_iter().find_map(|(_, event)| match event {
                Event::Started { settings, .. } => Some(settings.max_iterations),
                _ => None,
            }))
        });
        reader
            .turns
            .extend(turns.await?.map(|turns| (run.clone(), turns)));
        if cursor.end >= 2 {
            // The browser does not connect again after this.
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        }
    }
    let before = reader.read().await?;
    let is_over = before.iter().any(|frame| frame.is_last);
    let mut ready: VecDeque<Arc<Sent>> = before.into_iter().map(Arc::new).collect();
    let live = match is_over {
        true => None,
        false => {
            let live = app.hub.subscribe(&topic, reader.clone());
            // What was stored between the first read and the subscription.
            ready.extend(reader.read().await?.into_iter().map(Arc::new));
            Some(live)
        }
    };
    let listener = Listener {
        app: Arc::clone(app),
        credential,
        check_at: Instant::now() + HEARTBEAT,
        cursor,
        ready,
        live,
        is_over: false,
    };
    let chunks = futures::stream::unfold(listener, |mut listener| async move {
        let chunk = listener.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(chunk), listener))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    // Proxies would collect the events otherwise.
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    Ok(response)
}

/// One listener.
struct Listener {
    app: Arc<App>,
    credential: Credential,
    /// When the credential is checked again, however much is sent until then.
    check_at: Instant,
    cursor: Cursor,
    ready: VecDeque<Arc<Sent>>,
    /// `None` if everything is in `ready`.
    live: Option<broadcast::Receiver<Arc<Sent>>>,
    is_over: bool,
}

impl Listener {
    /// What is sent next; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if Instant::now() >= self.check_at {
            self.check().await?;
        }
        let mut text = String::new();
        loop {
            while let Some(frame) = self.ready.pop_front() {
                if self.cursor.take(frame.place) {
                    text.push_str(&frame.write(self.cursor));
                }
                self.is_over |= frame.is_last;
            }
            if !text.is_empty() {
                return Some(text.into());
            }
            let live = self.live.as_mut().filter(|_| !self.is_over)?;
            tokio::select! {
                frame = live.recv() => {
                    // Too far behind, or the server stops: the listener connects again.
                    self.ready.push_back(frame.ok()?);
                    while let Ok(more) = live.try_recv() {
                        self.ready.push_back(more);
                    }
                }
                () = tokio::time::sleep(HEARTBEAT) => {
                    self.check().await?;
                    return Some(Bytes::from_static(b": alive\n\n"));
                }
                () = self.app.closing.cancelled() => return None,
            }
        }
    }
}

impl Listener {
    /// Whether the listener may still listen; `None` if it may not.
    async fn check(&mut self) -> Option<()> {
        self.check_at = Instant::now() + HEARTBEAT;
        let checked = self.credential.authenticate(&self.app.service).await;
        checked.ok().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_gets_each_frame_once_and_in_order() {
        let mut cursor = Cursor::parse("3.1.0").unwrap();
        assert!(!cursor.take(Place::Event(3, 1)));
        assert!(!cursor.take(Place::Event(2, 9)));
        assert!(cursor.take(Place::Event(3, 2)));
        assert!(cursor.take(Place::Event(7, 0)));
        assert!(cursor.take(Place::End(1)));
        assert!(!cursor.take(Place::End(1)));
        assert_eq!(cursor.id(), "7.0.1");
        for invalid in ["", "1", "1.2", "1.2.3.4", "a.b.c", "1.-1.0"] {
            assert_eq!(Cursor::parse(invalid), None, "{invalid}");
        }
    }
}
