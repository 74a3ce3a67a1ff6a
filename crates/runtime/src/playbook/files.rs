//! The files of one playbook. They are written so that a crash at any point loses nothing.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use windlass_learn::playbook::{Playbook, PlaybookEntry, ReadLog, log_line, read_log};
use windlass_spec::DEFAULT_DOMAIN;
use windlass_store::crash_point;

/// The strategies, one per line.
pub(super) const STRATEGIES: &str = "strategies.jsonl";

/// The log, one entry per line.
const EVIDENCE: &str = "evidence.jsonl";

/// The last versions of the strategies file.
const WRITTEN: &str = "written.json";

/// Contains the name of a domain that is too long for a folder name.
const DOMAIN: &str = "domain.txt";

/// Separates the start of a name that is too long from its digest.
const CUT: &str = "%%";

/// Locked by the writing process.
const LOCK: &str = "lock";

/// The folder name of a domain. Bytes that are not safe in a path are percent-encoded. An empty name means the
/// default domain.
pub(super) fn folder_name(domain: &str) -> String {
    if domain.is_empty() {
        return DEFAULT_DOMAIN.to_owned();
    }
    let mut name = String::new();
    for byte in domain.bytes() {
        let is_safe = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_dot = byte == b'.' && !name.is_empty();
        if is_safe || is_dot {
            name.push(byte.into());
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    // File names are limited in length, so a long name is cut and gets a digest.
    if name.len() > 120 {
        let digest = digest(domain);
        name.truncate(100);
        let _ = write!(name, "{CUT}{}", &digest[..16]);
    }
    name
}

/// The domain of a folder, if it has one. A folder with a cut name has the domain in a file.
pub(super) fn domain_of(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_str()?;
    if name.contains(CUT) {
        let domain = std::fs::read_to_string(folder.join(DOMAIN)).ok()?;
        return (folder_name(&domain) == name).then_some(domain);
    }
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// The text of a file; empty if there is no file.
pub(super) fn text(file: &Path) -> io::Result<String> {
    let text = bytes(file)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    match std::fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn digest(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The last two written versions of the strategies file. Stored before the file is replaced, so the file is one
/// of the two unless a person edited it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrittenVersions {
    #[serde(default)]
    last: Option<Version>,
    #[serde(default)]
    before: Option<Version>,
}

/// A version of the strategies file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    /// The number of log entries it was made from.
    revision: usize,
    digest: String,
}

impl WrittenVersions {
    /// Whether a text is one of the versions.
    pub(super) fn includes(&self, text: &str) -> bool {
        let digest = digest(text);
        let versions = self.last.iter().chain(&self.before);
        versions.into_iter().any(|version| version.digest == digest)
    }

    /// The same, with the version that is in the file as the last. A process may have died after it stored a
    /// later version and before it replaced the file.
    pub(super) fn with_current(self, text: &str) -> Self {
        let digest = digest(text);
        let is = |version: &Option<Version>| {
            let version = version.as_ref();
            version.is_some_and(|version| version.digest == digest)
        };
        match is(&self.before) && !is(&self.last) {
            true => Self {
                last: self.before.clone(),
                before: self.before,
            },
            false => self,
        }
    }

    /// Whether a text is the version of that many entries. Without entries it is empty.
    pub(super) fn is_current(&self, text: &str, revision: usize) -> bool {
        match &self.last {
            Some(last) => last.revision == revision && last.digest == digest(text),
            None => revision == 0 && text.is_empty(),
        }
    }

    /// The number of entries the file was made from.
    pub(super) fn revision(&self) -> usize {
        self.last.as_ref().map_or(0, |version| version.revision)
    }

    /// The number of entries the version before was made from.
    pub(super) fn earlier_revision(&self) -> usize {
        let earlier = self.before.as_ref().or(self.last.as_ref());
        earlier.map_or(0, |version| version.revision)
    }

    fn followed_by(self, text: &str, revision: usize) -> Self {
        let last = Version {
            revision,
            digest: digest(text),
        };
        Self {
            last: Some(last),
            before: self.last,
        }
    }
}

/// The folder of one domain.
#[derive(Debug)]
pub(super) struct PlaybookFolder {
    path: PathBuf,
}

impl PlaybookFolder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn strategies(&self) -> PathBuf {
        self.path.join(STRATEGIES)
    }

    pub(super) fn evidence(&self) -> PathBuf {
        self.path.join(EVIDENCE)
    }

    /// Takes the shared lock; `None` if there is no such folder. A folder without a readable lock file needs
    /// no lock.
    pub(super) fn lock_to_read(&self) -> io::Result<Option<Option<File>>> {
        if !self.path.exists() {
            return Ok(None);
        }
        let Ok(lock) = File::open(self.path.join(LOCK)) else {
            return Ok(Some(None));
        };
        lock.lock_shared()?;
        Ok(Some(Some(lock)))
    }

    /// Takes the exclusive lock.
    pub(super) fn lock_to_write(&self) -> io::Result<File> {
        if let Some(parent) = self.path.parent() {
            windlass_files::create_directory(parent)?;
        }
        windlass_files::create_directory(&self.path)?;
        let mut options = windlass_files::options();
        options.create(true).truncate(false).read(true).write(true);
        let lock = windlass_files::open(&options, &self.path.join(LOCK))?;
        lock.lock()?;
        Ok(lock)
    }

    pub(super) fn log(&self) -> io::Result<ReadLog> {
        Ok(read_log(bytes(&self.evidence())?))
    }

    /// Stores the name of the domain in a file, if the folder name is cut.
    pub(super) fn note_domain(&self, domain: &str) -> io::Result<()> {
        let is_cut = folder_name(domain).contains(CUT);
        if is_cut && !self.path.join(DOMAIN).exists() {
            self.replace(DOMAIN, domain)?;
        }
        Ok(())
    }

    pub(super) fn written(&self) -> io::Result<WrittenVersions> {
        let text = text(&self.path.join(WRITTEN))?;
        // If it is damaged, all lines of the strategies file count as people's edits.
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Adds entries to the log after its first `complete_bytes`, and waits until they are on disk.
    pub(super) fn append(&self, complete_bytes: u64, entries: &[PlaybookEntry]) -> io::Result<()> {
        let mut lines = String::new();
        for entry in entries {
            lines.push_str(&log_line(entry)?);
        }
        let mut options = windlass_files::options();
        options.create(true).truncate(false).write(true);
        let mut log = windlass_files::open(&options, &self.evidence())?;
        // An incomplete entry is removed.
        log.set_len(complete_bytes)?;
        log.seek(SeekFrom::Start(complete_bytes))?;
        let (first, second) = lines.as_bytes().split_at(lines.len() / 2);
        log.write_all(first)?;
        crash_point!("playbook.torn");
        log.write_all(second)?;
        log.sync_data()
    }

    /// Writes the strategies, with the lines that could not be used at the end.
    pub(super) fn write(
        &self,
        playbook: &Playbook,
        kept_lines: &[String],
        written: WrittenVersions,
    ) -> io::Result<()> {
        let mut text = playbook.to_lines();
        for line in kept_lines {
            text.push_str(line);
            text.push('\n');
        }
        let noted = serde_json::to_string(&written.followed_by(&text, playbook.revision))?;
        self.replace(WRITTEN, &noted)?;
        crash_point!("playbook.noted");
        self.replace(STRATEGIES, &text)?;
        crash_point!("playbook.written");
        File::open(&self.path)?.sync_all()
    }

    /// Replaces a file atomically.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.path.join(format!(".{name}.new"));
        let mut file = windlass_files::create(&new)?;
        let (first, second) = text.as_bytes().split_at(text.len() / 2);
        file.write_all(first)?;
        crash_point!("playbook.half");
        file.write_all(second)?;
        file.sync_all()?;
        crash_point!("playbook.replacing");
        std::fs::rename(new, self.path.join(name))
    }
}
