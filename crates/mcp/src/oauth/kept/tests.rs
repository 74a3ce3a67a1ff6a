use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn files(directory: &Path, server: &str, url: &str) -> Files {
    Files::new(directory, ServerName::new(server).unwrap(), url.to_owned())
}

fn kept(url: &str, issuer: &str, token: &str, given_at: u64) -> Kept {
    Kept {
        url: url.to_owned(),
        issuer: issuer.to_owned(),
        client_id: "client".to_owned(),
        client_secret: Some(Secret::new("client-secret")),
        redirect: "http://127.0.0.1:1/callback".to_owned(),
        access_token: Secret::new(token),
        refresh_token: None,
        ends_at: None,
        given_at,
        scopes: vec!["read".to_owned()],
        wanted: Vec::new(),
    }
}

#[test]
fn tokens_are_kept_per_server_and_guard() {
    let directory = tempfile::tempdir().unwrap();
    let (url, one, two) = (
        "https://m.example/mcp",
        "https://a.example",
        "https://b.example",
    );
    let mine = files(directory.path(), "a", url);
    assert_eq!(mine.newest().unwrap(), None);
    mine.keep(&kept(url, one, "first", 1)).unwrap();
    mine.keep(&kept(url, two, "second", 2)).unwrap();
    // The beginning of its name is the name of the other.
    let other = files(directory.path(), "a-b", url);
    other.keep(&kept(url, one, "other", 3)).unwrap();

    assert_eq!(
        mine.newest().unwrap().unwrap().access_token.reveal(),
        "second"
    );
    assert_eq!(
        mine.of(one).unwrap().unwrap().access_token.reveal(),
        "first"
    );
    assert_eq!(mine.of("https://c.example").unwrap(), None);
    assert!(mine.forget().unwrap());
    assert!(!mine.forget().unwrap());
    assert_eq!(
        other.newest().unwrap().unwrap().access_token.reveal(),
        "other"
    );
}

#[test]
fn a_server_that_moved_has_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let url = "https://m.example/mcp";
    let before = files(directory.path(), "a", url);
    before
        .keep(&kept(url, "https://a.example", "t", 1))
        .unwrap();
    let after = files(directory.path(), "a", "https://evil.example/mcp");
    assert_eq!(after.newest().unwrap(), None);
    assert_eq!(after.of("https://a.example").unwrap(), None);
}

#[test]
fn only_the_owner_can_read_a_token() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("tokens");
    let url = "https://m.example/mcp";
    let files = files(&directory, "a", url);
    files.keep(&kept(url, "https://a.example", "t", 1)).unwrap();
    files.keep(&kept(url, "https://a.example", "u", 2)).unwrap();
    let entries: Vec<PathBuf> = files.paths().unwrap();
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        1,
        "nothing else is left"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&entries[0]), 0o600);
    assert_eq!(mode(&directory), 0o700);

    fs::set_permissions(&entries[0], fs::Permissions::from_mode(0o644)).unwrap();
    let error = files.newest().unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}

#[test]
fn neither_debug_nor_an_error_shows_what_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let url = "https://m.example/mcp";
    let files = files(directory.path(), "a", url);
    let it = kept(url, "https://a.example", "hunter2", 1);
    let shown = format!("{it:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("client-secret"),
        "{shown}"
    );

    files.keep(&it).unwrap();
    let path = files.paths().unwrap().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("hunter2"), "it is there to be used");
    fs::write(
        &path,
        text.replace("\"given_at\":1", "\"given_at\":\"hunter2\""),
    )
    .unwrap();
    let error = files.newest().unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}

#[test]
fn a_token_is_not_used_in_its_last_seconds() {
    let mut it = kept("https://m.example/mcp", "https://a.example", "t", 1);
    assert!(it.is_fresh());
    it.ends_at = Some(now() + 3600);
    assert!(it.is_fresh());
    it.ends_at = Some(now() + 10);
    assert!(!it.is_fresh());
}

#[tokio::test]
async fn two_do_not_renew_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), "a", "https://m.example/mcp");
    let turn = files.turn().await.unwrap();
    let mut second = Box::pin(files.turn());
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), &mut second).await;
    assert!(waited.is_err(), "the second waits");
    drop(turn);
    second.await.unwrap();
}
