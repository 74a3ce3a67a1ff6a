//! Runs the program in a temporary directory.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windlass_keys::{Approver, ApproverKey, ApproverList, Approvers, KeyDirectory};

/// A temporary project directory, deleted at the end of the test.
pub(super) struct TestProject {
    directory: tempfile::TempDir,
}

impl TestProject {
    pub(super) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    /// Enrols approvers whose keys may approve unattended. The installation belongs to the first one.
    pub(super) fn with_approvers(self, names: &[&str]) -> Self {
        let approvers =
            Approvers::in_directory(KeyDirectory::new(self.path("state/windlass/keys")));
        for name in names {
            approvers.establish(name, 0).unwrap();
            let change = |list: &mut ApproverList| {
                if list.find(name).is_none() {
                    let key = ApproverKey::create(approvers.directory(), name, None)?;
                    list.add(Approver {
                        name: (*name).to_owned(),
                        key: key.map(|key| key.public()),
                        unattended: false,
                        added_at: 0,
                    })?;
                }
                let mut all = list.approvers.iter_mut();
                all.find(|one| one.name == *name).unwrap().unattended = true;
                Ok(())
            };
            approvers.change(change).unwrap();
        }
        self
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env_remove("NO_COLOR")
            .env_remove("OPENAI_API_KEY")
            .env("WINDLASS_DATA", self.path("data"))
            // Ignores the configuration of the user who runs the tests.
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            // Tests write their projects themselves. The tests of trust remove this.
            .env("WINDLASS_TRUST_PROJECT", "1")
            .env("WINDLASS_TEST_ADMIN_FILE", self.path("admin.toml"));
        command
    }

    /// Runs the program and returns its output and exit code.
    pub(super) fn run(&self, arguments: &[&str]) -> String {
        self.run_with_input(arguments, "")
    }

    pub(super) fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> String {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let mut printed = String::new();
        let parts = [("stdout", &output.stdout), ("stderr", &output.stderr)];
        for (name, bytes) in parts.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
            writeln!(printed, "--- {name}\n{}", String::from_utf8_lossy(bytes)).unwrap();
        }
        writeln!(printed, "--- exit code {:?}", output.status.code().unwrap()).unwrap();
        printed
    }
}

/// Reads an example file.
pub(super) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}
