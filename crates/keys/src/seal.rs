//! Texts that only the holder of the journal key can read.
//!
//! They are stored in place of what only the person who decides may see.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::base64;
use crate::directory::KeyError;
use crate::journal_key::{JournalKey, random_bytes};

/// What a sealed text begins with.
const PREFIX: &str = "sealed:1:";

/// Whether a text is a sealed one.
#[must_use]
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

impl JournalKey {
    /// The text, readable only with this key.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn seal(&self, text: &str) -> Result<String, KeyError> {
        let random = random_bytes()?;
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(random.get(..NONCE_LEN).unwrap_or_default());
        let mut sealed = text.as_bytes().to_vec();
        let key = self.sealing_key().ok_or(KeyError::NoRandomness)?;
        let done = key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut sealed,
        );
        done.map_err(|_| KeyError::NoRandomness)?;
        let whole = [&nonce[..], &sealed].concat();
        Ok(format!("{PREFIX}{}", base64::encode(&whole)))
    }

    /// The text that was sealed with this key; `None` if it was not.
    #[must_use]
    pub fn open(&self, sealed: &str) -> Option<String> {
        let whole = base64::decode(sealed.strip_prefix(PREFIX)?)?;
        let (nonce, sealed) = whole.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = sealed.to_vec();
        let opened = self
            .sealing_key()?
            .open_in_place(nonce, Aad::empty(), &mut text);
        String::from_utf8(opened.ok()?.to_vec()).ok()
    }

    fn sealing_key(&self) -> Option<LessSafeKey> {
        let bytes = self.authenticate(b"windlass sealing key 1");
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok()?;
        Some(LessSafeKey::new(key))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{JournalKey, is_sealed};

    #[test]
    fn a_sealed_text_is_read_with_its_key_only() {
        let (key, other) = (JournalKey::new(&[7; 32]), JournalKey::new(&[8; 32]));
        let sealed = key.seal("vault_xxx").unwrap();
        assert!(is_sealed(&sealed) && !sealed.contains("vault_xxx"));
        assert_ne!(key.seal("vault_xxx").unwrap(), sealed);
        assert_eq!(key.open(&sealed).as_deref(), Some("vault_xxx"));
        assert_eq!(other.open(&sealed), None);
        assert_eq!(key.open("vault_xxx"), None);
        let damaged = format!("{}A", &sealed[..sealed.len() - 1]);
        assert!(damaged == sealed || key.open(&damaged).is_none());
    }
}
