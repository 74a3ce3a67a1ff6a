use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn files(directory: &Path, server: &str, url: &str) -> LoginFiles {
    LoginFiles::new(directory, ServerName::new(server).unwrap(), url.to_owned())
}

fn stored(url: &str, issuer: &str, token: &str, given_at: u64) -> StoredLogin {
    StoredLogin {
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
fn logins_are_stored_per_server_and_authorization_server() {
    let directory = tempfile::tempdir().unwrap();
    let (url, one, two) = (
        "https://m.example/mcp",
        "https://a.example",
        "https://b.example",
    );
    let mine = files(directory.path(), "a", url);
    assert_eq!(mine.newest().unwrap(), None);
    mine.save(&stored(url, one, "first", 1)).unwrap();
    mine.save(&stored(url, two, "second", 2)).unwrap();
    // The name of the second server begins with the name of the first.
    let other = files(directory.path(), "a-b", url);
    other.save(&stored(url, one, "other", 3)).unwrap();

    assert_eq!(
        mine.newest().unwrap().unwrap().access_token.reveal(),
        "second"
    );
    assert_eq!(
        mine.with_issuer(one)
            .unwrap()
            .unwrap()
            .access_token
            .reveal(),
        "first"
    );
    assert_eq!(mine.with_issuer("https://c.example").unwrap(), None);
    assert!(mine.delete_all().unwrap());
    assert!(!mine.delete_all().unwrap());
    assert_eq!(
        other.newest().unwrap().unwrap().access_token.reveal(),
        "other"
    );
}

#[test]
fn a_server_with_a_new_url_has_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let url = "https://m.example/mcp";
    let before = files(directory.path(), "a", url);
    before
        .save(&stored(url, "https://a.example", "t", 1))
        .unwrap();
    let after = files(directory.path(), "a", "https://evil.example/mcp");
    assert_eq!(after.newest().unwrap(), None);
    assert_eq!(after.with_issuer("https://a.example").unwrap(), None);
}

#[test]
fn login_files_are_readable_by_their_owner_only() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("tokens");
    let url = "https://m.example/mcp";
    let files = files(&directory, "a", url);
    files
        .save(&stored(url, "https://a.example", "t", 1))
        .unwrap();
    files
        .save(&stored(url, "https://a.example", "u", 2))
        .unwrap();
    let entries: Vec<PathBuf> = files.paths().unwrap();
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        1,
        "no temporary file is left"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&entries[0]), 0o600);
    assert_eq!(mode(&directory), 0o700);

    fs::set_permissions(&entries[0], fs::Permissions::from_mode(0o644)).unwrap();
    let error = files.newest().unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}

#[test]
fn neither_debug_nor_an_error_shows_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let url = "https://m.example/mcp";
    let files = files(directory.path(), "a", url);
    let login = stored(url, "https://a.example", "hunter2", 1);
    let shown = format!("{login:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("client-secret"),
        "{shown}"
    );

    files.save(&login).unwrap();
    let path = files.paths().unwrap().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("hunter2"), "the file contains the token");
    fs::write(
        &path,
        text.replace("\"given_at\":1", "\"given_at\":\"hunter2\""),
    )
    .unwrap();
    let error = files.newest().unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}

#[test]
fn a_token_is_not_used_shortly_before_it_expires() {
    let mut login = stored("https://m.example/mcp", "https://a.example", "t", 1);
    assert!(login.is_fresh());
    login.ends_at = Some(now() + 3600);
    assert!(login.is_fresh());
    login.ends_at = Some(now() + 10);
    assert!(!login.is_fresh());
}

#[tokio::test]
async fn only_one_process_refreshes_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), "a", "https://m.example/mcp");
    let first = files.lock_refresh().await.unwrap();
    let mut second = Box::pin(files.lock_refresh());
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), &mut second).await;
    assert!(waited.is_err(), "the second waits");
    drop(first);
    second.await.unwrap();
}
