//! Serialization of secrets for the login files. Each field names it with `#[serde(with)]`, so a secret
//! cannot get into other JSON.

use serde::{Deserialize as _, Deserializer, Serializer};

use crate::Secret;

pub(super) fn serialize<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.reveal())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// Serialization of an optional secret.
pub(super) mod maybe {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::Secret;

    pub(in crate::oauth) fn serialize<S: Serializer>(
        secret: &Option<Secret>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => serializer.serialize_some(secret.reveal()),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::oauth) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
    }
}
