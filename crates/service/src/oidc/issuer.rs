//! The keys of the issuer: found by discovery, kept for a while, and fetched again when a token names another one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use serde::Deserialize;
use windlass_config::OidcSettings;
use windlass_spec::server::is_unencrypted;

use super::jwt::{KeySet, SignedToken};

/// How long keys are used without a look at the issuer.
const FRESH: Duration = Duration::from_secs(600);

/// How long keys are used at most if the issuer does not answer.
const USABLE: Duration = Duration::from_secs(3_600);

/// How long the issuer is left alone after it was asked, whatever it answered.
const PAUSE: Duration = Duration::from_secs(5);

/// How long the issuer may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest answer of the issuer, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// The keys of the issuer, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct IssuerKeys {
    known: Mutex<Option<Known>>,
    /// The last request to the issuer. Held during a request, so that there is one at a time.
    asked: tokio::sync::Mutex<Option<Asked>>,
}

#[derive(Debug, Clone)]
struct Known {
    issuer: String,
    keys: Arc<KeySet>,
    since: Instant,
}

#[derive(Debug)]
struct Asked {
    issuer: String,
    at: Instant,
    /// Why there was no answer.
    failure: Option<String>,
}

impl IssuerKeys {
    /// The keys of the issuer, with that of the token if the issuer has it.
    ///
    /// # Errors
    /// If the issuer does not answer, and the keys are not known or too old.
    pub(super) async fn keys(
        &self,
        settings: &OidcSettings,
        token: &SignedToken<'_>,
    ) -> Result<Arc<KeySet>, String> {
        if let Some(known) = self.known(&settings.issuer)
            && known.since.elapsed() < FRESH
            && known.keys.has_key_of(token)
        {
            return Ok(known.keys);
        }
        let fetched = self.fetch(&settings.issuer).await;
        match (fetched, self.known(&settings.issuer)) {
            (Ok(()), Some(known)) => Ok(known.keys),
            // The key is known, and the issuer cannot say that it is not valid any more.
            (Err(_), Some(known))
                if known.since.elapsed() < USABLE && known.keys.has_key_of(token) =>
            {
                Ok(known.keys)
            }
            (Err(reason), _) => Err(reason),
            (Ok(()), None) => Err("its keys are not known".to_owned()),
        }
    }

    fn known(&self, issuer: &str) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(|known| known.issuer == issuer)
    }

    /// Asks the issuer for its keys, unless it was asked a moment ago.
    async fn fetch(&self, issuer: &str) -> Result<(), String> {
        let mut asked = self.asked.lock().await;
        if let Some(last) = asked.as_ref()
            && last.issuer == issuer
            && last.at.elapsed() < PAUSE
        {
            return match &last.failure {
                Some(reason) => Err(reason.clone()),
                None => Ok(()),
            };
        }
        let fetched = fetch_keys(issuer).await;
        if let Err(reason) = &fetched {
            tracing::warn!(
                issuer,
                reason,
                "the keys of the issuer could not be fetched"
            );
        }
        *asked = Some(Asked {
            issuer: issuer.to_owned(),
            at: Instant::now(),
            failure: fetched.as_ref().err().cloned(),
        });
        let keys = Arc::new(fetched?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(Known {
            issuer: issuer.to_owned(),
            keys,
            since: Instant::now(),
        });
        Ok(())
    }
}

/// What the issuer says of itself (OpenID Connect Discovery 1.0).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Fetches the keys of an issuer.
///
/// # Errors
/// Why there are none.
pub(crate) async fn fetch_keys(issuer: &str) -> Result<KeySet, String> {
    let client = windlass_http::client_builder()
        .redirect(Policy::none())
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| error.to_string())?;
    let place = issuer.strip_suffix('/').unwrap_or(issuer);
    let place = format!("{place}/.well-known/openid-configuration");
    let metadata = get(&client, &place).await?;
    let metadata: Metadata = serde_json::from_slice(&metadata)
        .map_err(|_| format!("`{place}` is no metadata of an issuer"))?;
    if metadata.issuer != issuer {
        return Err(format!(
            "`{place}` is the metadata of another issuer, `{}`",
            metadata.issuer
        ));
    }
    if is_unencrypted(&metadata.jwks_uri) {
        return Err("its keys are not at an https:// URL".to_owned());
    }
    let keys = KeySet::read(&get(&client, &metadata.jwks_uri).await?)?;
    match keys.len() {
        0 => Err("it has no key for RS256, ES256 or EdDSA".to_owned()),
        _ => Ok(keys),
    }
}

async fn get(client: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
    let failed = |error: reqwest::Error| {
        let reason = match error.is_timeout() {
            true => format!("no answer within {} s", TIMEOUT.as_secs()),
            false => error.without_url().to_string(),
        };
        format!("`{url}`: {reason}")
    };
    let mut answer = client.get(url).send().await.map_err(failed)?;
    if !answer.status().is_success() {
        return Err(format!("`{url}` answers {}", answer.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(format!("`{url}` answers with more than {MAX_ANSWER} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
