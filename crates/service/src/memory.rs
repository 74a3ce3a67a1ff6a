//! Memory: the documents that agents remember for a principal, listed and changed by the principal. An identity
//! can access only the memory of its own tenant and principal.

mod file;
mod import;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::Timestamp;
use windlass_store::{
    DEFAULT_MAX_DOCUMENT_BYTES, Memory, MemoryError, MemoryHit, MemoryScope, MemoryStatistics,
    NewDocument, RememberedDocument, ScopeReach, StoredDocument,
};

use crate::error::{ServiceError, with_sources};
use crate::identity::{Identity, Scope};
use crate::service::Service;

pub use file::{MemoryFile, read_memory_text};
pub use import::{ImportCounts, ImportOutcome, ImportProgress, ImportSource, MemoryImport};

/// The version of the export format that this program writes and reads.
pub(crate) const EXPORT_VERSION: u32 = 1;

/// A text to remember.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemoryDocument {
    /// The scope it is stored in.
    pub reach: ScopeReach,
    /// The text.
    pub text: String,
    /// Its title.
    pub title: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// Whether it is untrusted content: a run that recalls it is tainted.
    pub is_untrusted: bool,
}

/// A document as a line of an export, with its whole text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedDocument {
    /// The version of the format.
    #[serde(rename = "windlass_memory")]
    pub version: u32,
    /// The scope it is stored in.
    pub scope: ScopeReach,
    /// The text.
    pub text: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether it is untrusted content.
    #[serde(default)]
    pub tainted: bool,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// Further data about it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The size of the database before and after it was compacted, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryCompaction {
    /// Before.
    pub bytes_before: u64,
    /// After.
    pub bytes_after: u64,
}

impl Service {
    /// Remembers a text.
    ///
    /// # Errors
    /// If the identity may not change memory, or the text is empty, too large or not text.
    pub fn add_memory(
        &self,
        identity: &Identity,
        new: NewMemoryDocument,
    ) -> Result<RememberedDocument, ServiceError> {
        identity.require(Scope::Operate)?;
        let document = NewDocument {
            title: new.title,
            source: new.source,
            is_tainted: new.is_untrusted,
            ..NewDocument::new(new.text, self.now())
        };
        let memory = self.memory()?;
        let stored = memory.remember(&scope_of(identity, &new.reach), document);
        stored.map_err(refused)
    }

    /// The parts of documents that match a query best by meaning and words, the best first. Searches the
    /// given scopes, or all of the identity if none is given.
    ///
    /// # Errors
    /// If the identity may not read, the query is empty, or memory was made with another embedder.
    pub fn search_memory(
        &self,
        identity: &Identity,
        reaches: &[ScopeReach],
        query: &str,
        limit: usize,
    ) -> Result<Vec<MemoryHit>, ServiceError> {
        identity.require(Scope::Read)?;
        let memory = self.memory()?;
        let scopes = scopes(&memory, identity, reaches)?;
        memory.search(&scopes, query, limit).map_err(refused)
    }

    /// The documents of the given scopes, or of all of the identity, the latest first.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_memory(
        &self,
        identity: &Identity,
        reaches: &[ScopeReach],
        skip: usize,
        limit: usize,
    ) -> Result<Vec<StoredDocument>, ServiceError> {
        identity.require(Scope::Read)?;
        let memory = self.memory()?;
        let scopes = scopes(&memory, identity, reaches)?;
        memory.documents(&scopes, skip, limit).map_err(refused)
    }

    /// A document with its text, by its id or a prefix of it.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no document or several.
    pub fn show_memory(
        &self,
        identity: &Identity,
        reaches: &[ScopeReach],
        id: &str,
    ) -> Result<(StoredDocument, String), ServiceError> {
        identity.require(Scope::Read)?;
        let memory = self.memory()?;
        let scopes = scopes(&memory, identity, reaches)?;
        let document = memory.document(&scopes, id).map_err(refused)?;
        let text = memory.text(&scopes, &document.id).map_err(refused)?;
        Ok((document, text))
    }

    /// Forgets documents, by their ids or prefixes of them. If one of them is not found, none is forgotten.
    /// The texts stay in the database file until it is compacted.
    ///
    /// # Errors
    /// If the identity may not change memory, or an id matches no document or several.
    pub fn forget_memory(
        &self,
        identity: &Identity,
        reaches: &[ScopeReach],
        ids: &[String],
    ) -> Result<Vec<StoredDocument>, ServiceError> {
        identity.require(Scope::Operate)?;
        let memory = self.memory()?;
        let scopes = scopes(&memory, identity, reaches)?;
        let documents = ids
            .iter()
            .map(|id| memory.document(&scopes, id))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?;
        for document in &documents {
            memory.forget(&scopes, &document.id).map_err(refused)?;
        }
        Ok(documents)
    }

    /// The documents of the given scopes, or of all of the identity, one at a time with their texts.
    ///
    /// # Errors
    /// If the identity may not read, or a document cannot be read.
    pub fn export_memory(
        &self,
        identity: &Identity,
        reaches: &[ScopeReach],
    ) -> Result<impl Iterator<Item = Result<ExportedDocument, ServiceError>> + use<>, ServiceError>
    {
        identity.require(Scope::Read)?;
        let memory = self.memory()?;
        let scopes = scopes(&memory, identity, reaches)?;
        // Listed once: a document that is added meanwhile may be missing, but none appears twice.
        let documents = memory.documents(&scopes, 0, usize::MAX).map_err(refused)?;
        Ok(documents.into_iter().filter_map(move |document| {
            let text = match memory.text(&scopes, &document.id) {
                Ok(text) => text,
                // It was forgotten meanwhile.
                Err(MemoryError::NoSuchDocument(_)) => return None,
                Err(error) => return Some(Err(refused(error))),
            };
            Some(Ok(ExportedDocument {
                version: EXPORT_VERSION,
                text,
                scope: document.scope,
                title: document.title,
                source: document.source,
                tainted: document.tainted,
                stored_at: document.updated_at,
                metadata: document.metadata,
            }))
        }))
    }

    /// Statistics of the identity's memory, with its embedder.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn memory_statistics(&self, identity: &Identity) -> Result<MemoryStatistics, ServiceError> {
        identity.require(Scope::Read)?;
        statistics(&self.memory()?, identity)
    }

    /// Removes forgotten texts from the database file and shrinks the file. The file is shared by
    /// all tenants.
    ///
    /// # Errors
    /// If the identity is no administrator, or another process uses the database.
    pub fn compact_memory(&self, identity: &Identity) -> Result<MemoryCompaction, ServiceError> {
        identity.require(Scope::Admin)?;
        let memory = self.memory()?;
        let bytes_before = statistics(&memory, identity)?.database_bytes;
        memory.compact().map_err(refused)?;
        Ok(MemoryCompaction {
            bytes_before,
            bytes_after: statistics(&memory, identity)?.database_bytes,
        })
    }

    /// Recomputes all vectors with the embedder of this version, those of other tenants as well, and returns
    /// how many parts of documents were embedded. `progress` gets the number done and the total. If it is
    /// interrupted, the next call resumes it.
    ///
    /// # Errors
    /// If the identity is no administrator, or the embedder or the store fails.
    pub fn reembed_memory(
        &self,
        identity: &Identity,
        progress: impl FnMut(u64, u64),
    ) -> Result<u64, ServiceError> {
        identity.require(Scope::Admin)?;
        let done = self.memory()?.reembed(progress).map_err(refused)?;
        Ok(done.chunks)
    }

    /// The largest size of a document, in bytes.
    #[must_use]
    pub fn max_document_bytes(&self) -> u64 {
        DEFAULT_MAX_DOCUMENT_BYTES
    }

    fn memory(&self) -> Result<Memory, ServiceError> {
        let memory = Memory::new(self.store()?);
        Ok(memory.with_max_document_bytes(self.max_document_bytes()))
    }
}

fn statistics(memory: &Memory, identity: &Identity) -> Result<MemoryStatistics, ServiceError> {
    let (tenant, principal) = (identity.tenant().as_str(), identity.principal().to_string());
    memory.statistics(tenant, &principal).map_err(refused)
}

fn scope_of(identity: &Identity, reach: &ScopeReach) -> MemoryScope {
    let (tenant, principal) = (identity.tenant().as_str(), identity.principal().to_string());
    MemoryScope::new(tenant, principal, reach.clone())
}

/// The scopes of these reaches, or all non-empty ones of the identity.
fn scopes(
    memory: &Memory,
    identity: &Identity,
    reaches: &[ScopeReach],
) -> Result<Vec<MemoryScope>, ServiceError> {
    match reaches {
        [] => {
            let (tenant, principal) =
                (identity.tenant().as_str(), identity.principal().to_string());
            memory.scopes(tenant, &principal).map_err(refused)
        }
        reaches => Ok(reaches
            .iter()
            .map(|reach| scope_of(identity, reach))
            .collect()),
    }
}

/// Converts an error of memory.
fn refused(error: MemoryError) -> ServiceError {
    let message = with_sources(&error);
    let (message, hint) = match message.split_once("\nhint: ") {
        Some((message, hint)) => (message.to_owned(), hint.to_owned()),
        None => (message, String::new()),
    };
    let refusal = match error {
        MemoryError::NoSuchDocument(_) => ServiceError::not_found("no_such_document", message),
        MemoryError::ShortId(_) | MemoryError::SeveralDocuments(_) => {
            ServiceError::invalid("ambiguous", message)
        }
        MemoryError::Empty | MemoryError::EmptyQuery => ServiceError::invalid("empty", message),
        MemoryError::TooLarge { .. } => ServiceError::invalid("too_large", message),
        MemoryError::Binary { .. } => ServiceError::invalid("not_text", message),
        MemoryError::BadScope(_) => ServiceError::invalid("bad_scope", message),
        MemoryError::OtherEmbedder { .. } | MemoryError::Reembedding(_) => {
            ServiceError::conflict("other_embedder", message)
        }
        MemoryError::InUse => ServiceError::conflict("in_use", message),
        _ => ServiceError::failed(message),
    };
    refusal.with_hint(hint)
}

#[cfg(test)]
mod tests {
    use windlass_core::approval::Principal;
    use windlass_spec::NonEmptyText;

    use super::*;
    use crate::error::ErrorKind;
    use crate::options::Overrides;

    fn identity(tenant: &str, principal: &str, scope: Scope) -> Identity {
        let tenant = NonEmptyText::new(tenant).unwrap();
        Identity::new(tenant, Principal::new(principal).unwrap(), [scope])
    }

    fn service(data: &tempfile::TempDir) -> Service {
        let overrides = Overrides {
            data: Some(data.path().to_owned()),
            ..Overrides::default()
        };
        Service::open(None, overrides)
    }

    fn cat() -> NewMemoryDocument {
        NewMemoryDocument {
            reach: ScopeReach::Principal,
            text: "The office cat is called Mill.".to_owned(),
            title: None,
            source: None,
            is_untrusted: false,
        }
    }

    #[test]
    fn only_its_principal_sees_memory() {
        let data = tempfile::tempdir().unwrap();
        let service = service(&data);
        let ada = identity("acme", "ada", Scope::Operate);
        let id = service.add_memory(&ada, cat()).unwrap().id;
        assert_eq!(service.list_memory(&ada, &[], 0, 10).unwrap().len(), 1);
        let (_, text) = service.show_memory(&ada, &[], &id).unwrap();
        assert_eq!(text, cat().text);
        for other in [
            identity("other", "ada", Scope::Admin),
            identity("acme", "ben", Scope::Admin),
        ] {
            for reaches in [&[][..], &[ScopeReach::Principal][..]] {
                let listed = service.list_memory(&other, reaches, 0, 10).unwrap();
                assert!(listed.is_empty());
                let found = service.search_memory(&other, reaches, "office cat", 5);
                assert!(found.unwrap().is_empty());
                assert_eq!(service.export_memory(&other, reaches).unwrap().count(), 0);
                let ids = [id.clone()];
                let error = service.forget_memory(&other, reaches, &ids).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound);
            }
        }
        assert_eq!(service.list_memory(&ada, &[], 0, 10).unwrap().len(), 1);
    }

    #[test]
    fn changing_memory_needs_the_operate_or_admin_scope() {
        let data = tempfile::tempdir().unwrap();
        let service = service(&data);
        let reader = identity("acme", "ada", Scope::Read);
        let operator = identity("acme", "ada", Scope::Operate);
        let codes = [
            service.add_memory(&reader, cat()).unwrap_err(),
            service.forget_memory(&reader, &[], &[]).unwrap_err(),
            service.compact_memory(&operator).unwrap_err(),
            service.reembed_memory(&operator, |_, _| {}).unwrap_err(),
        ]
        .map(|error| error.code());
        assert_eq!(codes, ["scope_missing"; 4]);
    }
}
