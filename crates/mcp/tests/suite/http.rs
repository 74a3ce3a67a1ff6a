//! Servers over HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_mcp::{
    Authorizer, BoxFuture, CallOutcome, CallRequest, Elicitation, ElicitationReply, Era, Progress,
    Refusal, Secret, Server, ServerOptions,
};
use windlass_spec::server::{EnvTemplate, HttpTransport, ServerName, ServerSettings, Transport};
use windlass_spec::{Effect, ErrorCategory};

use super::scripted::{expect_answer, options, recorder, request};

/// A request that the mock server received.
#[derive(Debug, Clone)]
struct ReceivedRequest {
    method: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// A response: status, headers, body.
struct Response(u16, Vec<(&'static str, String)>, Vec<u8>);

impl Response {
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

/// An HTTP server with scripted responses.
struct MockHttpServer {
    url: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl MockHttpServer {
    async fn new(answer: impl Fn(&ReceivedRequest) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (received, answer) = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (received, answer) = (Arc::clone(&received), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _ = serve(stream, &received, answer.as_ref()).await;
                });
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
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
    received: &Mutex<Vec<ReceivedRequest>>,
    answer: &(impl Fn(&ReceivedRequest) -> Response + Send + Sync),
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
    let request = ReceivedRequest {
        method: head.split(' ').next().unwrap().to_owned(),
        headers,
        body: serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default(),
    };
    received.lock().unwrap().push(request.clone());
    let Response(status, headers, body) = answer(&request);
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

fn result(request: &ReceivedRequest, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result })
}

/// The response of a legacy server; `None` for calls.
fn legacy(request: &ReceivedRequest) -> Option<Response> {
    if request.method != "POST" {
        return Some(Response::status(405));
    }
    Some(match request.body["method"].as_str() {
        Some("initialize") => Response::json(&result(
            request,
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "2" },
            }),
        )),
        Some("server/discover") => Response::status(400),
        Some("tools/list") => Response::json(&result(
            request,
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" }, "x-kept": 1 }] }),
        )),
        Some("tools/call") => return None,
        _ => Response::status(202),
    })
}

fn echo(request: &ReceivedRequest) -> Value {
    let arguments = &request.body["params"]["arguments"];
    result(
        request,
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
async fn a_legacy_http_server_is_detected_listed_and_called() {
    let mock = MockHttpServer::new(|request| {
        legacy(request).unwrap_or_else(|| Response::json(&echo(request)))
    })
    .await;
    let server = Server::new(mock.settings(), options());
    assert_eq!(server.connect().await.unwrap().era, Era::Legacy);
    let definitions = server.definitions().await.unwrap();
    assert_eq!(definitions[0].as_map()["x-kept"], json!(1));
    let outcome = server
        .call(request("echo", json!({ "a": 1 })))
        .await
        .unwrap();
    assert_eq!(expect_answer(outcome).value, json!({ "a": 1 }));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_the_event_stream_of_its_session() {
    // The event stream of the session takes a while to open.
    let seen = AtomicBool::new(false);
    let mock = MockHttpServer::new(move |request| {
        if request.method == "GET" {
            std::thread::sleep(Duration::from_millis(400));
            seen.store(true, Ordering::SeqCst);
            return Response::status(405);
        }
        let Some(mut answer) = legacy(request) else {
            let content =
                json!({ "structuredContent": seen.load(Ordering::SeqCst), "content": [] });
            return Response::json(&result(request, content));
        };
        if request.body["method"] == "initialize" {
            answer.1.push(("mcp-session-id", "one".to_owned()));
        }
        answer
    })
    .await;
    let server = Server::new(mock.settings(), era(Era::Legacy));
    server.connect().await.unwrap();
    let outcome = server.call(request("echo", json!({}))).await.unwrap();
    assert_eq!(expect_answer(outcome).value, json!(true));
    server.close().await;
}

#[tokio::test]
async fn a_modern_http_server_is_listed_and_called() {
    let mock = MockHttpServer::new(|request| match request.body["method"].as_str() {
        Some("server/discover") => Response::json(&result(
            request,
            json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
        )),
        Some("tools/list") => Response::json(&result(
            request,
            json!({
                "resultType": "complete",
                "tools": [{ "name": "echo", "inputSchema": { "type": "object" }, "x-kept": 1 }],
                "ttlMs": 5000,
                "cacheScope": "private",
            }),
        )),
        Some("tools/call") if request.body["params"].get("inputResponses").is_none() => {
            Response::json(&result(
                request,
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
        _ => Response::json(&result(
            request,
            json!({ "resultType": "complete", "content": [], "structuredContent": request.body["params"]["inputResponses"] }),
        )),
    })
    .await;
    let server = Server::new(mock.settings(), options());
    assert_eq!(server.connect().await.unwrap().era, Era::Modern);
    assert_eq!(
        server.definitions().await.unwrap()[0].as_map()["x-kept"],
        json!(1)
    );
    let outcome = server.call(request("echo", json!({}))).await.unwrap();
    assert!(matches!(
        outcome,
        CallOutcome::NeedsInput(Elicitation::Form { .. })
    ));
    let outcome = server
        .reply(request("echo", json!({})), ElicitationReply::Decline)
        .await
        .unwrap();
    assert_eq!(expect_answer(outcome).value["q"]["action"], "decline");
    let requests = mock.requests();
    let call = requests
        .iter()
        .find(|request| request.body["method"] == "tools/call")
        .unwrap();
    assert_eq!(call.headers["mcp-method"], "tools/call");
    assert_eq!(call.headers["mcp-name"], "echo");
}

#[tokio::test]
async fn event_stream_answers_include_progress() {
    let mock = MockHttpServer::new(|request| {
        legacy(request).unwrap_or_else(|| {
            let token = &request.body["params"]["_meta"]["progressToken"];
            let progress = |done: u32| {
                let params = json!({ "progressToken": token, "progress": done });
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
            };
            let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
            Response::events(&[progress(1), log, progress(2), echo(request)])
        })
    })
    .await;
    let server = Server::new(mock.settings(), era(Era::Legacy));
    let (recorded, progress) = recorder::<Progress>();
    let call = CallRequest {
        progress: Some(progress),
        ..request("echo", json!({ "a": 1 }))
    };
    assert_eq!(
        expect_answer(server.call(call).await.unwrap()).value,
        json!({ "a": 1 })
    );
    let done: Vec<f64> = recorded
        .lock()
        .unwrap()
        .iter()
        .map(|progress| progress.done)
        .collect();
    assert_eq!(done, [1.0, 2.0]);
}

#[tokio::test]
async fn configured_headers_are_sent_with_every_request() {
    let mock = MockHttpServer::new(|request| {
        legacy(request).unwrap_or_else(|| Response::json(&echo(request)))
    })
    .await;
    let mut settings = mock.settings();
    if let Transport::Http(http) = &mut settings.transport {
        http.headers.insert(
            "authorization".to_owned(),
            EnvTemplate::new("Bearer env:KEY").unwrap(),
        );
        http.headers
            .insert("x-team".to_owned(), EnvTemplate::new("blue").unwrap());
    }
    let mut with_key = era(Era::Legacy);
    with_key.lookup = Arc::new(|name| (name == "KEY").then(|| "k1".to_owned()));
    let server = Server::new(settings.clone(), with_key);
    server.call(request("echo", json!({}))).await.unwrap();
    for request in mock.requests() {
        assert_eq!(request.headers["authorization"], "Bearer k1");
        assert_eq!(request.headers["x-team"], "blue");
    }

    let mut without = era(Era::Legacy);
    without.lookup = Arc::new(|_| None);
    let error = Server::new(settings, without).connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Authentication);
}

/// Gives an old token until it is refused.
struct RefreshingAuthorizer(Mutex<Vec<Option<String>>>);

impl Authorizer for RefreshingAuthorizer {
    fn token<'a>(
        &'a self,
        refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>> {
        let challenge = refusal.map(|refusal| refusal.challenge.to_owned());
        self.0.lock().unwrap().push(challenge);
        let is_refreshed = self.0.lock().unwrap().iter().any(Option::is_some);
        let token = if is_refreshed { "new" } else { "old" };
        Box::pin(async move { Ok(Some(Secret::new(token))) })
    }
}

#[tokio::test]
async fn a_refused_token_is_refreshed_once() {
    let mock = MockHttpServer::new(|request| {
        if request.headers.get("authorization").map(String::as_str) != Some("Bearer new") {
            let challenge = ("www-authenticate", "Bearer scope=\"a\"".to_owned());
            return Response(401, vec![challenge], Vec::new());
        }
        legacy(request).unwrap_or_else(|| Response::json(&echo(request)))
    })
    .await;
    let authorizer = Arc::new(RefreshingAuthorizer(Mutex::default()));
    let with_tokens = ServerOptions {
        authorizer: Some(Arc::clone(&authorizer) as Arc<dyn Authorizer>),
        ..era(Era::Legacy)
    };
    let server = Server::new(mock.settings(), with_tokens);
    server.call(request("echo", json!({}))).await.unwrap();
    let challenges = authorizer.0.lock().unwrap().clone();
    assert_eq!(
        challenges.iter().flatten().collect::<Vec<_>>(),
        ["Bearer scope=\"a\""]
    );
}

#[tokio::test]
async fn an_unauthorized_response_is_an_authentication_error() {
    let mock = MockHttpServer::new(|_| Response::status(401)).await;
    let server = Server::new(mock.settings(), options());
    let error = server.connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Authentication, "{error}");
    assert_eq!(mock.requests().len(), 1, "the other era is not tried");
}

#[tokio::test]
async fn redirects_to_another_host_are_not_followed() {
    let elsewhere = MockHttpServer::new(|request| {
        legacy(request).unwrap_or_else(|| Response::json(&echo(request)))
    })
    .await;
    let to = elsewhere.url.clone();
    let mock =
        MockHttpServer::new(move |_| Response(307, vec![("location", to.clone())], Vec::new()))
            .await;
    let error = Server::new(mock.settings(), options())
        .connect()
        .await
        .unwrap_err();
    assert!(error.message.contains("not followed"), "{error}");
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn only_http_and_https_urls_are_used() {
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
async fn http_failures_determine_the_effect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = Server::new(settings(&format!("http://{address}/mcp")), options());
    let error = server.call(request("echo", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Unavailable, Effect::None)
    );

    let mock =
        MockHttpServer::new(|request| legacy(request).unwrap_or_else(|| Response::status(503)))
            .await;
    let server = Server::new(mock.settings(), era(Era::Legacy));
    let error = server.call(request("echo", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Unavailable, Effect::Unknown)
    );
    let mock =
        MockHttpServer::new(|request| legacy(request).unwrap_or_else(|| Response::status(429)))
            .await;
    let server = Server::new(mock.settings(), era(Era::Legacy));
    let error = server.call(request("echo", json!({}))).await.unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::RateLimited, Effect::None)
    );
}

#[tokio::test]
async fn huge_http_answers_are_errors() {
    for in_events in [false, true] {
        let mock = MockHttpServer::new(move |request| {
            legacy(request).unwrap_or_else(|| {
                let text = "x".repeat(50 << 20);
                let answer = result(
                    request,
                    json!({ "content": [{ "type": "text", "text": text }] }),
                );
                match in_events {
                    true => Response::events(&[answer]),
                    false => Response::json(&answer),
                }
            })
        })
        .await;
        let server = Server::new(mock.settings(), era(Era::Legacy));
        let error = server.call(request("echo", json!({}))).await.unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidOutput, "{error}");
        assert!(error.message.contains("larger than"), "{error}");
        server.definitions().await.unwrap();
    }
}
