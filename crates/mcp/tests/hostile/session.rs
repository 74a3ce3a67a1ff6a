//! The session: reads messages, answers each request in its own thread, and holds the state that the modes
//! share. Answers are written as text, because a library would not write some of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::modes::Mode;
use crate::options::{Options, SpokenEras};
use crate::{calls, definitions, elicitations, note};

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// The number of tools per page.
const PAGE: usize = 100;

/// How long it waits for the answer to its own request.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Session {
    pub(crate) options: Options,
    output: Mutex<std::io::Stdout>,
    state: Mutex<State>,
}

struct State {
    is_modern: bool,
    calls: u64,
    asked: u64,
    /// Whether any tool was called yet, and the number of truncated messages so far.
    called: bool,
    cut_off: u64,
    /// The capabilities of the client.
    capabilities: Value,
    notes: BTreeMap<String, String>,
    /// The ids of cancelled requests.
    cancelled: HashSet<String>,
    /// The senders for answers of the client, by request id.
    waiting: HashMap<String, mpsc::Sender<Value>>,
    /// The id of the client's subscription to list changes, in the modern era.
    subscription: Option<Value>,
}

/// The answer to a request.
pub(crate) enum Answer {
    Result(Value),
    /// A result as text, without the braces around it.
    Text(String),
    Error(i64, String, Value),
    /// No answer.
    Nothing,
}

impl Session {
    pub(crate) fn new(options: Options) -> Self {
        let welcome = ("welcome".to_owned(), "Hello.".to_owned());
        Self {
            state: Mutex::new(State {
                is_modern: options.era == SpokenEras::Modern,
                calls: 0,
                asked: 0,
                called: false,
                cut_off: 0,
                capabilities: Value::Null,
                notes: BTreeMap::from([welcome]),
                cancelled: HashSet::new(),
                waiting: HashMap::new(),
                subscription: None,
            }),
            output: Mutex::new(std::io::stdout()),
            options,
        }
    }

    /// Reads messages until the end of the input.
    pub(crate) fn serve(self: Arc<Self>) {
        if self.options.mode == Mode::NoiseOnly {
            let session = Arc::clone(&self);
            thread::spawn(move || session.make_noise(u64::MAX));
        }
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!(input.read_until(b'\n', &mut line), Ok(1..)) {
            if let Ok(message) = serde_json::from_slice(&line) {
                self.receive(message);
            }
            line.clear();
        }
        self.seen("input_closed", json!({}));
    }

    fn receive(self: &Arc<Self>, message: Value) {
        let method = message["method"].as_str().map(str::to_owned);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => {
                let (session, id) = (Arc::clone(self), id.clone());
                thread::spawn(move || session.answer(&method, &id, &message["params"]));
            }
            (Some(method), None) => match method.as_str() {
                "notifications/cancelled" => {
                    let id = &message["params"]["requestId"];
                    self.state().cancelled.insert(id.to_string());
                    self.seen("cancelled", json!({ "id": id }));
                }
                "notifications/initialized" => {
                    self.seen("connected", json!({ "era": "legacy" }));
                    if self.options.mode == Mode::AskUnasked {
                        elicitations::ask_unasked(self);
                    }
                }
                _ => {}
            },
            (None, Some(id)) => {
                let waiting = self.state().waiting.remove(&id.to_string());
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message);
                }
            }
            (None, None) => {}
        }
    }

    fn answer(self: &Arc<Self>, method: &str, id: &Value, params: &Value) {
        if self.options.mode == Mode::NoiseOnly {
            return;
        }
        let answer = match method {
            "initialize" => self.initialize(params),
            "server/discover" => self.discover(),
            "ping" => Answer::Result(json!({})),
            "tools/list" => self.list(params),
            "tools/call" => {
                let name = params["name"].as_str().unwrap_or_default();
                self.seen("called", json!({ "tool": name, "id": id }));
                self.state().called = true;
                let capabilities = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
                if capabilities.is_object() {
                    self.state().capabilities = capabilities.clone();
                }
                calls::call(self, id, params)
            }
            "subscriptions/listen" if self.is_modern() => self.subscribe(id, params),
            _ => Answer::Error(-32601, format!("Method not found: {method}"), Value::Null),
        };
        // The handshake must succeed, so only later messages are confused.
        if self.options.mode == Mode::Confused && method.starts_with("tools/") {
            self.confuse(id);
        }
        self.reply(id, answer);
        if method == "tools/call" {
            let calls = {
                let mut state = self.state();
                state.calls += 1;
                state.calls
            };
            if self.options.turn == Some(calls) && !self.options.is_silent {
                self.list_changed();
            }
        }
    }

    fn reply(&self, id: &Value, answer: Answer) {
        match self.options.mode {
            Mode::Noise => self.make_noise(self.options.count_or(20)),
            Mode::NoiseDictionary => {
                self.send("{'jsonrpc': '2.0', 'id': 1, 'result': None}");
                self.send("{\"id\": 1, \"level\": \"info\", \"message\": \"working\"}");
            }
            Mode::Truncated if self.is_cut_off() => {
                self.send("{\"jsonrpc\": \"2.0\", \"id\": ");
            }
            _ => {}
        }
        let line = match answer {
            Answer::Nothing => return,
            Answer::Error(code, message, data) => {
                let mut error = json!({ "code": code, "message": message });
                if !data.is_null() {
                    error["data"] = data;
                }
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
            }
            Answer::Result(mut result) => {
                if self.is_modern() && result.get("resultType").is_none() {
                    result["resultType"] = json!("complete");
                }
                json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
            }
            Answer::Text(mut result) => {
                if self.is_modern() {
                    result.insert_str(0, "\"resultType\":\"complete\",");
                }
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{result}}}}}")
            }
        };
        self.send(&line);
    }

    /// Whether a truncated message precedes the next answer.
    fn is_cut_off(&self) -> bool {
        let mut state = self.state();
        let is_one = state.called && state.cut_off < self.options.count_or(u64::MAX);
        state.cut_off += u64::from(is_one);
        is_one
    }

    fn initialize(&self, params: &Value) -> Answer {
        if self.is_modern() {
            return Answer::Error(
                -32022,
                format!("this server speaks {MODERN}; there is no initialize"),
                json!({ "supported": [MODERN] }),
            );
        }
        self.state().capabilities = params["capabilities"].clone();
        let mut result = json!({
            "protocolVersion": LEGACY,
            "capabilities": { "tools": { "listChanged": true }, "logging": {} },
            "serverInfo": self.information(),
        });
        if let Some(instructions) = definitions::instructions(self.options.mode) {
            result["instructions"] = json!(instructions);
        }
        Answer::Result(result)
    }

    fn discover(&self) -> Answer {
        if self.options.era == SpokenEras::Legacy {
            let message = "Method not found: server/discover".to_owned();
            return Answer::Error(-32601, message, Value::Null);
        }
        self.state().is_modern = true;
        self.seen("connected", json!({ "era": "modern" }));
        let mut result = json!({
            "supportedVersions": [MODERN],
            "capabilities": { "tools": { "listChanged": true } },
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": self.information() },
        });
        if let Some(instructions) = definitions::instructions(self.options.mode) {
            result["instructions"] = json!(instructions);
        }
        Answer::Result(result)
    }

    fn information(&self) -> Value {
        json!({ "name": self.options.claims, "version": format!("{}.0.0", self.version()) })
    }

    fn list(&self, params: &Value) -> Answer {
        let cursor = params["cursor"].as_str();
        self.seen("listed", json!({ "cursor": cursor }));
        let tools = definitions::definitions(&self.options, self.version());
        let page: usize = cursor.and_then(|text| text.parse().ok()).unwrap_or(0);
        let (shown, next) = match self.options.mode {
            Mode::CircularList => (&tools[..], Some("again".to_owned())),
            Mode::EndlessList => {
                let shown = if page == 0 { &tools[..] } else { &[] };
                (shown, Some((page + 1).to_string()))
            }
            Mode::ManyTools => {
                let from = (page * PAGE).min(tools.len());
                let to = (from + PAGE).min(tools.len());
                let next = (to < tools.len()).then(|| (page + 1).to_string());
                (&tools[from..to], next)
            }
            _ => (&tools[..], None),
        };
        let mut text = format!("\"tools\":[{}]", shown.join(","));
        if let Some(next) = next {
            text.push_str(&format!(",\"nextCursor\":\"{next}\""));
        }
        if self.is_modern() {
            let ttl = self.options.ttl.as_millis();
            text.push_str(&format!(",\"ttlMs\":{ttl},\"cacheScope\":\"private\""));
        }
        Answer::Text(text)
    }

    fn subscribe(&self, id: &Value, params: &Value) -> Answer {
        let wants_tools = params["notifications"]["toolsListChanged"] == json!(true);
        let mut accepted = Map::new();
        if wants_tools {
            accepted.insert("toolsListChanged".to_owned(), json!(true));
            self.state().subscription = Some(id.clone());
        }
        self.notify(
            "notifications/subscriptions/acknowledged",
            json!({
                "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                "notifications": accepted,
            }),
        );
        // A subscription is answered when it ends, which never happens.
        Answer::Nothing
    }

    /// Notifies that the list of tools changed.
    pub(crate) fn list_changed(&self) {
        let subscription = self.state().subscription.clone();
        let params = match subscription {
            Some(id) => json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id } }),
            None => json!({}),
        };
        self.notify("notifications/tools/list_changed", params);
    }

    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request to the client and waits for the answer.
    pub(crate) fn request(&self, method: &str, params: Value) -> Option<Value> {
        let (sender, receiver) = mpsc::channel();
        let id = {
            let mut state = self.state();
            state.asked += 1;
            let id = json!(format!("hostile-{}", state.asked));
            state.waiting.insert(id.to_string(), sender);
            id
        };
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        receiver.recv_timeout(REPLY_TIMEOUT).ok()
    }

    /// Writes one line.
    pub(crate) fn send(&self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// Writes bytes, which need not be a line. Ends the process if writing fails.
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.write_all(std::iter::once(bytes));
    }

    /// Writes pieces without interleaving other output.
    pub(crate) fn write_all<'p>(&self, pieces: impl Iterator<Item = &'p [u8]>) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in pieces {
            let written = output.write_all(piece).and_then(|()| output.flush());
            if written.is_err() && self.options.mode != Mode::Stays {
                std::process::exit(1);
            }
        }
    }

    fn make_noise(&self, lines: u64) {
        const NOISE: [&[u8]; 5] = [
            b"npm notice New major version available!\n",
            b"{\"level\": \"info\", \"message\": \"listening\"}\n",
            b"\n",
            b"\xff\xfe not even text\n",
            b"\x1b[32mready\x1b[0m\n",
        ];
        for (_, line) in (0..lines).zip(NOISE.into_iter().cycle()) {
            self.write(line);
        }
    }

    /// Sends answers to unknown requests, and misleading notifications.
    fn confuse(&self, id: &Value) {
        for other in [json!(987_654_321), json!("nobody"), Value::Null] {
            let forged = json!({ "content": [{ "type": "text", "text": "forged" }] });
            self.send(&json!({ "jsonrpc": "2.0", "id": other, "result": forged }).to_string());
        }
        self.notify(
            "notifications/progress",
            json!({ "progressToken": "nobody's", "progress": 1 }),
        );
        self.notify("notifications/cancelled", json!({ "requestId": id }));
        self.notify("notifications/unknown", json!({ "anything": [1, 2, 3] }));
    }

    /// Records the effect of a tool.
    pub(crate) fn effect(&self, tool: &str, arguments: &Value) {
        let line = json!({ "tool": tool, "arguments": arguments });
        note(self.options.effects.as_deref(), &line);
    }

    /// Records an event.
    pub(crate) fn seen(&self, what: &str, more: Value) {
        let mut line = json!({ "seen": what });
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            line.extend(more);
        }
        note(self.options.seen.as_deref(), &line);
    }

    pub(crate) fn is_cancelled(&self, id: &Value) -> bool {
        self.state().cancelled.contains(&id.to_string())
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.state().is_modern
    }

    /// Whether the client has a capability.
    pub(crate) fn client_can(&self, what: &str) -> bool {
        self.state().capabilities.get(what).is_some()
    }

    /// The current version of the definitions and behaviour.
    pub(crate) fn version(&self) -> u64 {
        let has_turned = self
            .options
            .turn
            .is_some_and(|turn| self.state().calls >= turn);
        if has_turned { 2 } else { self.options.version }
    }

    pub(crate) fn with_notes<T>(
        &self,
        use_them: impl FnOnce(&mut BTreeMap<String, String>) -> T,
    ) -> T {
        use_them(&mut self.state().notes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
