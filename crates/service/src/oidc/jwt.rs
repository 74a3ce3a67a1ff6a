//! Signed tokens (RFC 7519): their form, their signature and their claims. Only asymmetric algorithms are known, so that no
//! public key is ever taken for a secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_spec::Timestamp;

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;

/// How far the clocks of the issuer and this computer may differ, in seconds.
const LEEWAY: i64 = 60;

/// The latest expiry: the end of the year 9999, in seconds.
const LATEST: i64 = 253_402_300_799;

/// The most keys of an issuer.
const MAX_KEYS: usize = 100;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    fn of_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A token whose signature was not checked.
pub(super) struct SignedToken<'t> {
    algorithm: Algorithm,
    key: Option<String>,
    /// Header and payload, as they were signed.
    signed: &'t [u8],
    payload: Vec<u8>,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl<'t> SignedToken<'t> {
    /// Reads a token.
    ///
    /// # Errors
    /// Why it has not the form of a token that could be valid.
    pub(super) fn read(token: &'t str) -> Result<Self, String> {
        let malformed = || "the token is not valid".to_owned();
        if token.len() > MAX_TOKEN {
            return Err("the token is too long".to_owned());
        }
        let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let (header, payload) = signed.split_once('.').ok_or_else(malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed());
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| malformed())?;
        let Some(algorithm) = Algorithm::of_name(&header.alg) else {
            return Err("the token must be signed with RS256, ES256 or EdDSA".to_owned());
        };
        let is_token = |kind: &str| {
            let kind = kind.strip_prefix("application/").unwrap_or(kind);
            ["jwt", "at+jwt"].contains(&kind)
        };
        let kind = header.typ.map(|kind| kind.to_ascii_lowercase());
        if kind.is_some_and(|kind| !is_token(&kind)) {
            return Err("the token is of another kind than an access token".to_owned());
        }
        if header.crit.is_some() {
            return Err("the token demands extensions that are not supported".to_owned());
        }
        Ok(Self {
            algorithm,
            key: header.kid,
            signed: signed.as_bytes(),
            payload: decode(payload)?,
            signature: decode(signature)?,
        })
    }

    /// The claims, if a key of the issuer signed them.
    ///
    /// # Errors
    /// Why they do not count.
    pub(super) fn verify(&self, keys: &KeySet) -> Result<Claims, String> {
        let Some(key) = keys.find(self) else {
            return Err("the issuer has no key that the token is signed with".to_owned());
        };
        if !key.material.has_signed(self.signed, &self.signature) {
            return Err("the signature of the token is not valid".to_owned());
        }
        let claims = serde_json::from_slice(&self.payload);
        claims
            .map(Claims)
            .map_err(|_| "the claims of the token are not valid".to_owned())
    }
}

/// The public keys of an issuer that can sign tokens.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<IssuerKey>);

#[derive(Debug)]
struct IssuerKey {
    id: Option<String>,
    material: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point of P-256.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A key as the issuer publishes it (RFC 7517).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// The keys of a set that can sign tokens. Others are left out.
    ///
    /// # Errors
    /// If it is no set of keys.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(text)
            .map_err(|_| "its keys are no JSON Web Key Set".to_owned())?;
        let keys = set.keys.into_iter().take(MAX_KEYS);
        let keys = keys.filter_map(|key| IssuerKey::of(serde_json::from_value(key).ok()?));
        Ok(Self(keys.collect()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is a key that could have signed the token.
    pub(super) fn has_key_of(&self, token: &SignedToken<'_>) -> bool {
        self.find(token).is_some()
    }

    /// The key that a token names; of a token that names none, the only key of its algorithm.
    fn find(&self, token: &SignedToken<'_>) -> Option<&IssuerKey> {
        let mut fitting = self.0.iter().filter(|key| {
            key.material.algorithm() == token.algorithm
                && (token.key.is_none() || key.id == token.key)
        });
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Some(key),
            _ => None,
        }
    }
}

impl IssuerKey {
    fn of(key: Jwk) -> Option<Self> {
        let decode = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
        let coordinate = |part| decode(part).filter(|bytes: &Vec<u8>| bytes.len() == 32);
        let without_zeros = |mut number: Vec<u8>| {
            let zeros = number.iter().take_while(|byte| **byte == 0).count();
            number.drain(..zeros);
            number
        };
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa {
                n: without_zeros(decode(&key.n)?),
                e: without_zeros(decode(&key.e)?),
            },
            ("EC", Some("P-256")) => {
                PublicKey::P256([vec![4], coordinate(&key.x)?, coordinate(&key.y)?].concat())
            }
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(coordinate(&key.x)?),
            _ => return None,
        };
        let is_for_signatures = key.usage.is_none_or(|usage| usage == "sig");
        let is_of_algorithm = key.alg.is_none_or(|name| {
            // RFC 9864 has another name for the only curve of EdDSA that is used here.
            let name = if name == "Ed25519" { "EdDSA" } else { &name };
            Algorithm::of_name(name) == Some(material.algorithm())
        });
        (is_for_signatures && is_of_algorithm).then_some(Self {
            id: key.kid,
            material,
        })
    }
}

impl PublicKey {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Rsa { n, e } => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        };
        verified.is_ok()
    }
}

/// The claims of a token whose signature is valid.
#[derive(Debug)]
pub(super) struct Claims(Map<String, Value>);

impl Claims {
    /// Checks for whom the token is and when it is valid. Returns when it expires, in seconds.
    ///
    /// # Errors
    /// Why it is not valid.
    pub(super) fn check(
        &self,
        issuer: &str,
        audience: &str,
        now: Timestamp,
    ) -> Result<i64, String> {
        if self.0.get("iss").and_then(Value::as_str) != Some(issuer) {
            return Err("the token is from another issuer".to_owned());
        }
        let is_for_us = match self.0.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(all)) => all.iter().any(|one| one == audience),
            _ => false,
        };
        if !is_for_us {
            return Err(format!("the token is not for the audience `{audience}`"));
        }
        let now = seconds(now);
        if self.time("nbf")?.is_some_and(|from| from > now + LEEWAY) {
            return Err("the token is not valid yet".to_owned());
        }
        if self.time("iat")?.is_some_and(|from| from > now + LEEWAY) {
            return Err("the token was issued in the future".to_owned());
        }
        let expiry = self.time("exp")?;
        let expiry = expiry.ok_or("the token does not say when it expires")?;
        Ok(expiry.min(LATEST))
    }

    /// Whether a token that expires then has expired.
    pub(super) fn has_expired(&self, expiry: i64, now: Timestamp) -> bool {
        expiry <= seconds(now) - LEEWAY
    }

    /// A time in seconds.
    fn time(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        let whole = value.as_i64();
        // Times may have fractions.
        let rounded = || {
            let time = value.as_f64().filter(|time| time.abs() < 1e15)?;
            Some(time.floor() as i64)
        };
        match whole.or_else(rounded) {
            Some(time) => Ok(Some(time)),
            None => Err(format!("the claim `{name}` of the token is no time")),
        }
    }

    /// The principal.
    ///
    /// # Errors
    /// If there is none, or it is an address that the issuer has not verified.
    pub(super) fn principal(&self, claim: &str) -> Result<String, String> {
        if claim == "email" && self.0.get("email_verified") == Some(&Value::Bool(false)) {
            return Err("the issuer has not verified the email address of the token".to_owned());
        }
        self.text(claim)
    }

    /// A claim that is a text.
    ///
    /// # Errors
    /// If it is missing, empty or something else.
    pub(super) fn text(&self, claim: &str) -> Result<String, String> {
        let text = self.find(claim).and_then(Value::as_str);
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => Ok(text.to_owned()),
            None => Err(format!("the token has no claim `{claim}`")),
        }
    }

    /// The words of a claim: the items of a list, or what is between the spaces of a text.
    pub(super) fn words(&self, claim: &str) -> Vec<String> {
        match self.find(claim) {
            Some(Value::Array(items)) => {
                let words = items.iter().filter_map(Value::as_str);
                words.map(str::to_owned).collect()
            }
            Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// A claim by its name, or by a path into objects with dots in it.
    fn find(&self, claim: &str) -> Option<&Value> {
        if let Some(value) = self.0.get(claim) {
            return Some(value);
        }
        let mut steps = claim.split('.');
        let first = self.0.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    }
}

fn seconds(time: Timestamp) -> i64 {
    time.as_microseconds().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    };
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn part(value: &Value) -> String {
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    fn ed25519() -> (Ed25519KeyPair, Value) {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": x});
        (pair, key)
    }

    fn keys(keys: &[Value]) -> KeySet {
        KeySet::read(json!({"keys": keys}).to_string().as_bytes()).unwrap()
    }

    fn sign(pair: &Ed25519KeyPair, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn claims() -> Value {
        json!({"iss": "https://a.example", "aud": ["other", "windlass"], "sub": "ada", "exp": NOW + 300})
    }

    fn verified(token: &str, keys: &KeySet) -> Result<Claims, String> {
        SignedToken::read(token)?.verify(keys)
    }

    fn now() -> Timestamp {
        Timestamp::from_microseconds(NOW * 1_000_000)
    }

    #[test]
    fn a_token_counts_only_with_the_signature_of_the_key_that_it_names() {
        let (pair, key) = ed25519();
        let (other, _) = ed25519();
        let keys = keys(&[key]);
        let header = json!({"alg": "EdDSA", "kid": "ed", "typ": "at+jwt"});
        let token = sign(&pair, &header, &claims());
        let read = verified(&token, &keys).unwrap();
        let expiry = read.check("https://a.example", "windlass", now()).unwrap();
        assert_eq!(expiry, NOW + 300);
        let unnamed = sign(&pair, &json!({"alg": "EdDSA"}), &claims());
        assert!(verified(&unnamed, &keys).is_ok());

        let forged = sign(&other, &header, &claims());
        assert!(verified(&forged, &keys).unwrap_err().contains("signature"));
        let (head, signature) = token.rsplit_once('.').unwrap();
        let (head, _) = head.split_once('.').unwrap();
        let changed =
            json!({"iss": "https://a.example", "aud": "windlass", "sub": "eve", "exp": NOW});
        let changed = format!("{head}.{}.{signature}", part(&changed));
        assert!(verified(&changed, &keys).unwrap_err().contains("signature"));
        let elsewhere = sign(&pair, &json!({"alg": "EdDSA", "kid": "x"}), &claims());
        assert!(verified(&elsewhere, &keys).unwrap_err().contains("no key"));
    }

    #[test]
    fn tokens_without_a_signature_or_with_a_shared_secret_are_refused() {
        let (pair, key) = ed25519();
        let keys = keys(&[key]);
        for name in [
            "none", "None", "HS256", "HS512", "RS256", "PS256", "", "eddsa",
        ] {
            let header = json!({"alg": name, "kid": "ed"});
            let token = sign(&pair, &header, &claims());
            assert!(verified(&token, &keys).is_err(), "{name}");
            let (unsigned, _) = token.rsplit_once('.').unwrap();
            assert!(verified(&format!("{unsigned}."), &keys).is_err(), "{name}");
        }
        let extended = json!({"alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false});
        assert!(verified(&sign(&pair, &extended, &claims()), &keys).is_err());
        let other_kind = json!({"alg": "EdDSA", "kid": "ed", "typ": "logout+jwt"});
        assert!(verified(&sign(&pair, &other_kind, &claims()), &keys).is_err());
        for malformed in ["", ".", "..", "a.b.c", "a", &"x".repeat(MAX_TOKEN + 1)] {
            assert!(verified(malformed, &keys).is_err(), "{malformed}");
        }
    }

    #[test]
    fn an_elliptic_curve_key_signs_tokens() {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let key = json!({
            "kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "use": "sig",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        });
        let signed = format!(
            "{}.{}",
            part(&json!({"alg": "ES256", "kid": "ec"})),
            part(&claims())
        );
        let signature = pair.sign(&random, signed.as_bytes()).unwrap();
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        assert!(verified(&token, &keys(std::slice::from_ref(&key))).is_ok());
        // A key for something else signs no tokens.
        for (field, value) in [("use", "enc"), ("alg", "ECDH-ES"), ("crv", "P-384")] {
            let mut other = key.clone();
            other[field] = json!(value);
            assert!(verified(&token, &keys(&[other])).is_err(), "{field}");
        }
    }

    #[test]
    fn a_token_is_valid_for_its_audience_and_its_time() {
        let check = |change: Value| {
            let mut claims = claims();
            for (name, value) in change.as_object().unwrap() {
                claims[name] = value.clone();
            }
            let claims = Claims(claims.as_object().unwrap().clone());
            let expiry = claims.check("https://a.example", "windlass", now())?;
            match claims.has_expired(expiry, now()) {
                true => Err("expired".to_owned()),
                false => Ok(()),
            }
        };
        for valid in [
            json!({}),
            json!({"aud": "windlass"}),
            json!({"exp": NOW - LEEWAY + 1}),
            json!({"nbf": NOW + LEEWAY, "iat": NOW + LEEWAY}),
            json!({"exp": NOW as f64 + 0.5}),
        ] {
            assert_eq!(check(valid.clone()), Ok(()), "{valid}");
        }
        for invalid in [
            json!({"iss": "https://a.example/"}),
            json!({"iss": null}),
            json!({"aud": "windlass2"}),
            json!({"aud": []}),
            json!({"aud": null}),
            json!({"exp": NOW - LEEWAY}),
            json!({"exp": null}),
            json!({"exp": "never"}),
            json!({"exp": 1e300}),
            json!({"nbf": NOW + LEEWAY + 1}),
            json!({"iat": NOW + LEEWAY + 1}),
        ] {
            assert!(check(invalid.clone()).is_err(), "{invalid}");
        }
    }

    #[test]
    fn claims_are_found_by_name_and_by_path() {
        let claims = json!({
            "realm_access": {"roles": ["a", 1, "b"]}, "scope": "read  run", "https://a.example/roles": ["c"],
            "email": "ada@a.example", "email_verified": false, "empty": " ", "number": 1,
        });
        let claims = Claims(claims.as_object().unwrap().clone());
        assert_eq!(claims.words("realm_access.roles"), ["a", "b"]);
        assert_eq!(claims.words("scope"), ["read", "run"]);
        assert_eq!(claims.words("https://a.example/roles"), ["c"]);
        assert!(claims.words("realm_access.nothing").is_empty());
        for none in ["empty", "number", "sub", ""] {
            assert!(claims.text(none).is_err(), "{none}");
        }
        assert_eq!(claims.text("email").unwrap(), "ada@a.example");
        assert!(claims.principal("email").is_err());
    }

    #[test]
    fn keys_that_cannot_be_used_are_left_out() {
        let (_, good) = ed25519();
        let short = json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA"});
        let secret = json!({"kty": "oct", "k": "AAAA", "kid": "ed"});
        let all = keys(&[good, short, secret, json!(1), json!({})]);
        assert_eq!(all.len(), 1);
        assert!(KeySet::read(b"{}").is_err());
        assert!(KeySet::read(b"[").is_err());
    }
}
