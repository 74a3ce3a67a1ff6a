//! Texts of a question that only the person who decides may read: screenshots, and the preview of stored
//! credentials. They are sealed before the question is stored, and opened to be shown.

use serde_json::Value;

use super::{Approval, CredentialUse, Intervene, Question};

impl CredentialUse {
    /// Replaces the secret texts by what `seal` returns for them.
    pub(crate) fn seal(&mut self, seal: impl Fn(&str) -> String) {
        if let Some(preview) = &mut self.credential_preview {
            *preview = Value::String(seal(&preview.to_string()));
        }
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = seal(screenshot);
        }
    }

    fn open(&mut self, open: impl Fn(&str) -> String) {
        if let Some(preview) = &mut self.credential_preview
            && let Value::String(sealed) = &preview
        {
            let opened = open(sealed);
            *preview = serde_json::from_str(&opened).unwrap_or(Value::String(opened));
        }
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = open(screenshot);
        }
    }
}

impl Intervene {
    /// Replaces the secret texts by what `seal` returns for them.
    pub(crate) fn seal(&mut self, seal: impl Fn(&str) -> String) {
        if let Some(screenshot) = &mut self.screenshot {
            *screenshot = seal(screenshot);
        }
    }
}

impl Approval {
    /// The same question with its sealed texts as `open` returns them, to be shown to the person who
    /// decides. It keeps its digest.
    #[must_use]
    pub fn opened(&self, open: impl Fn(&str) -> String) -> Self {
        let mut opened = self.clone();
        match &mut opened.request.question {
            Question::Authorize(call) => {
                if let Some(credentials) = &mut call.credentials {
                    credentials.open(open);
                }
            }
            Question::Intervene(work) => {
                if let Some(screenshot) = &mut work.screenshot {
                    *screenshot = open(screenshot);
                }
            }
            Question::Ask(_) => {}
        }
        opened
    }
}
