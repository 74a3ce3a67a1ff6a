//! Evidence for outsiders: what was asked, decided and done in a period, in a file whose last line is signed. A person who has
//! the public key of the installation can check the file without Windlass's data.

mod check;
mod collect;
mod format;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_keys::{InstallationKey, PublicKey, hex};
use windlass_spec::Timestamp;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

pub use check::{AuditCheck, check_audit_file};

/// The period and the format of an export.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// From this time on.
    pub from: Timestamp,
    /// Before this time.
    pub to: Timestamp,
    /// How the file is written.
    pub format: AuditFormat,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditFormat {
    /// One JSON object per line.
    JsonLines,
    /// Comma-separated values, with the names of the columns in the first line.
    Csv,
    /// One page without scripts.
    Html,
}

/// A file of evidence.
#[derive(Debug, Clone)]
pub struct AuditExport {
    /// Its text. The last line is signed.
    pub text: String,
    /// How many records it has.
    pub records: u64,
    /// How many changes outside Windlass it reports.
    pub alterations: u64,
}

/// One thing that happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct AuditRecord {
    /// When.
    pub(crate) at: String,
    /// The kind of event, `admin_change`, or `alteration`.
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// The number of the event in its run, or of the change by an administrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
    /// For whom the run acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
    /// The verdict of the gate, or how a request was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The policies that decided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) policies: Vec<String>,
    /// The digest of the configuration with its policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) configuration: Option<String>,
    /// Who decided, how and when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvers: Vec<Value>,
    /// How a call or a run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The digest of the call that was decided about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call_digest: Option<String>,
    /// The SHA-256 of the stored event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_digest: Option<String>,
    /// Whether the content of the event was purged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_purged: bool,
}

/// What the last line of a file signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The version of the format.
    pub version: u32,
    /// The tenant.
    pub tenant: String,
    /// The beginning of the period.
    pub from: Timestamp,
    /// The end of the period.
    pub to: Timestamp,
    /// When the file was written.
    pub at: Timestamp,
    /// How many records the file has.
    pub records: u64,
    /// How many changes outside Windlass it reports.
    pub alterations: u64,
    /// The SHA-256 of everything before the last line.
    pub digest: String,
    /// The public key of the installation.
    pub key: String,
}

/// What is in front of the checkpoint in the line.
const PREFIX: &str = r#"{"checkpoint":"#;

/// What is between the checkpoint and its signature.
const SEPARATOR: &str = r#","signature":""#;

/// What is after the signature.
const SUFFIX: &str = r#""}"#;

/// What a signature is for, so that no other signed text passes as a checkpoint.
const PURPOSE: &str = "windlass audit checkpoint 1\n";

impl Checkpoint {
    /// The line with its signature.
    fn sign(&self, key: &InstallationKey) -> Result<String, ServiceError> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| ServiceError::failed(error.to_string()))?;
        let signature = key.sign(format!("{PURPOSE}{text}").as_bytes());
        let signature = hex::encode(&signature);
        Ok(format!("{PREFIX}{text}{SEPARATOR}{signature}{SUFFIX}"))
    }

    /// The checkpoint of a line, if its own key signed it.
    fn of_line(line: &str) -> Option<(Self, PublicKey)> {
        let start = line.find(PREFIX)? + PREFIX.len();
        let rest = line.get(start..)?;
        let (text, rest) = rest.rsplit_once(SEPARATOR)?;
        let (signature, _) = rest.split_once(SUFFIX)?;
        let signature: [u8; 64] = hex::decode(signature)?;
        let checkpoint: Self = serde_json::from_str(text).ok()?;
        let key = PublicKey::parse(&checkpoint.key)?;
        let message = format!("{PURPOSE}{text}");
        key.has_signed(message.as_bytes(), &signature)
            .then_some((checkpoint, key))
    }
}

impl Service {
    /// What was asked, decided and done in a period, as a signed file.
    ///
    /// # Errors
    /// If the identity may not audit, or the store or the key cannot be read. A journal that was changed is reported in
    /// the file.
    pub fn export_audit(
        &self,
        identity: &Identity,
        query: &AuditQuery,
    ) -> Result<AuditExport, ServiceError> {
        identity.require(Scope::Audit)?;
        let key = installation_key()?;
        let store = self.store()?;
        let tenant = identity.tenant().as_str();
        let mut records = collect::records(&store, tenant, query)?;
        if identity.has(Scope::Admin) {
            // It may be of any tenant.
            records.extend(collect::rest(&store)?);
        }
        let alterations = records.iter().filter(|record| record.kind == "alteration");
        let alterations = alterations.count() as u64;
        let content = format::write(query.format, &records)?;
        let checkpoint = Checkpoint {
            version: 1,
            tenant: tenant.to_owned(),
            from: query.from,
            to: query.to,
            at: self.now(),
            records: records.len() as u64,
            alterations,
            digest: hex::encode(&windlass_keys::sha256(content.as_bytes())),
            key: key.public().to_string(),
        };
        let line = format::last_line(query.format, &checkpoint.sign(&key)?);
        Ok(AuditExport {
            text: format!("{content}{line}\n"),
            records: checkpoint.records,
            alterations,
        })
    }

    /// The public key of the installation, to be given to those who check its files.
    ///
    /// # Errors
    /// If the identity may not read, or the key cannot be read.
    pub fn audit_key(&self, identity: &Identity) -> Result<PublicKey, ServiceError> {
        identity.require(Scope::Read)?;
        Ok(installation_key()?.public())
    }
}

fn installation_key() -> Result<InstallationKey, ServiceError> {
    InstallationKey::of_user().map_err(|error| ServiceError::failed(error.to_string()))
}
