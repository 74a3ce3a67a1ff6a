//! A mock web server on loopback: pages by path, and a record of every request.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The responses by path, including headers.
pub(in crate::suite) type Pages = HashMap<String, String>;

pub(in crate::suite) struct MockServer {
    pub(in crate::suite) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl MockServer {
    /// A server that answers with the result of `answer`.
    pub(in crate::suite) async fn answering(
        answer: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (recorded, answer) = (Arc::clone(&recorded), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    let mut part = [0; 4096];
                    while !is_complete(&request) {
                        match stream.read(&mut part).await {
                            Ok(length) if length > 0 => request.extend_from_slice(&part[..length]),
                            _ => break,
                        }
                    }
                    let request = String::from_utf8_lossy(&request).into_owned();
                    let answer = answer(&request);
                    recorded.lock().unwrap().push(request);
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, requests }
    }

    /// A server with these pages, by path.
    pub(in crate::suite) async fn with(pages: Pages) -> Self {
        Self::answering(move |request| {
            let path = path(request);
            let page = pages.get(&path).cloned();
            page.unwrap_or_else(|| response("404 Not Found", "text/plain", "no such page"))
        })
        .await
    }

    /// A search engine that answers like `SearxNG`, with one result about every query.
    pub(in crate::suite) async fn searxng() -> Self {
        Self::answering(|request| {
            let url = reqwest::Url::parse(&format!("http://search.test{}", path(request))).unwrap();
            let parameter = |name: &str| {
                let mut pairs = url.query_pairs();
                pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
            };
            if url.path() != "/search" || parameter("format").as_deref() != Some("json") {
                return response("403 Forbidden", "text/html", "<h1>Forbidden</h1>");
            }
            let query = parameter("q").unwrap_or_default();
            let body = serde_json::json!({
                "query": query,
                "number_of_results": 0,
                "results": [
                    {"title": format!("About {query}"), "url": "https://example.org/about",
                     "content": "Paris is the capital of France.", "engine": "test", "score": 1.0,
                     "category": "general", "publishedDate": null},
                    {"title": "No page", "url": "javascript:alert(1)", "content": "x"},
                    {"url": "http://example.org/other", "content": null},
                ],
                "answers": [], "corrections": [], "infoboxes": [], "suggestions": [],
                "unresponsive_engines": [],
            });
            response("200 OK", "application/json", &body.to_string())
        })
        .await
    }

    pub(in crate::suite) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requested paths, in order.
    pub(in crate::suite) fn paths(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| path(request)).collect()
    }

    /// The requests, in order.
    pub(in crate::suite) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn path(request: &str) -> String {
    request.split(' ').nth(1).unwrap_or_default().to_owned()
}

pub(in crate::suite) fn response(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

pub(in crate::suite) fn html(body: &str) -> String {
    response("200 OK", "text/html; charset=utf-8", body)
}

pub(in crate::suite) fn redirect(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}
