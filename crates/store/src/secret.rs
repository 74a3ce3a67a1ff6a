//! What a store makes with its keys besides evidence: sealed texts, and signed statements.

use serde_json::Value;
use windlass_core::approval::Approval;
use windlass_keys::is_sealed;

use crate::evidence::Evidence;
use crate::store::Store;

/// What is stored in place of a secret text without a key.
const WITHHELD: &str = "[withheld: this journal has no key]";

/// What is shown in place of a sealed text that cannot be read.
const UNREADABLE: &str = "[sealed with another key]";

impl Store {
    /// A text to be stored in place of a secret one. Only this installation can read it.
    #[must_use]
    pub fn seal(&self, secret: &str) -> String {
        let sealed = match &*self.evidence {
            Evidence::On(key) => key.seal(secret).ok(),
            _ => None,
        };
        sealed.unwrap_or_else(|| WITHHELD.to_owned())
    }

    /// The secret text that a sealed one was made of. All other texts are returned unchanged.
    #[must_use]
    pub fn open_sealed(&self, text: &str) -> String {
        if !is_sealed(text) {
            return text.to_owned();
        }
        let opened = match &*self.evidence {
            Evidence::On(key) => key.open(text),
            _ => None,
        };
        opened.unwrap_or_else(|| UNREADABLE.to_owned())
    }

    /// A question with its sealed texts in clear, for the person who decides.
    #[must_use]
    pub fn opened(&self, question: &Approval) -> Approval {
        question.opened(|text| self.open_sealed(text))
    }

    /// A statement of this installation, signed with its key; `None` if there is no key.
    #[must_use]
    pub fn statement(&self, kind: &str, claims: &Value) -> Option<String> {
        let Evidence::On(key) = &*self.evidence else {
            return None;
        };
        let installation = key.installation().ok().flatten()?;
        Some(installation.statement(kind, claims))
    }
}
