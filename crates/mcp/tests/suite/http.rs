//! Servers at addresses.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_mcp::{
    Authorizer, BoxFuture, CallRequest, Came, Elicitation, Era, Progress, Refusal, Reply, Secret,
    Server, ServerOptions,
};
use windlass_spec::server::{Given, HttpTransport, ServerName, ServerSettings, Transport};
use windlass_spec::{Effect, ErrorCategory};

use super::start::{answered, keeping, options, request};

/// What came over the wire.
#[derive(Debug, Clone)]
struct Asked {
    method: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// What goes back: status, headers, body.
struct Answer(u16, Vec<(&'static str, String)>, Vec<u8>);

impl Answer {
    fn json(body: &Value) -> Self {
        let kind = ("content-type", "application/json".to_owned());
        Self(200, vec![kind], body.to_string().into_bytes())
    }

    fn events(bodies: &[Value]) -> Self {
        let kind = ("content-type", "text/event-stream".to_owned());
        let events: String = bodies
            .iter()
            .map(|body| format!("data: {body}\n\n"))
            .collect();
        Self(200, vec![kind], events.into_bytes())
    }

    fn status(status: u16) -> Self {
        Self(status, Vec::new(), Vec::new())
    }
}

/// A server of the tests.
struct Web {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Web {
    async fn new(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _ = serve(stream, &kept, answer.as_ref()).await;
                });
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn settings(&self) -> ServerSettings {
        settings(&self.url)
    }
}

fn settings(url: &str) -> ServerSettings {
    let http = HttpTransport {
        url: url.to_owned(),
        headers: BTreeMap::new(),
        oauth: None,
    };
    ServerSettings::new(ServerName::new("web").unwrap(), Transport::Http(http))
}

async fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<Asked>>,
    answer: &(impl Fn(&Asked) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let headers: BTreeMap<String, String> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + 4 + length {
        stream.read_buf(&mut bytes).await?;
    }
    let asked = Asked {
        method: head.split(' ').next().unwrap().to_owned(),
        headers,
        body: serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default(),
    };
    kept.lock().unwrap().push(asked.clone());
    let Answer(status, headers, body) = answer(&asked);
    let mut head = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}

fn result(asked: &Asked, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result })
}

/// What any server of the legacy era answers; `None` for calls.
fn legacy(asked: &Asked) -> Option<Answer> {
    if asked.method != "POST" {
        return Some(Answer::status(405));
    }
    Some(match asked.body["method"].as_str() {
        Some("initialize") => Answer::json(&result(
            asked,
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "2" },
            }),
        )),
        Some("server/discover") => Answer::status(400),
        Some("tools/list") => Answer::json(&result(
            asked,
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" }, "x-kept": 1 }] }),
        )),
        Some("tools/call") => return None,
        _ => Answer::status(202),
    })
}

fn echo(asked: &Asked) -> Value {
    let arguments = &asked.body["params"]["arguments"];
    result(
        asked,
        json!({ "content": [], "structuredContent": arguments }),
    )
}

fn era(era: Era) -> ServerOptions {
    ServerOptions {
        era: Some(era),
        ..options()
    }
}

#[tokio::test]
async fn legacy_server_at_an_address_is_found_out_listed_and_called() {
    let web = Web::new(|asked| legacy(asked).unwrap_or_else(|| Answer::json(&echo(asked)))).await;
    let server = Server::new(web.settings(), options());
    assert_eq!(server.connect().await.unwrap().era, Era::Legacy);
    let definitions = server.definitions().await.unwrap();
    assert_eq!(definitions[0].as_map()["x-kept"], json!(1));
    let came = server
        .call(request("echo", json!({ "a": 1 })))
        .await
        .unwrap();
    assert_eq!(answered(came).value, json!({ "a": 1 }));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_made_when_the_server_can_ask_about_it() {
    // The stream on which a server asks what it asks on its own takes its time to open.
    let seen = AtomicBool::new(false);
    let web = Web::new(move |asked| {
        if asked.method == "GET" {
            std::thread::sleep(Duration::from_millis(400));
            seen.store(true, Ordering::SeqCst);
            return Answer::status(405);
        }
        let Some(mut answer) = legacy(asked) else {
            let heard = json!({ "structuredContent": seen.load(Ordering::SeqCst), "content": [] });
            return Answer::json(&result(asked, heard));
        };
        if asked.body["method"] == "initialize" {
            answer.1.push(("mcp-session-id", "one".to_owned()));
        }
        answer
    })
    .await;
    let server = Server::new(web.settings(), era(Era::Legacy));
    server.connect().await.unwrap();
    let came = server.call(request("echo", json!({}))).await.unwrap();
    assert_eq!(answered(came).value, json!(true));
    server.close().await;
}

#[tokio::test]
async fn modern_server_at_an_address_is_listed_and_called() {
    let web = Web::new(|asked| match asked.body["method"].as_str() {
        Some("server/discover") => Answer::json(&result(
            asked,
            json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
        )),
        Some("tools/list") => Answer::json(&result(
            asked,
            json!({
                "resultType": "complete",
                "tools": [{ "name": "echo", "inputSchema": { "type": "object" }, "x-kept": 1 }],
                "ttlMs": 5000,
                "cacheScope": "private",
            }),
        )),
        Some("tools/call") if asked.body["params"].get("inputResponses").is_none() => {
            Answer::json(&result(
                asked,
                json!({
                    "resultType": "input_required",
                    "requestState": "s",
                    "inputRequests": { "q": { "method": "elicitation/create", "params": {
                        "mode": "form",
                        "message": "Which?",
                        "requestedSchema": { "type": "object", "properties": { "colour": { "type": "string" } } },
                    } } },
                }),
            ))
        }
        _ => Answer::json(&result(
            asked,
            json!({ "resultType": "complete", "content": [], "structuredContent": asked.body["params"]["inputResponses"] }),
        )),
    })
    .await;
    let server = Server::new(web.settings(), options());
    assert_eq!(server.connect().await.unwrap().era, Era::Modern);
    assert_eq!(
        server.definitions().await.unwrap()[0].as_map()["x-kept"],
        json!(1)
    );
    let came = server.call(request("echo", json!({}))).await.unwrap();
    assert!(matches!(came, Came::Asks(Elicitation::Form { .. })));
    let came = server
        .reply(request("echo", json!({})), Reply::Decline)
        .await
        .unwrap();
    assert_eq!(answered(came).value["q"]["action"], "decline");
    let asked = web.asked();
    let call = asked
        .iter()
        .find(|asked| asked.body["method"] == "tools/call")
        .unwrap();
    assert_eq!(call.headers["mcp-method"], "tools/call");
    assert_eq!(call.headers["mcp-name"], "echo");
}

#[tokio::test]
async fn answers_in_events_come_with_their_progress() {
    let web = Web::new(|asked| {
        legacy(asked).unwrap_or_else(|| {
            let token = &asked.body["params"]["_meta"]["progressToken"];
            let progress = |done: u32| {
                let params = json!({ "progressToken": token, "progress": done });
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
            };
            let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
            Answer::events(&[progress(1), log, progress(2), echo(asked)])
        })
    })
    .await;
    let server = Server::new(web.settings(), era(Era::Legacy));
    let (kept, progress) = keeping::<Progress>();
    let call = CallRequest {
        progress: Some(progress),
        ..request("echo", json!({ "a": 1 }))
    };
    assert_eq!(
        answered(server.call(call).await.unwrap()).value,
        json!({ "a": 1 })
    );
    let done: Vec<f64> = kept
        .lock()
        .unwrap()
        .iter()
        .map(|progress| progress.done)
        .collect();
    assert_eq!(done, [1.0, 2.0]);
}

#[tokio::test]
async fn headers_of_the_settings_are_sent_with_every_request() {
    let web = Web::new(|asked| legacy(asked).unwrap_or_else(|| Answer::json(&echo(asked)))).await;
    let mut settings = web.settings();
    if let Transport::Http(http) = &mut settings.transport {
        http.headers.insert(
            "authorization".to_owned(),
            Given::new("Bearer env:KEY").unwrap(),
        );
        http.headers
            .insert("x-team".to_owned(), Given::new("blue").unwrap());
    }
    let mut with_key = era(Era::Legacy);
    with_key.lookup = Arc::new(|name| (name == "KEY").then(|| "k1".to_owned()));
    let server = Server::new(settings.clone(), with_key);
    server.call(request("echo", json!({}))).await.unwrap();
    for asked in web.asked() {
        assert_eq!(asked.headers["authorization"], "Bearer k1");
        assert_eq!(asked.headers["x-team"], "blue");
    }

    let mut without = era(Era::Legacy);
    without.lookup = Arc::new(|_| None);
    let error = Server::new(settings, without).connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Authentication);
}

/// Has an old token until somebody refuses it.
struct Renewing(Mutex<Vec<Option<String>>>);

impl Authorizer for Renewing {
    fn token<'a>(
        &'a self,
        refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>> {
        let challenge = refusal.map(|refusal| refusal.challenge.to_owned());
        self.0.lock().unwrap().push(challenge);
        let is_renewed = self.0.lock().unwrap().iter().any(Option::is_some);
        let token = if is_renewed { "new" } else { "old" };
        Box::pin(async move { Ok(Some(Secret::new(token))) })
    }
}

#[tokio::test]
async fn refused_token_is_renewed_once() {
    let web = Web::new(|asked| {
        if asked.headers.get("authorization").map(String::as_str) != Some("Bearer new") {
            let challenge = ("www-authenticate", "Bearer scope=\"a\"".to_owned());
            return Answer(401, vec![challenge], Vec::new());
        }
        legacy(asked).unwrap_or_else(|| Answer::json(&echo(asked)))
    })
    .await;
    let authorizer = Arc::new(Renewing(Mutex::default()));
    let with_tokens = ServerOptions {
        authorizer: Some(Arc::clone(&authorizer) as Arc<dyn Authorizer>),
        ..era(Era::Legacy)
    };
    let server = Server::new(web.settings(), with_tokens);
    server.call(request("echo", json!({}))).await.unwrap();
    let challenges = authorizer.0.lock().unwrap().clone();
    assert_eq!(
        challenges.iter().flatten().collect::<Vec<_>>(),
        ["Bearer scope=\"a\""]
    );
}

#[tokio::test]
async fn server_that_refuses_who_asks_is_told_as_such() {
    let web = Web::new(|_| Answer::status(401)).await;
    let server = Server::new(web.settings(), options());
    let error = server.connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Authentication, "{error}");
    assert_eq!(
        web.asked().len(),
        1,
        "it is not asked in the other era as well"
    );
}

#[tokio::test]
async fn nothing_is_sent_to_where_a_server_redirects() {
    let elsewhere =
        Web::new(|asked| legacy(asked).unwrap_or_else(|| Answer::json(&echo(asked)))).await;
    let to = elsewhere.url.clone();
    let web = Web::new(move |_| Answer(307, vec![("location", to.clone())], Vec::new())).await;
    let error = Server::new(web.settings(), options())
        .connect()
        .await
        .unwrap_err();
    assert!(error.message.contains("not followed"), "{error}");
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn only_addresses_of_the_web_are_used() {
    for url in [
        "file:///etc/passwd",
        "javascript:x",
        "ftp://localhost/",
        "nonsense",
    ] {
        let error = Server::new(settings(url), options())
            .connect()
            .await
            .unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidArguments, "{url}");
    }
}

#[tokio::test]
async fn call_that_cannot_be_connected_has_no_effect_and_one_that_broke_off_may() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = Server::new(settings(&format!("http://{address}/mcp")), options());
    let error = server.call(request("echo", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Unavailable, Effect::None)
    );

    let web = Web::new(|asked| legacy(asked).unwrap_or_else(|| Answer::status(503))).await;
    let server = Server::new(web.settings(), era(Era::Legacy));
    let error = server.call(request("echo", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Unavailable, Effect::Unknown)
    );
    let web = Web::new(|asked| legacy(asked).unwrap_or_else(|| Answer::status(429))).await;
    let server = Server::new(web.settings(), era(Era::Legacy));
    let error = server.call(request("echo", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::RateLimited, Effect::None)
    );
}

#[tokio::test]
async fn huge_answers_over_http_are_clear_errors() {
    for in_events in [false, true] {
        let web = Web::new(move |asked| {
            legacy(asked).unwrap_or_else(|| {
                let text = "x".repeat(50 << 20);
                let answer = result(
                    asked,
                    json!({ "content": [{ "type": "text", "text": text }] }),
                );
                match in_events {
                    true => Answer::events(&[answer]),
                    false => Answer::json(&answer),
                }
            })
        })
        .await;
        let server = Server::new(web.settings(), era(Era::Legacy));
        let error = server.call(request("echo", json!({}))).await.unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidOutput, "{error}");
        assert!(error.message.contains("larger than"), "{error}");
        server.definitions().await.unwrap();
    }
}
