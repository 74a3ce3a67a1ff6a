//! What a command is given before it starts: what is covered, which files it may open, and whether it has a network.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use tracing::warn;
use windlass_spec::{IsolationLevel, ProgramAccess};

use crate::aliases::aliases;
use crate::child::{Cover, Namespaces, Setup, install};
use crate::landlock::{FileRules, ruleset};
use crate::program::{add_system, directories, find};
use crate::support::{Hiding, Support, terminals};

/// The services of a user that start programs, such as `systemd --user`. They are below this directory.
const USER_SERVICES: &str = "/run/user";

/// The variables that lead to these services. A program that is given one of them may use them.
const SERVICE_VARIABLES: [&str; 2] = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Why a program cannot be started with the isolation that it must have.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// The system does not give what is declared or demanded.
    #[error(
        "{what}, and this system cannot enforce that: {why}\n\
         hint: `windlass doctor` shows what the system gives; `isolation = \"{accepted}\"` in windlass.toml starts it with less"
    )]
    Unavailable {
        /// What it must have.
        what: &'static str,
        /// What is missing.
        why: String,
        /// The level that accepts it.
        accepted: &'static str,
    },
    /// A declared file does not exist.
    #[error(
        "it declares `{0}`, which does not exist; create it, or declare the directory that it is in"
    )]
    MissingFile(PathBuf),
    /// A path cannot be used.
    #[error("`{path}` cannot be used: {source}")]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The rules for files cannot be made.
    #[error("the files it may open cannot be restricted: {0}")]
    Rules(String),
}

/// Something of Windlass that no program may open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hidden {
    path: PathBuf,
    /// What is covered in it if a program is in it too.
    private: &'static [&'static str],
}

/// How an installation isolates the programs that it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    level: IsolationLevel,
    hidden: Vec<Hidden>,
    /// What a program cannot write, even if it declares a directory around it as writable.
    kept: Vec<PathBuf>,
}

/// The most files that are kept for one program. Each is a mount.
const MAX_KEPT: usize = 500;

impl Isolation {
    /// Isolation of this level that hides nothing but terminals.
    #[must_use]
    pub fn new(level: IsolationLevel) -> Self {
        Self {
            level,
            hidden: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Hides a file or a directory with everything in it.
    #[must_use]
    pub fn hiding(mut self, path: impl Into<PathBuf>) -> Self {
        self.hidden.push(Hidden {
            path: path.into(),
            private: &[],
        });
        self
    }

    /// Hides a directory. If a program, its files or the home directory are in it, only these entries are hidden.
    #[must_use]
    pub fn hiding_data(
        mut self,
        path: impl Into<PathBuf>,
        private: &'static [&'static str],
    ) -> Self {
        self.hidden.push(Hidden {
            path: path.into(),
            private,
        });
        self
    }

    /// Keeps these files and directories as they are: a program cannot write them, even if it declares a directory
    /// around them as writable. Those that do not exist are left out.
    #[must_use]
    pub fn keeping(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.kept.extend(paths);
        self
    }

    /// Prepares a command, whose program, directory and environment are set. It must not get a process group: it starts
    /// as the leader of a session and a group.
    ///
    /// # Errors
    /// If it must be isolated in a way that the system cannot enforce, or declares files that do not exist.
    pub fn confine(
        &self,
        command: &mut Command,
        access: &ProgramAccess,
    ) -> Result<(), ConfinementError> {
        let setup = self.setup(command, access, Support::of_kernel())?;
        install(command, setup);
        Ok(())
    }

    fn setup(
        &self,
        command: &Command,
        access: &ProgramAccess,
        support: Support,
    ) -> Result<Setup, ConfinementError> {
        let program = ProgramFiles::of(command, access)?;
        let covered = match (self.level, support.hiding) {
            (IsolationLevel::Off, _) => None,
            (_, Hiding::Impossible) => {
                self.require(
                    IsolationLevel::Strict,
                    "keys and data are to be out of its reach",
                    "it allows no mounts, for lack of user namespaces".to_owned(),
                )?;
                warn_of_reach();
                None
            }
            _ => Some(self.covered(command, &program)?),
        };
        let ruleset = match access.is_confined() {
            true => self.ruleset(&program, access, support, covered.is_some())?,
            false => None,
        };
        let is_offline = access.is_offline && support.offline;
        if access.is_offline && !support.offline {
            self.require(
                IsolationLevel::Declared,
                "it is declared offline",
                "it allows no network namespaces".to_owned(),
            )?;
        }
        // A network namespace needs the others, whatever the level.
        let is_inherited = covered.is_none() && !is_offline;
        Ok(Setup {
            namespaces: match is_inherited {
                true => Namespaces::Inherited,
                false => support.hiding.namespaces(),
            },
            covers: covered.unwrap_or_default(),
            is_offline,
            directory: text(&program.directory)?,
            keeps_privileges: self.level == IsolationLevel::Off,
            ruleset,
        })
    }

    /// An error if the level demands what cannot be had.
    fn require(
        &self,
        by: IsolationLevel,
        what: &'static str,
        why: String,
    ) -> Result<(), ConfinementError> {
        match self.level >= by {
            true => Err(ConfinementError::Unavailable {
                what,
                why,
                accepted: match by {
                    IsolationLevel::Strict => IsolationLevel::Declared.as_str(),
                    _ => IsolationLevel::BestEffort.as_str(),
                },
            }),
            false => Ok(()),
        }
    }

    /// The existing files and directories of Windlass, by every path. None is in another one.
    fn hidden_paths(&self, program: &ProgramFiles) -> Vec<PathBuf> {
        let mut paths = BTreeSet::new();
        for hidden in &self.hidden {
            let Ok(path) = std::fs::canonicalize(&hidden.path) else {
                // What does not exist cannot be read.
                continue;
            };
            let is_shared = !hidden.private.is_empty() && program.is_in(&path);
            let found: Vec<PathBuf> = match is_shared {
                true => {
                    let entries = hidden.private.iter().map(|name| path.join(name));
                    entries.filter(|entry| entry.exists()).collect()
                }
                false => vec![path],
            };
            for path in found {
                paths.extend(aliases(&path));
                paths.insert(path);
            }
        }
        // Sorted, so that a directory is before what is in it.
        let mut outermost: Vec<PathBuf> = Vec::new();
        for path in paths {
            if !outermost.iter().any(|outer| path.starts_with(outer)) {
                outermost.push(path);
            }
        }
        outermost
    }

    /// What exists and is kept as it is in the directories that a program declares as writable.
    fn kept_paths(&self, program: &ProgramFiles) -> BTreeSet<PathBuf> {
        if program.writable.is_empty() {
            return BTreeSet::new();
        }
        let hidden = self.hidden_paths(program);
        let kept = self
            .kept
            .iter()
            .filter_map(|path| std::fs::canonicalize(path).ok());
        kept.filter(|path| {
            let is_in = |directories: &[PathBuf]| {
                directories
                    .iter()
                    .any(|directory| path.starts_with(directory))
            };
            is_in(&program.writable) && !is_in(&hidden)
        })
        .take(MAX_KEPT)
        .collect()
    }

    /// Everything that is covered for a program.
    fn covered(
        &self,
        command: &Command,
        program: &ProgramFiles,
    ) -> Result<Vec<Cover>, ConfinementError> {
        let mut covers = terminals();
        let mut paths = self.hidden_paths(program);
        paths.extend(own_terminals());
        let uses_services = command.get_envs().any(|(name, value)| {
            value.is_some() && SERVICE_VARIABLES.iter().any(|own| name == *own)
        });
        let services = Path::new(USER_SERVICES);
        if !uses_services && services.is_dir() && !program.is_in(services) {
            paths.push(services.to_owned());
        }
        for path in paths {
            let is_directory = path.is_dir();
            let path = text(&path)?;
            covers.push(match is_directory {
                true => Cover::Directory(path),
                false => Cover::File(path),
            });
        }
        for path in self.kept_paths(program) {
            covers.push(Cover::ReadOnly(text(&path)?));
        }
        Ok(covers)
    }

    /// The rules for a program that declares its files.
    fn ruleset(
        &self,
        program: &ProgramFiles,
        access: &ProgramAccess,
        support: Support,
        is_covered: bool,
    ) -> Result<Option<OwnedFd>, ConfinementError> {
        if !support.restricts_files() {
            let why = match support.landlock {
                0 => "it has no Landlock".to_owned(),
                version => format!(
                    "it has version {version} of Landlock, and version {} is needed",
                    Support::NEEDED_LANDLOCK
                ),
            };
            self.require(IsolationLevel::Declared, "its files are declared", why)?;
        }
        let hidden = self.hidden_paths(program);
        let is_private = |directory: &Path| {
            let holds = |path: &PathBuf| path.starts_with(directory);
            program.home.as_ref().is_some_and(holds) || hidden.iter().any(holds)
        };
        let own = directories(&program.file, &program.search, is_private);
        let mut rules = FileRules::default();
        add_system(&mut rules);
        rules.runnable.extend(own);
        rules.runnable.push(program.directory.clone());
        let absolute = |path: &PathBuf| program.absolute(path);
        rules
            .readable
            .extend(access.files.iter().flatten().map(absolute));
        rules
            .writable
            .extend(access.writable_files.iter().map(absolute));
        let opened = rules
            .readable
            .iter()
            .chain(&rules.runnable)
            .chain(&rules.writable);
        let mut opened =
            opened.map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
        if !is_covered && opened.any(|path| hidden.iter().any(|hidden| hidden.starts_with(&path))) {
            self.require(
                IsolationLevel::Declared,
                "its files are declared, and data of Windlass is among them",
                "it allows no mounts, for lack of user namespaces".to_owned(),
            )?;
        }
        ruleset(&rules).map_err(|error| ConfinementError::Rules(error.to_string()))
    }
}

/// Where a program and its files are.
struct ProgramFiles {
    file: PathBuf,
    /// The directories in which programs are looked up.
    search: OsString,
    /// Its working directory.
    directory: PathBuf,
    home: Option<PathBuf>,
    /// The files that it declares.
    declared: Vec<PathBuf>,
    /// Those among them that it writes.
    writable: Vec<PathBuf>,
}

impl ProgramFiles {
    fn of(command: &Command, access: &ProgramAccess) -> Result<Self, ConfinementError> {
        let directory = command.get_current_dir().unwrap_or(Path::new("."));
        let directory =
            std::fs::canonicalize(directory).map_err(|source| ConfinementError::Path {
                path: directory.to_owned(),
                source,
            })?;
        let set = command
            .get_envs()
            .find(|(name, _)| *name == OsStr::new("PATH"));
        let search = set
            .and_then(|(_, path)| path.map(OsStr::to_owned))
            .or_else(|| std::env::var_os("PATH"))
            .unwrap_or_default();
        // One that is not found is reported when it is started.
        let program = command.get_program();
        let file = find(program, &search).unwrap_or_else(|| PathBuf::from(program));
        let mut files = Self {
            file: directory.join(file),
            search,
            directory,
            home: std::env::var_os("HOME").map(PathBuf::from),
            declared: Vec::new(),
            writable: Vec::new(),
        };
        for path in access.declared() {
            let path = files.absolute(path);
            match std::fs::canonicalize(&path) {
                Ok(path) => files.declared.push(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(ConfinementError::MissingFile(path));
                }
                Err(source) => return Err(ConfinementError::Path { path, source }),
            }
        }
        let writable = access
            .writable_files
            .iter()
            .map(|path| files.absolute(path));
        files.writable = writable
            .filter_map(|path| std::fs::canonicalize(path).ok())
            .collect();
        Ok(files)
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }

    /// Whether the program, its files or the home directory are in a directory.
    fn is_in(&self, directory: &Path) -> bool {
        let file = std::fs::canonicalize(&self.file).ok();
        let mut all = [&self.file, &self.directory]
            .into_iter()
            .chain(&file)
            .chain(&self.home)
            .chain(&self.declared);
        all.any(|path| path.starts_with(directory))
    }
}

/// The terminals that this process has open, if others do not cover them: consoles and serial lines.
fn own_terminals() -> Vec<PathBuf> {
    let streams =
        (0..3).filter_map(|stream| std::fs::read_link(format!("/proc/self/fd/{stream}")).ok());
    let mut found: Vec<PathBuf> = streams
        .filter(|path| path.starts_with("/dev") && !path.starts_with("/dev/pts"))
        .filter(|path| is_terminal(path))
        .collect();
    found.sort();
    found.dedup();
    found
}

fn is_terminal(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_device = path
        .metadata()
        .is_ok_and(|found| found.file_type().is_char_device());
    is_device && (name.starts_with("tty") || name == "console")
}

/// Reports once that programs can reach keys and data.
fn warn_of_reach() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        warn!(
            "programs can reach keys and data: this system allows no mounts; see `windlass doctor`"
        );
    });
}

fn text(path: &Path) -> Result<CString, ConfinementError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| ConfinementError::Path {
        path: path.to_owned(),
        source: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Support = Support {
        hiding: Hiding::Impossible,
        landlock: 0,
        offline: false,
    };

    fn setup(
        level: IsolationLevel,
        access: &ProgramAccess,
        support: Support,
    ) -> Result<Setup, ConfinementError> {
        Isolation::new(level).setup(&Command::new("true"), access, support)
    }

    fn confined() -> ProgramAccess {
        ProgramAccess {
            files: Some(Vec::new()),
            ..ProgramAccess::default()
        }
    }

    fn offline() -> ProgramAccess {
        ProgramAccess {
            is_offline: true,
            ..ProgramAccess::default()
        }
    }

    #[test]
    fn what_is_declared_and_cannot_be_enforced_is_an_error() {
        use IsolationLevel::{BestEffort, Declared, Off, Strict};
        let undeclared = ProgramAccess::default();
        for (access, accepting) in [
            (&undeclared, [Off, BestEffort, Declared].as_slice()),
            (&confined(), &[Off, BestEffort]),
            (&offline(), &[Off, BestEffort]),
        ] {
            for level in IsolationLevel::ALL {
                let prepared = setup(level, access, NOTHING);
                assert_eq!(
                    prepared.is_ok(),
                    accepting.contains(&level),
                    "{level:?} {access}"
                );
            }
        }
        let error = setup(Declared, &offline(), NOTHING)
            .unwrap_err()
            .to_string();
        assert!(error.contains("isolation = \"best_effort\""), "{error}");
        let error = setup(Strict, &undeclared, NOTHING).unwrap_err().to_string();
        assert!(error.contains("isolation = \"declared\""), "{error}");
    }

    #[test]
    fn an_old_landlock_does_not_enforce_what_is_declared() {
        let old = Support {
            hiding: Hiding::InUserNamespace,
            landlock: 2,
            offline: true,
        };
        let error = setup(IsolationLevel::Declared, &confined(), old).unwrap_err();
        assert!(
            error.to_string().contains("version 2 of Landlock"),
            "{error}"
        );
        let setup = setup(IsolationLevel::Strict, &offline(), old).unwrap();
        assert!(setup.is_offline);
    }

    #[test]
    fn a_declared_file_must_exist() {
        let access = ProgramAccess {
            files: Some(vec!["/no/such/file".into()]),
            ..ProgramAccess::default()
        };
        let error = setup(IsolationLevel::Off, &access, NOTHING).unwrap_err();
        assert!(matches!(error, ConfinementError::MissingFile(_)), "{error}");
    }

    #[test]
    fn data_around_a_program_is_hidden_and_the_program_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap();
        std::fs::write(path.join("windlass.db"), "").unwrap();
        std::fs::create_dir(path.join("tool")).unwrap();
        let isolation = Isolation::default().hiding_data(&path, &["windlass.db", "tokens"]);
        let hidden = |directory: &Path| {
            let mut command = Command::new("true");
            command.current_dir(directory);
            let program = ProgramFiles::of(&command, &ProgramAccess::default()).unwrap();
            isolation.hidden_paths(&program)
        };
        assert_eq!(hidden(Path::new("/")), std::slice::from_ref(&path));
        assert_eq!(hidden(&path.join("tool")), [path.join("windlass.db")]);
    }

    #[test]
    fn nothing_is_covered_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::create_dir(path.join("c")).unwrap();
        let isolation = Isolation::default()
            .hiding(path.join("a/b"))
            .hiding(path.join("a"))
            .hiding(path.join("c"))
            .hiding(path.join("c"))
            .hiding(path.join("missing"));
        let program = ProgramFiles::of(&Command::new("true"), &ProgramAccess::default()).unwrap();
        assert_eq!(
            isolation.hidden_paths(&program),
            [path.join("a"), path.join("c")]
        );
    }
}
