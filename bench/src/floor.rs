//! The floor of the loop benchmark: the HTTP exchange of a run with bare `hyper`. It sends the requests that
//! Windlass sends, and reads the streamed answers without parsing them. It has no agent, tool or journal.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::windlass_runs;
use crate::workers::run_workers;

/// The requests of one run: before and after the call of the tool.
const REQUESTS: [&str; 2] = ["first", "second"];

/// Records the requests of one run of Windlass in files of `directory`.
pub fn record(directory: &Path) -> anyhow::Result<()> {
    let recorder = crate::server::Recorder::start()?;
    windlass_runs::make(recorder.url(), 1, 1)?;
    let bodies = recorder.bodies();
    anyhow::ensure!(
        bodies.len() == REQUESTS.len(),
        "a run has {} requests",
        bodies.len()
    );
    for (name, body) in REQUESTS.iter().zip(bodies) {
        std::fs::write(directory.join(name), body)?;
    }
    Ok(())
}

/// Makes `total` runs, `at_once` at a time, each worker on a connection of its own.
pub fn make(directory: &Path, url: &str, at_once: usize, total: usize) -> anyhow::Result<()> {
    let uri: Uri = format!("{url}/chat/completions").parse()?;
    let read = |name| std::fs::read(directory.join(name)).map(Bytes::from);
    let bodies = Arc::new([read(REQUESTS[0])?, read(REQUESTS[1])?]);
    run_workers(at_once, total, |claims| {
        let (uri, bodies) = (uri.clone(), Arc::clone(&bodies));
        async move {
            let mut connection = connect(&uri).await?;
            while claims.claim() {
                for body in bodies.iter() {
                    exchange(&mut connection, &uri, body.clone()).await?;
                }
            }
            Ok(())
        }
    })
}

async fn connect(uri: &Uri) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let authority = uri.authority().context("the URL has no host")?;
    let stream = TcpStream::connect(authority.as_str()).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // It ends with the sender.
    tokio::spawn(connection);
    Ok(sender)
}

async fn exchange(
    connection: &mut SendRequest<Full<Bytes>>,
    uri: &Uri,
    body: Bytes,
) -> anyhow::Result<()> {
    let host = uri.authority().context("the URL has no host")?;
    let request = Request::post(uri.path())
        .header(HOST, host.as_str())
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    connection.ready().await?;
    let response = connection.send_request(request).await?;
    anyhow::ensure!(response.status().is_success(), "{}", response.status());
    let mut answer = response.into_body();
    let mut length = 0;
    while let Some(frame) = answer.frame().await {
        length += frame?.data_ref().map_or(0, Bytes::len);
    }
    anyhow::ensure!(length > 0, "the answer is empty");
    Ok(())
}
