mod confinement;
mod groups;
mod reach;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use windlass_spawn::Isolation;
use windlass_spec::ProgramAccess;

/// An ordinary user, who need not exist.
const USER: &str = "4321";

/// Runs a test, and runs it again as an ordinary user if this is root.
fn as_everyone(name: &str, test: impl FnOnce()) {
    test();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && std::env::var_os("WINDLASS_TEST_AGAIN").is_none() {
        let message = format!(
            "SKIPPED: `{name}` did not run as another user, because this process is not root"
        );
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("{message}");
    }
    if is_root {
        rerun(
            name,
            &[
                "setpriv",
                "--reuid",
                USER,
                "--regid",
                USER,
                "--clear-groups",
                "--",
            ],
        );
    }
}

/// Runs a test of this program again, by another program.
fn rerun(name: &str, by: &[&str]) {
    let place = Place::new();
    // The user may not be allowed to enter the directory of the program.
    let program = place.path("tests");
    // By another process: a child that a test starts meanwhile would keep the copy open for writing for a moment, and a
    // program that is open for writing cannot be started.
    let copied = Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    let temporary = place.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    std::fs::set_permissions(&temporary, Permissions::from_mode(0o777)).unwrap();
    let output = Command::new(by[0])
        .args(&by[1..])
        .arg(&program)
        .args(["--exact", &format!("suite::{name}"), "--nocapture"])
        .env("TMPDIR", &temporary)
        .env("WINDLASS_TEST_AGAIN", "1")
        .env("HOME", &temporary)
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as {by:?}: {text}{errors}");
    assert!(text.contains("1 passed"), "as {by:?}: {text}{errors}");
}

/// A directory that all users can enter, with what an installation has.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    /// With keys, data and another file.
    fn with_files() -> Self {
        let place = Self::new();
        for (name, text) in [
            ("keys/journal.key", "SECRET"),
            ("data/windlass.db", "SECRET"),
            ("other/file", "OTHER"),
            ("tool/part", "PART"),
        ] {
            let path = place.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn isolation(&self) -> Isolation {
        Isolation::default()
            .hiding(self.path("keys"))
            .hiding_data(self.path("data"), &["windlass.db"])
    }

    /// What a shell script prints, with its errors, in the directory of this place. Its arguments are these paths.
    fn run(&self, isolation: &Isolation, access: &ProgramAccess, script: &str) -> String {
        self.run_in("tool", isolation, access, script)
    }

    fn run_in(
        &self,
        directory: &str,
        isolation: &Isolation,
        access: &ProgramAccess,
        script: &str,
    ) -> String {
        let directory = self.path(directory);
        let mut command = shell(script, &directory, self.directory.path());
        isolation.confine(&mut command, access).unwrap();
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A shell script. `$1` is a directory.
fn shell(script: &str, directory: &Path, argument: &Path) -> Command {
    let mut command = Command::new("bash");
    command
        .args(["-c", script, "sh"])
        .arg(argument)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::null());
    command
}
