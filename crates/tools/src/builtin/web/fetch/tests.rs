//! Tests of names that resolve to private or changing addresses. The servers are on loopback, so each test
//! defines which address counts as public. Only Linux has a second loopback address by default.

#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use windlass_spec::ErrorCategory;

use super::{Fetcher, PublicResolver, is_public};
use crate::builtin::HttpSettings;

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));

/// A server that answers every request with `body`, and the number of connections.
async fn server(address: IpAddr, port: u16, body: &'static str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((address, port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]).await;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, connections)
}

/// Resolves every name to `answers`, one after the other, then always to the last.
fn resolver(
    answers: Vec<Vec<IpAddr>>,
    is_public: fn(IpAddr) -> bool,
) -> (PublicResolver, Arc<AtomicUsize>) {
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    let resolver = PublicResolver {
        lookup: Arc::new(move |_| {
            let number = counted
                .fetch_add(1, Ordering::SeqCst)
                .min(answers.len() - 1);
            let answer = answers[number].clone();
            Box::pin(async move { Ok(answer) })
        }),
        is_public,
    };
    (resolver, lookups)
}

fn fetcher(host: &str, resolver: PublicResolver) -> Fetcher {
    Fetcher::with_resolver(HttpSettings::new([host]).unwrap(), resolver)
}

#[tokio::test]
async fn the_request_goes_to_the_address_that_was_checked() {
    let (port, good) = server(PUBLIC, 0, "good").await;
    let (_, bad) = server(PRIVATE, port, "bad").await;
    // A name that resolves to the allowed address first, and then always to the other.
    let (resolver, lookups) = resolver(vec![vec![PUBLIC], vec![PRIVATE]], |address| {
        address == PUBLIC
    });
    let fetcher = fetcher(&format!("rebind.test:{port}"), resolver);
    let page = fetcher
        .fetch(&format!("http://rebind.test:{port}/"))
        .await
        .unwrap();
    assert_eq!(page.text().unwrap(), "good");
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    // Every connection is closed, so the next request looks the name up again, and is refused.
    let error = fetcher
        .fetch(&format!("http://rebind.test:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(error.category(), ErrorCategory::PermissionDenied);
    assert_eq!(
        (good.load(Ordering::SeqCst), bad.load(Ordering::SeqCst)),
        (1, 0)
    );
}

#[tokio::test]
async fn only_the_public_addresses_of_a_name_are_used() {
    let (port, good) = server(PUBLIC, 0, "good").await;
    let (_, bad) = server(PRIVATE, port, "bad").await;
    let (resolver, _) = resolver(vec![vec![PRIVATE, PUBLIC]], |address| address == PUBLIC);
    let fetcher = fetcher(&format!("mixed.test:{port}"), resolver);
    let page = fetcher
        .fetch(&format!("http://mixed.test:{port}/"))
        .await
        .unwrap();
    assert_eq!(page.text().unwrap(), "good");
    assert_eq!(
        (good.load(Ordering::SeqCst), bad.load(Ordering::SeqCst)),
        (1, 0)
    );
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused_even_if_private_addresses_are_allowed() {
    let (port, connections) = server(PRIVATE, 0, "secret").await;
    for private in [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "fd00::1",
        "::1",
    ] {
        let (resolver, _) = resolver(vec![vec![private.parse().unwrap()]], is_public);
        let host = format!("inside.test:{port}");
        let settings = HttpSettings::new([host.as_str(), "*"])
            .unwrap()
            .allow_private(true);
        let error = Fetcher::with_resolver(settings, resolver)
            .fetch(&format!("http://{host}/"))
            .await
            .unwrap_err();
        assert_eq!(
            error.category(),
            ErrorCategory::PermissionDenied,
            "{private}"
        );
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}
