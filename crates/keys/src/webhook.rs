//! Signatures of webhooks, as Standard Webhooks specifies them: HMAC-SHA256 with a secret that the receiver has, too.

use std::fmt;

use ring::hmac;

use crate::base64;
use crate::directory::KeyError;
use crate::journal_key::random_bytes;

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// How many bytes a secret has.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The secrets that messages to a receiver are signed with: several while one replaces another.
#[derive(Clone)]
pub struct WebhookSecrets(Vec<hmac::Key>);

impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecrets(..)")
    }
}

/// A text that is no list of secrets. It does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not `whsec_` and the base64 of 24 to 64 bytes")]
pub struct NotAWebhookSecret;

impl WebhookSecrets {
    /// Reads secrets, separated by white space.
    ///
    /// # Errors
    /// If one of them is not `whsec_` and the base64 of 24 to 64 bytes, or there is none.
    pub fn parse(text: &str) -> Result<Self, NotAWebhookSecret> {
        let keys: Option<Vec<hmac::Key>> = text.split_whitespace().map(key).collect();
        match keys {
            Some(keys) if !keys.is_empty() => Ok(Self(keys)),
            _ => Err(NotAWebhookSecret),
        }
    }

    /// A new secret, as its text.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn generate() -> Result<String, KeyError> {
        Ok(format!("{PREFIX}{}", standard(&random_bytes()?)))
    }

    /// The header `webhook-signature` of a message.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut message = format!("{id}.{timestamp}.").into_bytes();
        message.extend_from_slice(body);
        let signatures = self.0.iter().map(|key| {
            let signature = hmac::sign(key, &message);
            format!("v1,{}", standard(signature.as_ref()))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

fn key(text: &str) -> Option<hmac::Key> {
    let encoded = text.strip_prefix(PREFIX)?.trim_end_matches('=');
    if encoded.contains(['-', '_']) {
        return None;
    }
    let bytes = base64::decode(&encoded.replace('+', "-").replace('/', "_"))?;
    let is_long_enough = LENGTHS.contains(&bytes.len());
    is_long_enough.then(|| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Base64 with padding (RFC 4648, section 4).
fn standard(bytes: &[u8]) -> String {
    let mut text = base64::encode(bytes).replace('-', "+").replace('_', "/");
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed_alike() {
        let secrets = WebhookSecrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secrets.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn several_secrets_sign_one_after_the_other() {
        let (one, two) = (
            WebhookSecrets::generate().unwrap(),
            WebhookSecrets::generate().unwrap(),
        );
        assert_ne!(one, two);
        let sign = |text: &str| WebhookSecrets::parse(text).unwrap().sign("msg_1", 1, b"{}");
        let both = sign(&format!("{one}\n{two}\n"));
        assert_eq!(both, format!("{} {}", sign(&one), sign(&two)));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            " ",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_",
            "whsec_c2hvcnQ=",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw plain",
        ] {
            let refused = WebhookSecrets::parse(text);
            assert_eq!(refused.err(), Some(NotAWebhookSecret), "{text}");
        }
    }
}
