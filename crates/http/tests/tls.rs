//! Clients and a real TLS server. Its certificate is valid for `localhost` until 2120; the authority's key was
//! thrown away.

#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use reqwest::Certificate;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use windlass_http::client_builder;

const AUTHORITY: &[u8] = include_bytes!("data/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("data/server.pem");
const KEY: &[u8] = include_bytes!("data/server.key");

/// Starts a server that answers one request. Returns its URL, and whether a request arrived.
fn serve_once(version: &'static SupportedProtocolVersion) -> (String, JoinHandle<bool>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "https://localhost:{}/",
        listener.local_addr().unwrap().port()
    );
    let server = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let mut request = [0; 1024];
        if !matches!(stream.read(&mut request), Ok(1..)) {
            return false;
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
        stream.write_all(answer).is_ok()
    });
    (url, server)
}

#[tokio::test]
async fn trusted_server_is_reached_over_both_versions_of_tls() {
    for version in [&TLS12, &TLS13] {
        let (url, server) = serve_once(version);
        let client = client_builder()
            .no_proxy()
            .tls_certs_merge([Certificate::from_pem(AUTHORITY).unwrap()])
            .build()
            .unwrap();
        let answer = client.get(url).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "hello");
        assert!(server.join().unwrap());
    }
}

#[tokio::test]
async fn server_of_an_unknown_authority_is_refused() {
    let (url, server) = serve_once(&TLS13);
    let client = client_builder().no_proxy().build().unwrap();
    let error = client.get(url).send().await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    assert!(format!("{error:?}").contains("UnknownIssuer"), "{error:?}");
    assert!(!server.join().unwrap());
}

#[tokio::test]
async fn certificate_of_another_host_is_refused() {
    let (url, server) = serve_once(&TLS13);
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    let client = client_builder()
        .no_proxy()
        .tls_certs_merge([Certificate::from_pem(AUTHORITY).unwrap()])
        .resolve("other.test", ([127, 0, 0, 1], 0).into())
        .build()
        .unwrap();
    let url = format!("https://other.test:{port}/");
    let error = client.get(url).send().await.unwrap_err();
    assert!(
        format!("{error:?}").contains("NotValidForName"),
        "{error:?}"
    );
    assert!(!server.join().unwrap());
}
