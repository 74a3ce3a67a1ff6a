//! The files of one playbook, and how they are written so that a kill at any point loses nothing.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use windlass_learn::playbook::{Evidence, Playbook, ReadLog, log_line, read_log};
use windlass_spec::DEFAULT_DOMAIN;
use windlass_store::crash_point;

/// The strategies, one a line.
pub(super) const STRATEGIES: &str = "strategies.jsonl";

/// The log, one entry a line.
const EVIDENCE: &str = "evidence.jsonl";

/// What was last written to the file of strategies.
const WRITTEN: &str = "written.json";

/// The name of a domain that is too long for a folder.
const DOMAIN: &str = "domain.txt";

/// Between the beginning of a name that is too long and its digest.
const CUT: &str = "%%";

/// Held by whoever writes.
const LOCK: &str = "lock";

/// The name of a folder for a domain: what is not safe in a path is written as its bytes. Whoever names none means the
/// one that needs no name.
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
    // Names of files are short; what is cut is told apart by its digest.
    if name.len() > 120 {
        let digest = digest(domain);
        name.truncate(100);
        let _ = write!(name, "{CUT}{}", &digest[..16]);
    }
    name
}

/// The domain that a folder is for, if it is for one. One whose name was cut says it inside.
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

/// A text, which is empty if there is no file.
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

/// What was last written to the file of strategies, and what before that. Noted before the file is
/// replaced, so one of both is there, or a person changed it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    #[serde(default)]
    last: Option<Version>,
    #[serde(default)]
    before: Option<Version>,
}

/// One state of the file of strategies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    /// Of how many entries.
    revision: usize,
    digest: String,
}

impl Written {
    /// Whether a text is what was written.
    pub(super) fn knows(&self, text: &str) -> bool {
        let digest = digest(text);
        let versions = self.last.iter().chain(&self.before);
        versions.into_iter().any(|version| version.digest == digest)
    }

    /// The same, with the version that is in the file as the last: whoever noted a later one was stopped before it
    /// was there, and what is noted next must still know this one.
    pub(super) fn beside(self, text: &str) -> Self {
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

    /// Whether a text is what so many entries come to; none come to nothing.
    pub(super) fn is_current(&self, text: &str, revision: usize) -> bool {
        match &self.last {
            Some(last) => last.revision == revision && last.digest == digest(text),
            None => revision == 0 && text.is_empty(),
        }
    }

    /// Of how many entries the file was made.
    pub(super) fn revision(&self) -> usize {
        self.last.as_ref().map_or(0, |version| version.revision)
    }

    /// Of how many entries it was made before that.
    pub(super) fn earlier(&self) -> usize {
        let earlier = self.before.as_ref().or(self.last.as_ref());
        earlier.map_or(0, |version| version.revision)
    }

    fn then(self, text: &str, revision: usize) -> Self {
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
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn strategies(&self) -> PathBuf {
        self.path.join(STRATEGIES)
    }

    pub(super) fn evidence(&self) -> PathBuf {
        self.path.join(EVIDENCE)
    }

    /// Waits until nobody writes; nothing if there is no such folder. Where it may only be read, nobody
    /// writes.
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

    /// Waits until nobody reads or writes, and keeps others from it.
    pub(super) fn lock_to_write(&self) -> io::Result<File> {
        std::fs::create_dir_all(&self.path)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let lock = options.open(self.path.join(LOCK))?;
        lock.lock()?;
        Ok(lock)
    }

    pub(super) fn log(&self) -> io::Result<ReadLog> {
        Ok(read_log(bytes(&self.evidence())?))
    }

    /// Says inside for which domain it is, if its name cannot.
    pub(super) fn note(&self, domain: &str) -> io::Result<()> {
        let is_cut = folder_name(domain).contains(CUT);
        if is_cut && !self.path.join(DOMAIN).exists() {
            self.replace(DOMAIN, domain)?;
        }
        Ok(())
    }

    pub(super) fn written(&self) -> io::Result<Written> {
        let text = text(&self.path.join(WRITTEN))?;
        // If it is damaged, all lines of the file are taken for a person's, which they may be.
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Adds entries to the log, which is whole up to `whole`, and waits until they are on disk.
    pub(super) fn append(&self, whole: u64, entries: &[Evidence]) -> io::Result<()> {
        let mut lines = String::new();
        for entry in entries {
            lines.push_str(&log_line(entry)?);
        }
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let mut log = options.open(self.evidence())?;
        // What was only begun did not happen.
        log.set_len(whole)?;
        log.seek(SeekFrom::Start(whole))?;
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
        written: Written,
    ) -> io::Result<()> {
        let mut text = playbook.to_lines();
        for line in kept_lines {
            text.push_str(line);
            text.push('\n');
        }
        let noted = serde_json::to_string(&written.then(&text, playbook.revision))?;
        self.replace(WRITTEN, &noted)?;
        crash_point!("playbook.noted");
        self.replace(STRATEGIES, &text)?;
        crash_point!("playbook.written");
        File::open(&self.path)?.sync_all()
    }

    /// Puts a file in the place of another, whole or not at all.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.path.join(format!(".{name}.new"));
        let mut file = File::create(&new)?;
        let (first, second) = text.as_bytes().split_at(text.len() / 2);
        file.write_all(first)?;
        crash_point!("playbook.half");
        file.write_all(second)?;
        file.sync_all()?;
        crash_point!("playbook.replacing");
        std::fs::rename(new, self.path.join(name))
    }
}
