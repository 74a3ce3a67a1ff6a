//! Programs that are replaced while they are started: between the check and the execution, or by themselves.
//! Before the first call, the server is stopped, and its tools stay unused.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_spec::server::{ServerSettings, Transport};

use super::scripted::{self, eventually};
use super::test_project::{TestProject, connect_once};

/// A server in a shell script, which runs commands when it starts and when it is initialized.
fn script(name: &str, at_start: &str, at_initialize: &str) -> String {
    format!(
        r#"#!/bin/sh
cd {{directory}} || exit 1
{at_start}
sleep 300 > /dev/null 2>&1 &
echo $$ $! >> processes
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
while read -r line; do
  id=${{line##*\"id\":}}; id=${{id%%,*}}; id=${{id%%\}}*}}
  case "$line" in
    *'"server/discover"'*) answer '"error":{{"code":-32601,"message":"no such method"}}' ;;
    *'"initialize"'*) {at_initialize}; answer '"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"{name}","version":"1.0"}}}}' ;;
    *'"tools/list"'*) echo listed >> requests; answer '"result":{{"tools":[]}}' ;;
  esac
done
"#
    )
}

/// A directory with server programs.
struct Programs {
    project: TestProject,
    directory: PathBuf,
}

impl Programs {
    fn new() -> Self {
        let project = TestProject::new();
        let directory = project.path("programs");
        std::fs::create_dir(&directory).unwrap();
        Self { project, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a server that runs commands when it is initialized.
    fn write(&self, file: &str, name: &str, at_initialize: &str) -> PathBuf {
        self.write_script(file, &script(name, ":", at_initialize))
    }

    fn write_script(&self, file: &str, text: &str) -> PathBuf {
        let path = self.path(file);
        let directory = self.directory.display().to_string();
        let text = text.replace("{directory}", &directory);
        std::fs::write(&path, text).unwrap();
        let can_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, can_run).unwrap();
        path
    }

    fn settings(&self, program: &Path, arguments: &[&Path]) -> ServerSettings {
        let mut server = self.project.server("desk", &[]);
        if let Transport::Command(command) = &mut server.transport {
            command.program = program.display().to_string();
            command.arguments = arguments
                .iter()
                .map(|path| path.display().to_string())
                .collect();
        }
        server
    }

    /// Connects to a server. Returns its name, or the error.
    async fn connect(&self, server: &ServerSettings) -> Result<String, String> {
        let options = scripted::options();
        let connected = connect_once(server.clone(), self.project.ledger(), options).await;
        let (info, _) = connected.map_err(|error| error.to_string())?;
        Ok(info.server_name)
    }

    /// Connects to a server that must be stopped because of a change. Returns the error.
    async fn expect_stopped(&self, server: &ServerSettings) -> String {
        let error = self.connect(server).await.unwrap_err();
        assert!(error.contains("changed while it was started"), "{error}");
        // No request other than those of the initialization was sent.
        assert!(!self.path("requests").exists(), "{error}");
        assert_eq!(self.project.ledger().server(&server.name).unwrap(), None);
        let processes = std::fs::read_to_string(self.path("processes")).unwrap();
        let is_running = || {
            let mut ids = processes.split_whitespace();
            ids.any(|id| Path::new("/proc").join(id).join("exe").exists())
        };
        eventually("the server and its child are gone", || !is_running()).await;
        error
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_files_stay_the_same_is_used() {
    let programs = Programs::new();
    let program = programs.write("server", "good", ":");
    let server = programs.settings(&program, &[]);
    for _ in 0..2 {
        assert_eq!(programs.connect(&server).await.as_deref(), Ok("good"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_replaces_its_own_program_by_a_copy_is_stopped() {
    let programs = Programs::new();
    let program = programs.write("server", "good", "cp -p server copy && mv copy server");
    let error = programs
        .expect_stopped(&programs.settings(&program, &[]))
        .await;
    assert!(error.contains("was replaced by another file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_writes_to_its_program_and_restores_it_is_stopped() {
    let programs = Programs::new();
    let attack = "cp server copy && echo '# more' >> server && cat copy > server";
    let program = programs.write("server", "good", attack);
    let error = programs
        .expect_stopped(&programs.settings(&program, &[]))
        .await;
    assert!(
        error.contains("was changed or moved, and restored"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_removes_its_program_is_stopped() {
    let programs = Programs::new();
    let program = programs.write("server", "good", "rm server");
    programs
        .expect_stopped(&programs.settings(&program, &[]))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_the_program_that_gets_another_target_is_detected() {
    let programs = Programs::new();
    programs.write("other", "evil", ":");
    let attack = "ln -s other new && mv -T new server";
    let real = programs.write("real", "good", attack);
    symlink(real, programs.path("server")).unwrap();
    let server = programs.settings(&programs.path("server"), &[]);
    let error = programs.expect_stopped(&server).await;
    assert!(error.contains("the executable is now"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_has_another_target_for_a_moment_is_detected() {
    let programs = Programs::new();
    // The link was to `real` when it was checked, and is again.
    let attack = "ln -s real new && mv -T new server";
    programs.write("real", "good", attack);
    symlink("real", programs.path("server")).unwrap();
    let server = programs.settings(&programs.path("server"), &[]);
    let error = programs.expect_stopped(&server).await;
    assert!(error.contains("was replaced by another file"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_an_interpreter_that_is_replaced_is_detected() {
    let programs = Programs::new();
    let attack = "cp -p server.sh copy && mv copy server.sh";
    let program = programs.write("server.sh", "good", attack);
    let server = programs.settings(Path::new("/bin/sh"), &[&program]);
    let error = programs.expect_stopped(&server).await;
    assert!(error.contains("server.sh` was replaced"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_during_a_failed_start_is_not_hidden_by_the_next_start() {
    let programs = Programs::new();
    // The first start ends without an answer, so the server is started in the other era.
    let attack = "[ -e again ] || { touch again; cp -p server copy; mv copy server; exit 3; }";
    let program = programs.write_script("server", &script("good", attack, ":"));
    let server = programs.settings(&program, &[]);
    let error = programs.connect(&server).await.unwrap_err();
    assert!(error.contains("changed while it was started"), "{error}");
    assert!(!programs.path("processes").exists(), "{error}");
}

/// Another process puts its own program in the place of the accepted one for a moment, and moves the very
/// same file back.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_swapped_during_the_start_never_becomes_the_server() {
    const STARTS: usize = 300;
    let programs = Programs::new();
    let program = programs.write("server", "good", ":");
    programs.write("evil", "evil", ":");
    let server = programs.settings(&program, &[]);
    assert_eq!(programs.connect(&server).await.as_deref(), Ok("good"));
    let mut seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |now| now.as_nanos() as u64);
    let mut random_delay = move || {
        // Xorshift.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        Duration::from_micros(seed % 30_000)
    };
    let (mut used, mut refused) = (0, 0);
    for _ in 0..STARTS {
        let (before, during) = (random_delay(), random_delay());
        let [program, aside, evil] = ["server", "aside", "evil"].map(|name| programs.path(name));
        let swap = thread::spawn(move || {
            thread::sleep(before);
            std::fs::rename(&program, &aside).unwrap();
            std::fs::rename(&evil, &program).unwrap();
            thread::sleep(during);
            std::fs::rename(&program, &evil).unwrap();
            std::fs::rename(&aside, &program).unwrap();
        });
        match programs.connect(&server).await {
            Ok(name) => {
                assert_eq!(name, "good", "after {used} starts and {refused} refusals");
                used += 1;
            }
            Err(_) => refused += 1,
        }
        swap.join().unwrap();
    }
    assert!(used > 0 && refused > 0, "{used} used, {refused} refused");
}
