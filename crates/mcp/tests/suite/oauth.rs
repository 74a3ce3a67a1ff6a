//! Logins with real HTTP requests, a real loopback port, and an authorization server that checks them.

mod authorization_server;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use windlass_http::client_builder;
use windlass_mcp::{
    Login, Lookup, OAuthError, OAuthTokens, Secret, ShowLoginUrl, forget_logins, login,
    stored_login,
};
use windlass_spec::server::{EnvTemplate, OAuth, ServerSettings};

use authorization_server::{MockAuthorizationServer, ServerBehaviour};

/// Opens login pages like a browser, and counts them.
#[derive(Clone, Default)]
struct Browser(Arc<AtomicUsize>);

impl Browser {
    fn show_url(&self) -> ShowLoginUrl {
        let count = Arc::clone(&self.0);
        Arc::new(move |page: &str| {
            count.fetch_add(1, Ordering::Relaxed);
            let page = page.to_owned();
            let browser = client_builder().build().unwrap();
            tokio::spawn(async move { browser.get(page).send().await.unwrap() });
        })
    }

    fn pages(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn no_variables() -> Lookup {
    Arc::new(|_: &str| None)
}

async fn log_in(settings: &ServerSettings, directory: &Path) -> Result<Login, OAuthError> {
    let browser = Browser::default().show_url();
    login(settings, directory, &no_variables(), &*browser).await
}

fn tokens(settings: &ServerSettings, directory: &TempDir) -> OAuthTokens {
    OAuthTokens::new(settings, directory.path(), &no_variables()).unwrap()
}

async fn current(tokens: &OAuthTokens) -> Option<String> {
    let token = tokens.current().await.unwrap();
    token.map(|token| token.reveal().to_owned())
}

#[tokio::test]
async fn a_login_is_stored_for_later_runs() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    assert_eq!(current(&tokens(&settings, &directory)).await, None);

    let login = log_in(&settings, directory.path()).await.unwrap();
    assert_eq!(login.issuer, auth_server.base);
    assert_eq!(
        login.scopes,
        ["read"],
        "the scope in the server's challenge"
    );
    assert!(login.is_renewable);
    let registration: serde_json::Value =
        serde_json::from_str(&auth_server.requests("/register")[0].body).unwrap();
    assert_eq!(registration["application_type"], "native");
    let redirect = registration["redirect_uris"][0].as_str().unwrap();
    assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");

    assert_eq!(
        stored_login(&settings, directory.path()).unwrap(),
        Some(login)
    );
    let later = tokens(&settings, &directory);
    assert_eq!(current(&later).await.as_deref(), Some("access-1"));
    assert!(forget_logins(&settings, directory.path()).unwrap());
    assert_eq!(current(&tokens(&settings, &directory)).await, None);
}

#[tokio::test]
async fn without_a_login_the_error_says_how_to_log_in() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let tokens = tokens(&auth_server.settings(), &directory);
    let error = tokens
        .after(&auth_server.challenge(), None)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("run `windlass mcp login files`"),
        "{error}"
    );
    assert!(auth_server.requests("/authorize").is_empty());
}

#[tokio::test]
async fn an_expired_token_is_refreshed_once_for_all_processes() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        token_seconds: 5,
        ..ServerBehaviour::default()
    })
    .await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    auth_server.configure(|behaviour| behaviour.token_seconds = 3600);
    // Two processes: a refresh token is valid for one use.
    let (one, two) = (tokens(&settings, &directory), tokens(&settings, &directory));
    let given = tokio::join!(current(&one), current(&two));
    assert_eq!(
        given,
        (Some("access-2".to_owned()), Some("access-2".to_owned()))
    );
    let request = auth_server.requests("/token");
    assert_eq!(
        request.len(),
        2,
        "one for the login and one for the refresh"
    );
    let authorization = request[1].authorization.as_deref().unwrap();
    assert!(
        authorization.starts_with("Basic "),
        "the secret that the authorization server issued is sent"
    );
}

#[tokio::test]
async fn a_refused_token_is_refreshed_once_for_concurrent_requests() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    let tokens = tokens(&settings, &directory);
    let sent = tokens.current().await.unwrap().unwrap();
    let challenge = auth_server.challenge();
    let (one, two) = tokio::join!(
        tokens.after(&challenge, Some(&sent)),
        tokens.after(&challenge, Some(&sent))
    );
    let refreshed = Secret::new("access-2");
    assert_eq!((one.unwrap(), two.unwrap()), (refreshed.clone(), refreshed));
    assert_eq!(auth_server.requests("/token").len(), 2);
}

#[tokio::test]
async fn a_rejected_refresh_is_not_repeated() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        token_seconds: 5,
        ..ServerBehaviour::default()
    })
    .await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    auth_server.configure(|behaviour| behaviour.accepts_refresh = false);
    for _ in 0..3 {
        let error = tokens(&settings, &directory).current().await.unwrap_err();
        assert!(matches!(error, OAuthError::LoginNeeded { .. }), "{error}");
        assert!(
            error.to_string().contains("windlass mcp login files"),
            "{error}"
        );
    }
    assert_eq!(
        auth_server.requests("/token").len(),
        2,
        "the login and one refresh"
    );
}

#[tokio::test]
async fn an_unsafe_login_url_is_not_shown() {
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
        let auth_server = MockAuthorizationServer::start(ServerBehaviour {
            login_page,
            ..ServerBehaviour::default()
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        let browser = Browser::default();
        let show_url = browser.show_url();
        let logged_in = login(
            &auth_server.settings(),
            directory.path(),
            &no_variables(),
            &*show_url,
        )
        .await;
        let error = logged_in.unwrap_err();
        assert!(
            matches!(error, OAuthError::Address { .. }),
            "{page}: {error}"
        );
        assert_eq!(browser.pages(), 0, "{page}");
        assert!(auth_server.requests("/register").is_empty(), "{page}");
    }
}

#[tokio::test]
async fn metadata_must_not_lead_to_private_networks() {
    for authorization_servers in [
        "http://169.254.169.254",
        "http://10.0.0.1",
        "http://metadata.google.internal",
    ] {
        let authorization_servers = Some(vec![authorization_servers.to_owned()]);
        let auth_server = MockAuthorizationServer::start(ServerBehaviour {
            authorization_servers,
            ..ServerBehaviour::default()
        })
        .await;
        let directory = tempfile::tempdir().unwrap();
        let error = log_in(&auth_server.settings(), directory.path())
            .await
            .unwrap_err();
        assert!(matches!(error, OAuthError::Discovery { .. }), "{error}");
    }
    let token_endpoint = Some("http://192.168.0.1/token".to_owned());
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        token_endpoint,
        ..ServerBehaviour::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&auth_server.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("private network"), "{error}");
}

#[tokio::test]
async fn an_authorization_response_from_another_issuer_is_refused() {
    let response_issuer = Some("https://evil.example".to_owned());
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        response_issuer,
        ..ServerBehaviour::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&auth_server.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::Refused { .. }), "{error}");
    assert!(
        auth_server.requests("/token").is_empty(),
        "the code was not sent"
    );
    assert_eq!(
        stored_login(&auth_server.settings(), directory.path()).unwrap(),
        None
    );
}

#[tokio::test]
async fn a_denied_login_is_an_error() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        error: Some("access_denied"),
        ..ServerBehaviour::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&auth_server.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert!(auth_server.requests("/token").is_empty());
}

fn with_client_secret() -> OAuth {
    OAuth {
        client_id: Some("given".to_owned()),
        client_secret: Some(EnvTemplate::new("env:CLIENT_SECRET").unwrap()),
        scopes: Vec::new(),
    }
}

fn secret_set() -> Lookup {
    Arc::new(|name: &str| (name == "CLIENT_SECRET").then(|| "hush".to_owned()))
}

#[tokio::test]
async fn the_client_credentials_grant_needs_no_login() {
    let grants = &["client_credentials"];
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        grants,
        ..ServerBehaviour::default()
    })
    .await;
    let (settings, directory) = (
        auth_server.settings_with(with_client_secret()),
        tempfile::tempdir().unwrap(),
    );
    let missing = OAuthTokens::new(&settings, directory.path(), &no_variables())
        .err()
        .unwrap();
    assert!(missing.to_string().contains("CLIENT_SECRET"), "{missing}");

    let tokens = OAuthTokens::new(&settings, directory.path(), &secret_set()).unwrap();
    assert_eq!(current(&tokens).await, None);
    let token = tokens.after(&auth_server.challenge(), None).await.unwrap();
    assert_eq!(token.reveal(), "access-1");
    assert_eq!(current(&tokens).await.as_deref(), Some("access-1"));
    let request = &auth_server.requests("/token")[0];
    assert_eq!(request.parameters["grant_type"], "client_credentials");
    assert_eq!(request.parameters["scope"], "read");
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "the token is not stored"
    );

    // More scopes need no login either.
    let more = tokens
        .after(&auth_server.insufficient_scope("write"), Some(&token))
        .await
        .unwrap();
    assert_eq!(more.reveal(), "access-2");
    assert_eq!(
        auth_server.requests("/token")[1].parameters["scope"],
        "read write"
    );
}

#[tokio::test]
async fn a_preregistered_client_logs_in_with_its_client_id() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (
        auth_server.settings_with(with_client_secret()),
        tempfile::tempdir().unwrap(),
    );
    let browser = Browser::default();
    let tokens = OAuthTokens::new(&settings, directory.path(), &secret_set())
        .unwrap()
        .with_login(browser.show_url());
    let token = tokens.after(&auth_server.challenge(), None).await.unwrap();
    assert_eq!((token.reveal(), browser.pages()), ("access-1", 1));
    assert!(auth_server.requests("/register").is_empty());
    let request = &auth_server.requests("/token")[0];
    assert_eq!(request.parameters["grant_type"], "authorization_code");
    // `given:hush`
    assert_eq!(
        request.authorization.as_deref(),
        Some("Basic Z2l2ZW46aHVzaA==")
    );
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(
            !text.contains("hush"),
            "the operator's secret is not stored"
        );
    }
}

#[tokio::test]
async fn missing_scopes_are_requested_at_the_next_login() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    let tokens = tokens(&settings, &directory);
    let sent = tokens.current().await.unwrap().unwrap();
    let error = tokens
        .after(&auth_server.insufficient_scope("write"), Some(&sent))
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("write") && message.contains("windlass mcp login files"),
        "{message}"
    );

    log_in(&settings, directory.path()).await.unwrap();
    assert_eq!(
        auth_server.requests("/authorize")[1].parameters["scope"],
        "read write"
    );
}

#[tokio::test]
async fn concurrent_calls_that_lack_a_scope_cause_one_login() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.show_url());
    let sent = tokens.after(&auth_server.challenge(), None).await.unwrap();
    let challenge = auth_server.insufficient_scope("write");
    let (one, two) = tokio::join!(
        tokens.after(&challenge, Some(&sent)),
        tokens.after(&challenge, Some(&sent))
    );
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(
        browser.pages(),
        2,
        "one for the login and one for more scopes"
    );
}

#[tokio::test]
async fn a_granted_scope_that_is_refused_is_not_requested_again() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.show_url());
    let mut token = tokens.after(&auth_server.challenge(), None).await.unwrap();
    // A server cannot cause endless logins with new scope names either.
    for scope in ["a", "b", "c"] {
        token = tokens
            .after(&auth_server.insufficient_scope(scope), Some(&token))
            .await
            .unwrap();
    }
    assert_eq!(browser.pages(), 4);
    for scope in ["c", "d"] {
        let error = tokens
            .after(&auth_server.insufficient_scope(scope), Some(&token))
            .await
            .unwrap_err();
        assert!(
            matches!(error, OAuthError::ScopeStillRefused { .. }),
            "{error}"
        );
    }
    assert_eq!(browser.pages(), 4);
}

#[tokio::test]
async fn a_scope_that_was_not_granted_is_not_requested_twice() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        granted_scope: Some("read"),
        ..ServerBehaviour::default()
    })
    .await;
    let (settings, directory) = (auth_server.settings(), tempfile::tempdir().unwrap());
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.show_url());
    let token = tokens.after(&auth_server.challenge(), None).await.unwrap();
    let token = tokens
        .after(&auth_server.insufficient_scope("write"), Some(&token))
        .await
        .unwrap();
    let error = tokens
        .after(&auth_server.insufficient_scope("write"), Some(&token))
        .await
        .unwrap_err();
    assert!(
        matches!(error, OAuthError::ScopeStillRefused { .. }),
        "{error}"
    );
    assert_eq!(browser.pages(), 2);
}

#[tokio::test]
async fn only_configured_scopes_are_requested() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let scopes = vec!["look".to_owned()];
    let settings = auth_server.settings_with(OAuth {
        scopes,
        ..OAuth::default()
    });
    let directory = tempfile::tempdir().unwrap();
    let browser = Browser::default();
    let tokens = tokens(&settings, &directory).with_login(browser.show_url());
    let token = tokens.after(&auth_server.challenge(), None).await.unwrap();
    assert_eq!(
        auth_server.requests("/authorize")[0].parameters["scope"],
        "look"
    );
    let error = tokens
        .after(&auth_server.insufficient_scope("write"), Some(&token))
        .await
        .unwrap_err();
    assert!(
        matches!(error, OAuthError::ScopeNotAllowed { .. }),
        "{error}"
    );
    assert_eq!(browser.pages(), 1);
}

#[tokio::test]
async fn a_new_authorization_server_gets_no_token_of_the_old_one() {
    let old = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let new = MockAuthorizationServer::start(ServerBehaviour::default()).await;
    let (settings, directory) = (old.settings(), tempfile::tempdir().unwrap());
    log_in(&settings, directory.path()).await.unwrap();
    old.configure(|behaviour| behaviour.authorization_servers = Some(vec![new.base.clone()]));
    let tokens = tokens(&settings, &directory);
    let sent = tokens.current().await.unwrap().unwrap();
    let error = tokens
        .after(&old.challenge(), Some(&sent))
        .await
        .unwrap_err();
    assert!(matches!(error, OAuthError::LoginNeeded { .. }), "{error}");
    assert!(new.requests("/token").is_empty());
    assert_eq!(old.requests("/token").len(), 1);
}

#[tokio::test]
async fn unpublished_endpoints_are_not_used() {
    let auth_server = MockAuthorizationServer::start(ServerBehaviour {
        publishes_metadata: false,
        ..ServerBehaviour::default()
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let error = log_in(&auth_server.settings(), directory.path())
        .await
        .unwrap_err();
    assert!(
        matches!(error, OAuthError::NoAuthorizationServer(_)),
        "{error}"
    );
    assert!(auth_server.requests("/register").is_empty());
}
