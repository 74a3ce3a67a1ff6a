//! Signed statements for programs and servers: claims in the compact form of JWS (RFC 7515), signed with the key of
//! the installation (EdDSA), so that every JOSE library can check them with its public key.

use serde_json::{Value, json};

use crate::base64;
use crate::installation::{InstallationKey, PublicKey};

impl InstallationKey {
    /// A signed statement of a kind, such as `windlass-approval+jwt`, with these claims.
    #[must_use]
    pub fn statement(&self, kind: &str, claims: &Value) -> String {
        let header = json!({"alg": "EdDSA", "typ": kind, "kid": self.public().fingerprint()});
        let [header, claims] =
            [&header, claims].map(|part| base64::encode(part.to_string().as_bytes()));
        let signed = format!("{header}.{claims}");
        let signature = base64::encode(&self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

impl PublicKey {
    /// The claims of a statement of a kind; `None` if this key did not sign it, or it is of another kind.
    #[must_use]
    pub fn claims(&self, kind: &str, statement: &str) -> Option<Value> {
        let (signed, signature) = statement.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let is_signed = self.has_signed(signed.as_bytes(), &base64::decode(signature)?);
        let header: Value = serde_json::from_slice(&base64::decode(header)?).ok()?;
        let is_kind = header.get("alg")? == "EdDSA" && header.get("typ")? == kind;
        (is_signed && is_kind)
            .then(|| serde_json::from_slice(&base64::decode(claims)?).ok())
            .flatten()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use crate::{InstallationKey, KeyDirectory};

    #[test]
    fn a_statement_is_checked_with_the_public_key_and_its_kind() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| {
            let keys = KeyDirectory::new(directory.path().join(name));
            InstallationKey::read_or_create(&keys).unwrap()
        });
        let claims = json!({"jti": "1", "tool": "send"});
        let statement = one.statement("test+jwt", &claims);
        assert_eq!(one.public().claims("test+jwt", &statement), Some(claims));
        assert_eq!(one.public().claims("other+jwt", &statement), None);
        assert_eq!(other.public().claims("test+jwt", &statement), None);
        let (signed, _) = statement.rsplit_once('.').unwrap();
        let (_, foreign) = other
            .statement("test+jwt", &json!({}))
            .rsplit_once('.')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let forged = format!("{signed}.{foreign}");
        assert_eq!(one.public().claims("test+jwt", &forged), None);
        assert_eq!(one.public().claims("test+jwt", "a.b"), None);
    }
}
