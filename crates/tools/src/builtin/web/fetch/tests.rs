//! Names that mean other addresses than they should. The servers are on loopback, so which address
//! counts as public is said by each test. Only Linux has a second loopback address at once.

#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use windlass_spec::ErrorCategory;

use super::{Fetcher, PublicNames, is_public};
use crate::builtin::HttpSettings;

const GOOD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const BAD: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));

/// A server that answers every request with `body`, and how often it was connected to.
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

/// Resolves every name to `answers`, one after the other, and the last for ever.
fn names(
    answers: Vec<Vec<IpAddr>>,
    is_public: fn(IpAddr) -> bool,
) -> (PublicNames, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let names = PublicNames {
        lookup: Arc::new(move |_| {
            let number = counted
                .fetch_add(1, Ordering::SeqCst)
                .min(answers.len() - 1);
            let answer = answers[number].clone();
            Box::pin(async move { Ok(answer) })
        }),
        is_public,
    };
    (names, asked)
}

fn fetcher(host: &str, names: PublicNames) -> Fetcher {
    Fetcher::with_names(HttpSettings::new([host]).unwrap(), names)
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_asked() {
    let (port, good) = server(GOOD, 0, "good").await;
    let (_, bad) = server(BAD, port, "bad").await;
    // A name that means the allowed address when it is looked up, and the other ever after.
    let (names, asked) = names(vec![vec![GOOD], vec![BAD]], |address| address == GOOD);
    let fetcher = fetcher(&format!("rebind.test:{port}"), names);
    let page = fetcher
        .fetch(&format!("http://rebind.test:{port}/"))
        .await
        .unwrap();
    assert_eq!(page.text().unwrap(), "good");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
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
async fn of_several_addresses_of_a_name_only_the_public_ones_are_asked() {
    let (port, good) = server(GOOD, 0, "good").await;
    let (_, bad) = server(BAD, port, "bad").await;
    let (names, _) = names(vec![vec![BAD, GOOD]], |address| address == GOOD);
    let fetcher = fetcher(&format!("mixed.test:{port}"), names);
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
async fn a_name_that_means_a_private_address_is_refused_also_where_those_are_allowed() {
    let (port, connections) = server(BAD, 0, "secret").await;
    for private in [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "fd00::1",
        "::1",
    ] {
        let (names, _) = names(vec![vec![private.parse().unwrap()]], is_public);
        let host = format!("inside.test:{port}");
        let settings = HttpSettings::new([host.as_str(), "*"])
            .unwrap()
            .allow_private(true);
        let error = Fetcher::with_names(settings, names)
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
