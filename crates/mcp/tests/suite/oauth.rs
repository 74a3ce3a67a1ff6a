//! Logins with a real browser's requests, a real port to come back to, and a guard that checks.

mod guard;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use windlass_mcp::{
    Login, Lookup, OAuthError, Present, Secret, Tokens, forget_logins, kept_login, login,
};
use windlass_spec::server::{Given, OAuth, ServerSettings};

use guard::{Guard, Manners};

/// Opens the page as a browser does, and counts how often.
#[derive(Clone, Default)]
struct Browser(Arc<AtomicUsize>);

impl Browser {
    fn present(&self) -> Present {
        let count = Arc::clone(&self.0);
        Arc::new(move |page: &str| {
            count.fetch_add(1, Ordering::Relaxed);
            let page = page.to_owned();
            tokio::spawn(async move { reqwest::get(page).await.unwrap() });
        })
    }

    fn pages(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn nothing_set() -> Lookup {
    Arc::new(|_: &str| None)
}

async fn log_in(settings: &ServerSettings, directory: &Path) -> Result<Login, OAuthError> {
    let browser = Browser::default().present();
    login(settings, directory, &nothing_set(), &*browser).await
}

fn tokens(settings: &ServerSettings, directory: &TempDir) -> Tokens {
    Tokens::new(settings, directory.path(), &nothing_set()).unwrap()
}

async fn current(tokens: &Tokens) -> Option<String> {
    let token = tokens.current().await.unwrap();
    token.map(|token| token.reveal().to_owned())
}

#[tokio::test]
async fn a_login_is_kept_for_later_runs() {
    let guard = Guard::start(Manners::default()).await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    assert_eq!(current(&tokens(&settings, &directory)).await, None);

    let login = log_in(&settings, directory.path()).await.unwrap();
    assert_eq!(login.issuer, guard.base);
    assert_eq!(login.scopes, ["read"], "what the server's refusal named");
    assert!(login.is_renewable);
    let wish: serde_json::Value = serde_json::from_str(&guard.asked("/register")[0].body).unwrap();
    assert_eq!(wish["application_type"], "native");
    let redirect = wish["redirect_uris"][0].as_str().unwrap();
    assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");

    assert_eq!(
        kept_login(&settings, directory.path()).unwrap(),
        Some(login)
    );
    let later = tokens(&settings, &directory);
    assert_eq!(current(&later).await.as_deref(), Some("access-1"));
    assert!(forget_logins(&settings, directory.path()).unwrap());
    assert_eq!(current(&tokens(&settings, &directory)).await, None);
}

#[tokio::test]
async fn without_a_login_the_error_says_how_to_log_in() {
    let guard = Guard::start(Manners::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(&guard.settings(), &directory);
    let error = tokens.after(&guard.challenge(), None).await.unwrap_err();
    assert!(
        error.to_string().contains("run `windlass mcp login files`"),
        "{error}"
    );
    assert!(guard.asked("/authorize").is_empty());
}

#[tokio::test]
async fn a_token_that_is_over_is_renewed_once_for_everybody() {
    let guard = Guard::start(Manners {
        lasts: 5,
        ..Manners::default()
    })
    .await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    guard.behave(|manners| manners.lasts = 3600);
    // Two processes: what one was given for renewing is refused to the other.
    let (one, two) = (tokens(&settings, &directory), tokens(&settings, &directory));
    let given = tokio::join!(current(&one), current(&two));
    assert_eq!(
        given,
        (Some("access-2".to_owned()), Some("access-2".to_owned()))
    );
    let asked = guard.asked("/token");
    assert_eq!(asked.len(), 2, "for the login and for renewing it");
    let authorization = asked[1].authorization.as_deref().unwrap();
    assert!(
        authorization.starts_with("Basic "),
        "with the secret the guard made up"
    );
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all_who_sent_it() {
    let guard = Guard::start(Manners::default()).await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    let tokens = tokens(&settings, &directory);
    let sent = tokens.current().await.unwrap().unwrap();
    let challenge = guard.challenge();
    let (one, two) = tokio::join!(
        tokens.after(&challenge, Some(&sent)),
        tokens.after(&challenge, Some(&sent))
    );
    let renewed = Secret::new("access-2");
    assert_eq!((one.unwrap(), two.unwrap()), (renewed.clone(), renewed));
    assert_eq!(guard.asked("/token").len(), 2);
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_is_asked_about_once() {
    let guard = Guard::start(Manners {
        lasts: 5,
        ..Manners::default()
    })
    .await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    guard.behave(|manners| manners.renews = false);
    for _ in 0..3 {
        let error = tokens(&settings, &directory).current().await.unwrap_err();
        assert!(matches!(error, OAuthError::LoginNeeded { .. }), "{error}");
        assert!(
            error.to_string().contains("windlass mcp login files"),
            "{error}"
        );
    }
    assert_eq!(guard.asked("/token").len(), 2, "the login, and one try");
}

#[tokio::test]
async fn a_page_that_is_no_page_is_shown_to_nobody() {
    for page in [
        "javascript:alert(document.domain)",
        "file:///etc/passwd",
        "$(touch /tmp/windlass-was-here)",
        "http://127.0.0.1/$(id)",
        "http://127.0.0.1/a\";id;\"",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/authorize",
        "http://127.0.0.1@evil.example/",
    ] {
        let login_page = Some(page.to_owned());
        let guard = Guard::start(Manners {
            login_page,
            ..Manners::default()
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        let browser = Browser::default();
        let present = browser.present();
        let logged_in = login(
            &guard.settings(),
            directory.path(),
            &nothing_set(),
            &*present,
        )
        .await;
        let error = logged_in.unwrap_err();
        assert!(
            matches!(error, OAuthError::Address { .. }),
            "{page}: {error}"
        );
        assert_eq!(browser.pages(), 0, "{page}");
        assert!(guard.asked("/register").is_empty(), "{page}");
    }
}

#[tokio::test]
async fn metadata_does_not_lead_into_private_networks() {
    for guards in [
        "http://169.254.169.254",
        "http://10.0.0.1",
        "http://metadata.google.internal",
    ] {
        let guards = Some(vec![guards.to_owned()]);
        let guard = Guard::start(Manners {
            guards,
            ..Manners::default()
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        let error = log_in(&guard.settings(), directory.path())
            .await
            .unwrap_err();
        assert!(matches!(error, OAuthError::Discovery { .. }), "{error}");
    }
    let token_address = Some("http://192.168.0.1/token".to_owned());
    let guard = Guard::start(Manners {
        token_address,
        ..Manners::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&guard.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("private network"), "{error}");
}

#[tokio::test]
async fn an_answer_from_another_guard_is_refused() {
    let says_it_is = Some("https://evil.example".to_owned());
    let guard = Guard::start(Manners {
        says_it_is,
        ..Manners::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&guard.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::Refused { .. }), "{error}");
    assert!(
        guard.asked("/token").is_empty(),
        "the code was not given away"
    );
    assert_eq!(
        kept_login(&guard.settings(), directory.path()).unwrap(),
        None
    );
}

#[tokio::test]
async fn a_person_may_say_no() {
    let guard = Guard::start(Manners {
        error: Some("access_denied"),
        ..Manners::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&guard.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert!(guard.asked("/token").is_empty());
}

fn with_a_secret() -> OAuth {
    OAuth {
        client_id: Some("given".to_owned()),
        client_secret: Some(Given::new("env:CLIENT_SECRET").unwrap()),
        scopes: Vec::new(),
    }
}

fn secret_set() -> Lookup {
    Arc::new(|name: &str| (name == "CLIENT_SECRET").then(|| "hush".to_owned()))
}

#[tokio::test]
async fn a_client_with_a_secret_needs_no_person_where_the_guard_allows_it() {
    let grants = &["client_credentials"];
    let guard = Guard::start(Manners {
        grants,
        ..Manners::default()
    })
    .await;
    let (settings, directory) = (
        guard.settings_with(with_a_secret()),
        tempfile::tempdir().unwrap(),
    );
    let missing = Tokens::new(&settings, directory.path(), &nothing_set())
        .err()
        .unwrap();
    assert!(missing.to_string().contains("CLIENT_SECRET"), "{missing}");

    let tokens = Tokens::new(&settings, directory.path(), &secret_set()).unwrap();
    assert_eq!(current(&tokens).await, None);
    let token = tokens.after(&guard.challenge(), None).await.unwrap();
    assert_eq!(token.reveal(), "access-1");
    assert_eq!(current(&tokens).await.as_deref(), Some("access-1"));
    let asked = &guard.asked("/token")[0];
    assert_eq!(asked.parameters["grant_type"], "client_credentials");
    assert_eq!(asked.parameters["scope"], "read");
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "nothing is kept"
    );

    // More leave is asked for without a person too.
    let more = tokens
        .after(&guard.wants("write"), Some(&token))
        .await
        .unwrap();
    assert_eq!(more.reveal(), "access-2");
    assert_eq!(guard.asked("/token")[1].parameters["scope"], "read write");
}

#[tokio::test]
async fn a_registered_client_logs_in_under_its_name() {
    let guard = Guard::start(Manners::default()).await;
    let (settings, directory) = (
        guard.settings_with(with_a_secret()),
        tempfile::tempdir().unwrap(),
    );
    let browser = Browser::default();
    let tokens = Tokens::new(&settings, directory.path(), &secret_set())
        .unwrap()
        .with_login(browser.present());
    let token = tokens.after(&guard.challenge(), None).await.unwrap();
    assert_eq!((token.reveal(), browser.pages()), ("access-1", 1));
    assert!(guard.asked("/register").is_empty());
    let asked = &guard.asked("/token")[0];
    assert_eq!(asked.parameters["grant_type"], "authorization_code");
    // `given:hush`
    assert_eq!(
        asked.authorization.as_deref(),
        Some("Basic Z2l2ZW46aHVzaA==")
    );
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("hush"), "the operator's secret is not kept");
    }
}

#[tokio::test]
async fn more_leave_is_asked_for_at_the_next_login() {
    let guard = Guard::start(Manners::default()).await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    let tokens = tokens(&settings, &directory);
    let sent = tokens.current().await.unwrap().unwrap();
    let error = tokens
        .after(&guard.wants("write"), Some(&sent))
        .await
        .unwrap_err();
    let says = error.to_string();
    assert!(
        says.contains("write") && says.contains("windlass mcp login files"),
        "{says}"
    );

    log_in(&settings, directory.path()).await.unwrap();
    assert_eq!(
        guard.asked("/authorize")[1].parameters["scope"],
        "read write"
    );
}

#[tokio::test]
async fn two_calls_that_lack_the_same_leave_ask_a_person_once() {
    let guard = Guard::start(Manners::default()).await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.present());
    let sent = tokens.after(&guard.challenge(), None).await.unwrap();
    let wants = guard.wants("write");
    let (one, two) = tokio::join!(
        tokens.after(&wants, Some(&sent)),
        tokens.after(&wants, Some(&sent))
    );
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(browser.pages(), 2, "for the login and for more leave");
}

#[tokio::test]
async fn leave_that_is_refused_though_given_is_not_asked_for_again() {
    let guard = Guard::start(Manners::default()).await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.present());
    let mut token = tokens.after(&guard.challenge(), None).await.unwrap();
    // One that makes up new names all the time does not keep a person busy either.
    for scope in ["a", "b", "c"] {
        token = tokens
            .after(&guard.wants(scope), Some(&token))
            .await
            .unwrap();
    }
    assert_eq!(browser.pages(), 4);
    for scope in ["c", "d"] {
        let error = tokens
            .after(&guard.wants(scope), Some(&token))
            .await
            .unwrap_err();
        assert!(matches!(error, OAuthError::StillRefused { .. }), "{error}");
    }
    assert_eq!(browser.pages(), 4);
}

#[tokio::test]
async fn a_guard_that_gives_less_is_not_asked_twice() {
    let guard = Guard::start(Manners {
        gives_only: Some("read"),
        ..Manners::default()
    })
    .await;
    let (settings, directory) = (guard.settings(), tempfile::tempdir().unwrap());
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.present());
    let token = tokens.after(&guard.challenge(), None).await.unwrap();
    let token = tokens
        .after(&guard.wants("write"), Some(&token))
        .await
        .unwrap();
    let error = tokens
        .after(&guard.wants("write"), Some(&token))
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::StillRefused { .. }), "{error}");
    assert_eq!(browser.pages(), 2);
}

#[tokio::test]
async fn the_operators_scopes_are_the_most_that_is_asked_for() {
    let guard = Guard::start(Manners::default()).await;
    let scopes = vec!["look".to_owned()];
    let settings = guard.settings_with(OAuth {
        scopes,
        ..OAuth::default()
    });
    let directory = tempfile::tempdir().unwrap();
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.present());
    let token = tokens.after(&guard.challenge(), None).await.unwrap();
    assert_eq!(guard.asked("/authorize")[0].parameters["scope"], "look");
    let error = tokens
        .after(&guard.wants("write"), Some(&token))
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::BeyondScopes { .. }), "{error}");
    assert_eq!(browser.pages(), 1);
}

#[tokio::test]
async fn a_new_guard_gets_nothing_that_the_old_one_gave() {
    let old = Guard::start(Manners::default()).await;
    let new = Guard::start(Manners::default()).await;
    let (settings, directory) = (old.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    old.behave(|manners| manners.guards = Some(vec![new.base.clone()]));
    let tokens = tokens(&settings, &directory);
    let sent = tokens.current().await.unwrap().unwrap();
    let error = tokens
        .after(&old.challenge(), Some(&sent))
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::LoginNeeded { .. }), "{error}");
    assert!(new.asked("/token").is_empty());
    assert_eq!(old.asked("/token").len(), 1);
}

#[tokio::test]
async fn addresses_that_nobody_published_are_not_asked() {
    let guard = Guard::start(Manners {
        publishes: false,
        ..Manners::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&guard.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::NoGuard(_)), "{error}");
    assert!(guard.asked("/register").is_empty());
}
