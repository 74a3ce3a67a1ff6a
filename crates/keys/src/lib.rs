//! Keys of an installation, and what is authenticated and signed with them.
//!
//! Keys are in the user's state directory, outside every project and data directory, so that a process that can write a
//! database cannot forge what is signed or authenticated with them.

mod approver;
mod approvers;
mod base64;
mod directory;
pub mod hex;
mod installation;
mod journal_key;
mod seal;
mod statement;
mod webhook;

pub use approver::{ApproverKey, KeyProtection, MIN_PASSPHRASE};
pub use approvers::{Approver, ApproverList, Approvers, Delegation};
pub use directory::{KeyDirectory, KeyError};
pub use installation::{InstallationKey, PublicKey};
pub use journal_key::{JournalKey, Tag, key_files, random_bytes, sha256};
pub use seal::is_sealed;
pub use webhook::{NotAWebhookSecret, WebhookSecrets};
