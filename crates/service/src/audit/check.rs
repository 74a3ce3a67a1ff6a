//! The check of a file of evidence. It needs the file and the public key, and nothing else.

use serde_json::Value;
use windlass_keys::{PublicKey, hex, sha256};

use super::Checkpoint;
use crate::error::ServiceError;

/// What a file says that was not changed.
#[derive(Debug, Clone)]
pub struct AuditCheck {
    /// What was signed.
    pub checkpoint: Checkpoint,
    /// The key that signed it.
    pub key: PublicKey,
    /// Whether that is the key that the caller expects. Without one, the file could be by anybody.
    pub is_expected_key: bool,
}

/// Checks a file of evidence with the public key of the installation that wrote it, if the caller has it.
///
/// # Errors
/// If the file was changed, or another key signed it.
pub fn check_audit_file(
    text: &str,
    expected: Option<PublicKey>,
) -> Result<AuditCheck, ServiceError> {
    let altered = |message: &str| {
        ServiceError::conflict("audit_altered", message)
            .with_hint("get the file again from the installation that wrote it")
    };
    let whole = text.strip_suffix('\n').unwrap_or(text);
    let start = whole.rfind('\n').map_or(0, |end| end + 1);
    let (content, last) = whole.split_at(start);
    let found = Checkpoint::of_line(last);
    let (checkpoint, key) = found.ok_or_else(|| {
        altered("the last line is no checkpoint with a valid signature: it was changed, or lines are missing")
    })?;
    if let Some(expected) = expected
        && expected != key
    {
        let message = format!(
            "the file is signed with the key {}, not with {}",
            key.fingerprint(),
            expected.fingerprint()
        );
        return Err(ServiceError::conflict("audit_other_key", message)
            .with_hint("`windlass audit key` prints the key of an installation"));
    }
    if hex::encode(&sha256(content.as_bytes())) != checkpoint.digest {
        return Err(altered(&match first_break(content) {
            Some(line) => format!("line {line} is not the one that was signed"),
            None => "the file is not the one that was signed".to_owned(),
        }));
    }
    Ok(AuditCheck {
        checkpoint,
        key,
        is_expected_key: expected.is_some(),
    })
}

/// The first line of JSON Lines that does not follow the line before.
fn first_break(content: &str) -> Option<usize> {
    let mut previous = String::new();
    for (line, number) in content.lines().zip(1..) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return content.starts_with('{').then_some(number);
        };
        if value["record"] != number || value["previous"] != previous.as_str() {
            // The line before is the one whose digest does not fit.
            return Some(number.saturating_sub(1).max(1));
        }
        previous = hex::encode(&sha256(line.as_bytes()));
    }
    None
}
