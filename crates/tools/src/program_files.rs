//! The files that a command line names: what it executes, and what it is given. Trust in projects, the guard of the
//! file tools, the records of runs and the pins of MCP servers all ask here.
//!
//! A command line is read as a shell and the usual interpreters read it: quotes, several commands in one argument,
//! `cd`, sourced files, scripts, and packages, which are directories that an interpreter runs. What a program finds by
//! itself is not covered.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use tracing::warn;
use windlass_spec::RunId;
use windlass_spec::server::CommandTransport;

use crate::command::CommandLine;
use crate::tool::{Implementation, Tool};

/// Files, each with the digest of its content.
pub type FileDigests = BTreeMap<PathBuf, String>;

/// The most bytes of all files whose digests are computed together. A stranger's project could name files without end.
const MAX_DIGESTED: u64 = 1 << 30;

/// The most files of a command line.
const MAX_FILES: usize = 20_000;

/// The most directories of a command line from which its other words are looked up.
const MAX_BASES: usize = 16;

/// How deep shell command lines are nested.
const MAX_DEPTH: usize = 8;

/// Extensions of code files.
const CODE: [&str; 22] = [
    "bash", "bat", "cjs", "cmd", "exe", "jar", "js", "jsx", "lua", "mjs", "php", "pl", "ps1", "py",
    "pyz", "rb", "sh", "so", "ts", "tsx", "wasm", "zsh",
];

/// Interpreters, without their versions.
const INTERPRETERS: [&str; 18] = [
    "ash", "bash", "bun", "dash", "deno", "java", "ksh", "lua", "node", "perl", "php", "pypy",
    "python", "ruby", "sh", "tsx", "uv", "zsh",
];

/// Options of interpreters that give code in place of a script. Files behind them are data.
const CODE_OPTIONS: [&str; 4] = ["-c", "-e", "--eval", "--print"];

/// The files by which a directory is recognized that an interpreter can run.
const PACKAGE_FILES: [&str; 7] = [
    "__main__.py",
    "package.json",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "main.lua",
];

/// Directories in a package that have no code of its author: caches of interpreters, which check them, and history.
const SKIPPED: [&str; 2] = ["__pycache__", ".git"];

/// The files that a command line names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFiles {
    /// The files that it executes: programs, scripts, sourced files, executable and code files, and those of packages.
    pub programs: Vec<PathBuf>,
    /// Other existing files among its words, except those that it declares as writable, which are data.
    pub others: Vec<PathBuf>,
    /// The directories that it executes. A file that is added to one becomes part of the program.
    pub packages: Vec<PathBuf>,
    /// The programs and scripts that do not exist yet.
    pub missing: Vec<PathBuf>,
    /// The programs that are found through `PATH`. They belong to the machine.
    pub installed: Vec<PathBuf>,
    /// A package with too many files, which are not all listed.
    pub too_large: Option<PathBuf>,
}

impl CommandFiles {
    /// The files that the words of a command name, started in `directory`. `writable` are the files that it declares
    /// as its data.
    #[must_use]
    pub fn of(words: &[String], directory: &Path, writable: &[PathBuf]) -> Self {
        let lexed: Vec<Word> = words.iter().map(|word| Word::plain(word)).collect();
        let mut reader = Reader {
            bases: vec![directory.to_owned()],
            writable: writable.iter().map(|path| directory.join(path)).collect(),
            found: Self::default(),
        };
        reader.find_bases(&lexed, 0);
        reader.command(&lexed, 0);
        let mut found = reader.found;
        for files in [
            &mut found.programs,
            &mut found.others,
            &mut found.packages,
            &mut found.missing,
            &mut found.installed,
        ] {
            files.sort();
            files.dedup();
        }
        let programs = &found.programs;
        found.others.retain(|path| !programs.contains(path));
        found
    }

    /// The files that the command line of a server names, and its parts.
    #[must_use]
    pub fn of_server(command: &CommandTransport) -> Self {
        let program = std::iter::once(&command.program);
        let words: Vec<String> = program.chain(&command.arguments).cloned().collect();
        let directory = command.directory.as_deref().unwrap_or(Path::new(""));
        let mut found = Self::of(&words, directory, &command.access.writable_files);
        for part in &command.parts {
            match part.is_dir() {
                true => {
                    let mut reader = Reader {
                        bases: Vec::new(),
                        writable: Vec::new(),
                        found,
                    };
                    reader.package(part);
                    found = reader.found;
                }
                false if part.is_file() => found.programs.push(part.clone()),
                false => found.missing.push(part.clone()),
            }
        }
        found
    }

    /// All existing files of its author.
    pub fn existing(&self) -> impl Iterator<Item = &PathBuf> {
        self.programs.iter().chain(&self.others)
    }
}

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    /// Whether it is the target of a redirection, which is written.
    is_output: bool,
}

impl Word {
    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_output: false,
        }
    }
}

struct Reader {
    /// The directories from which words are looked up: the working directory, and those that the command names.
    bases: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    found: CommandFiles,
}

impl Reader {
    /// Adds the directories among the words.
    fn find_bases(&mut self, words: &[Word], depth: usize) {
        for word in words {
            for text in parts(&word.text) {
                let path = self.bases[0].join(expanded(text));
                if self.bases.len() < MAX_BASES && !self.bases.contains(&path) && path.is_dir() {
                    self.bases.push(path);
                }
            }
            if depth < MAX_DEPTH && is_line(&word.text) {
                for command in commands(&word.text) {
                    self.find_bases(&command, depth + 1);
                }
            }
        }
    }

    /// The existing paths of a word.
    fn paths(&self, word: &str) -> impl Iterator<Item = PathBuf> {
        let word = expanded(word);
        let paths = self.bases.iter().map(move |base| base.join(&word));
        paths
            .filter(|path| path.exists())
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Reads one simple command.
    fn command(&mut self, words: &[Word], depth: usize) {
        let mut words = words
            .iter()
            .skip_while(|word| depth > 0 && is_prefix(&word.text));
        let Some(program) = words.next() else {
            return;
        };
        // The interpreter whose script has not been found yet.
        let mut interpreter = self.program(&program.text, depth);
        let mut is_sourced = matches!(program.text.as_str(), "." | "source");
        let mut is_module = false;
        for word in words {
            let text = word.text.as_str();
            if word.is_output || text.is_empty() {
                continue;
            }
            if std::mem::take(&mut is_module) {
                self.module(text);
                interpreter = None;
                continue;
            }
            if let Some(name) = &interpreter {
                if text == "-m" && !is_shell(name) {
                    is_module = true;
                    continue;
                }
                let is_code_option = match is_shell(name) {
                    true => is_shell_code(text),
                    false => CODE_OPTIONS.contains(&text),
                };
                if is_code_option {
                    interpreter = None;
                }
            }
            let is_option = text.starts_with('-');
            let is_script = (interpreter.is_some() || is_sourced) && !is_option;
            if self.word(text, is_script) && is_script {
                interpreter = None;
                is_sourced = false;
            } else if depth < MAX_DEPTH && is_line(text) {
                for command in commands(text) {
                    self.command(&command, depth + 1);
                }
            }
            // `env sh script` and `timeout 5 python3 script`.
            interpreter = interpreter_of(text).or(interpreter);
        }
    }

    /// Adds the program of a command. Returns its name if it is an interpreter.
    fn program(&mut self, name: &str, depth: usize) -> Option<String> {
        match name.contains('/') {
            true => {
                let paths: Vec<PathBuf> = self.paths(name).filter(|path| path.is_file()).collect();
                // A word in a shell command line may be a pattern or an expression.
                match paths.is_empty() && depth == 0 {
                    true => self.found.missing.push(self.bases[0].join(name)),
                    false => self.found.programs.extend(paths),
                }
            }
            false => self.found.installed.extend(program_in_path(name)),
        }
        interpreter_of(name)
    }

    /// Adds what a word names. Returns whether it is a file or a package.
    fn word(&mut self, word: &str, is_script: bool) -> bool {
        let mut is_found = false;
        for text in parts(word) {
            let paths: Vec<PathBuf> = self.paths(text).collect();
            for path in paths {
                if path.is_file() {
                    is_found = true;
                    self.file(path, is_script);
                } else if is_script && is_package(&path) {
                    is_found = true;
                    self.package(&path);
                }
            }
            let awaited = self.bases[0].join(expanded(text));
            if is_code(&awaited) && awaited.symlink_metadata().is_err() && !is_line(text) {
                self.found.missing.push(awaited);
            }
        }
        is_found
    }

    fn file(&mut self, path: PathBuf, is_script: bool) {
        let is_program = is_script || is_code(&path) || is_executable(&path);
        let list = match is_program {
            true => &mut self.found.programs,
            false if is_one_of(&path, &self.writable) => return,
            false => &mut self.found.others,
        };
        list.push(path);
    }

    /// The module that an interpreter runs by its name.
    fn module(&mut self, name: &str) {
        let relative = name.replace('.', "/");
        for base in self.bases.clone() {
            let package = base.join(&relative);
            let file = base.join(format!("{relative}.py"));
            if package.is_dir() {
                self.package(&package);
            }
            if file.is_file() {
                self.found.programs.push(file);
            }
        }
    }

    /// Adds all files of a package.
    fn package(&mut self, directory: &Path) {
        self.found.packages.push(directory.to_owned());
        let mut rest = vec![directory.to_owned()];
        let mut seen = 0;
        // Links to directories are followed, and could lead back.
        let mut entered = BTreeSet::new();
        while let Some(below) = rest.pop() {
            let own = std::fs::canonicalize(&below);
            if !own.is_ok_and(|own| entered.insert(own)) {
                continue;
            }
            let Ok(entries) = std::fs::read_dir(&below) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                seen += 1;
                if seen > MAX_FILES {
                    self.found.too_large = Some(directory.to_owned());
                    return;
                }
                let is_skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
                if is_skipped || is_one_of(&path, &self.writable) {
                    continue;
                }
                match () {
                    () if path.is_dir() => rest.push(path),
                    () if path.is_file() => self.found.programs.push(path),
                    () => {}
                }
            }
        }
    }
}

/// Whether a path is one of these, by whatever links.
fn is_one_of(path: &Path, writable: &[PathBuf]) -> bool {
    let canonical = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let own = canonical(path);
    writable.iter().any(|writable| canonical(writable) == own)
}

/// A word, and its parts in case it has the form `--option=FILE` or `-oFILE`.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let attached = word.strip_prefix('-').and_then(|rest| {
        let mut characters = rest.chars();
        characters.next().filter(char::is_ascii_alphabetic)?;
        Some(characters.as_str())
    });
    let parts = [Some(word), value, attached].into_iter().flatten();
    parts.filter(|part| !part.is_empty() && *part != "." && *part != "..")
}

/// A word in which a shell would put the home or the working directory.
fn expanded(word: &str) -> PathBuf {
    for here in ["$PWD/", "${PWD}/"] {
        if let Some(rest) = word.strip_prefix(here) {
            return PathBuf::from(rest);
        }
    }
    for home in ["~/", "$HOME/", "${HOME}/"] {
        if let (Some(rest), Some(directory)) = (word.strip_prefix(home), env::var_os("HOME")) {
            return Path::new(&directory).join(rest);
        }
    }
    PathBuf::from(word)
}

/// Whether a word may be a command line of a shell.
fn is_line(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || ";|&<>()`\"'$".contains(c))
}

/// Whether a word before the program of a command line is none: an assignment, or a keyword of a shell.
fn is_prefix(word: &str) -> bool {
    const KEYWORDS: [&str; 13] = [
        "if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "exec", "command",
        "time",
    ];
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    KEYWORDS.contains(&word) || word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// The interpreter that a word names, without its version: `python3.12` is `python`.
fn interpreter_of(word: &str) -> Option<String> {
    let name = Path::new(word).file_name().and_then(OsStr::to_str)?;
    let is_version = |c: char| c.is_ascii_digit() || "._-".contains(c);
    let name = name.trim_end_matches(is_version);
    INTERPRETERS.contains(&name).then(|| name.to_owned())
}

fn is_shell(interpreter: &str) -> bool {
    interpreter.ends_with("sh")
}

/// Whether an option of a shell gives it a command line, such as `-ec`.
fn is_shell_code(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.ends_with('c')
}

/// Whether a file is code by its extension.
fn is_code(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|own| CODE.iter().any(|code| code.eq_ignore_ascii_case(own)))
}

fn is_executable(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether an interpreter can run a directory.
fn is_package(directory: &Path) -> bool {
    let mut files = PACKAGE_FILES.iter();
    directory.is_dir() && files.any(|name| directory.join(name).is_file())
}

/// The simple commands of a shell command line, each with its words. Commands that are substituted into a word count
/// too.
fn commands(line: &str) -> Vec<Vec<Word>> {
    let mut all = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<String> = None;
    let mut is_output = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\'' => {
                let quoted = word.get_or_insert_default();
                quoted.extend(characters.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let quoted = word.get_or_insert_default();
                let mut text = String::new();
                while let Some(c) = characters.next() {
                    match c {
                        '"' => break,
                        '\\' => text.extend(characters.next()),
                        c => text.push(c),
                    }
                }
                if text.contains("$(") || text.contains('`') {
                    all.extend(commands(&text.replace("$(", ";").replace(['`', ')'], ";")));
                }
                quoted.push_str(&text);
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            '#' if word.is_none() => while characters.next_if(|c| *c != '\n').is_some() {},
            c if c.is_whitespace() || ";|&()`<>".contains(c) => {
                if let Some(text) = word.take() {
                    // `2>` redirects, and 2 is no word.
                    let is_number = text.chars().all(|c| c.is_ascii_digit());
                    if !(is_number && "<>".contains(c)) {
                        words.push(Word {
                            text,
                            is_output: std::mem::take(&mut is_output),
                        });
                    }
                }
                match c {
                    '>' => is_output = true,
                    '<' => is_output = false,
                    // `>&2` and `&>file`.
                    '&' if is_output || characters.peek() == Some(&'>') => {}
                    '|' if is_output => {}
                    c if c == '\n' || !c.is_whitespace() => {
                        is_output = false;
                        all.push(std::mem::take(&mut words));
                    }
                    _ => {}
                }
            }
            '$' if characters.peek() == Some(&'(') => {}
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(|text| Word { text, is_output }));
    all.push(words);
    all.retain(|words| !words.is_empty());
    all
}

/// The program of this name that the directories in `PATH` have.
fn program_in_path(name: &str) -> Option<PathBuf> {
    program_in(&env::var_os("PATH")?, name)
}

fn program_in(lookup: &OsString, name: &str) -> Option<PathBuf> {
    let directories = env::split_paths(lookup);
    let mut programs = directories.map(|directory| directory.join(name));
    programs.find(|program| is_executable(program))
}

/// The digests of these files. One that cannot be read, is not a regular file, or exceeds what is read of all together,
/// has an empty digest.
#[must_use]
pub fn file_digests(paths: &[PathBuf]) -> FileDigests {
    let mut digests = FileDigests::new();
    let mut left = MAX_DIGESTED;
    for path in paths {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        digests
            .entry(path)
            .or_insert_with_key(|path| digest(path, &mut left).unwrap_or_default());
    }
    digests
}

/// The digest of a regular file with at most `left` bytes, which are taken away.
fn digest(path: &Path, left: &mut u64) -> io::Result<String> {
    let (file, size) = open_regular(path)?;
    if size > *left {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut limited = file.take(*left + 1);
    let digest = reader_digest(&mut limited)?;
    // The file may be larger than it says, such as those of `/proc`.
    match limited.limit() {
        0 => Err(io::ErrorKind::FileTooLarge.into()),
        unread => {
            *left = unread - 1;
            Ok(digest)
        }
    }
}

/// Opens a regular file, and returns its size. Pipes and devices could block or never end.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // Opening a pipe blocks without this until its other end is opened.
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata.len())),
        false => {
            let message = "it is not a regular file";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

/// The digest of all that a reader yields.
fn reader_digest(mut reader: impl io::Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => digest.update(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// The coarsest clock of change times. Two changes within this time may have the same change time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// What shows without reading that a file is as it was: no program can set its change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of a file; `None` if a later change may get the same one.
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        (!is_recent(&found)).then(|| Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

fn is_recent(found: &Metadata) -> bool {
    let (Ok(seconds), Ok(nanoseconds)) = (
        u64::try_from(found.ctime()),
        u32::try_from(found.ctime_nsec()),
    ) else {
        return true;
    };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    let passed = SystemTime::now().duration_since(changed);
    passed.map_or(true, |passed| passed < CLOCK_STEP)
}

/// Files as they were at one moment, to find out later which of them changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSnapshot {
    files: BTreeMap<PathBuf, (Option<FileStamp>, String)>,
}

impl FileSnapshot {
    /// The files as they are now. Those that are missing count too.
    #[must_use]
    pub fn take(paths: &[PathBuf]) -> Self {
        // Before the digests: a file that changes meanwhile has another stamp later.
        let stamps: BTreeMap<&PathBuf, Option<FileStamp>> = paths
            .iter()
            .map(|path| (path, FileStamp::of(path)))
            .collect();
        let files = stamps.into_iter().map(|(path, stamp)| {
            let digest = own_digest(path);
            (path.clone(), (stamp, digest))
        });
        Self {
            files: files.collect(),
        }
    }

    /// The files that are not as they were, each with its digest now, which is empty if it cannot be read.
    #[must_use]
    pub fn changes(&self) -> FileDigests {
        let files = self.files.iter();
        let changed = files.filter_map(|(path, (stamp, digest))| {
            if stamp.is_some() && *stamp == FileStamp::of(path) {
                return None;
            }
            let now = own_digest(path);
            (now != *digest).then(|| (path.clone(), now))
        });
        changed.collect()
    }

    /// The files that are not as they were, as [`Self::changes`] returns them. They are remembered as they are now.
    pub fn refresh(&mut self) -> FileDigests {
        let changes = self.changes();
        for (path, digest) in &changes {
            let now = (FileStamp::of(path), digest.clone());
            self.files.insert(path.clone(), now);
        }
        changes
    }

    /// Whether a file is one of these.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }
}

/// Records a file that a program changed, with the digest of its content now and the run whose call it was.
type RecordChange = dyn Fn(&Path, &str, &RunId) -> Result<(), String> + Send + Sync;

/// The files that govern agents, which are compared around each call of a program: no tool may change them unnoticed.
/// All clones are the same.
#[derive(Clone)]
pub struct FileWatch {
    paths: Arc<[PathBuf]>,
    snapshot: Arc<Mutex<FileSnapshot>>,
    record: Arc<RecordChange>,
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWatch")
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

impl FileWatch {
    /// Watches files, which may be missing.
    pub fn new(
        paths: Vec<PathBuf>,
        record: impl Fn(&Path, &str, &RunId) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            snapshot: Arc::new(Mutex::new(FileSnapshot::take(&paths))),
            paths: paths.into(),
            record: Arc::new(record),
        }
    }

    /// The files.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The files that changed since they were last looked at.
    fn refresh(&self) -> FileDigests {
        let snapshot = self.snapshot.lock();
        snapshot.unwrap_or_else(PoisonError::into_inner).refresh()
    }

    /// Remembers the files before a call. What changed until now, no program of this run changed.
    pub(crate) async fn begin(&self) {
        let watch = self.clone();
        let _ = tokio::task::spawn_blocking(move || watch.refresh()).await;
    }

    /// Records what changed during a call of this run.
    pub(crate) async fn end(&self, run: RunId) {
        let watch = self.clone();
        let record = move || {
            for (path, digest) in watch.refresh() {
                let path = std::fs::canonicalize(&path).unwrap_or(path);
                if let Err(error) = (watch.record)(&path, &digest, &run) {
                    warn!(%error, "a change of a file that governs agents was not recorded");
                }
            }
        };
        let _ = tokio::task::spawn_blocking(record).await;
    }
}

/// The programs of a tool as they were when it was bound.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoundPrograms {
    commands: Vec<CommandLine>,
    snapshot: FileSnapshot,
}

impl BoundPrograms {
    /// The programs of a tool and its variants.
    pub(crate) fn of(tool: &Tool) -> Self {
        let commands = tool.implementations().filter_map(|own| match own {
            Implementation::Command(command) => Some(command.clone()),
            Implementation::Http(_) => None,
        });
        let commands: Vec<CommandLine> = commands.collect();
        let files = commands.iter().flat_map(|command| command.files().programs);
        Self {
            snapshot: FileSnapshot::take(&files.collect::<Vec<_>>()),
            commands,
        }
    }

    /// Whether the tool starts no program.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// A file that is not as it was, or that became part of a program.
    pub(crate) fn changed(&self) -> Option<PathBuf> {
        let mut now = self
            .commands
            .iter()
            .flat_map(|command| command.files().programs);
        let changed = self.snapshot.changes().into_keys().next();
        changed.or_else(|| now.find(|path| !self.snapshot.has(path)))
    }
}

fn own_digest(path: &Path) -> String {
    digest(path, &mut MAX_DIGESTED.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
